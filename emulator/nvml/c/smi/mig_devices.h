/* The MIG devices of a GPU, as the table, -L, -q and `mig` show them. */
#ifndef MEWS_SMI_MIG_DEVICES_H
#define MEWS_SMI_MIG_DEVICES_H

#include "gpus.h"

typedef struct {
    Device device;
    unsigned index, instance, compute;
    char name[VALUE_SIZE], uuid[VALUE_SIZE]; /* name: of its profile */
    MigAttributes attributes;
    Memory2 memory;
    Bar1Memory bar1;
} SmiMigDevice;

/* Whether MIG mode is on. */
int mig_is_on(Device device);

/* Those of a GPU in their order; the caller frees. */
SmiMigDevice *mig_devices_of(Device device, unsigned *count);

/* Their lines of -L, and their part of the table: of all GPUs together. */
void mig_list(Device device);
void mig_table(const Selection *selection);

#endif
