/* Options that set something of GPUs. What one does not support is a warning, as a real nvidia-smi has it. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "driver.h"
#include "gpus.h"

enum { POWER_LIMIT, LOCK_GPU, RESET_GPU, LOCK_MEMORY, RESET_MEMORY, APPLICATIONS, RESET_APPLICATIONS, COMPUTE, ECC_MODE,
       ECC_ERRORS, ACCOUNTING, CLEAR_ACCOUNTED, TARGET, OPERATION_MODE, AUTO_BOOST, BOOST_PERMISSION, LOCK_DEFERRED,
       RESET_DEFERRED, VIRTUALIZATION, CUDA_CLOCKS, ENCRYPTION, HOSTNAME };

typedef struct {
    const char *brief, *name, *takes; /* takes NULL: no value */
    int lasts;                        /* longer than the driver has the GPU open */
    int (*understood)(const char *given, unsigned *one, unsigned *two);
    Return (*set)(Device device, unsigned one, unsigned two);
    /* What was done, and why it was not. */
    void (*done)(const char *bus_id, unsigned one, unsigned two);
    const char *failed;
    const char *lacking; /* where the GPU does not support it; NULL: as where it failed */
} Setting;

/* ---- Values ---- */

static int number(const char *text, const char *end, unsigned *out) {
    unsigned long long value = 0;
    if (text == end) return 0;
    for (; text < end; text++) {
        if (!isdigit((unsigned char)*text) || value > 99999999) return 0;
        value = value * 10 + (unsigned)(*text - '0');
    }
    *out = (unsigned)value;
    return 1;
}

/* "1000" or "900,1200". */
static int range(const char *given, unsigned *one, unsigned *two) {
    const char *comma = strchr(given, ','), *end = given + strlen(given);
    if (comma == NULL) return number(given, end, one) && number(given, end, two);
    return number(given, comma, one) && number(comma + 1, end, two);
}

static int pair(const char *given, unsigned *one, unsigned *two) {
    return strchr(given, ',') != NULL && range(given, one, two);
}

static int watts(const char *given, unsigned *one, unsigned *two) {
    char *end;
    double value = strtod(given, &end);
    if (*given == 0 || *end != 0 || !(value >= 0) || value > 100000) return 0;
    *one = (unsigned)(value * 1000 + 0.5);
    return 1;
}

static int word_of(const char *given, const char *const *words, unsigned count, unsigned *one) {
    for (unsigned i = 0; i < count; i++)
        if (strcmp(given, words[i]) == 0) return (*one = i) + 1;
    return number(given, given + strlen(given), one) && *one < count;
}

static const char *const COMPUTE_WORDS[] = {"DEFAULT", "EXCLUSIVE_THREAD", "PROHIBITED", "EXCLUSIVE_PROCESS"};
static const char *const ON_WORDS[] = {"DISABLED", "ENABLED"};
static const char *const COUNTER_WORDS[] = {"VOLATILE", "AGGREGATE"};
static const char *const SCOPE_WORDS[] = {"GPU", "TOTAL_MODULE"};
static const char *const OPERATION_WORDS[] = {"ALL_ON", "COMPUTE", "LOW_DP"};
static const char *const CUDA_WORDS[] = {"RESTORE_DEFAULT", "OVERRIDE"};
static const char *const VIRTUAL_WORDS[] = {"", "", "", "VGPU", "VSGA"};
static const char *const MODE_WORDS[] = {"0", "1"};
static const char *const PERMISSION_WORDS[] = {"UNRESTRICTED", "RESTRICTED"};

static int compute_word(const char *given, unsigned *one, unsigned *two) { return word_of(given, COMPUTE_WORDS, 4, one); }
static int on_word(const char *given, unsigned *one, unsigned *two) { return word_of(given, ON_WORDS, 2, one); }
static int counter_word(const char *given, unsigned *one, unsigned *two) { return word_of(given, COUNTER_WORDS, 2, one); }
static int operation_word(const char *given, unsigned *one, unsigned *two) {
    return word_of(given, OPERATION_WORDS, 3, one);
}
static int permission_word(const char *given, unsigned *one, unsigned *two) {
    return word_of(given, PERMISSION_WORDS, 2, one);
}
static int degrees(const char *given, unsigned *one, unsigned *two) {
    return number(given, given + strlen(given), one);
}
static int cuda_word(const char *given, unsigned *one, unsigned *two) { return word_of(given, CUDA_WORDS, 2, one); }
static int virtual_word(const char *given, unsigned *one, unsigned *two) {
    return word_of(given, VIRTUAL_WORDS, 5, one) && *one >= 3;
}
static int name_of(const char *given, unsigned *one, unsigned *two) {
    enum { LONGEST = 63 };
    return *given != 0 && strlen(given) <= LONGEST;
}
static int clock_of(const char *given, unsigned *one, unsigned *two) {
    return number(given, given + strlen(given), one) && *one > 0;
}
static int nothing(const char *given, unsigned *one, unsigned *two) { return 1; }

/* ---- Calls ---- */

static unsigned limit_before, target_before, scope;

static Return set_limit(Device device, unsigned one, unsigned two) {
    PowerValue value = {.version = STRUCT_VERSION(value, 2), .scope = (unsigned char)scope, .milliwatts = one};
    Return result = api.nvmlDeviceGetPowerManagementLimit(device, &limit_before);
    if (result != OK) return result;
    return scope ? api.nvmlDeviceSetPowerManagementLimit_v2(device, &value)
                 : api.nvmlDeviceSetPowerManagementLimit(device, one);
}
static Return set_target(Device device, unsigned one, unsigned two) {
    int wanted = (int)one;
    Return result = api.nvmlDeviceGetTemperatureThreshold(device, THRESHOLD_TARGET, &target_before);
    return result != OK ? result : api.nvmlDeviceSetTemperatureThreshold(device, THRESHOLD_TARGET, &wanted);
}
static Return operation_mode(Device device, unsigned one, unsigned two) {
    return api.nvmlDeviceSetGpuOperationMode(device, one);
}
static Return auto_boost(Device device, unsigned one, unsigned two) {
    return api.nvmlDeviceSetDefaultAutoBoostedClocksEnabled(device, one, 0);
}
static Return boost_permission(Device device, unsigned one, unsigned two) {
    enum { SET_AUTO_BOOSTED_CLOCKS = 1 };
    return api.nvmlDeviceSetAPIRestriction(device, SET_AUTO_BOOSTED_CLOCKS, one);
}
static Return lock_gpu(Device device, unsigned one, unsigned two) {
    return api.nvmlDeviceSetGpuLockedClocks(device, one, two);
}
static Return reset_gpu(Device device, unsigned one, unsigned two) { return api.nvmlDeviceResetGpuLockedClocks(device); }
static Return lock_memory(Device device, unsigned one, unsigned two) {
    return api.nvmlDeviceSetMemoryLockedClocks(device, one, two);
}
static Return reset_memory(Device device, unsigned one, unsigned two) {
    return api.nvmlDeviceResetMemoryLockedClocks(device);
}
static Return applications(Device device, unsigned one, unsigned two) {
    return api.nvmlDeviceSetApplicationsClocks(device, one, two);
}
static Return reset_applications(Device device, unsigned one, unsigned two) {
    return api.nvmlDeviceResetApplicationsClocks(device);
}
static Return compute(Device device, unsigned one, unsigned two) { return api.nvmlDeviceSetComputeMode(device, one); }
static Return ecc_mode(Device device, unsigned one, unsigned two) { return api.nvmlDeviceSetEccMode(device, one); }
static Return ecc_errors(Device device, unsigned one, unsigned two) {
    return api.nvmlDeviceClearEccErrorCounts(device, one);
}

/* Hopper's memory takes a clock when the driver is loaded. */
static Return lock_deferred(Device device, unsigned one, unsigned two) {
    return detail_table ? detail_table->set(device, "memory-clocks-deferred", &one) : NOT_SUPPORTED;
}
static Return reset_deferred(Device device, unsigned one, unsigned two) {
    return detail_table ? detail_table->set(device, "memory-clocks-deferred", NULL) : NOT_SUPPORTED;
}

/* What no emulated board has: the library says so. CUDA's own clocks are told of no board. */
static Return virtualization(Device device, unsigned one, unsigned two) {
    return api.nvmlDeviceSetVirtualizationMode(device, one);
}
static Return cuda_clocks(Device device, unsigned one, unsigned two) {
    return detail_table ? detail_table->set(device, "cuda-clocks", &one) : NOT_SUPPORTED;
}
static Return encryption(Device device, unsigned one, unsigned two) {
    return api.nvmlDeviceSetDramEncryptionMode(device, &one);
}
static const char *hostname_given;
static Return hostname(Device device, unsigned one, unsigned two) {
    return api.nvmlDeviceSetHostname_v1(device, hostname_given);
}

static Return accounting(Device device, unsigned one, unsigned two) {
    return api.nvmlDeviceSetAccountingMode(device, one);
}
static Return clear_accounted(Device device, unsigned one, unsigned two) {
    return api.nvmlDeviceClearAccountingPids(device);
}

/* ---- Words ---- */

static void limit_done(const char *bus_id, unsigned one, unsigned two) {
    printf("Power limit for GPU %s was set to %.2f W from %.2f W.\n", bus_id, one / 1000.0, limit_before / 1000.0);
}
static void lock_gpu_done(const char *bus_id, unsigned one, unsigned two) {
    printf("GPU clocks set to \"(gpuClkMin %u, gpuClkMax %u)\" for GPU %s\n", one, two, bus_id);
}
static void lock_memory_done(const char *bus_id, unsigned one, unsigned two) {
    printf("Memory clocks set to \"(memClkMin %u, memClkMax %u)\" for GPU %s\n", one, two, bus_id);
}
static void lock_deferred_done(const char *bus_id, unsigned one, unsigned two) {
    printf("Memory clocks set to \"memClk %u\" for GPU %s from the next load of its driver on\n", one, bus_id);
}
static void reset_deferred_done(const char *bus_id, unsigned one, unsigned two) {
    printf("Memory clocks of GPU %s are reset at the next load of its driver\n", bus_id);
}
static void applications_done(const char *bus_id, unsigned one, unsigned two) {
    printf("Applications clocks set to \"(MEM %u, SM %u)\" for GPU %s\n", one, two, bus_id);
}
static void compute_done(const char *bus_id, unsigned one, unsigned two) {
    printf("Set compute mode to %s for GPU %s.\n", COMPUTE_WORDS[one], bus_id);
}
static void ecc_mode_done(const char *bus_id, unsigned one, unsigned two) {
    printf("%s ECC support for GPU %s.\n", one ? "Enabled" : "Disabled", bus_id);
}
static void ecc_errors_done(const char *bus_id, unsigned one, unsigned two) {
    printf("Reset %s ECC errors to zero for GPU %s.\n", one ? "aggregate" : "volatile", bus_id);
}

static void accounting_done(const char *bus_id, unsigned one, unsigned two) {
    printf("%s Accounting Mode for GPU %s.\n", one ? "Enabled" : "Disabled", bus_id);
}
static void target_done(const char *bus_id, unsigned one, unsigned two) {
    printf("Target temperature for GPU %s was set to %u C from %u C.\n", bus_id, one, target_before);
}
static void clear_accounted_done(const char *bus_id, unsigned one, unsigned two) {
    printf("Cleared accounted processes for GPU %s.\n", bus_id);
}

static const Setting SETTINGS[] = {
    [POWER_LIMIT] = {"-pl", "--power-limit", "a number of watts", 0, watts, set_limit, limit_done,
                     "set the power limit",
                     "Changing power management limit is not supported"},
    [LOCK_GPU] = {"-lgc", "--lock-gpu-clocks", "MHz as MIN,MAX or one number", 0, range, lock_gpu, lock_gpu_done,
                  "lock the GPU clocks", "Setting locked GPU clocks is not supported"},
    [RESET_GPU] = {"-rgc", "--reset-gpu-clocks", NULL, 1, nothing, reset_gpu, NULL, "reset the GPU clocks",
                   "Resetting GPU clocks is not supported"},
    [LOCK_MEMORY] = {"-lmc", "--lock-memory-clocks", "MHz as MIN,MAX or one number", 0, range, lock_memory,
                     lock_memory_done, "lock the memory clocks", "Setting locked Memory clocks is not supported"},
    [RESET_MEMORY] = {"-rmc", "--reset-memory-clocks", NULL, 1, nothing, reset_memory, NULL, "reset the memory clocks",
                      "Resetting Memory clocks is not supported"},
    [APPLICATIONS] = {"-ac", "--applications-clocks", "MHz as MEMORY,GRAPHICS", 0, pair, applications,
                      applications_done, "set the applications clocks", "Setting applications clocks is not supported"},
    [RESET_APPLICATIONS] = {"-rac", "--reset-applications-clocks", NULL, 1, nothing, reset_applications, NULL,
                            "reset the applications clocks", "Setting applications clocks is not supported"},
    [COMPUTE] = {"-c", "--compute-mode", "0, 2 or 3", 1, compute_word, compute, compute_done, "set the compute mode",
                 NULL},
    [ECC_MODE] = {"-e", "--ecc-config", "0 or 1", 1, on_word, ecc_mode, ecc_mode_done, "set the ECC mode", NULL},
    [ECC_ERRORS] = {"-p", "--reset-ecc-errors", "0 or 1", 1, counter_word, ecc_errors, ecc_errors_done,
                    "clear the ECC errors", NULL},
    [ACCOUNTING] = {"-am", "--accounting-mode", "0 or 1", 1, on_word, accounting, accounting_done,
                    "set the accounting mode", NULL},
    [CLEAR_ACCOUNTED] = {"-caa", "--clear-accounted-apps", NULL, 1, nothing, clear_accounted, clear_accounted_done,
                         "clear the accounted processes", NULL},
    [TARGET] = {"-gtt", "--gpu-target-temp", "a number of degrees", 0, degrees, set_target, target_done,
                "set the target temperature", "Setting the target temperature is not supported"},
    [OPERATION_MODE] = {NULL, "--gom", "0, 1 or 2", 1, operation_word, operation_mode, NULL,
                        "set the operation mode", "Setting the GPU operation mode is not supported"},
    [AUTO_BOOST] = {NULL, "--auto-boost-default", "0 or 1", 1, on_word, auto_boost, NULL,
                    "set the default of auto boost",
                    "Setting the default auto boost mode is not supported"},
    [BOOST_PERMISSION] = {NULL, "--auto-boost-permission", "0 or 1", 1, permission_word, boost_permission, NULL,
                          "set the permission of auto boost", "Setting the auto boost permission is not supported"},
    [LOCK_DEFERRED] = {"-lmcd", "--lock-memory-clocks-deferred", "a number of MHz", 1, clock_of, lock_deferred,
                       lock_deferred_done, "lock the memory clocks",
                       "Setting deferred locked Memory clocks is not supported"},
    [RESET_DEFERRED] = {"-rmcd", "--reset-memory-clocks-deferred", NULL, 1, nothing, reset_deferred, reset_deferred_done,
                        "reset the memory clocks", "Resetting deferred locked Memory clocks is not supported"},
    [VIRTUALIZATION] = {"-vm", "--virt-mode", "3 or 4", 1, virtual_word, virtualization, NULL,
                        "set the virtualization mode", "Setting the virtualization mode is not supported"},
    [CUDA_CLOCKS] = {"-cc", "--cuda-clocks", "0 or 1", 1, cuda_word, cuda_clocks, NULL, "set the CUDA clocks",
                     "Setting CUDA clocks is not supported"},
    [ENCRYPTION] = {"-den", "--dram-encryption", "0 or 1", 1, on_word, encryption, NULL, "set the DRAM encryption mode",
                    "Setting the DRAM encryption mode is not supported"},
    [HOSTNAME] = {NULL, "--set-hostname", "a name of 1 to 63 characters", 1, name_of, hostname, NULL, "set the hostname",
                  "Setting the hostname is not supported"},
};
_Static_assert(sizeof SETTINGS / sizeof *SETTINGS == SETTING_COUNT, "Settings has room for each");

/* ---- Doing it ---- */

static int is_called(const Setting *one, const char *argument) {
    return (one->brief && strcmp(argument, one->brief) == 0) || strcmp(argument, one->name) == 0;
}

int setting_option(int count, char **arguments, int *at, Settings *settings) {
    if (valued("--scope", "-sc", count, arguments, at, &settings->scope)) return 1;
    if (valued("--mode", "-m", count, arguments, at, &settings->lock_mode)) return 1;
    for (size_t i = 0; i < SETTING_COUNT; i++) {
        const Setting *one = &SETTINGS[i];
        if (one->takes != NULL && valued(one->name, one->brief, count, arguments, at, &settings->given[i])) return 1;
        if (one->takes != NULL || !is_called(one, arguments[*at])) continue;
        settings->given[i] = "";
        return 1;
    }
    return 0;
}

int is_setting(const char *argument) {
    for (size_t i = 0; i < SETTING_COUNT; i++)
        if (is_called(&SETTINGS[i], argument)) return 1;
    static const char *const BESIDE[] = {"-sc", "--scope", "-m", "--mode"};
    for (size_t i = 0; i < sizeof BESIDE / sizeof *BESIDE; i++)
        if (strcmp(argument, BESIDE[i]) == 0) return 1;
    return 0;
}

int any_setting(const Settings *settings) {
    for (size_t i = 0; i < SETTING_COUNT; i++)
        if (settings->given[i] != NULL) return 1;
    return 0;
}

/* Why a value was not taken, where more can be said than the code does. */
static int explained(const Setting *one, Return result, Device device, const char *bus_id, unsigned first,
                     unsigned second) {
    unsigned low = 0, high = 0;
    if (result != INVALID_ARGUMENT) return 0;
    if (one == &SETTINGS[POWER_LIMIT]) {
        api.nvmlDeviceGetPowerManagementLimitConstraints(device, &low, &high);
        printf("Provided power limit %.2f W is not a valid power limit which should be between %.2f W and %.2f W for GPU"
               " %s\n", first / 1000.0, low / 1000.0, high / 1000.0, bus_id);
    } else if (one == &SETTINGS[APPLICATIONS]) {
        printf("Specified clock combination \"(MEM %u, SM %u)\" is not supported for GPU %s. Run"
               " 'nvidia-smi -q -d SUPPORTED_CLOCKS' to see list of supported clock combinations\n", first, second, bus_id);
    } else if (one == &SETTINGS[TARGET]) {
        api.nvmlDeviceGetTemperatureThreshold(device, THRESHOLD_TARGET_MIN, &low);
        api.nvmlDeviceGetTemperatureThreshold(device, THRESHOLD_TARGET_MAX, &high);
        printf("Provided target temperature %u C is not valid, it should be between %u C and %u C for GPU %s\n", first,
               low, high, bus_id);
    } else {
        return 0;
    }
    return 1;
}

static int changes_clocks(const Setting *one) {
    return (one >= &SETTINGS[LOCK_GPU] && one <= &SETTINGS[RESET_APPLICATIONS]) || one == &SETTINGS[LOCK_DEFERRED] ||
           one == &SETTINGS[RESET_DEFERRED];
}

/* What this GPU does not have, and clocks that it does not list. */
static int is_warning(const Setting *one, Return result) {
    if (result == INVALID_ARGUMENT) return one == &SETTINGS[APPLICATIONS];
    return result == NOT_SUPPORTED && one->lacking != NULL;
}

static int refused(const Setting *one, Return result, Device device, const char *bus_id, const unsigned *values,
                   int strict) {
    int warning = is_warning(one, result);
    /* The power limit has had a scope since then. */
    enum { SCOPES_SINCE = 545 };
    if (warning && result == NOT_SUPPORTED)
        printf("%s%s for GPU%s %s.\n", one->lacking,
               one == &SETTINGS[POWER_LIMIT] && driver_branch() >= SCOPES_SINCE ? " in current scope" : "",
               one == &SETTINGS[POWER_LIMIT] ? ":" : "", bus_id);
    else if (result == NO_PERMISSION && changes_clocks(one))
        printf("The current user does not have permission to change clocks for GPU %s.\n", bus_id);
    else if (!explained(one, result, device, bus_id, values[0], values[1]))
        printf("Failed to %s for GPU %s: %s\n", one->failed, bus_id, api.nvmlErrorString(result));
    if (!warning || strict) return exit_code_of(result);
    puts("Treating as warning and moving on.");
    return 0;
}

static int set_one(const Setting *one, Device device, const unsigned *values, int strict) {
    char bus_id[VALUE_SIZE];
    unsigned persistent = 1;
    bus_id_of(device, bus_id);
    Return result = one->set(device, values[0], values[1]);
    if (result != OK) return refused(one, result, device, bus_id, values, strict);
    if (one->done) one->done(bus_id, values[0], values[1]);
    api.nvmlDeviceGetPersistenceMode(device, &persistent);
    if (!one->lasts && !persistent)
        printf("\nWarning: persistence mode is disabled on device %s. The setting is lost when no program has the GPU open:"
               " enable persistence mode with -pm 1 first.\n", bus_id);
    return 0;
}

int apply_settings(const char *ids, const Settings *settings) {
    int code = 0;
    unsigned values[SETTING_COUNT][2] = {{0}}, unused;
    for (size_t i = 0; i < SETTING_COUNT; i++) {
        const char *given = settings->given[i];
        if (given == NULL || SETTINGS[i].understood(given, &values[i][0], &values[i][1])) continue;
        printf("\"%s\" is not a value of \"%s\": must be %s.\n", given, SETTINGS[i].name, SETTINGS[i].takes);
        return misused("Nothing was changed.");
    }
    if (settings->scope != NULL && !word_of(settings->scope, SCOPE_WORDS, 2, &scope)) {
        printf("\"%s\" is not a value of \"--scope\": must be 0 or 1.\n", settings->scope);
        return misused("Nothing was changed.");
    }
    if (settings->lock_mode != NULL && !word_of(settings->lock_mode, MODE_WORDS, 2, &unused)) {
        printf("\"%s\" is not a value of \"--mode\": must be 0 or 1.\n", settings->lock_mode);
        return misused("Nothing was changed.");
    }
    hostname_given = settings->given[HOSTNAME];
    Selection selection = select_gpus(ids, "No devices were found");
    for (size_t i = 0; i < SETTING_COUNT && code == 0; i++)
        for (unsigned gpu = 0; settings->given[i] != NULL && gpu < selection.count && code == 0; gpu++)
            code = set_one(&SETTINGS[i], selection.devices[gpu], values[i], settings->strict);
    puts(code == 0 ? "All done." : "Terminating early due to previous errors.");
    if (code == 0 && settings->given[ECC_MODE] != NULL) puts("Reboot required.");
    free(selection.devices);
    return code;
}

int locks_clocks(const Settings *settings) { return settings->given[LOCK_GPU] != NULL; }

int show_hostnames(const char *ids) {
    int code = 0;
    Selection selection = select_gpus(ids, "No devices were found");
    for (unsigned i = 0; i < selection.count; i++) {
        char bus_id[VALUE_SIZE], name[VALUE_SIZE] = {0};
        bus_id_of(selection.devices[i], bus_id);
        Return result = api.nvmlDeviceGetHostname_v1(selection.devices[i], name);
        if (result == OK) printf("Hostname of GPU %s: %s\n", bus_id, name);
        else printf("Getting the hostname is not supported for GPU %s.\n", bus_id);
        code = exit_code_of(result);
    }
    free(selection.devices);
    return code;
}
