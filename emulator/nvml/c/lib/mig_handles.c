/* Handles of instances, and finding what they stand for. */
#include "mig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "holding.h"

static GpuInstanceRef *instances;
static size_t instance_count;
static ComputeInstanceRef *computes;
static size_t compute_count;

GpuInstanceRef instance_ref(struct Handle *gpu, const MigInstance *instance) {
    for (size_t i = 0; i < instance_count; i++)
        if (instances[i]->gpu == gpu && instances[i]->id == instance->id && instances[i]->serial == instance->serial)
            return instances[i];
    GpuInstanceRef *more = state_grown(instances, instance_count, sizeof *more);
    if (more != NULL) instances = more;
    GpuInstanceRef ref = more ? malloc(sizeof *ref) : NULL;
    if (ref == NULL) return NULL;
    *ref = (struct GpuInstanceHandle){gpu, instance->id, instance->serial};
    return instances[instance_count++] = ref;
}

ComputeInstanceRef compute_ref(GpuInstanceRef instance, const MigDevice *device) {
    for (size_t i = 0; i < compute_count; i++)
        if (computes[i]->instance == instance && computes[i]->id == device->id && computes[i]->serial == device->serial)
            return computes[i];
    ComputeInstanceRef *more = state_grown(computes, compute_count, sizeof *more);
    if (more != NULL) computes = more;
    ComputeInstanceRef ref = more ? malloc(sizeof *ref) : NULL;
    if (ref == NULL) return NULL;
    *ref = (struct ComputeInstanceHandle){instance, device->id, device->serial};
    return computes[compute_count++] = ref;
}

/* Whether it is a handle of ours: any other address is not read. */
static int known_instance(GpuInstanceRef ref) {
    for (size_t i = 0; i < instance_count; i++)
        if (instances[i] == ref) return 1;
    return 0;
}

static int known_compute(ComputeInstanceRef ref) {
    for (size_t i = 0; i < compute_count; i++)
        if (computes[i] == ref) return 1;
    return 0;
}

static const MigInstance *stands_for(const View *view, GpuInstanceRef ref, const Gpu **gpu) {
    *gpu = view_gpu(view, ref->gpu, NULL);
    if (*gpu == NULL || (*gpu)->lost || (*gpu)->unknown_error) return NULL;
    const MigInstance *found = instance_of(*gpu, ref->id);
    return found != NULL && found->serial == ref->serial ? found : NULL;
}

Return enter_instance(GpuInstanceRef ref, View *view, const Gpu **gpu, const MigInstance **instance) {
    Return result = session_enter(view);
    if (result != OK) return result;
    if (!known_instance(ref)) return session_leave(INVALID_ARGUMENT);
    *instance = stands_for(view, ref, gpu);
    return *instance != NULL ? OK : session_leave(INVALID_ARGUMENT);
}

Return enter_compute(ComputeInstanceRef ref, View *view, const Gpu **gpu, const MigDevice **device) {
    Return result = session_enter(view);
    if (result != OK) return result;
    if (!known_compute(ref) || stands_for(view, ref->instance, gpu) == NULL) return session_leave(INVALID_ARGUMENT);
    *device = device_of(*gpu, ref->instance->id, ref->id);
    return *device != NULL && (*device)->serial == ref->serial ? OK : session_leave(INVALID_ARGUMENT);
}

/* ---- The state's parts ---- */

const MigInstance *instance_of(const Gpu *gpu, long long id) {
    for (size_t i = 0; i < gpu->mig.instance_count; i++)
        if (gpu->mig.instances[i].id == id) return &gpu->mig.instances[i];
    return NULL;
}

const MigDevice *device_of(const Gpu *gpu, long long instance, long long id) {
    for (size_t i = 0; i < gpu->mig.device_count; i++)
        if (gpu->mig.devices[i].instance == instance && gpu->mig.devices[i].id == id) return &gpu->mig.devices[i];
    return NULL;
}

const MigProfile *profile_of(const View *view, const Gpu *gpu, long long id) {
    const MigModels *models = &view->state->mig;
    for (size_t i = 0; i < models->profile_count; i++)
        if (models->profiles[i].table == gpu->mig_model && models->profiles[i].id == id) return &models->profiles[i];
    return NULL;
}

const MigComputeProfile *compute_profile_of(const View *view, const Gpu *gpu, long long parent, long long id) {
    const MigModels *models = &view->state->mig;
    for (size_t i = 0; i < models->compute_count; i++) {
        const MigComputeProfile *one = &models->compute[i];
        if (one->table == gpu->mig_model && one->parent == parent && one->id == id) return one;
    }
    return NULL;
}

long long free_of(const Gpu *gpu, long long instance, long long profile) {
    for (size_t i = 0; i < gpu->mig.free_count; i++)
        if (gpu->mig.free[i].instance == instance && gpu->mig.free[i].profile == profile) return gpu->mig.free[i].count;
    return 0;
}

long long most_of(const View *view, const Gpu *gpu) {
    for (size_t i = 0; i < view->state->mig.table_count; i++)
        if (view->state->mig.tables[i].table == gpu->mig_model) return view->state->mig.tables[i].most;
    return 0;
}

unsigned long long instance_total(const View *view, const Gpu *gpu, const MigInstance *instance) {
    const MigProfile *profile = instance ? profile_of(view, gpu, instance->profile) : NULL;
    return profile ? (unsigned long long)profile->memory_mib << 20 : 0;
}

unsigned long long instance_used(const Gpu *gpu, const MigInstance *instance) {
    unsigned long long used = (unsigned long long)instance->idle;
    for (size_t i = 0; i < gpu->process_count; i++)
        if ((long long)gpu->processes[i].gpu_instance == instance->id) used += gpu->processes[i].used;
    return used;
}

/* ---- Asking ---- */

Return ask_mig(Device device, const char *words, unsigned *answer) {
    View view;
    const Gpu *gpu;
    char line[128], text[64];
    long long number = 0;
    Return result = session_enter_gpu(device, &view, &gpu, NULL);
    if (result != OK) return result;
    snprintf(line, sizeof line, "mig %04x:%02x:%02x.0 %s", gpu->domain, gpu->bus, gpu->device, words);
    session_leave(OK);
    if (!may_set()) return NO_PERMISSION;
    result = host_question(line, text, sizeof text);
    if (result != OK || answer == NULL) return result;
    if (!number_parse(text, &number)) return UNKNOWN;
    *answer = (unsigned)number;
    return OK;
}
