/* c2c: the links of a GPU to the processor that it is joined to. Forms: outputs of a GH200 that XGBoost's tests quote. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "gpus.h"

static const char HELP[] = "nvidia-smi c2c -s [-i ID]                    show the speed of each C2C link\n";

/* How many links the GPU has; their speeds. */
static unsigned links(Device device) {
    enum { LINK_COUNT = 170, LINK_MBPS = 172, MBPS_PER_GBPS = 1000 };
    FieldValue count = {.field = LINK_COUNT};
    if (api.nvmlDeviceGetFieldValues(device, 1, &count) != OK || count.result != OK) return 0;
    name_gpu(device);
    for (unsigned link = 0; link < count.value.ui; link++) {
        FieldValue speed = {.field = LINK_MBPS, .scope = link};
        if (api.nvmlDeviceGetFieldValues(device, 1, &speed) == OK && speed.result == OK)
            printf("\t C2C Link %u: %u.%03u GB/s\n", link, speed.value.ui / MBPS_PER_GBPS,
                   speed.value.ui % MBPS_PER_GBPS);
    }
    return count.value.ui;
}

int c2c(int count, char **arguments) {
    const char *ids = NULL;
    unsigned shown = 0;
    int status = 0;
    if (help_asked(count, arguments)) return help(HELP);
    for (int at = 0; at < count; at++) {
        if (valued("--id", "-i", count, arguments, &at, &ids)) continue;
        if (strcmp(arguments[at], "-s") == 0 || strcmp(arguments[at], "--status") == 0) status = 1;
        else return misused("Usage: c2c -s [-i ID].");
    }
    if (!status) return misused("Usage: c2c -s [-i ID].");
    api_open(0);
    Selection selection = select_gpus(ids, "No devices were found");
    for (unsigned i = 0; i < selection.count; i++) shown += links(selection.devices[i]);
    free(selection.devices);
    if (shown > 0) return 0;
    puts("No Devices support C2C.");
    return exit_code_of(NOT_SUPPORTED);
}
