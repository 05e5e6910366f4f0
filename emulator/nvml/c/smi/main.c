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
    "nvidia-smi [-i ID] [-f FILE] [-l SECONDS | -lms MILLISECONDS]\n"
    "                                             a table of GPUs and processes, again and again with -l\n"
    "nvidia-smi -L [-i ID]                        list the GPUs\n"
    "nvidia-smi -B                                list the GPUs that the driver leaves out\n"
    "nvidia-smi --version                         show the versions of program, library, driver and CUDA\n"
    "nvidia-smi -q [-x] [-d SECTION,…] [-i ID]    show everything; -x: as XML; -d: MEMORY, ECC, POWER, …\n"
    "nvidia-smi -q -u [-x]                        show driver, CUDA and units, of which there are none\n"
    "nvidia-smi --dtd [-u]                        show the document type of that XML; -q -x --dtd embeds it\n"
    "nvidia-smi --query-WHAT=FIELD,… --format=csv[,noheader][,nounits] [-i ID]\n"
    "                                             WHAT: gpu, compute-apps, accounted-apps, retired-pages,\n"
    "                                             remapped-rows, supported-clocks\n"
    "nvidia-smi --help-query-WHAT                 list the fields\n"
    "nvidia-smi -i ID -pm 0|1                     set persistence mode\n"
    "nvidia-smi [-i ID] -pl WATTS [-sc 0|1]       set the power limit of a GPU, or of its module\n"
    "nvidia-smi [-i ID] -lgc MIN[,MAX] | -rgc     lock the clocks of the multiprocessors, in MHz | unlock them\n"
    "nvidia-smi [-i ID] -lmc MIN[,MAX] | -rmc     lock the memory's clocks, in MHz | unlock them\n"
    "nvidia-smi [-i ID] -ac MEMORY,GRAPHICS | -rac   set the clocks of applications, in MHz | the default\n"
    "nvidia-smi [-i ID] -c 0|2|3                  set the compute mode: default, prohibited, exclusive process\n"
    "nvidia-smi [-i ID] -e 0|1                    set ECC from the next reset or reboot on\n"
    "nvidia-smi [-i ID] -p 0|1                    clear the ECC errors of this driver | of the board's life\n"
    "nvidia-smi [-i ID] -gtt DEGREES              set the target temperature\n"
    "nvidia-smi [-i ID] --gom 0|1|2 | --auto-boost-default 0|1 | --auto-boost-permission 0|1\n"
    "                                             settings that no emulated GPU supports\n"
    "nvidia-smi [-i ID] -am 0|1 | -caa             keep accounts of processes | forget those kept\n"
    "nvidia-smi [-i ID] -mig 0|1                  set MIG mode\n"
    "nvidia-smi mig -h                            show how GPUs are divided by MIG\n"
    "nvidia-smi -r -i ID                          reset GPUs that nobody has open\n"
    "nvidia-smi drain -p BUS_ID -m 0|1            set the drain state\n"
    "nvidia-smi drain -p BUS_ID -q | -r           query it | remove the GPU\n"
    "nvidia-smi topo -h                           show how to ask for the places of GPUs and what joins them\n"
    "nvidia-smi c2c -s [-i ID]                    show the speed of links to a joined processor\n"
    "nvidia-smi nvlink -h                         show how to ask for NVLinks\n"
    "nvidia-smi dmon [-i ID] [-s pucvmet] [--gpm-metrics ID,…] [-o DT] [-d SECONDS] [-c COUNT] [-f FILE] [--format csv]\n"
    "nvidia-smi pmon [-i ID] [-s um] [-o DT] [-d SECONDS] [-c COUNT] [-f FILE]\n"
    "\n"
    "-eow                                         fail if a GPU does not support what is set\n"
    "-f FILE                                      write to a file; also with -q and queries, as -l and -lms\n"
    "ID: index, UUID, serial or PCI bus id; several with commas.\n";

typedef struct {
    const char *ids, *query_gpu, *query_records, *records, *format, *persistence, *mig, *sections, *loop, *loop_ms, *file;
    int list, details, xml, reset, excluded, version, units, dtd;
    Settings settings;
} Options;

enum { MISUSED = 2 };

int misused(const char *message) {
    printf("%s Please run 'nvidia-smi -h' for help.\n", message);
    return MISUSED;
}

static const Option NOT_EMULATED[] = {
    {"-col", "--columns"}, {"-vm", "--virt-mode"}, {"-m", "--mode"}, {NULL, "--debug"},
    {"-lmcd", "--lock-memory-clocks-deferred"}, {"-rmcd", "--reset-memory-clocks-deferred"},
    {"-den", "--dram-encryption"}, {NULL, "--set-hostname"}, {NULL, "--get-hostname"}, {"-t", "--toggle-led"},
    {"-cc", "--cuda-clocks"}, {"-fdm", "--force-driver-model"}, {"-dm", "--driver-model"}, {NULL, NULL},
};
static const char *const OTHER_COMMANDS[] = {
    "daemon", "replay", "clocks", "encodersessions", "fbcsessions", "vgpu", "compute-policy", "boost-slider",
    "conf-compute", "gpm", "pci", "power-smoothing", "power-profiles", "power-hint", "base-clocks", "rusd", "prm",
    "soc", NULL};

int not_emulated(const char *what) {
    printf("\"%s\" is not emulated: nothing was shown or changed.\n", what);
    return exit_code_of(NOT_SUPPORTED);
}

const char *refused_of(const Option *options, int count, char **arguments) {
    for (int at = 0; at < count; at++)
        for (const Option *one = options; one->name; one++) {
            size_t length = strcspn(arguments[at], "=");
            if (one->brief && strcmp(one->brief, arguments[at]) == 0) return arguments[at];
            if (strlen(one->name) == length && strncmp(one->name, arguments[at], length) == 0) return arguments[at];
        }
    return NULL;
}

int help_asked(int count, char **arguments) {
    for (int at = 0; at < count; at++)
        if (strcmp(arguments[at], "-h") == 0 || strcmp(arguments[at], "--help") == 0) return 1;
    return 0;
}

int help(const char *text) {
    fputs(text, stdout);
    return 0;
}

int valued(const char *name, const char *brief, int count, char **arguments, int *at, const char **out) {
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

static int queried(int count, char **arguments, int *at, Options *options) {
    static const char *const WHAT[] = {"compute-apps", "accounted-apps", "retired-pages", "remapped-rows",
                                       "supported-clocks"};
    for (size_t i = 0; i < sizeof WHAT / sizeof *WHAT; i++) {
        char name[64];
        snprintf(name, sizeof name, "--query-%s", WHAT[i]);
        if (!valued(name, NULL, count, arguments, at, &options->query_records)) continue;
        options->records = WHAT[i];
        return 1;
    }
    return 0;
}

/* 0, or the exit code after words about what is wrong. */
static int parse(int count, char **arguments, Options *options) {
    for (int at = 1; at < count; at++) {
        if (valued("--id", "-i", count, arguments, &at, &options->ids)) continue;
        if (valued("--query-gpu", NULL, count, arguments, &at, &options->query_gpu)) continue;
        if (queried(count, arguments, &at, options)) continue;
        if (setting_option(count, arguments, &at, &options->settings)) continue;
        if (valued("--format", NULL, count, arguments, &at, &options->format)) continue;
        if (valued("--filename", "-f", count, arguments, &at, &options->file)) continue;
        if (valued("--persistence-mode", "-pm", count, arguments, &at, &options->persistence)) continue;
        if (valued("--multi-instance-gpu", "-mig", count, arguments, &at, &options->mig)) continue;
        if (valued("--loop", "-l", count, arguments, &at, &options->loop)) continue;
        if (valued("--loop-ms", "-lms", count, arguments, &at, &options->loop_ms)) continue;
        if (valued("--display", "-d", count, arguments, &at, &options->sections)) continue;
        if (is(arguments[at], "-L", "--list-gpus")) {
            options->list = 1;
        } else if (is(arguments[at], "-B", "--list-excluded-gpus")) {
            options->excluded = 1;
        } else if (strcmp(arguments[at], "--version") == 0) {
            options->version = 1;
        } else if (strcmp(arguments[at], "--dtd") == 0) {
            options->dtd = 1;
        } else if (is(arguments[at], "-q", "--query")) {
            options->details = 1;
        } else if (is(arguments[at], "-u", "--unit")) {
            options->units = 1;
        } else if (is(arguments[at], "-r", "--gpu-reset")) {
            options->reset = 1;
        } else if (is(arguments[at], "-x", "--xml-format")) {
            options->xml = 1;
        } else if (is(arguments[at], "-eow", "--error-on-warning")) {
            options->settings.strict = 1;
        } else if (refused_of(NOT_EMULATED, 1, &arguments[at])) {
            return not_emulated(arguments[at]);
        } else if (is_setting(arguments[at]) || is(arguments[at], "-mig", "--multi-instance-gpu")) {
            printf("Option \"%s\" needs a value. ", arguments[at]);
            return misused("");
        } else {
            printf("Option \"%s\" is not recognized. ", arguments[at]);
            return misused("");
        }
    }
    return 0;
}

/* All that follows goes to that file; 0 when it cannot be written. */
int write_to(const char *path) {
    FILE *tried = path ? fopen(path, "w") : NULL;
    if (path && tried == NULL) {
        printf("Failed to open file \"%s\" for writing.\n", path);
        return 0;
    }
    if (tried) fclose(tried);
    return path == NULL || freopen(path, "w", stdout) != NULL;
}

/* ---- --version ---- */

static int show_version(void) {
    char driver[80] = "N/A", library[80] = "N/A";
    int cuda = 0;
    api.nvmlSystemGetDriverVersion(driver, sizeof driver);
    api.nvmlSystemGetNVMLVersion(library, sizeof library);
    api.nvmlSystemGetCudaDriverVersion_v2(&cuda);
    /* The library's version begins with CUDA's; two of the driver's three numbers are shown. */
    const char *own = strchr(library, '.');
    unsigned branch = 0, release = 0;
    sscanf(own ? own + 1 : library, "%u.%u", &branch, &release);
    printf("NVIDIA-SMI version  : %s\n", driver);
    printf("NVML version        : %u.%02u\n", branch, release);
    printf("DRIVER version      : %s\n", driver);
    printf("CUDA Version        : %d.%d\n", cuda / 1000, cuda % 1000 / 10);
    return 0;
}

static int unknown_section(const char *given) {
    printf("\"%s\" is not a valid display type: must be of", given);
    for (size_t i = 0; SECTIONS[i]; i++) printf("%s %s", i ? "," : "", SECTIONS[i]);
    puts(".");
    return MISUSED;
}

static int show(const Options *options) {
    if (options->query_gpu) return query_gpus(options->ids, options->query_gpu, options->format);
    if (options->query_records)
        return query_records(options->records, options->ids, options->query_records, options->format);
    if (options->units) return options->details ? show_units(options->xml, options->dtd) : puts("No units were found") < 0;
    if (options->details) return show_details(options->ids, options->xml, options->sections, options->dtd);
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
    int code = 0;
    if (options->settings.scope && !any_setting(&options->settings)) return misused("\"-sc\" switch needs \"-pl\".");
    if (options->xml && !options->details) return misused("\"-x\" switch needs \"-q\".");
    if (options->dtd && options->details && !options->xml) return misused("\"--dtd\" switch needs \"-x\" beside \"-q\".");
    if (options->sections && !options->details) return misused("\"-d\" switch needs \"-q\".");
    if (options->sections && !sections_known(options->sections)) return unknown_section(options->sections);
    if ((options->query_gpu || options->query_records) && options->format == NULL)
        return misused("\"--format=csv\" switch is missing: queries need it.");
    if (delay < 0) return misused("\"-l\" and \"-lms\" need a number above 0.");
    if (!write_to(options->file)) return MISUSED;
    api_open(0);
    if (options->version) return show_version();
    if (options->dtd && !options->details) return show_dtd(options->units);
    if (options->excluded) return puts("No excluded devices were found") < 0;
    if (options->reset) return reset_gpus(options->ids);
    if (options->persistence) code = set_persistence(options->ids, options->persistence);
    if (options->persistence && (code != 0 || !any_setting(&options->settings))) return code;
    if (options->mig) code = set_mig_mode(options->ids, options->mig);
    if (options->mig && (code != 0 || !any_setting(&options->settings))) return code;
    if (any_setting(&options->settings)) return apply_settings(options->ids, &options->settings);
    if (options->list && !options->units) return show_list(options->ids);
    code = show(options);
    while (code == 0 && delay > 0) {
        fflush(stdout);
        pause_for(delay);
        code = show(options);
    }
    return code;
}

static int command(int count, char **arguments) {
    Options options = {0};
    if (count > 1 && help_asked(1, arguments + 1)) return help(HELP);
    static const char FIELDS_OF[] = "--help-query-";
    if (count > 1 && strncmp(arguments[1], FIELDS_OF, sizeof FIELDS_OF - 1) == 0)
        return list_fields(arguments[1] + sizeof FIELDS_OF - 1);
    if (count > 1 && strcmp(arguments[1], "drain") == 0) return drain(count - 2, arguments + 2);
    if (count > 1 && strcmp(arguments[1], "mig") == 0) return mig(count - 2, arguments + 2);
    if (count > 1 && strcmp(arguments[1], "dmon") == 0) return monitor(count - 2, arguments + 2, 1);
    if (count > 1 && strcmp(arguments[1], "pmon") == 0) return monitor(count - 2, arguments + 2, 0);
    if (count > 1 && strcmp(arguments[1], "nvlink") == 0) return nvlink(count - 2, arguments + 2);
    if (count > 1 && strcmp(arguments[1], "c2c") == 0) return c2c(count - 2, arguments + 2);
    if (count > 1 && strcmp(arguments[1], "topo") == 0) return topology(count - 2, arguments + 2);
    for (size_t i = 0; count > 1 && OTHER_COMMANDS[i]; i++)
        if (strcmp(arguments[1], OTHER_COMMANDS[i]) == 0) return not_emulated(arguments[1]);
    int code = parse(count, arguments, &options);
    return code ? code : run(&options);
}

int main(int count, char **arguments) {
    int code = command(count, arguments);
    if (api.nvmlShutdown != NULL) api.nvmlShutdown();
    return code;
}
