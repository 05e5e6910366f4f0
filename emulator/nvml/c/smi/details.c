/* -q and -q -x: the rows of layout.c, written as text or as XML. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "commands.h"
#include "driver.h"
#include "gpus.h"
#include "layout.h"
#include "mig_devices.h"

static const char UNITS[] = "nvsmi_unit";
static int as_xml, depth, by_section;

/* The width of labels: captures of 530, and of 580.173 and 595; between them it is assumed. */
static int label_width(void) {
    enum { OLD = 545, OLD_WIDTH = 42, WIDTH = 50, LATE_WIDTH = 55 };
    if (driver_reached(LATE_RELEASES, sizeof LATE_RELEASES - 1)) return LATE_WIDTH;
    return driver_branch() < OLD ? OLD_WIDTH : WIDTH;
}

static void indent(void) {
    for (int i = 0; i < depth; i++) fputs(as_xml ? "\t" : "    ", stdout);
}

static void escaped(const char *text) {
    for (; *text; text++) {
        if (as_xml && *text == '<') fputs("&lt;", stdout);
        else if (as_xml && *text == '>') fputs("&gt;", stdout);
        else if (as_xml && *text == '&') fputs("&amp;", stdout);
        else putchar(*text);
    }
}

static void leaf(const char *label, const char *tag, const char *value) {
    indent();
    if (as_xml) {
        printf("<%s>", tag);
        escaped(value);
        printf("</%s>\n", tag);
    } else {
        printf("%-*s: %s\n", label_width() - 4 * depth, label, value);
    }
}

static void open_node(const char *label, const char *tag) {
    indent();
    printf(as_xml ? "<%s>\n" : "%s\n", as_xml ? tag : label);
    depth++;
}

static void close_node(const char *tag) {
    depth--;
    if (!as_xml) return;
    indent();
    printf("</%s>\n", tag);
}

/* ---- Which rows there are ---- */

static int has_detail(Device device, const char *key, size_t length) {
    char name[64], value[VALUE_SIZE];
    snprintf(name, sizeof name, "@%.*s", (int)length, key);
    return detail_of(device, name + 1, value) == OK;
}

/* Of any model, where the device is NULL. */
static int word_holds(Device device, const char *word, size_t length) {
    if (device == NULL && (*word == '?' || *word == '!')) return 1;
    if (*word == '?') return has_detail(device, word + 1, length - 1);
    if (*word == '!') return !has_detail(device, word + 1, length - 1);
    if (*word == '-') return !driver_reached(word + 1, length - 1);
    if (strncmp(word, "xml", length) == 0) return as_xml;
    if (strncmp(word, "text", length) == 0) return !as_xml;
    if (strncmp(word, "asked", length) == 0) return as_xml || by_section;
    return driver_reached(word, length);
}

static int is_there(Device device, const Row *row) {
    for (const char *word = row->when; word != NULL && *word;) {
        size_t length = strcspn(word, " ");
        if (!word_holds(device, word, length)) return 0;
        word += length;
        if (*word) word++;
    }
    return 1;
}

int row_in_xml(const Row *row) {
    as_xml = 1;
    return is_there(NULL, row);
}

static int known_section(const char *word, size_t length) {
    for (size_t i = 0; SECTIONS[i]; i++)
        if (strlen(SECTIONS[i]) == length && strncasecmp(SECTIONS[i], word, length) == 0) return 1;
    return 0;
}

/* ---- What they hold ---- */

static void fill(Device device, const Row *row, char *value) {
    const char *source = row->source;
    char name[128];
    if (driver_replaces(row->instead, value)) return;
    if (*source == '@') {
        Return result = detail_of(device, source + 1, value);
        if (result != OK) strcpy(value, result == NOT_FOUND ? "N/A" : api.nvmlErrorString(result));
    } else if (*source == '~') {
        value_of(device, source + 1, value, 0);
        if (as_xml && strncmp(value, "0x", 2) == 0) memmove(value, value + 2, strlen(value) - 1);
    } else if (*source == '%') {
        size_t length = strcspn(source + 1, "|");
        snprintf(name, sizeof name, "%.*s", (int)length, source + 1);
        value_of(device, name, value, 0);
        if (*value >= '0' && *value <= '9') strncat(value, source + length + 2, VALUE_SIZE - strlen(value) - 1);
    } else {
        value_of(device, source, value, 1);
    }
}

/* ---- MIG devices ---- */

static void amount(const char *label, const char *tag, unsigned long long value, const char *unit) {
    char text[VALUE_SIZE];
    snprintf(text, sizeof text, "%llu%s", value, unit);
    leaf(label, tag, text);
}

static void one_mig(const SmiMigDevice *one) {
    enum { SHARED_NAMES = 590 };
    enum { UNCORRECTED = 1, VOLATILE = 0, SRAM = 7 };
    unsigned long long errors = 0;
    int shared = driver_branch() >= SHARED_NAMES;
    const MigAttributes *has = &one->attributes;
    open_node("MIG Device", "mig_device");
    amount("Index", "index", one->index, "");
    amount("GPU Instance ID", "gpu_instance_id", one->instance, "");
    amount("Compute Instance ID", "compute_instance_id", one->compute, "");
    open_node("Device Attributes", "device_attributes");
    open_node("Shared", "shared");
    amount("Multiprocessor count", "multiprocessor_count", has->multiprocessors, "");
    amount("Copy Engine count", "copy_engine_count", has->copy, "");
    amount("Encoder count", "encoder_count", has->encoder, "");
    amount("Decoder count", "decoder_count", has->decoder, "");
    amount("OFA count", "ofa_count", has->ofa, "");
    amount("JPG count", "jpg_count", has->jpeg, "");
    close_node("shared");
    close_node("device_attributes");
    open_node("ECC Errors", "ecc_error_count");
    open_node("Volatile", "volatile_count");
    if (api.nvmlDeviceGetMemoryErrorCounter(one->device, UNCORRECTED, VOLATILE, SRAM, &errors) == OK)
        amount("SRAM Uncorrectable", "sram_uncorrectable", errors, "");
    else
        leaf("SRAM Uncorrectable", "sram_uncorrectable", "N/A");
    close_node("volatile_count");
    close_node("ecc_error_count");
    open_node(shared ? "Shared FB Memory Usage" : "FB Memory Usage", "fb_memory_usage");
    amount("Total", "total", one->memory.total >> 20, " MiB");
    amount("Reserved", "reserved", one->memory.reserved >> 20, " MiB");
    amount("Used", "used", one->memory.used >> 20, " MiB");
    amount("Free", "free", one->memory.free >> 20, " MiB");
    close_node("fb_memory_usage");
    open_node(shared ? "Shared BAR1 Memory" : "BAR1 Memory Usage", "bar1_memory_usage");
    amount("Total", "total", one->bar1.total >> 20, " MiB");
    amount("Used", "used", one->bar1.used >> 20, " MiB");
    amount("Free", "free", one->bar1.free >> 20, " MiB");
    close_node("bar1_memory_usage");
    close_node("mig_device");
}

static void mig_devices(Device device, const Row *row) {
    unsigned count;
    SmiMigDevice *all = mig_devices_of(device, &count);
    if (count > 0 && as_xml) open_node(row->label, row->tag);
    for (unsigned i = 0; i < count; i++) one_mig(&all[i]);
    if (count > 0 && as_xml) close_node(row->tag);
    if (count == 0 && as_xml) leaf(row->label, row->tag, "None");
    free(all);
}

static void instance_of(const char *label, const char *tag, unsigned id) {
    if (id == (unsigned)NO_INSTANCE) leaf(label, tag, "N/A");
    else amount(label, tag, id, "");
}

static void one_process(const SmiProcess *process) {
    char value[VALUE_SIZE];
    if (as_xml) open_node("", "process_info");
    snprintf(value, sizeof value, "%u", process->info.pid);
    instance_of("GPU instance ID", "gpu_instance_id", process->info.gpu_instance);
    instance_of("Compute instance ID", "compute_instance_id", process->info.compute_instance);
    leaf("Process ID", "pid", value);
    if (!as_xml) depth++;
    snprintf(value, sizeof value, "%c", process->kind);
    leaf("Type", "type", value);
    leaf("Name", "process_name", process->name);
    snprintf(value, sizeof value, "%llu MiB", process->info.used_memory >> 20);
    leaf("Used GPU Memory", "used_memory", value);
    if (as_xml) close_node("process_info");
    else depth--;
}

static void processes(Device device, const Row *row) {
    unsigned count;
    SmiProcess *all = processes_of(device, &count);
    if (count == 0 && !as_xml) {
        leaf(row->label, row->tag, "None");
    } else {
        open_node(row->label, row->tag);
        for (unsigned i = 0; i < count; i++) one_process(&all[i]);
        close_node(row->tag);
    }
    free(all);
}

static void supported_clocks(Device device, const Row *row) {
    char value[VALUE_SIZE];
    unsigned memories;
    unsigned *memory = clock_list(device, 0, 0, &memories);
    open_node(row->label, row->tag);
    for (unsigned i = 0; i < memories; i++) {
        unsigned count;
        unsigned *graphics = clock_list(device, memory[i], 1, &count);
        snprintf(value, sizeof value, "%u MHz", memory[i]);
        if (as_xml) {
            open_node("", "supported_mem_clock");
            leaf("", "value", value);
        } else {
            leaf("Memory", "", value);
            depth++;
        }
        for (unsigned j = 0; j < count; j++) {
            snprintf(value, sizeof value, "%u MHz", graphics[j]);
            leaf("Graphics", "supported_graphics_clock", value);
        }
        if (as_xml) close_node("supported_mem_clock");
        else depth--;
        free(graphics);
    }
    close_node(row->tag);
    free(memory);
}

static void show_row(Device device, const Row *row) {
    char value[VALUE_SIZE] = {0};
    if (strcmp(row->source, "*processes") == 0) {
        processes(device, row);
    } else if (strcmp(row->source, "*mig") == 0) {
        mig_devices(device, row);
    } else if (strcmp(row->source, "*clocks") == 0) {
        supported_clocks(device, row);
    } else if (strcmp(row->source, "*none") == 0) {
        open_node(row->label, row->tag);
        close_node(row->tag);
    } else {
        fill(device, row, value);
        leaf(row->label, row->tag, value);
    }
}

static void rows(Device device, const char *sections) {
    const Row *open[8];
    int level = 0, base = depth;
    by_section = sections != NULL;
    for (size_t i = 0; i < ROW_COUNT; i++) {
        const Row *row = &ROWS[i];
        while (level > row->depth) close_node(open[--level]->tag);
        int shown = is_there(device, row) && (row->depth > 0 || sections == NULL || has_word(sections, row->section));
        if (shown && row->source == NULL) {
            open[level++] = row;
            open_node(row->label, row->tag);
        } else if (shown) {
            int below = as_xml ? 0 : row->depth - level; /* a leaf below another one */
            depth += below;
            show_row(device, row);
            depth -= below;
        } else {
            while (row->source == NULL && i + 1 < ROW_COUNT && ROWS[i + 1].depth > row->depth) i++;
        }
    }
    while (level > 0) close_node(open[--level]->tag);
    depth = base;
}

static void one_gpu(Device device, const char *sections) {
    char bus_id[VALUE_SIZE];
    bus_id_of(device, bus_id);
    indent();
    printf(as_xml ? "<gpu id=\"%s\">\n" : "GPU %s\n", bus_id);
    depth++;
    rows(device, sections);
    depth--;
    puts(as_xml ? "\t</gpu>" : "");
}

int sections_known(const char *sections) {
    size_t length;
    for (const char *word; (word = next_word(&sections, &length)) != NULL;)
        if (!known_section(word, length)) return 0;
    return 1;
}

/* The document type: by the name of its file, or embedded. */
static void document_type(const char *dtd, int version, int embedded) {
    puts("<?xml version=\"1.0\" ?>");
    if (embedded) {
        puts("<!DOCTYPE nvidia_smi_log [");
        show_dtd(strcmp(dtd, UNITS) == 0);
        puts("]>");
    } else {
        printf("<!DOCTYPE nvidia_smi_log SYSTEM \"%s_v%d.dtd\">\n", dtd, version);
    }
    puts("<nvidia_smi_log>");
}

/* The log's head, up to how many there are of what. */
static void log_head(int xml, int embedded, const char *dtd, int version, const char *shown, const char *name,
                     unsigned many) {
    char now[64], count[16], driver[VALUE_SIZE] = "N/A", cuda_text[16];
    int cuda = 0;
    time_t seconds = time(NULL);
    struct tm parts;
    as_xml = xml;
    localtime_r(&seconds, &parts);
    strftime(now, sizeof now, "%a %b %e %H:%M:%S %Y", &parts);
    api.nvmlSystemGetDriverVersion(driver, sizeof driver);
    api.nvmlSystemGetCudaDriverVersion_v2(&cuda);
    snprintf(cuda_text, sizeof cuda_text, "%d.%d", cuda / 1000, cuda % 1000 / 10);
    snprintf(count, sizeof count, "%u", many);
    if (xml) document_type(dtd, version, embedded);
    else puts("\n==============NVSMI LOG==============\n");
    depth = xml;
    leaf("Timestamp", "timestamp", now);
    leaf("Driver Version", "driver_version", driver);
    leaf("CUDA Version", "cuda_version", cuda_text);
    if (!xml) puts("");
    leaf(shown, name, count);
}

int show_details(const char *ids, int xml, const char *sections, int embedded) {
    enum { NEW_DTD = 575 };
    unsigned attached = 0;
    Selection selection = select_gpus(ids, "No devices were found");
    api.nvmlDeviceGetCount_v2(&attached);
    log_head(xml, embedded, "nvsmi_device", driver_branch() >= NEW_DTD ? 13 : 12, "Attached GPUs", "attached_gpus",
             attached);
    for (unsigned i = 0; i < selection.count; i++) one_gpu(selection.devices[i], sections);
    if (xml) puts("</nvidia_smi_log>");
    free(selection.devices);
    return 0;
}

/* -q -u: of the S-class boxes that may hold GPUs there are none, but the head names driver and CUDA. */
int show_units(int xml, int embedded) {
    enum { UNIT_DTD = 4 };
    unsigned units = 0;
    api.nvmlUnitGetCount(&units);
    log_head(xml, embedded, UNITS, UNIT_DTD, "Attached Units", "attached_units", units);
    if (xml) puts("</nvidia_smi_log>");
    return 0;
}
