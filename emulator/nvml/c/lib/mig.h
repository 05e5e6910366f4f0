/* MIG: handles of instances, and what they stand for in the state. The lock is held wherever a View is. */
#ifndef MEWS_MIG_H
#define MEWS_MIG_H

#include "session.h"

/* An instance that this process has met. Lives as long as the process, so that a handle never dangles; another instance
 * with the same ID has another serial number, and another handle. */
struct GpuInstanceHandle {
    struct Handle *gpu;
    long long id, serial;
};
struct ComputeInstanceHandle {
    struct GpuInstanceHandle *instance;
    long long id, serial;
};

/* The handle of an instance; NULL without memory. */
GpuInstanceRef instance_ref(struct Handle *gpu, const MigInstance *instance);
ComputeInstanceRef compute_ref(GpuInstanceRef instance, const MigDevice *device);

/* Enter, with what a handle stands for. INVALID_ARGUMENT for one that is gone. `index`: the GPU's, in the view. */
Return enter_instance(GpuInstanceRef ref, View *view, const Gpu **gpu, const MigInstance **instance);
Return enter_compute(ComputeInstanceRef ref, View *view, const Gpu **gpu, const MigDevice **device);

/* Parts of the state; NULL where there is none. */
const MigInstance *instance_of(const Gpu *gpu, long long id);
const MigDevice *device_of(const Gpu *gpu, long long instance, long long id);
const MigProfile *profile_of(const View *view, const Gpu *gpu, long long id);
const MigComputeProfile *compute_profile_of(const View *view, const Gpu *gpu, long long parent, long long id);
long long free_of(const Gpu *gpu, long long instance, long long profile);
/* What this GPU's table says: how many instances at most. */
long long most_of(const View *view, const Gpu *gpu);

/* Memory of a GPU instance, in bytes: all, and what is in use. */
unsigned long long instance_total(const View *view, const Gpu *gpu, const MigInstance *instance);
unsigned long long instance_used(const Gpu *gpu, const MigInstance *instance);

/* Ask the host for a change of this GPU; `answer` gets the number that it says, and may be NULL. */
Return ask_mig(Device device, const char *words, unsigned *answer);

#endif
