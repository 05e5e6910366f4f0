/* MIG devices, as the table and -L show them. */
#include "mig_devices.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int mig_is_on(Device device) {
    unsigned current = 0, pending = 0;
    return api.nvmlDeviceGetMigMode(device, &current, &pending) == OK && current;
}

static void fill(SmiMigDevice *one) {
    static const char WORD[] = " MIG ";
    char name[VALUE_SIZE] = "";
    one->memory.version = STRUCT_VERSION(one->memory, 2);
    api.nvmlDeviceGetName(one->device, name, VALUE_SIZE);
    const char *found = strstr(name, WORD);
    snprintf(one->name, VALUE_SIZE, "%s", found ? found + sizeof WORD - 1 : name);
    api.nvmlDeviceGetUUID(one->device, one->uuid, VALUE_SIZE);
    api.nvmlDeviceGetGpuInstanceId(one->device, &one->instance);
    api.nvmlDeviceGetComputeInstanceId(one->device, &one->compute);
    api.nvmlDeviceGetAttributes_v2(one->device, &one->attributes);
    api.nvmlDeviceGetMemoryInfo_v2(one->device, &one->memory);
    api.nvmlDeviceGetBAR1MemoryInfo(one->device, &one->bar1);
}

SmiMigDevice *mig_devices_of(Device device, unsigned *count) {
    unsigned most = 0;
    *count = 0;
    api.nvmlDeviceGetMaxMigDeviceCount(device, &most);
    SmiMigDevice *all = calloc(most + 1, sizeof *all);
    for (unsigned i = 0; all != NULL && i < most; i++) {
        SmiMigDevice *one = &all[*count];
        if (api.nvmlDeviceGetMigDeviceHandleByIndex(device, i, &one->device) != OK) continue;
        one->index = i;
        fill(one);
        (*count)++;
    }
    return all;
}

void mig_list(Device device) {
    unsigned count;
    SmiMigDevice *all = mig_devices_of(device, &count);
    for (unsigned i = 0; i < count; i++)
        printf("  MIG %-11s Device %2u: (UUID: %s)\n", all[i].name, all[i].index, all[i].uuid);
    free(all);
}

/* ---- The table ---- */

static void row(unsigned gpu, const SmiMigDevice *one, int shares_memory) {
    char memory[64] = "", bar1[64] = "";
    const MigAttributes *has = &one->attributes;
    if (!shares_memory) {
        snprintf(memory, sizeof memory, "%16lluMiB / %5lluMiB", one->memory.used >> 20, one->memory.total >> 20);
        snprintf(bar1, sizeof bar1, "%16lluMiB / %5lluMiB", one->bar1.used >> 20, one->bar1.total >> 20);
    }
    printf("|%3u%5u%4u%4u  |%-34s|%3u%7u |%3u%4u%5u%5u%5u |\n", gpu, one->instance, one->compute, one->index, memory,
           has->multiprocessors, 0, has->copy, has->encoder, has->decoder, has->ofa, has->jpeg);
    if (!shares_memory) printf("|                  |%-34s|           |                       |\n", bar1);
}

static unsigned rows(Device device) {
    unsigned count, gpu = 0;
    SmiMigDevice *all = mig_devices_of(device, &count);
    api.nvmlDeviceGetIndex(device, &gpu);
    for (unsigned i = 0; i < count; i++) {
        int shares = i > 0 && all[i - 1].instance == all[i].instance;
        int shared = i + 1 < count && all[i + 1].instance == all[i].instance;
        row(gpu, &all[i], shares);
        printf("+------------------+%s+-----------+-----------------------+\n",
               shared ? "                                  " : "----------------------------------");
    }
    free(all);
    return count;
}

void mig_table(const Selection *selection) {
    static const char EDGE[] =
        "+-----------------------------------------------------------------------------------------+";
    unsigned on = 0, shown = 0;
    for (unsigned i = 0; i < selection->count; i++) on += (unsigned)mig_is_on(selection->devices[i]);
    if (on == 0) return;
    printf("\n%s\n", EDGE);
    puts("| MIG devices:                                                                            |");
    puts("+------------------+----------------------------------+-----------+-----------------------+");
    puts("| GPU  GI  CI  MIG |              Shared Memory-Usage |        Vol|        Shared         |");
    puts("|      ID  ID  Dev |                Shared BAR1-Usage | SM     Unc| CE ENC  DEC  OFA  JPG |");
    puts("|                  |                                  |        ECC|                       |");
    puts("|==================+==================================+===========+=======================|");
    for (unsigned i = 0; i < selection->count; i++) shown += rows(selection->devices[i]);
    if (shown == 0) printf("|  %-87s|\n%s\n", "No MIG devices found", EDGE);
}
