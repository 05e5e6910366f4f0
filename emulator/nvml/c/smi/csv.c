/* --query-gpu and --query-compute-apps. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "gpus.h"

enum { BAD_FIELD = 2 };

typedef struct {
    int header, units;
} Format;

static int format_of(const char *words, Format *format) {
    int csv = 0;
    *format = (Format){1, 1};
    for (;;) {
        size_t length = strcspn(words, ",");
        if (length == 3 && strncmp(words, "csv", 3) == 0) csv = 1;
        else if (length == 8 && strncmp(words, "noheader", 8) == 0) format->header = 0;
        else if (length == 7 && strncmp(words, "nounits", 7) == 0) format->units = 0;
        else return 0;
        if (words[length] == 0) return csv;
        words += length + 1;
    }
}

/* The next word of a comma list, without spaces around; NULL at its end. */
static const char *next_field(const char **list, size_t *length) {
    if (*list == NULL) return NULL;
    const char *word = *list;
    size_t whole = strcspn(word, ",");
    *list = word[whole] ? word + whole + 1 : NULL;
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
    Return result = field->get(device, value);
    if (result == OK) {
        cell(first, value, units ? field->unit : NULL);
        return;
    }
    snprintf(bracketed, sizeof bracketed, "[%s]", result == NOT_SUPPORTED ? "N/A" : api.nvmlErrorString(result));
    cell(first, bracketed, NULL);
}

static int gpu_header(const char *fields, const Format *format) {
    size_t length;
    const char *rest = fields, *word;
    while ((word = next_field(&rest, &length)) != NULL)
        if (field_named(word, length) == NULL) return bad_field(word, length);
    rest = fields;
    for (int first = 1; format->header && (word = next_field(&rest, &length)) != NULL; first = 0) {
        const Field *field = field_named(word, length);
        printf("%s%.*s", first ? "" : ", ", (int)length, word);
        if (field->unit && format->units) printf(" [%s]", field->unit);
    }
    if (format->header) putchar('\n');
    return 0;
}

int query_gpus(const char *ids, const char *fields, const char *format_words) {
    Format format;
    if (!format_of(format_words, &format)) return misused("\"--format\" takes csv[,noheader][,nounits].");
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

/* ---- Processes ---- */

static const struct {
    const char *name, *alias, *field; /* field: of the GPU; NULL: of the process itself */
} COLUMNS[] = {
    {"timestamp", NULL, "timestamp"}, {"gpu_name", NULL, "name"},      {"gpu_bus_id", NULL, "pci.bus_id"},
    {"gpu_serial", NULL, "serial"},   {"gpu_uuid", NULL, "uuid"},      {"pid", NULL, NULL},
    {"process_name", "name", NULL},   {"used_memory", "used_gpu_memory", NULL},
};

enum { PID = 5, PROCESS_NAME = 6, USED_MEMORY = 7, COLUMN_COUNT = 8 };

static int column_named(const char *word, size_t length) {
    for (int i = 0; i < COLUMN_COUNT; i++) {
        if (strlen(COLUMNS[i].name) == length && strncmp(COLUMNS[i].name, word, length) == 0) return i;
        if (COLUMNS[i].alias && strlen(COLUMNS[i].alias) == length && strncmp(COLUMNS[i].alias, word, length) == 0)
            return i;
    }
    return -1;
}

static void process_cell(int first, Device device, const SmiProcess *process, int column, int units) {
    char value[VALUE_SIZE];
    if (column == PID)
        snprintf(value, sizeof value, "%u", process->info.pid);
    else if (column == PROCESS_NAME)
        snprintf(value, sizeof value, "%s", process->name);
    else if (column == USED_MEMORY)
        snprintf(value, sizeof value, "%llu", process->info.used_memory >> 20);
    else
        value_of(device, COLUMNS[column].field, value, 0);
    cell(first, value, units && column == USED_MEMORY ? "MiB" : NULL);
}

static int process_header(const char *fields, const Format *format) {
    size_t length;
    const char *rest = fields, *word;
    while ((word = next_field(&rest, &length)) != NULL)
        if (column_named(word, length) < 0) return bad_field(word, length);
    rest = fields;
    for (int first = 1; format->header && (word = next_field(&rest, &length)) != NULL; first = 0) {
        printf("%s%.*s", first ? "" : ", ", (int)length, word);
        if (column_named(word, length) == USED_MEMORY && format->units) fputs(" [MiB]", stdout);
    }
    if (format->header) putchar('\n');
    return 0;
}

int query_processes(const char *ids, const char *fields, const char *format_words) {
    Format format;
    if (!format_of(format_words, &format)) return misused("\"--format\" takes csv[,noheader][,nounits].");
    Selection selection = select_gpus(ids, "No devices were found");
    int code = process_header(fields, &format);
    for (unsigned i = 0; code == 0 && i < selection.count; i++) {
        unsigned count;
        SmiProcess *processes = processes_of(selection.devices[i], &count);
        for (unsigned j = 0; j < count; j++) {
            size_t length;
            const char *rest = fields, *word;
            if (processes[j].kind != 'C') continue;
            for (int first = 1; (word = next_field(&rest, &length)) != NULL; first = 0)
                process_cell(first, selection.devices[i], &processes[j], column_named(word, length), format.units);
            putchar('\n');
        }
        free(processes);
    }
    free(selection.devices);
    return code;
}
