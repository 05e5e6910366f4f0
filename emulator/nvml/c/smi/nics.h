/* The host's RDMA devices and how near they are to its GPUs, by sysfs: NVML knows nothing of them. */
#ifndef MEWS_SMI_NICS_H
#define MEWS_SMI_NICS_H

#include "gpus.h"

enum { PLACE_SIZE = 1024, NIC_LIMIT = 1024 };

typedef struct {
    char name[64];
    char path[PLACE_SIZE]; /* from the root complex down: "pci0000:00/0000:00:01.0/…" */
    long numa_node;
} Place;

typedef struct {
    Place *gpus, *nics;
    unsigned nic_count;
} Places;

/* Where the GPUs and the RDMA devices are. No devices where this host's sysfs does not have the GPUs. The caller frees. */
Places places_of(const Selection *selection);
void places_free(Places *places);

/* The word of topo -m for a pair. */
const char *nearness(const Place *one, const Place *other);

#endif
