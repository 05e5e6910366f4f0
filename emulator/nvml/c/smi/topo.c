/* topo -m, -mp and -p2p: how the GPUs are joined, how near the RDMA devices are, and what pairs can do without the host. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "gpus.h"
#include "nics.h"

static const char *level_word(unsigned level) {
    switch (level) {
    case LEVEL_SINGLE: return "PIX";
    case LEVEL_MULTIPLE: return "PXB";
    case LEVEL_HOST_BRIDGE: return "PHB";
    case LEVEL_NODE: return "NODE";
    case LEVEL_SYSTEM: return "SYS";
    default: return "N/A";
    }
}

/* Links that end at the other GPU, or at switches that both are on. */
static unsigned links_between(Device one, Device two) {
    PciInfo there, end;
    unsigned links = 0, kind = 0, active = 0, other = 0;
    if (api.nvmlDeviceGetPciInfo_v3(two, &there) != OK) return 0;
    for (unsigned link = 0; link < NVLINK_MAX; link++) {
        if (api.nvmlDeviceGetNvLinkState(one, link, &active) != OK || !active) continue;
        if (api.nvmlDeviceGetNvLinkRemoteDeviceType(one, link, &kind) != OK) continue;
        if (kind == REMOTE_SWITCH)
            links += api.nvmlDeviceGetNvLinkState(two, link, &other) == OK && other;
        else if (api.nvmlDeviceGetNvLinkRemotePciInfo_v2(one, link, &end) == OK)
            links += strcmp(end.bus_id, there.bus_id) == 0;
    }
    return links;
}

static void joint(Device one, Device two, int with_links) {
    unsigned level = 0, links = with_links ? links_between(one, two) : 0;
    if (links > 0)
        printf("\tNV%u", links);
    else if (api.nvmlDeviceGetTopologyCommonAncestor(one, two, &level) == OK)
        printf("\t%s", level_word(level));
    else
        printf("\tN/A");
}

/* Bits into "0-23,48-71". */
static void cpu_list(Device device) {
    enum { WORDS = 16, BITS = 8 * sizeof(unsigned long) };
    unsigned long words[WORDS] = {0};
    const char *comma = "";
    if (api.nvmlDeviceGetCpuAffinity(device, WORDS, words) != OK) {
        printf("\tN/A");
        return;
    }
    putchar('\t');
    for (unsigned cpu = 0; cpu < WORDS * BITS; cpu++) {
        unsigned last = cpu;
        if ((words[cpu / BITS] >> (cpu % BITS) & 1) == 0) continue;
        while (last + 1 < WORDS * BITS && (words[(last + 1) / BITS] >> ((last + 1) % BITS) & 1)) last++;
        printf(last > cpu ? "%s%u-%u" : "%s%u", comma, cpu, last);
        comma = ",";
        cpu = last;
    }
}

static void row(const Selection *selection, const Places *places, unsigned index, int with_links) {
    char memory[NODE_LIST], own[NODE_LIST];
    printf("GPU%u", index);
    for (unsigned other = 0; other < selection->count; other++) {
        if (other == index)
            printf("\t X ");
        else
            joint(selection->devices[index], selection->devices[other], with_links);
    }
    for (unsigned nic = 0; nic < places->nic_count; nic++)
        printf("\t%s", nearness(&places->gpus[index], &places->nics[nic]));
    cpu_list(selection->devices[index]);
    memory_nodes(selection->devices[index], memory);
    own_node(selection->devices[index], own);
    printf("\t%s\t\t%s\n", memory, own);
}

static void nic_row(const Selection *selection, const Places *places, unsigned index) {
    printf("NIC%u", index);
    for (unsigned gpu = 0; gpu < selection->count; gpu++)
        printf("\t%s", nearness(&places->nics[index], &places->gpus[gpu]));
    for (unsigned other = 0; other < places->nic_count; other++)
        printf("\t%s", other == index ? " X " : nearness(&places->nics[index], &places->nics[other]));
    putchar('\n');
}

static const char *p2p_word(unsigned status) {
    static const char *const WORDS[] = {"OK", "CNS", "GNS", "TNS", "DR", "NS"};
    return status < sizeof WORDS / sizeof *WORDS ? WORDS[status] : "U";
}

int show_p2p(unsigned capability) {
    Selection selection = select_gpus(NULL, "No devices were found");
    for (unsigned i = 0; i < selection.count; i++) printf(" \tGPU%u", i);
    puts("\t");
    for (unsigned i = 0; i < selection.count; i++) {
        printf(" GPU%u", i);
        for (unsigned j = 0; j < selection.count; j++) {
            unsigned status = ~0u;
            if (i != j) api.nvmlDeviceGetP2PStatus(selection.devices[i], selection.devices[j], capability, &status);
            printf("\t%s", i == j ? "X" : p2p_word(status));
        }
        puts("\t");
    }
    puts("\nLegend:\n\n"
         "  X    = the GPU itself\n"
         "  OK   = both GPUs can\n"
         "  CNS  = the chipset cannot\n"
         "  GNS  = a GPU cannot\n"
         "  TNS  = the topology does not allow it\n"
         "  DR   = switched off in the driver\n"
         "  NS   = not supported\n"
         "  U    = unknown");
    free(selection.devices);
    return 0;
}

int show_topology(int with_links) {
    Selection selection = select_gpus(NULL, "No devices were found");
    Places places = places_of(&selection);
    for (unsigned i = 0; i < selection.count; i++) printf("\tGPU%u", i);
    for (unsigned i = 0; i < places.nic_count; i++) printf("\tNIC%u", i);
    puts("\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID");
    for (unsigned i = 0; i < selection.count; i++) row(&selection, &places, i, with_links);
    for (unsigned i = 0; i < places.nic_count; i++) nic_row(&selection, &places, i);
    puts("\nLegend:\n\n"
         "  X    = the GPU itself\n"
         "  SYS  = across NUMA nodes\n"
         "  NODE = across host bridges of one NUMA node\n"
         "  PHB  = across a host bridge\n"
         "  PXB  = across several PCIe bridges, without the host bridge\n"
         "  PIX  = across one PCIe bridge at most");
    if (with_links) puts("  NV#  = over # bonded NVLinks");
    if (places.nic_count > 0) puts("\nNIC Legend:\n");
    for (unsigned i = 0; i < places.nic_count; i++) printf("  NIC%u: %s\n", i, places.nics[i].name);
    places_free(&places);
    free(selection.devices);
    return 0;
}
