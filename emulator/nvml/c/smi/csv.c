/* The queries whose answers are csv, and the lists of their fields. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "driver.h"
#include "gpus.h"

enum { BAD_FIELD = 2, EVENT_REASONS_SINCE = 535 };

static const char FORMATS[] = "\"--format\" takes csv[,noheader][,nounits].";

typedef struct {
    int header, units;
} Format;

static int format_of(const char *words, Format *format) {
    int csv = 0;
    *format = (Format){1, 1};
    size_t length;
    for (const char *word; (word = next_word(&words, &length)) != NULL;) {
        if (length == 3 && strncmp(word, "csv", 3) == 0) csv = 1;
        else if (length == 8 && strncmp(word, "noheader", 8) == 0) format->header = 0;
        else if (length == 7 && strncmp(word, "nounits", 7) == 0) format->units = 0;
        else return 0;
    }
    return csv;
}

/* The next word of a comma list, without spaces around; NULL at its end. */
static const char *next_field(const char **list, size_t *length) {
    size_t whole;
    const char *word = next_word(list, &whole);
    if (word == NULL) return NULL;
    while (whole > 0 && *word == ' ') word++, whole--;
    while (whole > 0 && word[whole - 1] == ' ') whole--;
    *length = whole;
    return word;
}

static int bad_field(const char *word, size_t length) {
    printf("Field \"%.*s\" is not a valid field to query.\n\n", (int)length, word);
    return BAD_FIELD;
}

static void cell(int first, const char *text, const char *unit) {
    printf("%s%s%s%s", first ? "" : ", ", text, unit ? " " : "", unit ? unit : "");
}

/* Why there is no value stands in brackets. */
static void gpu_cell(int first, Device device, const Field *field, int units) {
    char value[VALUE_SIZE] = {0}, bracketed[VALUE_SIZE + 2];
    Return result = NOT_SUPPORTED;
    int replaced = driver_replaces(field->instead, value);
    if (!replaced) result = field_value(device, field, value);
    if (result == OK) {
        cell(first, value, units ? field->unit : NULL);
        return;
    }
    const char *why = replaced ? value : result == NOT_SUPPORTED ? "N/A" : api.nvmlErrorString(result);
    snprintf(bracketed, sizeof bracketed, "[%s]", why);
    cell(first, bracketed, NULL);
}

/* The first name is the one in the header, whichever was asked for. Before 535 the reasons had their older name. */
static const char *header_of(const Field *field) {
    static const char NEW_REASONS[] = "clocks_event_reasons.";
    int renamed = strncmp(field->name, NEW_REASONS, sizeof NEW_REASONS - 1) == 0 && field->alias;
    return renamed && driver_branch() < EVENT_REASONS_SINCE ? field->alias : field->name;
}

static void head(int first, const char *name, const char *unit, int units) {
    printf("%s%s", first ? "" : ", ", name);
    if (unit && units) printf(" [%s]", unit);
}

static int gpu_header(const char *fields, const Format *format) {
    size_t length;
    const char *rest = fields, *word;
    while ((word = next_field(&rest, &length)) != NULL)
        if (query_field(word, length) == NULL) return bad_field(word, length);
    rest = fields;
    for (int first = 1; format->header && (word = next_field(&rest, &length)) != NULL; first = 0) {
        const Field *field = query_field(word, length);
        head(first, header_of(field), field->unit, format->units);
    }
    if (format->header) putchar('\n');
    return 0;
}

int query_gpus(const char *ids, const char *fields, const char *format_words) {
    Format format;
    if (!format_of(format_words, &format)) return misused(FORMATS);
    Selection selection = select_gpus(ids, "No devices were found");
    int code = gpu_header(fields, &format);
    for (unsigned i = 0; code == 0 && i < selection.count; i++) {
        size_t length;
        const char *rest = fields, *word;
        for (int first = 1; (word = next_field(&rest, &length)) != NULL; first = 0)
            gpu_cell(first, selection.devices[i], field_named(word, length), format.units);
        putchar('\n');
    }
    free(selection.devices);
    return code;
}

/* ---- Several records a GPU ---- */

typedef struct {
    const char *name, *alias, *unit;
    const char *field; /* of the GPU; NULL: of the record, the next of its values */
} Column;

enum { OWN = 6 };

typedef struct {
    const char *fields;
    Format format;
    const struct Query *query;
    Device device;
} Writing;

typedef struct Query {
    const char *option;
    const Column *columns; /* the one without a name ends them */
    void (*records)(const Writing *writing);
} Query;

#define OF_GPU \
    {"timestamp", NULL, NULL, "timestamp"}, {"gpu_name", NULL, NULL, "name"}, \
        {"gpu_bus_id", NULL, NULL, "pci.bus_id"}, {"gpu_serial", NULL, NULL, "serial"}, \
        {"gpu_uuid", NULL, NULL, "uuid"}
#define END {NULL, NULL, NULL, NULL}

static const Column OF_PROCESSES[] = {
    OF_GPU, {"pid", NULL, NULL, NULL}, {"process_name", "name", NULL, NULL},
    {"used_gpu_memory", "used_memory", "MiB", NULL}, END};
static const Column OF_ACCOUNTED[] = {
    OF_GPU, {"vgpu_instance", NULL, NULL, NULL}, {"pid", NULL, NULL, NULL}, {"gpu_utilization", "gpu_util", "%", NULL},
    {"mem_utilization", "mem_util", "%", NULL}, {"max_memory_usage", NULL, "MiB", NULL}, {"time", NULL, "ms", NULL}, END};
static const Column OF_RETIRED[] = {
    OF_GPU, {"retired_pages.address", NULL, NULL, NULL}, {"retired_pages.timestamp", NULL, NULL, NULL},
    {"retired_pages.cause", NULL, NULL, NULL}, END};
static const Column OF_REMAPPED[] = {
    OF_GPU, {"remapped_rows.correctable", NULL, NULL, "remapped_rows.correctable"},
    {"remapped_rows.uncorrectable", NULL, NULL, "remapped_rows.uncorrectable"},
    {"remapped_rows.pending", NULL, NULL, "remapped_rows.pending"},
    {"remapped_rows.failure", NULL, NULL, "remapped_rows.failure"}, END};
static const Column OF_CLOCKS[] = {
    OF_GPU, {"memory", "mem", "MHz", NULL}, {"graphics", "gr", "MHz", NULL}, END};

static const Column *column_named(const Query *query, const char *word, size_t length) {
    for (const Column *column = query->columns; column->name; column++) {
        if (strlen(column->name) == length && strncmp(column->name, word, length) == 0) return column;
        if (column->alias && strlen(column->alias) == length && strncmp(column->alias, word, length) == 0) return column;
    }
    return NULL;
}

static void record_cell(int first, const Writing *writing, const Column *column, char own[OWN][VALUE_SIZE]) {
    if (column->field) {
        gpu_cell(first, writing->device, field_named(column->field, strlen(column->field)), writing->format.units);
        return;
    }
    int place = 0;
    for (const Column *before = writing->query->columns; before < column; before++) place += before->field == NULL;
    cell(first, own[place], writing->format.units ? column->unit : NULL);
}

static void record(const Writing *writing, char own[OWN][VALUE_SIZE]) {
    size_t length;
    const char *rest = writing->fields, *word;
    for (int first = 1; (word = next_field(&rest, &length)) != NULL; first = 0)
        record_cell(first, writing, column_named(writing->query, word, length), own);
    putchar('\n');
}

static void process_records(const Writing *writing) {
    unsigned count;
    char own[OWN][VALUE_SIZE];
    SmiProcess *processes = processes_of(writing->device, &count);
    for (unsigned i = 0; i < count; i++) {
        if (processes[i].kind != 'C') continue;
        snprintf(own[0], VALUE_SIZE, "%u", processes[i].info.pid);
        snprintf(own[1], VALUE_SIZE, "%s", processes[i].name);
        snprintf(own[2], VALUE_SIZE, "%llu", processes[i].info.used_memory >> 20);
        record(writing, own);
    }
    free(processes);
}

/* What was accounted, in the order in which processes ended. Bare metal has no virtual GPU. */
static void accounted_records(const Writing *writing) {
    unsigned count = 0;
    char own[OWN][VALUE_SIZE];
    api.nvmlDeviceGetAccountingPids(writing->device, &count, NULL);
    unsigned *pids = calloc(count + 1, sizeof *pids);
    if (pids == NULL || api.nvmlDeviceGetAccountingPids(writing->device, &count, pids) != OK) count = 0;
    for (unsigned i = 0; i < count; i++) {
        AccountingStats stats;
        if (api.nvmlDeviceGetAccountingStats(writing->device, pids[i], &stats) != OK) continue;
        strcpy(own[0], "[N/A]");
        snprintf(own[1], VALUE_SIZE, "%u", pids[i]);
        snprintf(own[2], VALUE_SIZE, "%u", stats.gpu);
        snprintf(own[3], VALUE_SIZE, "%u", stats.memory);
        snprintf(own[4], VALUE_SIZE, "%llu", stats.max_memory >> 20);
        snprintf(own[5], VALUE_SIZE, "%llu", stats.time);
        record(writing, own);
    }
    free(pids);
}

static void retired_records(const Writing *writing) {
    static const char *const CAUSES[] = {"Single Bit ECC", "Double Bit ECC"};
    for (unsigned cause = 0; cause < sizeof CAUSES / sizeof *CAUSES; cause++) {
        unsigned count = 0;
        char own[OWN][VALUE_SIZE];
        Return result = api.nvmlDeviceGetRetiredPages(writing->device, cause, &count, NULL);
        if (result == NOT_SUPPORTED) { /* boards that remap rows instead (captures of H200 and L40S) */
            strcpy(own[0], "[N/A]");
            strcpy(own[1], "[N/A]");
            strcpy(own[2], CAUSES[cause]);
            record(writing, own);
        }
        if (result != OK) continue;
        unsigned long long *pages = calloc(2 * count + 1, sizeof *pages);
        if (pages == NULL || api.nvmlDeviceGetRetiredPages_v2(writing->device, cause, &count, pages, pages + count) != OK)
            count = 0;
        for (unsigned i = 0; i < count; i++) {
            snprintf(own[0], VALUE_SIZE, "0x%016llx", pages[i]);
            strcpy(own[1], "[N/A]");
            strcpy(own[2], CAUSES[cause]);
            record(writing, own);
        }
        free(pages);
    }
}

static void row_records(const Writing *writing) { record(writing, NULL); }

static void clock_records(const Writing *writing) {
    char own[OWN][VALUE_SIZE];
    unsigned memories;
    unsigned *memory = clock_list(writing->device, 0, 0, &memories);
    for (unsigned i = 0; i < memories; i++) {
        unsigned count;
        unsigned *graphics = clock_list(writing->device, memory[i], 1, &count);
        snprintf(own[0], VALUE_SIZE, "%u", memory[i]);
        for (unsigned j = 0; j < count; j++) {
            snprintf(own[1], VALUE_SIZE, "%u", graphics[j]);
            record(writing, own);
        }
        free(graphics);
    }
    free(memory);
}

static const Query QUERIES[] = {
    {"compute-apps", OF_PROCESSES, process_records}, {"accounted-apps", OF_ACCOUNTED, accounted_records},
    {"retired-pages", OF_RETIRED, retired_records},   {"remapped-rows", OF_REMAPPED, row_records},
    {"supported-clocks", OF_CLOCKS, clock_records},
};

static const Query *query_named(const char *option) {
    for (size_t i = 0; i < sizeof QUERIES / sizeof *QUERIES; i++)
        if (strcmp(QUERIES[i].option, option) == 0) return &QUERIES[i];
    return NULL;
}

static int record_header(const Writing *writing) {
    size_t length;
    const char *rest = writing->fields, *word;
    while ((word = next_field(&rest, &length)) != NULL)
        if (column_named(writing->query, word, length) == NULL) return bad_field(word, length);
    rest = writing->fields;
    for (int first = 1; writing->format.header && (word = next_field(&rest, &length)) != NULL; first = 0) {
        const Column *column = column_named(writing->query, word, length);
        head(first, column->name, column->unit, writing->format.units);
    }
    if (writing->format.header) putchar('\n');
    return 0;
}

int query_records(const char *what, const char *ids, const char *fields, const char *format_words) {
    Writing writing = {.fields = fields, .query = query_named(what)};
    if (!format_of(format_words, &writing.format)) return misused(FORMATS);
    Selection selection = select_gpus(ids, "No devices were found");
    int code = record_header(&writing);
    for (unsigned i = 0; code == 0 && i < selection.count; i++) {
        writing.device = selection.devices[i];
        writing.query->records(&writing);
    }
    free(selection.devices);
    return code;
}

/* ---- --help-query-… ---- */

static void name_field(const char *name, const char *alias) {
    printf("\n\"%s\"", name);
    if (alias) printf(" or \"%s\"", alias);
    putchar('\n');
}

/* Before 535 the clocks' reasons had the older of their names alone. */
static void name_query_field(const Field *field) {
    const char *name = header_of(field);
    name_field(name, name == field->name ? field->alias : NULL);
}

int list_fields(const char *what) {
    const Field *field;
    const Query *query = query_named(what);
    if (query == NULL && strcmp(what, "gpu") != 0) return misused("There is no such list of fields.");
    driver_peeked();
    printf("Fields of --query-%s, several with commas:\n", what);
    for (const Column *column = query ? query->columns : NULL; column && column->name; column++)
        name_field(column->name, column->alias);
    for (size_t i = 0; query == NULL && (field = query_field_at(i)) != NULL; i++)
        name_query_field(field);
    return 0;
}
