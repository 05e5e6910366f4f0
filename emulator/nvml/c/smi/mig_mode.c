/* -mig: MIG mode switched on and off. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "commands.h"
#include "gpus.h"

static int set_one(Device device, unsigned wish) {
    char bus_id[VALUE_SIZE];
    unsigned current = 0, pending = 0, persistent = 1;
    Return status = OK;
    const char *verb = wish ? "enable" : "disable";
    bus_id_of(device, bus_id);
    Return result = api.nvmlDeviceSetMigMode(device, wish, &status);
    if (result == NOT_SUPPORTED) {
        printf("Unable to %s MIG Mode for GPU %s: %s\nTreating as warning and moving on.\n", verb, bus_id,
               api.nvmlErrorString(result));
        return 0;
    }
    if (result == OK) api.nvmlDeviceGetMigMode(device, &current, &pending);
    if (result == OK && status != OK && pending == wish) {
        printf("Warning: MIG mode is in pending %s state for GPU %s:%s\n", verb, bus_id, api.nvmlErrorString(status));
        printf("%s is currently being used by one or more other processes (e.g. CUDA application or a monitoring "
               "application such as another instance of nvidia-smi). Please first kill all processes using the device "
               "and retry the command or reboot the system to make MIG mode effective.\n", bus_id);
        return 0;
    }
    if (result == OK) result = status;
    if (result != OK) {
        printf("Unable to %s MIG Mode for GPU %s: %s\n", verb, bus_id, api.nvmlErrorString(result));
        return exit_code_of(result);
    }
    printf("%s MIG Mode for GPU %s\n", wish ? "Enabled" : "Disabled", bus_id);
    api.nvmlDeviceGetPersistenceMode(device, &persistent);
    if (!persistent)
        printf("\nWarning: persistence mode is disabled on device %s. See the Known Issues section of the nvidia-smi(1) "
               "man page for more information. Run with [--help | -h] switch to get more information on how to enable "
               "persistence mode.\n", bus_id);
    return 0;
}

int set_mig_mode(const char *ids, const char *mode) {
    int wish = strcmp(mode, "0") == 0 || strcasecmp(mode, "DISABLED") == 0   ? 0
               : strcmp(mode, "1") == 0 || strcasecmp(mode, "ENABLED") == 0 ? 1
                                                                            : -1;
    int code = 0;
    if (wish < 0) return misused("\"-mig\" takes 0 or 1.");
    Selection selection = select_gpus(ids, "No devices were found");
    for (unsigned i = 0; i < selection.count && code == 0; i++) code = set_one(selection.devices[i], (unsigned)wish);
    puts(code == 0 ? "All done." : "Terminating early due to previous errors.");
    free(selection.devices);
    return code;
}
