/* topo: its options, and what is near a GPU or a CPU. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "gpus.h"

static const char HELP[] =
    "nvidia-smi topo -m | -mp                     show how the GPUs are joined; -mp: by PCIe alone\n"
    "nvidia-smi topo -p2p r|w|n|a|p               show which pairs can read, write, use NVLink, atomics, PCIe\n"
    "nvidia-smi topo -c CPU                       show the GPUs near a CPU\n"
    "nvidia-smi topo -n PATH -i ID                show the GPUs that a GPU reaches by\n"
    "                                             0: one PCIe switch of a board with two GPUs, 1: one PCIe switch,\n"
    "                                             2: several, 3: a host bridge, 4: several, 5: other NUMA nodes\n"
    "nvidia-smi topo -p -i ID,ID                  show the path between two GPUs\n"
    "nvidia-smi topo -C -M -gnid -i ID            show the NUMA nodes of CPUs and memory near a GPU, and its own\n";

/* ---- Nodes ---- */

enum { NODE_WORDS = 16, WORD_BITS = 8 * sizeof(unsigned long) };

void memory_nodes(Device device, char *out) {
    enum { NODE_SCOPE = 0 };
    unsigned long words[NODE_WORDS] = {0};
    size_t length = 0;
    strcpy(out, "N/A");
    if (api.nvmlDeviceGetMemoryAffinity(device, NODE_WORDS, words, NODE_SCOPE) != OK) return;
    for (unsigned node = 0; node < NODE_WORDS * WORD_BITS && length + 8 < NODE_LIST; node++)
        if (words[node / WORD_BITS] >> (node % WORD_BITS) & 1)
            length += (size_t)snprintf(out + length, NODE_LIST - length, length ? ",%u" : "%u", node);
}

void own_node(Device device, char *out) {
    unsigned node = 0;
    if (api.nvmlDeviceGetNumaNodeId(device, &node) == OK) snprintf(out, NODE_LIST, "%u", node);
    else strcpy(out, "N/A");
}

/* ---- What is asked ---- */

enum { MATRIX = 1, PCI_MATRIX = 2, PAIRS = 4, NEAR_CPU = 8, NEAREST = 16, PATH = 32 };
enum { CPU_NODE = 64, MEMORY_NODE = 128, OWN_NODE = 256, NODES = CPU_NODE | MEMORY_NODE | OWN_NODE };

typedef struct {
    const char *ids, *value;
    int acts;
} Wish;

static const struct {
    const char *brief, *name;
    int act, takes;
} OPTIONS[] = {
    {"-m", "--matrix", MATRIX, 0},
    {"-mp", "--matrix_pci", PCI_MATRIX, 0},
    {"-p2p", "--p2pstatus", PAIRS, 1},
    {"-c", "--cpu", NEAR_CPU, 1},
    {"-n", "--nearest_gpus", NEAREST, 1},
    {"-p", "--gpu_path", PATH, 0},
    {"-C", "--get-numa-id-of-nearby-cpu", CPU_NODE, 0},
    {"-M", "--get-numa-id-of-nearby-mem", MEMORY_NODE, 0},
    {"-gnid", "--gpu-numa-id", OWN_NODE, 0},
};

static int parse(int count, char **arguments, Wish *wish) {
    for (int at = 0; at < count; at++) {
        int act = 0;
        if (valued("--id", "-i", count, arguments, &at, &wish->ids)) continue;
        for (size_t i = 0; i < sizeof OPTIONS / sizeof *OPTIONS && act == 0; i++) {
            const char *brief = OPTIONS[i].brief, *name = OPTIONS[i].name;
            int given = OPTIONS[i].takes ? valued(name, brief, count, arguments, &at, &wish->value)
                                         : strcmp(arguments[at], brief) == 0 || strcmp(arguments[at], name) == 0;
            if (given) act = OPTIONS[i].act;
        }
        if (act == 0 || (wish->acts & act)) return 0;
        wish->acts |= act;
    }
    /* One of them, or nodes of all kinds. */
    return wish->acts && ((wish->acts & ~NODES) == 0 || (wish->acts & (wish->acts - 1)) == 0);
}

/* ---- Answers ---- */

static int show_near(const char *cpu) {
    char *end;
    unsigned count = 0;
    unsigned long number = strtoul(cpu, &end, 10);
    if (*cpu < '0' || *cpu > '9' || *end != 0) return misused("\"-c\" takes the number of a CPU.");
    api_open(0);
    Return result = api.nvmlSystemGetTopologyGpuSet((unsigned)number, &count, NULL);
    Device *devices = calloc(count + 1, sizeof *devices);
    if (result == OK && devices != NULL) result = api.nvmlSystemGetTopologyGpuSet((unsigned)number, &count, devices);
    if (result != OK || devices == NULL) {
        printf("Failed to find the GPUs near CPU %lu: %s\n", number, api.nvmlErrorString(result));
        free(devices);
        return exit_code_of(result);
    }
    printf("The GPUs that have an affinity with CPU %lu are:", number);
    for (unsigned i = 0; i < count; i++) {
        unsigned index = 0;
        api.nvmlDeviceGetIndex(devices[i], &index);
        printf(i ? ", %u" : " %u", index);
    }
    puts(count ? "" : " none");
    free(devices);
    return 0;
}

/* The paths of -n, in the order of their numbers: NVML's levels are these, times ten. */
static const char *const PATHS[] = {
    "a single PCIe switch on a board with two GPUs", "a single PCIe switch", "multiple PCIe switches",
    "a PCIe host bridge", "an interconnect between PCIe host bridges", "an SMP interconnect link between NUMA nodes",
};
enum { PATH_COUNT = sizeof PATHS / sizeof *PATHS, LEVELS_APART = 10 };

static unsigned index_of(Device device) {
    unsigned index = 0;
    api.nvmlDeviceGetIndex(device, &index);
    return index;
}

static int show_nearest(const char *path, Selection *selection) {
    unsigned level = (unsigned)(*path - '0'), count = 0;
    Device one = selection->devices[0];
    Return result = api.nvmlDeviceGetTopologyNearestGpus(one, level * LEVELS_APART, &count, NULL);
    Device *devices = calloc(count + 1, sizeof *devices);
    if (result == OK && devices != NULL)
        result = api.nvmlDeviceGetTopologyNearestGpus(one, level * LEVELS_APART, &count, devices);
    if (result != OK || devices == NULL) {
        printf("Failed to find the GPUs near GPU %u: %s\n", index_of(one), api.nvmlErrorString(result));
        free(devices);
        return exit_code_of(result);
    }
    if (count == 0) printf("Device %u is connected by way of %s to no device", index_of(one), PATHS[level]);
    for (unsigned i = 0; i < count; i++) {
        if (i == 0) printf("Device %u is connected by way of %s to device(s): ", index_of(one), PATHS[level]);
        printf(i ? ", %u" : "%u", index_of(devices[i]));
    }
    puts(".");
    free(devices);
    return 0;
}

static int show_path(Selection *selection) {
    unsigned level = 0;
    Device one = selection->devices[0], other = selection->devices[1];
    Return result = api.nvmlDeviceGetTopologyCommonAncestor(one, other, &level);
    if (result == OK && level / LEVELS_APART < PATH_COUNT)
        printf("Device %u is connected to device %u by way of %s.\n", index_of(one), index_of(other),
               PATHS[level / LEVELS_APART]);
    else
        printf("Failed to find the path between GPUs %u and %u: %s\n", index_of(one), index_of(other),
               api.nvmlErrorString(result));
    return exit_code_of(result);
}

static int show_nodes(int acts, Device device) {
    char near[NODE_LIST], own[NODE_LIST];
    memory_nodes(device, near);
    own_node(device, own);
    /* A host's CPUs and its memory belong to the same nodes. */
    if (acts & CPU_NODE) printf("NUMA IDs of closest CPU: %s\n", near);
    if (acts & MEMORY_NODE) printf("NUMA IDs of closest memory: %s\n", near);
    if (acts & OWN_NODE) printf("NUMA ID of GPU: %s\n", own);
    return 0;
}

static int about_gpus(const Wish *wish) {
    unsigned wanted = wish->acts == PATH ? 2 : 1;
    int code;
    if (wish->acts == NEAREST && (wish->value[0] < '0' || wish->value[0] >= '0' + PATH_COUNT || wish->value[1]))
        return misused("\"-n\" takes a number from 0 to 5.");
    if (wish->ids == NULL) return misused("Usage: topo -n PATH | -p | -C | -M | -gnid need GPUs: -i ID.");
    api_open(0);
    Selection selection = select_gpus(wish->ids, "No devices were found");
    if (selection.count != wanted)
        code = misused(wanted == 2 ? "\"-p\" takes two GPUs: -i ID,ID." : "Name one GPU: -i ID.");
    else if (wish->acts == NEAREST)
        code = show_nearest(wish->value, &selection);
    else
        code = wish->acts == PATH ? show_path(&selection) : show_nodes(wish->acts, selection.devices[0]);
    free(selection.devices);
    return code;
}

static int show_pairs(const char *capability) {
    static const char CAPABILITIES[] = "rwnap"; /* read, write, NVLink, atomics, by PCIe: the API's order */
    const char *found = capability[0] && capability[1] == 0 ? strchr(CAPABILITIES, capability[0]) : NULL;
    if (found == NULL) return misused("Usage: topo -p2p r|w|n|a|p.");
    api_open(0);
    return show_p2p((unsigned)(found - CAPABILITIES));
}

int topology(int count, char **arguments) {
    Wish wish = {NULL, NULL, 0};
    if (help_asked(count, arguments)) return help(HELP);
    if (!parse(count, arguments, &wish))
        return misused("Usage: topo -m | -mp | -p2p r|w|n|a|p | -c CPU | -n PATH | -p | -C -M -gnid [-i ID].");
    switch (wish.acts) {
    case MATRIX: case PCI_MATRIX:
        api_open(0);
        return show_topology(wish.acts == MATRIX);
    case PAIRS: return show_pairs(wish.value);
    case NEAR_CPU: return show_near(wish.value);
    default: return about_gpus(&wish);
    }
}
