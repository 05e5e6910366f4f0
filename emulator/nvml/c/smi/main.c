/* nvidia-smi: shows and changes what the host's state says, through libnvidia-ml.so.1. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api.h"
#include "commands.h"
#include "layout.h"

static const char HELP[] =
    "NVIDIA-SMI of Mews: shows emulated GPUs.\n"
    "\n"
    "nvidia-smi                                   a table of GPUs and processes\n"
    "nvidia-smi -L                                a list of GPUs\n"
    "nvidia-smi -q [-x] [-d SECTION,…] [-i ID]    all there is to tell; -x: as XML; -d: MEMORY, ECC, POWER, …\n"
    "nvidia-smi --query-gpu=FIELDS --format=csv[,noheader][,nounits] [-i ID]\n"
    "nvidia-smi --query-compute-apps=FIELDS --format=csv[,noheader][,nounits] [-i ID]\n"
    "nvidia-smi -i ID -pm 0|1                     persistence mode\n"
    "nvidia-smi -r -i ID                          reset GPUs that nobody has open\n"
    "nvidia-smi drain -p BUS_ID -m 0|1            drain state\n"
    "nvidia-smi drain -p BUS_ID -q | -r           query it | remove the GPU\n"
    "nvidia-smi topo -m                           how the GPUs are joined\n"
    "nvidia-smi nvlink -s [-i ID]                 the NVLinks of each GPU\n"
    "nvidia-smi dmon [-i ID] [-s pucmet] [-d SECONDS] [-c COUNT]\n"
    "nvidia-smi pmon [-i ID] [-d SECONDS] [-c COUNT]\n"
    "-l SECONDS, -lms MILLISECONDS                again and again: the table, -q and both queries\n"
    "\n"
    "ID: index, UUID, serial or PCI bus id; several with commas.\n";

typedef struct {
    const char *ids, *query_gpu, *query_apps, *format, *persistence, *sections, *loop, *loop_ms;
    int list, details, xml, reset;
} Options;

enum { MISUSED = 2 };

int misused(const char *message) {
    printf("%s Please run 'nvidia-smi -h' for help.\n", message);
    return MISUSED;
}

/* "--name=value", "--name value" or "-n value" into *out; 1 when it was this option. */
static int valued(const char *name, const char *brief, int count, char **arguments, int *at, const char **out) {
    size_t length = strlen(name);
    const char *argument = arguments[*at];
    if (strncmp(argument, name, length) == 0 && argument[length] == '=') {
        *out = argument + length + 1;
        return 1;
    }
    if (strcmp(argument, name) != 0 && (brief == NULL || strcmp(argument, brief) != 0)) return 0;
    if (*at + 1 >= count) return 0;
    *out = arguments[++*at];
    return 1;
}

static int is(const char *argument, const char *brief, const char *name) {
    return strcmp(argument, brief) == 0 || strcmp(argument, name) == 0;
}

static int parse(int count, char **arguments, Options *options) {
    for (int at = 1; at < count; at++) {
        if (valued("--id", "-i", count, arguments, &at, &options->ids)) continue;
        if (valued("--query-gpu", NULL, count, arguments, &at, &options->query_gpu)) continue;
        if (valued("--query-compute-apps", NULL, count, arguments, &at, &options->query_apps)) continue;
        if (valued("--format", NULL, count, arguments, &at, &options->format)) continue;
        if (valued("--persistence-mode", "-pm", count, arguments, &at, &options->persistence)) continue;
        if (valued("--loop", "-l", count, arguments, &at, &options->loop)) continue;
        if (valued("--loop-ms", "-lms", count, arguments, &at, &options->loop_ms)) continue;
        if (valued("--display", "-d", count, arguments, &at, &options->sections)) continue;
        if (is(arguments[at], "-L", "--list-gpus")) {
            options->list = 1;
        } else if (is(arguments[at], "-q", "--query")) {
            options->details = 1;
        } else if (is(arguments[at], "-r", "--gpu-reset")) {
            options->reset = 1;
        } else if (is(arguments[at], "-x", "--xml-format")) {
            options->xml = 1;
        } else {
            printf("Option \"%s\" is not recognized. ", arguments[at]);
            return 0;
        }
    }
    return 1;
}

static int unknown_section(const char *given) {
    printf("\"%s\" is not a valid display type: must be of", given);
    for (size_t i = 0; SECTIONS[i]; i++) printf("%s %s", i ? "," : "", SECTIONS[i]);
    puts(".");
    return MISUSED;
}

static int show(const Options *options) {
    if (options->query_gpu) return query_gpus(options->ids, options->query_gpu, options->format);
    if (options->query_apps) return query_processes(options->ids, options->query_apps, options->format);
    if (options->details) return show_details(options->ids, options->xml, options->sections);
    return show_table(options->ids);
}

/* Seconds between two shows; 0: once, -1: nonsense. */
static double delay_of(const Options *options) {
    const char *text = options->loop_ms ? options->loop_ms : options->loop;
    char *end;
    if (text == NULL) return 0;
    double value = strtod(text, &end);
    if (*text == 0 || *end != 0 || !(value > 0)) return -1;
    return options->loop_ms ? value / 1000 : value;
}

static int run(const Options *options) {
    double delay = delay_of(options);
    if (options->xml && !options->details) return misused("\"-x\" switch needs \"-q\".");
    if (options->sections && !options->details) return misused("\"-d\" switch needs \"-q\".");
    if (options->sections && !sections_known(options->sections)) return unknown_section(options->sections);
    if ((options->query_gpu || options->query_apps) && options->format == NULL)
        return misused("\"--format=csv\" switch is missing: queries need it.");
    if (delay < 0) return misused("\"-l\" and \"-lms\" need a number above 0.");
    api_open(0);
    if (options->reset) return reset_gpus(options->ids);
    if (options->persistence) return set_persistence(options->ids, options->persistence);
    if (options->list) return show_list(options->ids);
    int code = show(options);
    while (code == 0 && delay > 0) {
        fflush(stdout);
        pause_for(delay);
        code = show(options);
    }
    return code;
}

static int command(int count, char **arguments) {
    Options options = {0};
    if (count > 1 && is(arguments[1], "-h", "--help")) {
        fputs(HELP, stdout);
        return 0;
    }
    if (count > 1 && strcmp(arguments[1], "drain") == 0) return drain(count - 2, arguments + 2);
    if (count > 1 && strcmp(arguments[1], "dmon") == 0) return monitor(count - 2, arguments + 2, 1);
    if (count > 1 && strcmp(arguments[1], "pmon") == 0) return monitor(count - 2, arguments + 2, 0);
    if (count > 1 && strcmp(arguments[1], "nvlink") == 0) return nvlink(count - 2, arguments + 2);
    if (count > 1 && strcmp(arguments[1], "topo") == 0) {
        if (count != 3 || !is(arguments[2], "-m", "--matrix")) return misused("Invalid combination of input arguments.");
        api_open(0);
        return show_topology();
    }
    if (!parse(count, arguments, &options)) return misused("");
    return run(&options);
}

int main(int count, char **arguments) {
    int code = command(count, arguments);
    if (api.nvmlShutdown != NULL) api.nvmlShutdown();
    return code;
}
