/* nvidia-smi: shows and changes what the host's state says, through libnvidia-ml.so.1. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api.h"
#include "commands.h"
#include "driver.h"
#include "layout.h"

typedef struct {
    const char *ids, *query_gpu, *query_records, *records, *format, *persistence, *mig, *sections, *loop, *loop_ms, *file, *light;
    int list, details, xml, reset, excluded, version, units, dtd, hostname;
    Settings settings;
} Options;

enum { MISUSED = 2 };

int misused(const char *message) {
    printf("%s Please run 'nvidia-smi -h' for help.\n", message);
    return MISUSED;
}

static const Option NOT_EMULATED[] = {
    {"-col", "--columns"}, {NULL, "--debug"}, {"-fdm", "--force-driver-model"}, {"-dm", "--driver-model"}, {NULL, NULL},
};

static int device_monitor(int count, char **arguments) { return monitor(count, arguments, 1); }
static int process_monitor(int count, char **arguments) { return monitor(count, arguments, 0); }

const Command COMMANDS[] = {
    {"Device Monitoring", "dmon", "Show what GPUs do, line by line.", device_monitor, 0},
    {NULL, "daemon", "Keep that in files.", NULL, 0},
    {NULL, "replay", "Show those files.", NULL, 0},
    {"Process Monitoring", "pmon", "Show what processes do, line by line.", process_monitor, 0},
    {"TOPOLOGY", "topo", "Show where GPUs are, and what joins them.", topology, 0},
    {"DRAIN STATES", "drain", "Show and set the drain state of GPUs; remove them.", drain, 0},
    {"NVLINK", "nvlink", "Show and set NVLinks.", nvlink, 0},
    {"C2C", "c2c", "Show the links to a joined processor.", c2c, 535},
    {"CLOCKS", "clocks", "Let GPUs boost together.", NULL, 0},
    {"ENCODER SESSIONS", "encodersessions", "Show what is encoded.", encoder_sessions, 0},
    {"FBC SESSIONS", "fbcsessions", "Show what is captured.", capture_sessions, 0},
    {"GRID vGPU", "vgpu", "Show virtual GPUs, of which there are none.", vgpu, 0},
    {"MIG", "mig", "Divide GPUs by MIG.", mig, 0},
    {"COMPUTE POLICY", "compute-policy", "Show and set how processes take turns.", compute_policy, 0},
    {"BOOST SLIDER", "boost-slider", "Show and set the slider vboost.", boost_slider, 0},
    {"POWER HINT", "power-hint", "Estimate the power of a clock.", NULL, 0},
    {"BASE CLOCKS", "base-clocks", "Show base clocks.", NULL, 0},
    {"CONFIDENTIAL COMPUTE", "conf-compute", "Show confidential computing, which is off.", conf_compute, 535},
    {"GPU PERFORMANCE MONITORING", "gpm", "Show and set whether metrics are streamed.", gpm, 535},
    {"PCI", "pci", "Show and clear errors of the slot.", pci, 565},
    {"Power Smoothing", "power-smoothing", "Even out the power of GPUs.", NULL, 570},
    {"Power Profiles", "power-profiles", "Show the power profiles of workloads.", power_profiles, 570},
    {"RUSD", "rusd", "Set what processes read of GPUs.", NULL, 590},
    {"PRM", "prm", "Read registers of the hardware.", NULL, 580},
    {"SOC", "soc", "Show a system on a chip.", NULL, 590},
    {NULL, NULL, NULL, NULL, 0},
};

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

/* Whether it takes a value; then it stands last, without one. */
static int needs_value(const char *argument) {
    static const char *const NAMES[] = {"-i", "--id", "-f", "--filename", "-lms", "--loop-ms", "-d", "--display", "-pm",
                                        "--persistence-mode", "-mig", "--multi-instance-gpu", "-t", "--toggle-led",
                                        "--format"};
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
        if (strcmp(argument, NAMES[i]) == 0) return 1;
    return strncmp(argument, "--query-", 8) == 0 && strchr(argument, '=') == NULL;
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
        if (is(arguments[at], "-l", "--loop") && (at + 1 >= count || arguments[at + 1][0] == '-')) {
            options->loop = "5"; /* as a real one does without a number */
            continue;
        }
        if (valued("--loop", "-l", count, arguments, &at, &options->loop)) continue;
        if (valued("--loop-ms", "-lms", count, arguments, &at, &options->loop_ms)) continue;
        if (valued("--display", "-d", count, arguments, &at, &options->sections)) continue;
        if (valued("--toggle-led", "-t", count, arguments, &at, &options->light)) continue;
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
            if (at + 1 < count && strcmp(arguments[at + 1], "bus") == 0) at++; /* of the bus: the same here */
        } else if (strcmp(arguments[at], "--get-hostname") == 0) {
            options->hostname = 1;
        } else if (is(arguments[at], "-x", "--xml-format")) {
            options->xml = 1;
        } else if (is(arguments[at], "-eow", "--error-on-warning")) {
            options->settings.strict = 1;
        } else if (refused_of(NOT_EMULATED, 1, &arguments[at])) {
            return not_emulated(arguments[at]);
        } else if (is_setting(arguments[at]) || needs_value(arguments[at])) {
            printf("Option \"%s\" needs a value.", arguments[at]);
            return misused("");
        } else {
            printf("Option \"%s\" is not recognized.", arguments[at]);
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
    if (options->settings.lock_mode && !locks_clocks(&options->settings)) return misused("\"-m\" switch needs \"-lgc\".");
    if (options->light && strcmp(options->light, "0") && strcmp(options->light, "1") && strcmp(options->light, "GREEN") &&
        strcmp(options->light, "AMBER"))
        return misused("\"-t\" takes 0 or 1.");
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
    if (options->light) return puts("No units were found") < 0 ? 1 : exit_code_of(NOT_FOUND);
    if (options->hostname) return show_hostnames(options->ids);
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
    static const char FIELDS_OF[] = "--help-query-";
    if (count > 1 && help_asked(1, arguments + 1)) return show_main_help();
    if (count > 1 && strncmp(arguments[1], FIELDS_OF, sizeof FIELDS_OF - 1) == 0)
        return list_fields(arguments[1] + sizeof FIELDS_OF - 1);
    for (size_t i = 0; count > 1 && COMMANDS[i].name; i++) {
        unsigned branch;
        if (strcmp(arguments[1], COMMANDS[i].name) != 0) continue;
        if (COMMANDS[i].since && (branch = driver_peeked()) != 0 && branch < COMMANDS[i].since) break;
        return COMMANDS[i].run ? COMMANDS[i].run(count - 2, arguments + 2) : not_emulated(arguments[1]);
    }
    int code = parse(count, arguments, &options);
    return code ? code : run(&options);
}

int main(int count, char **arguments) {
    int code = command(count, arguments);
    if (api.nvmlShutdown != NULL) api.nvmlShutdown();
    return code;
}
