/* nvlink -s: the links of each GPU, with the speed of their generation. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "gpus.h"

static const char *speed_of(unsigned version) {
    static const char *const SPEEDS[] = {"", "20", "25.781", "25", "26.562", "53.125"};
    return version < sizeof SPEEDS / sizeof *SPEEDS ? SPEEDS[version] : "";
}

static void links(Device device) {
    unsigned active = 0, version = 0;
    for (unsigned link = 0; link < NVLINK_MAX; link++) {
        if (api.nvmlDeviceGetNvLinkState(device, link, &active) != OK) continue;
        if (active && api.nvmlDeviceGetNvLinkVersion(device, link, &version) == OK)
            printf("\t Link %u: %s GB/s\n", link, speed_of(version));
        else
            printf("\t Link %u: <inactive>\n", link);
    }
}

int nvlink(int count, char **arguments) {
    const char *ids = NULL;
    int status = 0;
    for (int at = 0; at < count; at++) {
        if (strcmp(arguments[at], "-s") == 0 || strcmp(arguments[at], "--status") == 0) status = 1;
        else if (strcmp(arguments[at], "-i") == 0 && at + 1 < count) ids = arguments[++at];
        else return misused("Usage: nvlink -s [-i ID].");
    }
    if (!status) return misused("Usage: nvlink -s [-i ID].");
    api_open(0);
    Selection selection = select_gpus(ids, "No devices were found");
    for (unsigned i = 0; i < selection.count; i++) {
        char index[VALUE_SIZE], name[VALUE_SIZE], uuid[VALUE_SIZE];
        value_of(selection.devices[i], "index", index, 0);
        value_of(selection.devices[i], "name", name, 0);
        value_of(selection.devices[i], "uuid", uuid, 0);
        printf("GPU %s: %s (UUID: %s)\n", index, name, uuid);
        links(selection.devices[i]);
    }
    free(selection.devices);
    return 0;
}
