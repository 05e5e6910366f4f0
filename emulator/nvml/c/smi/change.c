/* Persistence mode, reset and drain. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "gpus.h"

enum { NO_ATTACH = 2 };

static int flag_of(const char *word) {
    if (strcmp(word, "0") == 0 || strcmp(word, "DISABLED") == 0) return 0;
    if (strcmp(word, "1") == 0 || strcmp(word, "ENABLED") == 0) return 1;
    return -1;
}

int set_persistence(const char *ids, const char *mode) {
    static const char *const WORDS[] = {"disabled", "enabled"};
    int wish = flag_of(mode), code = 0;
    if (wish < 0) return misused("\"-pm\" takes 0 or 1.");
    Selection selection = select_gpus(ids, "No devices were found");
    for (unsigned i = 0; i < selection.count && code == 0; i++) {
        char bus_id[VALUE_SIZE];
        unsigned before = 2;
        bus_id_of(selection.devices[i], bus_id);
        api.nvmlDeviceGetPersistenceMode(selection.devices[i], &before);
        Return result = api.nvmlDeviceSetPersistenceMode(selection.devices[i], (unsigned)wish);
        if (result != OK) {
            printf("Unable to set persistence mode for GPU %s: %s\n", bus_id, api.nvmlErrorString(result));
            code = exit_code_of(result);
        } else if (before == (unsigned)wish) {
            printf("Persistence mode is already %s for GPU %s.\n", wish ? "Enabled" : "Disabled", bus_id);
        } else {
            printf("%c%s persistence mode for GPU %s.\n", WORDS[wish][0] - 32, WORDS[wish] + 1, bus_id);
        }
    }
    puts(code == 0 ? "All done." : "Terminating early due to previous errors.");
    free(selection.devices);
    return code;
}

/* ---- reset ---- */

int reset_gpus(const char *ids) {
    int code = 0;
    Selection selection = select_gpus(ids, "No devices were found");
    for (unsigned i = 0; i < selection.count && code == 0; i++) {
        char bus_id[VALUE_SIZE];
        PciInfo info;
        bus_id_of(selection.devices[i], bus_id);
        Return result = api.nvmlDeviceGetPciInfo_v3(selection.devices[i], &info);
        if (result == OK) result = detail_table == NULL ? NOT_SUPPORTED : detail_table->reset(&info);
        if (result == OK) {
            printf("GPU %s was successfully reset.\n", bus_id);
        } else {
            printf("GPU Reset couldn't run for GPU %s: %s\n", bus_id, api.nvmlErrorString(result));
            code = exit_code_of(result);
        }
    }
    puts(code == 0 ? "All done." : "Terminating early due to previous errors.");
    free(selection.devices);
    return code;
}

/* ---- drain ---- */

static int parse_address(const char *text, PciInfo *info) {
    char rest = 0;
    memset(info, 0, sizeof *info);
    if (strlen(text) >= BUS_ID_SIZE) return 0;
    unsigned function = 0;
    int fields = sscanf(text, "%8x:%2x:%2x.%1x%c", &info->domain, &info->bus, &info->device, &function, &rest);
    if (fields != 4 && (fields != 3 || strchr(text, '.') != NULL)) return 0;
    snprintf(info->bus_id, sizeof info->bus_id, "%08X:%02X:%02X.0", info->domain, info->bus & 0xFF, info->device & 0xFF);
    return 1;
}

static int report(Return result, const PciInfo *info, const char *done, const char *failed) {
    if (result == OK)
        printf(done, info->bus_id);
    else
        printf("Failed to %s GPU %s: %s\n", failed, info->bus_id, api.nvmlErrorString(result));
    return exit_code_of(result);
}

static int drain_query(const PciInfo *info) {
    unsigned state = 0;
    Return result = api.nvmlDeviceQueryDrainState(info, &state);
    return report(result, info,
                  state ? "The current drain state of GPU %s is: draining.\n"
                        : "The current drain state of GPU %s is: not draining.\n",
                  "query the drain state of");
}

static int drain_modify(const PciInfo *info, int wish) {
    Return result = api.nvmlDeviceModifyDrainState(info, (unsigned)wish);
    return report(result, info,
                  wish ? "Successfully set GPU %s drain state to: draining.\n"
                       : "Successfully set GPU %s drain state to: not draining.\n",
                  "set the drain state of");
}

static int drain_remove(const PciInfo *info) {
    Return result = api.nvmlDeviceRemoveGpu_v2(info, 1, 0);
    return report(result, info, "Successfully removed GPU %s.\n", "remove");
}

static const char DRAIN_HELP[] =
    "nvidia-smi drain -p BUS_ID -m 0|1            set the drain state\n"
    "nvidia-smi drain -p BUS_ID -q | -r           query it | remove the GPU\n";

int drain(int count, char **arguments) {
    const char *address = NULL, *mode = NULL;
    int query = 0, removal = 0;
    PciInfo info;
    if (help_asked(count, arguments)) return help(DRAIN_HELP);
    for (int i = 0; i < count; i++) {
        if (valued("--pciid", "-p", count, arguments, &i, &address)) continue;
        if (valued("--modify", "-m", count, arguments, &i, &mode)) continue;
        if (strcmp(arguments[i], "-q") == 0 || strcmp(arguments[i], "--query") == 0)
            query = 1;
        else if (strcmp(arguments[i], "-r") == 0 || strcmp(arguments[i], "--remove") == 0)
            removal = 1;
        else
            return misused("Invalid combination of input arguments.");
    }
    if ((mode != NULL) + query + removal != 1 || (mode != NULL && flag_of(mode) < 0))
        return misused("\"drain\" takes one of -m 0|1, -q and -r.");
    if (address == NULL || !parse_address(address, &info))
        return misused("Failed to parse device specified at the command-line: \"-p\" takes a PCI bus id.");
    api_open(NO_ATTACH);
    if (query) return drain_query(&info);
    return removal ? drain_remove(&info) : drain_modify(&info, flag_of(mode));
}
