/* compute-policy, boost-slider, gpm: what a GPU's driver is told beside what NVML can set, and what it says of it. The forms
 * of their lists are assumed; scripts read the value of the slider before the last bar. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "choices.h"
#include "commands.h"
#include "gpus.h"

enum { LIST = 0, SET = 1 };

/* One of these commands. `set` and `name`: what the driver is told; `value`: a detail of the GPU. */
typedef struct {
    const Choice *choices;
    const char *help, *usage, *name, *value, *lacking;
    unsigned most;
    void (*head)(void), (*row)(unsigned index, const char *value), (*foot)(void);
    void (*done)(const char *bus_id, unsigned number);
} Policy;

static const char *const TIMESLICES[] = {"DEFAULT", "SHORT", "MEDIUM", "LONG"};

static const Choice COMPUTE_POLICY[] = {{"-l", "--list", 0}, {NULL, "--set-timeslice", SETS}, {NULL, NULL, 0}};
static const Choice BOOST_SLIDER[] = {{"-l", "--list", 0}, {NULL, "--vboost", SETS}, {NULL, NULL, 0}};
static const Choice GPM[] = {{"-g", "--get-streaming", 0}, {"-s", "--set-streaming", SETS}, {NULL, NULL, 0}};

/* ---- Lists ---- */

static void timeslice_head(void) {
    puts("+----------------------------+\n"
         "| GPU compute policies:      |\n"
         "| GPU      Name       Value  |\n"
         "|============================|");
}
static void timeslice_row(unsigned index, const char *value) { printf("| %3u   Timeslice   %7s  |\n", index, value); }
static void timeslice_foot(void) { puts("+----------------------------+"); }
static void timeslice_done(const char *bus_id, unsigned number) {
    printf("Set timeslice to %s for GPU %s.\n", TIMESLICES[number], bus_id);
}

static void slider_head(void) {
    puts("+-----------------------------------+\n"
         "| GPU boost sliders:                |\n"
         "| GPU    Slider    Most    Current  |\n"
         "|===================================|");
}
static void slider_row(unsigned index, const char *value) { printf("| %3u    vboost  %6s    %7s  |\n", index, "4", value); }
static void slider_foot(void) { puts("+-----------------------------------+"); }
static void slider_done(const char *bus_id, unsigned number) {
    printf("Set vboost to %u for GPU %s.\n", number, bus_id);
}

static void nothing(void) {}
static void streaming_row(unsigned index, const char *value) {
    printf("GPU %u: GPM streaming is %s\n", index, *value == '1' ? "enabled" : "disabled");
}
static void streaming_done(const char *bus_id, unsigned number) {
    printf("%s GPM streaming for GPU %s.\n", number ? "Enabled" : "Disabled", bus_id);
}

static const Policy TIMESLICE = {
    COMPUTE_POLICY,
    "nvidia-smi compute-policy -l [-i ID]         show how long a process computes before the next one\n"
    "nvidia-smi compute-policy --set-timeslice 0|1|2|3 [-i ID]   set it: default, short, medium, long\n",
    "Usage: compute-policy -l | --set-timeslice 0|1|2|3 [-i ID].",
    "timeslice", "timeslice", "Compute policies are not supported", 3,
    timeslice_head, timeslice_row, timeslice_foot, timeslice_done,
};
static const Policy SLIDER = {
    BOOST_SLIDER,
    "nvidia-smi boost-slider -l [-i ID]           show the slider vboost\n"
    "nvidia-smi boost-slider --vboost 0…4 [-i ID] set it\n",
    "Usage: boost-slider -l | --vboost 0…4 [-i ID].",
    "boost", "boost", "The boost slider is not supported", 4,
    slider_head, slider_row, slider_foot, slider_done,
};
static const Policy STREAMING = {
    GPM,
    "nvidia-smi gpm -g [-i ID]                    show whether GPM's metrics are streamed\n"
    "nvidia-smi gpm -s 0|1 [-i ID]                set it\n",
    "Usage: gpm -g | -s 0|1 [-i ID].",
    "gpm-streaming", "gpm_streaming", "GPM streaming is not supported", 1,
    nothing, streaming_row, nothing, streaming_done,
};

/* ---- Doing it ---- */

static int told_number(const Policy *policy, const char *text, unsigned *out) {
    for (unsigned i = 0; policy == &TIMESLICE && i < sizeof TIMESLICES / sizeof *TIMESLICES; i++)
        if (strcmp(text, TIMESLICES[i]) == 0) return (*out = i) + 1;
    return number_upto(text, policy->most, out);
}

static int list(const Policy *policy, const Selection *selection) {
    unsigned shown = 0;
    for (unsigned i = 0; i < selection->count; i++) {
        char value[VALUE_SIZE];
        unsigned index = 0;
        if (detail_of(selection->devices[i], policy->value, value) != OK) continue;
        if (shown++ == 0) policy->head();
        api.nvmlDeviceGetIndex(selection->devices[i], &index);
        policy->row(index, value);
    }
    if (shown > 0) policy->foot();
    else printf("%s by any of these GPUs.\n", policy->lacking);
    return shown > 0 ? 0 : exit_code_of(NOT_SUPPORTED);
}

static int set(const Policy *policy, const Selection *selection, unsigned number) {
    int code = 0;
    for (unsigned i = 0; i < selection->count && code == 0; i++) {
        char bus_id[VALUE_SIZE];
        bus_id_of(selection->devices[i], bus_id);
        Return result = detail_table ? detail_table->set(selection->devices[i], policy->name, &number) : NOT_SUPPORTED;
        if (result == OK) policy->done(bus_id, number);
        else if (result == NOT_SUPPORTED) printf("%s for GPU %s.\n", policy->lacking, bus_id);
        else printf("Failed to set it for GPU %s: %s\n", bus_id, api.nvmlErrorString(result));
        code = exit_code_of(result);
    }
    return code;
}

static int run(const Policy *policy, int count, char **arguments) {
    Asked asked;
    int code;
    unsigned number = 0;
    if (help_asked(count, arguments)) return help(policy->help);
    if (!asked_of(count, arguments, policy->choices, 0, &asked, &code) || asked.chosen == NOTHING)
        return misused(policy->usage);
    if (asked.chosen == SET && !told_number(policy, asked.value, &number)) return misused(policy->usage);
    api_open(0);
    Selection selection = select_gpus(asked.ids, "No devices were found");
    code = asked.chosen == SET ? set(policy, &selection, number) : list(policy, &selection);
    free(selection.devices);
    return code;
}

int compute_policy(int count, char **arguments) { return run(&TIMESLICE, count, arguments); }
int boost_slider(int count, char **arguments) { return run(&SLIDER, count, arguments); }
int gpm(int count, char **arguments) { return run(&STREAMING, count, arguments); }
