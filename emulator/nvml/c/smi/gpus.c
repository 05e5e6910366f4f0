#define _GNU_SOURCE
#include "gpus.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "driver.h"

/* ---- Selection ---- */

static int matches(Device device, unsigned index, const char *word, size_t length) {
    char told[4][VALUE_SIZE] = {{0}};
    PciInfo pci;
    snprintf(told[0], VALUE_SIZE, "%u", index);
    api.nvmlDeviceGetUUID(device, told[1], VALUE_SIZE);
    api.nvmlDeviceGetSerial(device, told[2], VALUE_SIZE);
    if (api.nvmlDeviceGetPciInfo_v3(device, &pci) == OK) {
        snprintf(told[3], VALUE_SIZE, "%s", pci.bus_id);
        if (strlen(pci.bus_id_legacy) == length && strncasecmp(pci.bus_id_legacy, word, length) == 0) return 1;
    }
    for (int i = 0; i < 4; i++)
        if (strlen(told[i]) == length && strncasecmp(told[i], word, length) == 0) return 1;
    return 0;
}

static int wanted(Device device, unsigned index, const char *list) {
    const char *rest = list;
    size_t length;
    for (const char *word; (word = next_word(&rest, &length)) != NULL;)
        if (matches(device, index, word, length)) return 1;
    return list == NULL;
}

/* Of a GPU without a handle. */
static void address_of(unsigned index, char *out) {
    if (detail_table == NULL || detail_table->bus_id(index, out, VALUE_SIZE) != OK)
        snprintf(out, VALUE_SIZE, "%u", index);
}

static void no_handle(const char *which, Return result) {
    const char *advice = result == GPU_IS_LOST ? ".  Reboot the system to recover this GPU" : "";
    printf("Unable to determine the device handle for %s: %s%s\n", which, api.nvmlErrorString(result), advice);
}

/* The form of a table's command. Sources: reports of users of drivers 470, 520, 535, 550 and 572. */
static void end_without_handle(unsigned index, Return result) {
    enum { JOINED = 525, NUMBERED = 570 };
    char address[VALUE_SIZE], which[2 * VALUE_SIZE];
    unsigned branch = driver_branch();
    address_of(index, address);
    if (branch >= NUMBERED) snprintf(which, sizeof which, "GPU%u: %s", index, address);
    else snprintf(which, sizeof which, branch >= JOINED ? "GPU%s" : "GPU %s", address);
    no_handle(which, result);
    exit(exit_code_of(result));
}

static int names_lost(unsigned index, const char *list) {
    char address[VALUE_SIZE], longer[VALUE_SIZE + 4];
    address_of(index, address);
    snprintf(longer, sizeof longer, "0000%s", address);
    return in_list(list, index) || has_word(list, address) || has_word(list, longer);
}

const char *next_word(const char **list, size_t *length) {
    const char *word = *list;
    if (word == NULL) return NULL;
    *length = strcspn(word, ",");
    *list = word[*length] ? word + *length + 1 : NULL;
    return word;
}

int has_word(const char *list, const char *name) {
    size_t length;
    for (const char *word; (word = next_word(&list, &length)) != NULL;)
        if (name && strlen(name) == length && strncasecmp(name, word, length) == 0) return 1;
    return 0;
}

int in_list(const char *list, unsigned number) {
    char text[16];
    snprintf(text, sizeof text, "%u", number);
    return list == NULL || has_word(list, text);
}

Selection select_gpus(const char *list, const char *none_found) {
    unsigned count = 0;
    Return last = OK;
    Return result = api.nvmlDeviceGetCount_v2(&count);
    if (result != OK) {
        printf("Unable to count the devices: %s\n", api.nvmlErrorString(result));
        exit(exit_code_of(result));
    }
    Selection selection = {calloc(count + 1, sizeof(Device)), 0};
    for (unsigned i = 0; i < count && selection.devices; i++) {
        Device device = NULL;
        result = api.nvmlDeviceGetHandleByIndex_v2(i, &device);
        /* A GPU without a handle stops a command about all, and one that names it. */
        if (result != OK && names_lost(i, list)) end_without_handle(i, result);
        if (result != OK)
            last = result;
        else if (wanted(device, i, list))
            selection.devices[selection.count++] = device;
    }
    if (selection.count > 0) return selection;
    puts(none_found);
    free(selection.devices);
    exit(last == OK ? NOT_FOUND : exit_code_of(last));
}

int list_gpus(const char *list, void (*show)(Device device)) {
    char address[VALUE_SIZE], which[2 * VALUE_SIZE];
    unsigned count = 0, shown = 0;
    Return last = OK;
    api.nvmlDeviceGetCount_v2(&count);
    for (unsigned i = 0; i < count; i++) {
        Device device = NULL;
        Return result = api.nvmlDeviceGetHandleByIndex_v2(i, &device);
        if (result == OK && !wanted(device, i, list)) continue;
        if (result != OK && !names_lost(i, list)) continue;
        shown++;
        if (result == OK) {
            show(device);
            continue;
        }
        address_of(i, address);
        snprintf(which, sizeof which, "gpu %s", address);
        no_handle(which, last = result);
    }
    if (shown == 0) puts("No devices found.");
    return shown == 0 ? NOT_FOUND : last == OK ? 0 : exit_code_of(last);
}

/* ---- Processes ---- */

static SmiProcess *add_kind(Device device, char kind, SmiProcess *all, unsigned *count) {
    Return (*list)(Device, unsigned *, ProcessInfo *) =
        kind == 'C' ? api.nvmlDeviceGetComputeRunningProcesses_v3 : api.nvmlDeviceGetGraphicsRunningProcesses_v3;
    unsigned there = 0;
    list(device, &there, NULL);
    ProcessInfo *infos = calloc(there + 1, sizeof *infos);
    SmiProcess *more = realloc(all, (*count + there + 1) * sizeof *more);
    if (infos == NULL || more == NULL || (there && list(device, &there, infos) != OK)) there = 0;
    for (unsigned i = 0; i < there; i++) {
        SmiProcess *process = &more[(*count)++];
        process->info = infos[i];
        process->kind = kind;
        if (api.nvmlSystemGetProcessName(infos[i].pid, process->name, VALUE_SIZE) != OK)
            strcpy(process->name, "[Not Found]");
    }
    free(infos);
    return more ? more : all;
}

SmiProcess *processes_of(Device device, unsigned *count) {
    *count = 0;
    return add_kind(device, 'G', add_kind(device, 'C', NULL, count), count);
}

/* ---- Clocks ---- */

unsigned *clock_list(Device device, unsigned memory, int graphics, unsigned *count) {
    *count = 0;
    if (graphics) api.nvmlDeviceGetSupportedGraphicsClocks(device, memory, count, NULL);
    else api.nvmlDeviceGetSupportedMemoryClocks(device, count, NULL);
    unsigned *list = calloc(*count + 1, sizeof *list);
    Return result = list == NULL ? UNKNOWN
                    : graphics   ? api.nvmlDeviceGetSupportedGraphicsClocks(device, memory, count, list)
                                 : api.nvmlDeviceGetSupportedMemoryClocks(device, count, list);
    if (result != OK) *count = 0;
    return list;
}

void name_gpu(Device device) {
    char index[VALUE_SIZE], name[VALUE_SIZE], uuid[VALUE_SIZE];
    value_of(device, "index", index, 0);
    value_of(device, "name", name, 0);
    value_of(device, "uuid", uuid, 0);
    printf("GPU %s: %s (UUID: %s)\n", index, name, uuid);
}
