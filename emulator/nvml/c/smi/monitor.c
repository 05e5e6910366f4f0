/* dmon and pmon: a line per GPU, or per process, every so many seconds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "commands.h"
#include "gpus.h"

typedef struct {
    char group; /* of dmon -s */
    const char *head, *unit, *field;
} Column;

static const Column COLUMNS[] = {
    {'p', "pwr", "W", "power.draw"}, {'p', "gtemp", "C", "temperature.gpu"}, {'p', "mtemp", "C", "temperature.memory"},
    {'u', "sm", "%", "utilization.gpu"}, {'u', "mem", "%", "utilization.memory"}, {'u', "enc", "%", "utilization.encoder"},
    {'u', "dec", "%", "utilization.decoder"}, {'u', "jpg", "%", "utilization.jpeg"}, {'u', "ofa", "%", "utilization.ofa"},
    {'c', "mclk", "MHz", "clocks.mem"}, {'c', "pclk", "MHz", "clocks.gr"},
    {'m', "fb", "MB", "memory.used"}, {'m', "bar1", "MB", "bar1.used"},
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

static void stamp(const char *stamps) {
    char text[32];
    time_t seconds = time(NULL);
    struct tm parts;
    localtime_r(&seconds, &parts);
    if (strchr(stamps, 'D') && strftime(text, sizeof text, " %Y%m%d   ", &parts)) fputs(text, stdout);
    if (strchr(stamps, 'T') && strftime(text, sizeof text, "%H:%M:%S    ", &parts))
        printf("%s%s", strchr(stamps, 'D') ? "" : " ", text);
}

static void heads(const char *groups, const char *stamps) {
    for (int line = 0; line < 2; line++) {
        stamp_head(stamps, line);
        printf(line ? "Idx " : "gpu ");
        for (size_t i = 0; i < COUNT; i++)
            if (strchr(groups, COLUMNS[i].group)) printf(" %6s", line ? COLUMNS[i].unit : COLUMNS[i].head);
        puts(" ");
    }
}

/* Whole numbers; KB/s as MB/s; a dash where there is none. */
static void cell(Device device, const Column *column) {
    char value[VALUE_SIZE] = {0};
    value_of(device, column->field, value, 0);
    if (*value < '0' || *value > '9') strcpy(value, "-");
    else if (column->group == 't') snprintf(value, sizeof value, "%ld", strtol(value, NULL, 10) / 1000);
    else value[strcspn(value, ".")] = 0;
    printf(" %6s", value);
}

static void device_lines(const Selection *selection, const char *groups, const char *stamps) {
    char index[VALUE_SIZE];
    for (unsigned i = 0; i < selection->count; i++) {
        value_of(selection->devices[i], "index", index, 0);
        stamp(stamps);
        printf(*stamps ? "%3s " : "%5s ", index);
        for (size_t j = 0; j < COUNT; j++)
            if (strchr(groups, COLUMNS[j].group)) cell(selection->devices[i], &COLUMNS[j]);
        puts(" ");
    }
}

static void process_heads(const char *stamps) {
    stamp_head(stamps, 0);
    puts("gpu         pid   type     sm    mem    enc    dec    jpg    ofa    command ");
    stamp_head(stamps, 1);
    puts("Idx           #    C/G      %      %      %      %      %      %    name ");
}

/* Which share of a GPU's time a process has is not known: the API has no sample of it here. */
static void process_lines(const Selection *selection, const char *stamps) {
    char index[VALUE_SIZE];
    int width = *stamps ? 3 : 5;
    for (unsigned i = 0; i < selection->count; i++) {
        unsigned count;
        SmiProcess *all = processes_of(selection->devices[i], &count);
        value_of(selection->devices[i], "index", index, 0);
        for (unsigned j = 0; j < count; j++) {
            stamp(stamps);
            printf("%*s %11u %6c      -      -      -      -      -      -    %-15s\n", width, index, all[j].info.pid,
                   all[j].kind, all[j].name);
        }
        if (count == 0) {
            stamp(stamps);
            printf("%*s           -      -      -      -      -      -      -      -    -              \n", width, index);
        }
        free(all);
    }
}

typedef struct {
    const char *ids, *groups, *stamps, *file;
    long count;
    double delay;
} Monitor;

static int number(const char *text, double least, double *out) {
    char *end;
    *out = strtod(text, &end);
    return *text && *end == 0 && *out >= least;
}

static int parse(int count, char **arguments, int devices, Monitor *monitor) {
    for (int at = 0; at < count; at += 2) {
        const char *option = arguments[at], *value = at + 1 < count ? arguments[at + 1] : NULL;
        double read = 0;
        if (value == NULL || option[0] != '-' || option[1] == 0 || option[2] != 0) return 0;
        switch (option[1]) {
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
            if (!devices || *value == 0 || strspn(value, "pucmet") != strlen(value)) return 0;
            monitor->groups = value;
            break;
        default: return 0;
        }
    }
    return 1;
}

int monitor(int count, char **arguments, int devices) {
    Monitor options = {NULL, "puc", "", NULL, -1, 1.0};
    if (!parse(count, arguments, devices, &options))
        return misused(devices ? "Usage: dmon [-i ID] [-s pucmet] [-o DT] [-d SECONDS] [-c COUNT] [-f FILE]."
                               : "Usage: pmon [-i ID] [-o DT] [-d SECONDS] [-c COUNT] [-f FILE].");
    if (!write_to(options.file)) return misused("");
    api_open(0);
    for (long turn = 0; options.count < 0 || turn < options.count; turn++) {
        if (turn) pause_for(options.delay);
        Selection selection = select_gpus(options.ids, "No devices were found");
        if (turn % HEAD_EVERY == 0) {
            if (devices) heads(options.groups, options.stamps);
            else process_heads(options.stamps);
        }
        if (devices) device_lines(&selection, options.groups, options.stamps);
        else process_lines(&selection, options.stamps);
        fflush(stdout);
        free(selection.devices);
    }
    return 0;
}
