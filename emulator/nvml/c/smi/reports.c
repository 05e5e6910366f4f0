/* conf-compute, pci, power-profiles, vgpu: what a driver says of confidential computing, of the errors on the way to its
 * GPUs, of workload power profiles, and of virtual GPUs, of which there are none. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "choices.h"
#include "commands.h"
#include "gpus.h"

/* ---- conf-compute. Forms: NVIDIA's guide to confidential containers, and programs that read them. ---- */

enum { FEATURE, READY, DEV_TOOLS, ENVIRONMENT, CPU_ABILITY, GPU_ABILITY, MANY, ALL, SET_READY };

static const Choice CONF_COMPUTE[] = {
    [FEATURE] = {"-f", "--get-cc-feature", 0},
    [READY] = {"-grs", "--get-gpus-ready-state", 0},
    [DEV_TOOLS] = {"-d", "--get-devtools-mode", 0},
    [ENVIRONMENT] = {"-e", "--get-environment", 0},
    [CPU_ABILITY] = {"-gc", "--get-cpu-caps", 0},
    [GPU_ABILITY] = {"-gg", "--get-gpus-caps", 0},
    [MANY] = {"-mgm", "--get-multigpu-mode", 0},
    [ALL] = {"-q", "--query-conf-compute", 0},
    [SET_READY] = {"-srs", "--set-gpus-ready-state", SETS},
    {"-gm", "--get-mem-size-info", REFUSED},
    {"-sm", "--set-unprotected-mem-size", REFUSED},
    {"-gkr", "--get-key-rotation-attacker-advantage", REFUSED},
    {"-skr", "--set-key-rotation-attacker-advantage", REFUSED},
    {NULL, NULL, 0}};

static const char *on(unsigned state) { return state ? "ON" : "OFF"; }

static int show_confidential(int what) {
    ConfidentialState state = {0, 0, 0};
    ConfidentialAbility able = {0, 0};
    unsigned ready = 0;
    api.nvmlSystemGetConfComputeState(&state);
    api.nvmlSystemGetConfComputeCapabilities(&able);
    Return result = api.nvmlSystemGetConfComputeGpusReadyState(&ready);
    const char *gpus = able.gpus ? "CC Capable" : "Not CC Capable";
    switch (what) {
    case FEATURE: printf("CC status: %s\n", on(state.feature)); return 0;
    case DEV_TOOLS: printf("DevTools Mode: %s\n", on(state.tools_mode)); return 0;
    case ENVIRONMENT: printf("CC Environment: %s\n", state.environment ? "PRODUCTION" : "UNAVAILABLE"); return 0;
    case CPU_ABILITY: puts("CPU CC Capabilities: None"); return 0;
    case GPU_ABILITY: printf("GPU CC Capabilities: %s\n", gpus); return 0;
    case MANY: puts("Multi-GPU Mode: None"); return 0;
    case READY:
        if (result == OK) printf("Confidential Compute GPUs Ready state: %s\n", ready ? "ready" : "not-ready");
        else printf("Confidential Compute GPUs Ready state: %s\n", api.nvmlErrorString(result));
        return exit_code_of(result);
    default:
        puts("\n==============NVSMI CONF-COMPUTE LOG==============\n");
        printf("    CC State                   : %s\n", on(state.feature));
        puts("    Multi-GPU Mode             : None");
        puts("    CPU CC Capabilities        : None");
        printf("    GPU CC Capabilities        : %s\n", gpus);
        printf("    CC GPUs Ready State        : %s\n\n", result != OK ? "N/A" : ready ? "Ready" : "Not Ready");
        return 0;
    }
}

static const char CONFIDENTIAL_HELP[] =
    "nvidia-smi conf-compute -q                   show all of confidential computing\n"
    "nvidia-smi conf-compute -f | -d | -e | -mgm  show whether it is on | tools of developers | environment |\n"
    "                                             what several GPUs share\n"
    "nvidia-smi conf-compute -gc | -gg            show whether the processor can do it | the GPUs can\n"
    "nvidia-smi conf-compute -grs | -srs 0|1      show whether the GPUs accept work | set it\n";

int conf_compute(int count, char **arguments) {
    static const char USAGE[] = "Usage: conf-compute -q | -f | -d | -e | -mgm | -gc | -gg | -grs | -srs 0|1.";
    Asked asked;
    int code;
    unsigned state = 0;
    if (help_asked(count, arguments)) return help(CONFIDENTIAL_HELP);
    if (!asked_of(count, arguments, CONF_COMPUTE, 0, &asked, &code)) return code ? code : misused(USAGE);
    if (asked.chosen == NOTHING || asked.ids) return misused(USAGE);
    if (asked.chosen == SET_READY && !number_upto(asked.value, 1, &state)) return misused(USAGE);
    api_open(0);
    if (asked.chosen != SET_READY) return show_confidential(asked.chosen);
    Return result = api.nvmlSystemSetConfComputeGpusReadyState(state);
    if (result == OK) puts("Set Confidential Compute GPUs Ready state.");
    else printf("Unable to set Confidential Compute GPUs Ready state: %s\n", api.nvmlErrorString(result));
    return exit_code_of(result);
}

/* ---- pci ---- */

enum { ERRORS, CLEAR };
static const Choice PCI[] = {
    [ERRORS] = {"-gErrCnt", "--getErrorCounters", 0}, [CLEAR] = {"-cErrCnt", "--clearErrorCounters", 0}, {NULL, NULL, 0}};

static const struct {
    unsigned field;
    const char *name;
} SLOT_ERRORS[] = {
    {94, "REPLAY_COUNTER"}, {95, "REPLAY_ROLLOVER_COUNTER"}, {169, "L0_TO_RECOVERY_COUNTER"}, {173, "CORRECTABLE_ERRORS"},
    {174, "NAKS_RECEIVED"}, {175, "RECEIVER_ERROR"}, {176, "BAD_TLP"}, {177, "NAKS_SENT"}, {178, "BAD_DLLP"},
    {179, "NON_FATAL_ERROR"}, {180, "FATAL_ERROR"}, {181, "UNSUPPORTED_REQ"}, {182, "LCRC_ERROR"}, {183, "LANE_ERROR"},
};
enum { SLOT_ERROR_COUNT = sizeof SLOT_ERRORS / sizeof *SLOT_ERRORS };

static int slot_errors(Device device, int clear) {
    FieldValue values[SLOT_ERROR_COUNT];
    for (int i = 0; i < SLOT_ERROR_COUNT; i++) values[i] = (FieldValue){.field = SLOT_ERRORS[i].field};
    Return result = clear ? api.nvmlDeviceClearFieldValues(device, SLOT_ERROR_COUNT, values)
                          : api.nvmlDeviceGetFieldValues(device, SLOT_ERROR_COUNT, values);
    /* Clearing says of each counter what became of it, and fails where nothing was cleared. */
    for (int i = 0; clear && i < SLOT_ERROR_COUNT; i++)
        if (values[i].result == NO_PERMISSION) result = NO_PERMISSION;
    if (result != OK && result != NO_PERMISSION) printf("    %s\n", api.nvmlErrorString(result));
    for (int i = 0; i < SLOT_ERROR_COUNT && (result == OK || result == NO_PERMISSION); i++) {
        if (values[i].result == NOT_SUPPORTED) printf("    %s: N/A\n", SLOT_ERRORS[i].name);
        else if (values[i].result != OK) printf("    %s: %s\n", SLOT_ERRORS[i].name, api.nvmlErrorString(values[i].result));
        else if (clear) printf("    %s: cleared\n", SLOT_ERRORS[i].name);
        else printf("    %s: %u\n", SLOT_ERRORS[i].name, values[i].value.ui);
    }
    return exit_code_of(result);
}

static const char PCI_HELP[] =
    "nvidia-smi pci -gErrCnt [-i ID]              show how many errors the link of the slot had\n"
    "nvidia-smi pci -cErrCnt [-i ID]              clear those counters that can be cleared\n";

int pci(int count, char **arguments) {
    static const char USAGE[] = "Usage: pci -gErrCnt | -cErrCnt [-i ID].";
    Asked asked;
    int code;
    if (help_asked(count, arguments)) return help(PCI_HELP);
    if (!asked_of(count, arguments, PCI, 0, &asked, &code) || asked.chosen == NOTHING) return misused(USAGE);
    api_open(0);
    Selection selection = select_gpus(asked.ids, "No devices were found");
    for (unsigned i = 0; i < selection.count && code == 0; i++) {
        name_gpu(selection.devices[i]);
        code = slot_errors(selection.devices[i], asked.chosen == CLEAR);
    }
    free(selection.devices);
    return code;
}

/* ---- power-profiles. Forms: what NVIDIA's own emulation of NVML expects of nvidia-smi 580. ---- */

enum { NAMES, NAMES_AND_MORE, REQUESTED, ENFORCED };
static const Choice POWER_PROFILES_OF[] = {
    [NAMES] = {"-l", "--list", 0},
    [NAMES_AND_MORE] = {"-ld", "--list-detailed", 0},
    [REQUESTED] = {"-gr", "--get-requested", 0},
    [ENFORCED] = {"-ge", "--get-enforced", 0},
    {"-sr", "--set-requested", REFUSED},
    {"-cr", "--clear-requested", REFUSED},
    {NULL, NULL, 0}};

static const char *const PROFILE_NAMES[] = {
    "Max-P", "Max-Q", "Compute", "Memory Bound", "Network", "Balanced", "LLM Inference", "LLM Training", "RBM", "DCPCIE",
    "HMMA Sparse", "HMMA Dense", "Sync Balanced", "HPC", "MIG"};

static int is_in(const ProfileMask *mask, unsigned id) { return mask->mask[id / 32] >> id % 32 & 1; }

static int show_profiles(Device device, int what) {
    static PowerProfiles all;
    PowerProfilesNow now = {.version = STRUCT_VERSION(now, 1)};
    all.version = STRUCT_VERSION(all, 1);
    Return result = api.nvmlDeviceWorkloadPowerProfileGetProfilesInfo(device, &all);
    if (result == OK) result = api.nvmlDeviceWorkloadPowerProfileGetCurrentProfiles(device, &now);
    if (result != OK) {
        printf("Workload Power Profiles feature is %s.\n",
               result == NOT_SUPPORTED ? "not supported on this device" : api.nvmlErrorString(result));
        return exit_code_of(result);
    }
    const ProfileMask *mask = what == REQUESTED ? &now.requested : what == ENFORCED ? &now.enforced : &all.known;
    unsigned shown = 0;
    for (unsigned id = 0; id < sizeof PROFILE_NAMES / sizeof *PROFILE_NAMES; id++) {
        if (!is_in(mask, id)) continue;
        shown++;
        printf("%u. %s\n", id, PROFILE_NAMES[id]);
        if (what == NAMES_AND_MORE) printf("    Priority: %u\n", all.profiles[id].priority);
    }
    if (shown == 0) printf("No profiles are currently %s.\n", what == ENFORCED ? "engaged" : "requested");
    return 0;
}

static const char PROFILES_HELP[] =
    "nvidia-smi power-profiles -l | -ld [-i ID]   list the workload power profiles of a GPU | with more of each\n"
    "nvidia-smi power-profiles -gr | -ge [-i ID]  show which are requested | enforced\n";

int power_profiles(int count, char **arguments) {
    static const char USAGE[] = "Usage: power-profiles -l | -ld | -gr | -ge [-i ID].";
    Asked asked;
    int code;
    if (help_asked(count, arguments)) return help(PROFILES_HELP);
    if (!asked_of(count, arguments, POWER_PROFILES_OF, 0, &asked, &code)) return code ? code : misused(USAGE);
    if (asked.chosen == NOTHING) return misused(USAGE);
    api_open(0);
    Selection selection = select_gpus(asked.ids, "No devices were found");
    for (unsigned i = 0; i < selection.count && code == 0; i++) code = show_profiles(selection.devices[i], asked.chosen);
    free(selection.devices);
    return code;
}

/* ---- vgpu ---- */

static const Choice VGPU[] = {
    {"-q", "--query", 0},         {"-s", "--supported", 0},  {"-c", "--creatable", 0},      {"-v", "--verbose", 0},
    {"-p", "--process", 0},       {"-u", "--utilization", 0}, {"-es", "--encodersessions", 0}, {"-fs", "--fbcsessions", 0},
    {"-m", "--migration", 0},     {NULL, NULL, 0}};

/* Hosts of virtual GPUs need a driver of their own: these have none. */
int vgpu(int count, char **arguments) {
    Asked asked;
    int code;
    if (help_asked(count, arguments)) return help("nvidia-smi vgpu [-q | -s | -c | -p | -u | -es | -fs | -m] [-i ID]   show "
                                                  "virtual GPUs, of which there are none\n");
    if (!asked_of(count, arguments, VGPU, 0, &asked, &code))
        return misused("Usage: vgpu [-q | -s | -c | -p | -u | -es | -fs | -m] [-i ID].");
    api_open(0);
    Selection selection = select_gpus(asked.ids, "No devices were found");
    free(selection.devices);
    puts("No supported devices in vGPU mode");
    return exit_code_of(NOT_SUPPORTED);
}
