/* Instances: created, destroyed, listed and described. */
#include <stdio.h>
#include <string.h>

#include "mig.h"

/* ---- GPU instances ---- */

static Return give_instance(Device device, unsigned id, GpuInstanceRef *out) {
    View view;
    const Gpu *gpu;
    size_t index;
    Return result = session_enter_gpu(device, &view, &gpu, &index);
    if (result != OK) return result;
    const MigInstance *found = instance_of(gpu, id);
    *out = found ? instance_ref(view.handles[index], found) : NULL;
    return session_leave(*out != NULL ? OK : NOT_FOUND);
}

static Return create_instance(Device device, const char *words, const void *out, GpuInstanceRef *instance) {
    View view;
    const Gpu *gpu;
    unsigned id = 0;
    Return result = session_enter_gpu(device, &view, &gpu, NULL);
    if (result != OK) return result;
    session_leave(OK);
    if (out == NULL) return INVALID_ARGUMENT;
    result = ask_mig(device, words, &id);
    return result != OK ? result : give_instance(device, id, instance);
}

EXPORT Return nvmlDeviceCreateGpuInstance(Device device, unsigned id, GpuInstanceRef *out) {
    char words[64];
    snprintf(words, sizeof words, "create-gpu %u", id);
    return create_instance(device, words, out, out);
}

EXPORT Return nvmlDeviceCreateGpuInstanceWithPlacement(Device device, unsigned id, const MigPlacement *placement,
                                                       GpuInstanceRef *out) {
    char words[64];
    View view;
    const Gpu *gpu;
    Return result = session_enter_gpu(device, &view, &gpu, NULL);
    if (result != OK) return result;
    const MigProfile *profile = profile_of(&view, gpu, id);
    int capable = gpu->mig_model >= 0, fits = placement != NULL && profile != NULL && placement->size == (unsigned)profile->size;
    session_leave(OK);
    if (capable && !fits) return INVALID_ARGUMENT;
    snprintf(words, sizeof words, "create-gpu %u %u", id, placement ? placement->start : 0);
    return create_instance(device, words, out, out);
}

EXPORT Return nvmlGpuInstanceDestroy(GpuInstanceRef ref) {
    char words[64];
    View view;
    const Gpu *gpu;
    const MigInstance *instance;
    Return result = enter_instance(ref, &view, &gpu, &instance);
    if (result != OK) return result;
    snprintf(words, sizeof words, "destroy-gpu %lld", ref->id);
    session_leave(OK);
    return ask_mig(ref->gpu, words, NULL);
}

EXPORT Return nvmlDeviceGetGpuInstances(Device device, unsigned id, GpuInstanceRef *out, unsigned *count) {
    View view;
    const Gpu *gpu;
    size_t index;
    Return result = session_enter_gpu(device, &view, &gpu, &index);
    if (result != OK) return result;
    if (gpu->mig_model < 0 || !gpu->mig_mode) return session_leave(NOT_SUPPORTED);
    if (out == NULL || count == NULL || profile_of(&view, gpu, id) == NULL) return session_leave(INVALID_ARGUMENT);
    unsigned there = 0;
    for (size_t i = 0; i < gpu->mig.instance_count; i++) {
        const MigInstance *one = &gpu->mig.instances[i];
        if (one->profile != id) continue;
        if ((out[there] = instance_ref(view.handles[index], one)) == NULL) return session_leave(OUT_OF_MEMORY);
        there++;
    }
    *count = there;
    return session_leave(OK);
}

EXPORT Return nvmlDeviceGetGpuInstanceById(Device device, unsigned id, GpuInstanceRef *out) {
    View view;
    const Gpu *gpu;
    Return result = session_enter_gpu(device, &view, &gpu, NULL);
    if (result != OK) return result;
    int off = gpu->mig_model < 0 || !gpu->mig_mode;
    session_leave(OK);
    if (off) return NOT_SUPPORTED;
    return out == NULL ? INVALID_ARGUMENT : give_instance(device, id, out);
}

EXPORT Return nvmlGpuInstanceGetInfo(GpuInstanceRef ref, MigInstanceInfo *info) {
    View view;
    const Gpu *gpu;
    const MigInstance *one;
    Return result = enter_instance(ref, &view, &gpu, &one);
    if (result != OK) return result;
    if (info == NULL) return session_leave(INVALID_ARGUMENT);
    *info = (MigInstanceInfo){ref->gpu, (unsigned)one->id, (unsigned)one->profile,
                              {(unsigned)one->start, (unsigned)one->size}};
    return session_leave(OK);
}

/* ---- Compute instances ---- */

static Return create_compute(GpuInstanceRef ref, const char *words, ComputeInstanceRef *out) {
    View view;
    const Gpu *gpu;
    const MigInstance *instance;
    unsigned id = 0;
    Return result = ask_mig(ref->gpu, words, &id);
    if (result == OK) result = enter_instance(ref, &view, &gpu, &instance);
    if (result != OK) return result;
    const MigDevice *found = device_of(gpu, ref->id, id);
    *out = found ? compute_ref(ref, found) : NULL;
    return session_leave(*out != NULL ? OK : UNKNOWN);
}

static Return enter_new(GpuInstanceRef ref, unsigned id, const void *out, long long *slices) {
    View view;
    const Gpu *gpu;
    const MigInstance *instance;
    Return result = enter_instance(ref, &view, &gpu, &instance);
    if (result != OK) return result;
    const MigComputeProfile *profile = compute_profile_of(&view, gpu, instance->profile, id);
    if (profile != NULL) *slices = profile->slices;
    return session_leave(out == NULL ? INVALID_ARGUMENT : profile == NULL ? NOT_SUPPORTED : OK);
}

EXPORT Return nvmlGpuInstanceCreateComputeInstance(GpuInstanceRef ref, unsigned id, ComputeInstanceRef *out) {
    char words[64];
    long long slices;
    Return result = enter_new(ref, id, out, &slices);
    if (result != OK) return result;
    snprintf(words, sizeof words, "create-compute %lld %u", ref->id, id);
    return create_compute(ref, words, out);
}

EXPORT Return nvmlGpuInstanceCreateComputeInstanceWithPlacement(GpuInstanceRef ref, unsigned id,
                                                                const MigPlacement *placement,
                                                                ComputeInstanceRef *out) {
    char words[64];
    long long slices;
    Return result = enter_new(ref, id, out, &slices);
    if (result != OK) return result;
    if (placement == NULL || placement->size != (unsigned)slices) return INVALID_ARGUMENT;
    snprintf(words, sizeof words, "create-compute %lld %u %u", ref->id, id, placement->start);
    return create_compute(ref, words, out);
}

EXPORT Return nvmlComputeInstanceDestroy(ComputeInstanceRef ref) {
    char words[64];
    View view;
    const Gpu *gpu;
    const MigDevice *device;
    Return result = enter_compute(ref, &view, &gpu, &device);
    if (result != OK) return result;
    snprintf(words, sizeof words, "destroy-compute %lld %lld", ref->instance->id, ref->id);
    session_leave(OK);
    return ask_mig(ref->instance->gpu, words, NULL);
}

EXPORT Return nvmlGpuInstanceGetComputeInstances(GpuInstanceRef ref, unsigned id, ComputeInstanceRef *out,
                                                 unsigned *count) {
    View view;
    const Gpu *gpu;
    const MigInstance *instance;
    Return result = enter_instance(ref, &view, &gpu, &instance);
    if (result != OK) return result;
    if (out == NULL || count == NULL) return session_leave(INVALID_ARGUMENT);
    if (compute_profile_of(&view, gpu, instance->profile, id) == NULL) return session_leave(NOT_SUPPORTED);
    unsigned there = 0;
    for (size_t i = 0; i < gpu->mig.device_count; i++) {
        const MigDevice *one = &gpu->mig.devices[i];
        if (one->instance != instance->id || one->profile != id) continue;
        if ((out[there] = compute_ref(ref, one)) == NULL) return session_leave(OUT_OF_MEMORY);
        there++;
    }
    *count = there;
    return session_leave(OK);
}

EXPORT Return nvmlGpuInstanceGetComputeInstanceById(GpuInstanceRef ref, unsigned id, ComputeInstanceRef *out) {
    View view;
    const Gpu *gpu;
    const MigInstance *instance;
    Return result = enter_instance(ref, &view, &gpu, &instance);
    if (result != OK) return result;
    if (out == NULL) return session_leave(INVALID_ARGUMENT);
    const MigDevice *found = device_of(gpu, instance->id, id);
    *out = found ? compute_ref(ref, found) : NULL;
    return session_leave(*out != NULL ? OK : NOT_FOUND);
}

/* The first version ends before the placement. */
static Return compute_info(ComputeInstanceRef ref, void *out, size_t size) {
    View view;
    const Gpu *gpu;
    const MigDevice *one;
    Return result = enter_compute(ref, &view, &gpu, &one);
    if (result != OK) return result;
    if (out == NULL) return session_leave(INVALID_ARGUMENT);
    const MigComputeProfile *profile =
        compute_profile_of(&view, gpu, instance_of(gpu, one->instance)->profile, one->profile);
    MigComputeInstanceInfo told = {mig_handle(ref->instance->gpu, one->uuid), ref->instance, (unsigned)one->id,
                                   (unsigned)one->profile,
                                   {(unsigned)one->start, profile ? (unsigned)profile->slices : 0}};
    if (told.device == NULL) return session_leave(OUT_OF_MEMORY);
    memcpy(out, &told, size);
    return session_leave(OK);
}

EXPORT Return nvmlComputeInstanceGetInfo_v2(ComputeInstanceRef ref, MigComputeInstanceInfo *info) {
    return compute_info(ref, info, sizeof *info);
}

EXPORT Return nvmlComputeInstanceGetInfo(ComputeInstanceRef ref, void *info) {
    return compute_info(ref, info, offsetof(MigComputeInstanceInfo, placement));
}
