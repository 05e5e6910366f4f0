/* MIG in the state file: the models' tables and what each GPU has (mig/lines.py documents the lines). */
#ifndef MEWS_MIG_STATE_H
#define MEWS_MIG_STATE_H

#include <stddef.h>

#include "nvml.h"

enum { MIG_NAME = 40, MIG_STARTS = 16, MIG_LIMIT = 512 };

typedef struct {
    long long table, number, id, slices, count, multiprocessors, memory_mib, copy, decoder, encoder, jpeg, ofa, size;
    long long graphics;
    unsigned starts[MIG_STARTS];
    size_t start_count;
    char name[MIG_NAME];
} MigProfile;

typedef struct {
    long long table, parent, id, slices, count, multiprocessors;
    unsigned starts[MIG_STARTS];
    size_t start_count;
    char name[MIG_NAME];
} MigComputeProfile;

typedef struct {
    long long id, profile, start, size, serial, idle;
} MigInstance;

typedef struct {
    long long instance, id, profile, start, serial;
    char uuid[UUID_SIZE];
} MigDevice;

/* How many more fit: instance < 0: GPU instances of that profile, else compute instances of that profile in it. */
typedef struct {
    long long instance, profile, count;
} MigFree;

typedef struct {
    long long table, most;
} MigTable;

/* Of a host. */
typedef struct {
    MigTable *tables;
    size_t table_count;
    MigProfile *profiles;
    size_t profile_count;
    MigComputeProfile *compute;
    size_t compute_count;
} MigModels;

/* Of a GPU. */
typedef struct {
    MigInstance *instances;
    size_t instance_count;
    MigDevice *devices; /* in their order */
    size_t device_count;
    MigFree *free;
    size_t free_count;
} MigOfGpu;

/* A line: 1 = understood, 0 = wrong, -1 = none of these. `gpu` NULL: before the first GPU. */
int mig_line(MigModels *models, MigOfGpu *gpu, const char *key, char *rest);
/* Whether each compute profile has the profile that it divides, and each device its instance. */
int mig_models_whole(const MigModels *models);
int mig_of_gpu_whole(const MigOfGpu *gpu);

void mig_models_free(MigModels *models);
void mig_of_gpu_free(MigOfGpu *gpu);

#endif
