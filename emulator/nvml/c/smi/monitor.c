/* dmon and pmon: a line per GPU, or per process, every so many seconds. */
#include "between.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "commands.h"
#include "gpus.h"
#include "mig_devices.h"

/* How lines are written: as a table, or as csv with or without its head and its line of units. */
typedef struct {
    int csv, headless, unitless;
} Form;

/* Whose lines dmon prints: the GPUs' and their GPU instances' (`--gpm-options`). */
typedef struct {
    int gpus, instances;
} Whose;

typedef struct {
    char group; /* of dmon -s */
    const char *head, *unit, *field;
} Column;

static const Column COLUMNS[] = {
    {'p', "pwr", "W", "power.draw"}, {'p', "gtemp", "C", "temperature.gpu"}, {'p', "mtemp", "C", "temperature.memory"},
    {'u', "sm", "%", "utilization.gpu"}, {'u', "mem", "%", "utilization.memory"}, {'u', "enc", "%", "utilization.encoder"},
    {'u', "dec", "%", "utilization.decoder"}, {'u', "jpg", "%", "utilization.jpeg"}, {'u', "ofa", "%", "utilization.ofa"},
    {'c', "mclk", "MHz", "clocks.mem"}, {'c', "pclk", "MHz", "clocks.gr"},
    {'v', "pviol", "%", NULL}, {'v', "tviol", "bool", NULL},
    {'m', "fb", "MB", "memory.used"}, {'m', "bar1", "MB", "bar1.used"}, {'m', "ccpm", "MB", NULL},
    {'e', "sbecc", "errs", "ecc.errors.corrected.volatile.total"},
    {'e', "dbecc", "errs", "ecc.errors.uncorrected.volatile.total"}, {'e', "pci", "errs", "pcie.replay_counter"},
    {'t', "rxpci", "MB/s", "pcie.rx_util"}, {'t', "txpci", "MB/s", "pcie.tx_util"},
};

enum { COUNT = sizeof COLUMNS / sizeof *COLUMNS, HEAD_EVERY = 20 };

void pause_for(double seconds) {
    struct timespec left = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    while (nanosleep(&left, &left) != 0) continue;
}

/* -o D, T or DT: the date and the time before each line. */
static void stamp_head(const char *stamps, int line) {
    int dated = strchr(stamps, 'D') != NULL, timed = strchr(stamps, 'T') != NULL;
    if (dated) printf(line ? "#YYYYMMDD   " : "#Date       ");
    if (timed) printf("%s%s", dated ? "" : "#", line ? "HH:MM:SS    " : "Time        ");
    if (!dated && !timed) fputs("# ", stdout);
}

static struct tm local_now(void) {
    time_t seconds = time(NULL);
    struct tm parts;
    localtime_r(&seconds, &parts);
    return parts;
}

static void stamp(const char *stamps) {
    char text[32];
    struct tm parts = local_now();
    if (strchr(stamps, 'D') && strftime(text, sizeof text, " %Y%m%d   ", &parts)) fputs(text, stdout);
    if (strchr(stamps, 'T') && strftime(text, sizeof text, "%H:%M:%S    ", &parts))
        printf("%s%s", strchr(stamps, 'D') ? "" : " ", text);
}

typedef struct {
    const char *ids, *groups, *stamps, *file;
    long count;
    double delay;
    Metrics metrics;
    Form form;
    Whose whose;
} Monitor;

static void csv_heads(const Monitor *monitor) {
    const char *groups = monitor->groups, *stamps = monitor->stamps, *unit;
    const Metrics *metrics = &monitor->metrics;
    const Form *form = &monitor->form;
    char name[16];
    for (int line = form->headless; line < 2 - form->unitless; line++) {
        putchar('#');
        if (strchr(stamps, 'D')) fputs(line ? "YYYYMMDD, " : "Date, ", stdout);
        if (strchr(stamps, 'T')) fputs(line ? "HH:MM:SS, " : "Time, ", stdout);
        fputs(line ? "Idx" : "gpu", stdout);
        if (monitor->whose.instances) fputs(line ? ", Id" : ", gi", stdout);
        for (size_t i = 0; i < COUNT; i++)
            if (strchr(groups, COLUMNS[i].group)) printf(", %s", line ? COLUMNS[i].unit : COLUMNS[i].head);
        for (unsigned i = 0; i < metrics->count; i++) {
            metric_head(metrics->ids[i], name, sizeof name, &unit);
            printf(", %s", line ? unit : name);
        }
        puts("");
    }
}

static void heads(const Monitor *monitor) {
    const char *groups = monitor->groups, *stamps = monitor->stamps, *unit;
    const Metrics *metrics = &monitor->metrics;
    char name[16];
    if (monitor->form.csv) return csv_heads(monitor);
    for (int line = 0; line < 2; line++) {
        stamp_head(stamps, line);
        printf(line ? "Idx " : "gpu ");
        if (monitor->whose.instances) printf(line ? "  Id " : "  gi ");
        for (size_t i = 0; i < COUNT; i++)
            if (strchr(groups, COLUMNS[i].group)) printf(" %6s", line ? COLUMNS[i].unit : COLUMNS[i].head);
        for (unsigned i = 0; i < metrics->count; i++) {
            metric_head(metrics->ids[i], name, sizeof name, &unit);
            printf(" %10s", line ? unit : name);
        }
        puts(" ");
    }
}

/* Whole numbers; KB/s as MB/s; a dash where there is none. Without confidential computing no memory is protected. */
static void cell(Device device, const Column *column, const Between *between, const Form *form) {
    char value[VALUE_SIZE] = {0};
    if (column->field == NULL) {
        int held = column->group == 'v' ? strcmp(column->head, "pviol") == 0 ? between->capped : between->hot : 0;
        snprintf(value, sizeof value, "%d", held);
    } else {
        value_of(device, column->field, value, 0);
    }
    if (*value < '0' || *value > '9') strcpy(value, "-");
    else if (column->group == 't') snprintf(value, sizeof value, "%ld", strtol(value, NULL, 10) / 1000);
    else value[strcspn(value, ".")] = 0;
    printf(form->csv ? ", %s" : " %6s", value);
}

static void metric_cells(const Metrics *metrics, const Between *between, const Form *form) {
    for (unsigned i = 0; i < metrics->count; i++) {
        if (between->measured[i]) printf(form->csv ? ", %.0f" : " %10.0f", between->values[i]);
        else printf(form->csv ? ", %s" : " %10s", "-");
    }
}

static void csv_stamp(const char *stamps) {
    char text[32];
    struct tm parts = local_now();
    if (strchr(stamps, 'D') && strftime(text, sizeof text, "%Y%m%d, ", &parts)) fputs(text, stdout);
    if (strchr(stamps, 'T') && strftime(text, sizeof text, "%H:%M:%S, ", &parts)) fputs(text, stdout);
}

static void line_head(const char *stamps, const char *index, const char *instance, const Form *form) {
    if (form->csv) {
        csv_stamp(stamps);
        fputs(index, stdout);
        if (instance) printf(", %s", instance);
        return;
    }
    stamp(stamps);
    printf(*stamps ? "%3s " : "%5s ", index);
    if (instance) printf("%4s ", instance);
}

/* Of each GPU instance that has compute instances its metrics; what is known of the GPU alone is a dash. */
static void instance_lines(Device device, const char *index, const Monitor *monitor) {
    unsigned count;
    SmiMigDevice *all = mig_devices_of(device, &count);
    for (unsigned i = 0; i < count; i++) {
        char instance[16];
        if (i && all[i - 1].instance == all[i].instance) continue;
        Between between = between_instance_turns(device, all[i].instance, &monitor->metrics);
        snprintf(instance, sizeof instance, "%u", all[i].instance);
        line_head(monitor->stamps, index, instance, &monitor->form);
        for (size_t j = 0; j < COUNT; j++)
            if (strchr(monitor->groups, COLUMNS[j].group)) printf(monitor->form.csv ? ", %s" : " %6s", "-");
        metric_cells(&monitor->metrics, &between, &monitor->form);
        puts(monitor->form.csv ? "" : " ");
    }
    free(all);
}

static void device_lines(const Selection *selection, const Monitor *monitor) {
    char index[VALUE_SIZE];
    for (unsigned i = 0; i < selection->count; i++) {
        Device device = selection->devices[i];
        value_of(device, "index", index, 0);
        if (monitor->whose.gpus) {
            Between between = between_turns(device, &monitor->metrics);
            line_head(monitor->stamps, index, monitor->whose.instances ? "-" : NULL, &monitor->form);
            for (size_t j = 0; j < COUNT; j++)
                if (strchr(monitor->groups, COLUMNS[j].group)) cell(device, &COLUMNS[j], &between, &monitor->form);
            metric_cells(&monitor->metrics, &between, &monitor->form);
            puts(monitor->form.csv ? "" : " ");
        }
        if (monitor->whose.instances) instance_lines(device, index, monitor);
    }
}

static void process_heads(const char *groups, const char *stamps) {
    static const char *const LOAD[] = {"     sm    mem    enc    dec    jpg    ofa", "      %      %      %      %      %      %"};
    static const char *const MEMORY[] = {"     fb   ccpm", "     MB     MB"};
    for (int line = 0; line < 2; line++) {
        stamp_head(stamps, line);
        printf(line ? "Idx           #    C/G" : "gpu         pid   type");
        if (strchr(groups, 'u')) fputs(LOAD[line], stdout);
        if (strchr(groups, 'm')) fputs(MEMORY[line], stdout);
        puts(line ? "    name " : "    command ");
    }
}

/* No share and none to speak of are a dash. */
static void share(unsigned percent) {
    if (percent) printf(" %6u", percent);
    else printf(" %6s", "-");
}

static void process_cells(const char *groups, const SmiProcess *process, const ProcessSample *sample) {
    if (strchr(groups, 'u')) {
        share(sample->sm);
        share(sample->memory);
        share(sample->encoder);
        share(sample->decoder);
        share(0);
        share(0);
    }
    if (strchr(groups, 'm')) {
        if (process) printf(" %6llu %6u", process->info.used_memory >> 20, 0);
        else printf(" %6s %6s", "-", "-");
    }
}

/* Of each process the GPU's last sample; the caller frees. */
static ProcessSample *samples_of(Device device, unsigned *count) {
    *count = 0;
    api.nvmlDeviceGetProcessUtilization(device, NULL, count, 0);
    ProcessSample *samples = calloc(*count + 1, sizeof *samples);
    if (samples == NULL || api.nvmlDeviceGetProcessUtilization(device, samples, count, 0) != OK) *count = 0;
    return samples;
}

static void process_lines(const Selection *selection, const char *groups, const char *stamps) {
    char index[VALUE_SIZE];
    int width = *stamps ? 3 : 5;
    for (unsigned i = 0; i < selection->count; i++) {
        unsigned count, sampled;
        SmiProcess *all = processes_of(selection->devices[i], &count);
        ProcessSample *samples = samples_of(selection->devices[i], &sampled);
        value_of(selection->devices[i], "index", index, 0);
        for (unsigned j = 0; j < count; j++) {
            ProcessSample mine = {0};
            for (unsigned k = 0; k < sampled; k++)
                if (samples[k].pid == all[j].info.pid) mine = samples[k];
            stamp(stamps);
            printf("%*s %11u %6c", width, index, all[j].info.pid, all[j].kind);
            process_cells(groups, &all[j], &mine);
            printf("    %-15s\n", all[j].name);
        }
        if (count == 0) {
            stamp(stamps);
            printf("%*s %11s %6s", width, index, "-", "-");
            process_cells(groups, NULL, &(ProcessSample){0});
            printf("    %-15s\n", "-");
        }
        free(samples);
        free(all);
    }
}


/* "csv", with "noheader" and "nounit" after commas. */
static int form_of(const char *text, Form *form) {
    char word[16];
    *form = (Form){0};
    for (;;) {
        size_t length = strcspn(text, ",");
        if (length >= sizeof word) return 0;
        memcpy(word, text, length);
        word[length] = 0;
        if (strcmp(word, "csv") == 0) form->csv = 1;
        else if (strcmp(word, "noheader") == 0) form->headless = 1;
        else if (strcmp(word, "nounit") == 0) form->unitless = 1;
        else return 0;
        if (text[length] == 0) return form->csv;
        text += length + 1;
    }
}

/* "d" are GPUs, "m" their GPU instances, "dm" both. */
static int whose_of(const char *text, Whose *whose) {
    *whose = (Whose){strchr(text, 'd') != NULL, strchr(text, 'm') != NULL};
    return !strcmp(text, "d") || !strcmp(text, "m") || !strcmp(text, "dm");
}

static int number(const char *text, double least, double *out) {
    char *end;
    *out = strtod(text, &end);
    return *text && *end == 0 && *out >= least;
}

static const struct {
    char brief;
    const char *name;
} OPTIONS[] = {{'i', "--id"}, {'f', "--filename"}, {'o', "--options"}, {'c', "--count"}, {'d', "--delay"}, {'s', "--select"}};

/* The letter of an option and its value: "-i ID", "--id ID" or "--id=ID"; 0 for none. 'g' is --gpm-metrics, 'l' whose
 * they are, 'a' the form of lines. */
static char option_of(int count, char **arguments, int *at, const char **value) {
    if (valued("--gpm-metrics", NULL, count, arguments, at, value)) return 'g';
    if (valued("--gpm-options", NULL, count, arguments, at, value)) return 'l';
    if (valued("--format", NULL, count, arguments, at, value)) return 'a';
    for (size_t i = 0; i < sizeof OPTIONS / sizeof *OPTIONS; i++) {
        char brief[3] = {'-', OPTIONS[i].brief, 0};
        if (valued(OPTIONS[i].name, brief, count, arguments, at, value)) return OPTIONS[i].brief;
    }
    return 0;
}

static int parse(int count, char **arguments, int devices, Monitor *monitor) {
    for (int at = 0; at < count; at++) {
        const char *value = NULL;
        double read = 0;
        switch (option_of(count, arguments, &at, &value)) {
        case 'i': monitor->ids = value; break;
        case 'f': monitor->file = value; break;
        case 'o':
            if (*value == 0 || strspn(value, "DT") != strlen(value)) return 0;
            monitor->stamps = value;
            break;
        case 'c':
            if (!number(value, 1, &read)) return 0;
            monitor->count = (long)read;
            break;
        case 'd':
            if (!number(value, 1, &monitor->delay)) return 0;
            break;
        case 's':
            if (*value == 0 || strspn(value, devices ? "pucvmet" : "um") != strlen(value)) return 0;
            monitor->groups = value;
            break;
        case 'g':
            if (!devices || !metrics_of(value, &monitor->metrics)) return 0;
            break;
        case 'l':
            if (!devices || !whose_of(value, &monitor->whose)) return 0;
            break;
        case 'a':
            if (!devices || !form_of(value, &monitor->form)) return 0;
            break;
        default: return 0;
        }
    }
    return 1;
}

#define DMON                                                                                                            \
    "dmon [-i ID] [-s pucvmet] [--gpm-metrics ID,… [--gpm-options d|m|dm]] [-o DT] [-d SECONDS] [-c COUNT] [-f FILE]"     \
    " [--format csv[,noheader][,nounit]]"
#define PMON "pmon [-i ID] [-s um] [-o DT] [-d SECONDS] [-c COUNT] [-f FILE]"
static const char LETTERS[] =
    "-s: p power and temperature, u use, c clocks, v what held them back, m memory, e errors, t traffic; of pmon, u use\n"
    "and m memory\n"
    "-o: D the date, T the time\n";

static int show_help(int devices) {
    printf("nvidia-smi %s\n%s", devices ? DMON : PMON, LETTERS);
    return 0;
}

int monitor(int count, char **arguments, int devices) {
    Monitor options = {NULL, devices ? "puc" : "u", "", NULL, -1, 1.0, {0}, {0}, {1, 0}};
    if (help_asked(count, arguments)) return show_help(devices);
    if (!parse(count, arguments, devices, &options))
        return misused(devices ? "Usage: " DMON "." : "Usage: " PMON ".");
    if (!write_to(options.file)) return misused("");
    api_open(0);
    for (long turn = 0; options.count < 0 || turn < options.count; turn++) {
        if (turn) pause_for(options.delay);
        Selection selection = select_gpus(options.ids, "No devices were found");
        if (options.form.csv ? turn == 0 : turn % HEAD_EVERY == 0) {
            if (devices) heads(&options);
            else process_heads(options.groups, options.stamps);
        }
        if (devices) device_lines(&selection, &options);
        else process_lines(&selection, options.groups, options.stamps);
        fflush(stdout);
        free(selection.devices);
    }
    between_forget();
    return 0;
}
