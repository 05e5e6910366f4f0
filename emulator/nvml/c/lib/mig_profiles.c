/* What a GPU can be divided into: profiles, placements and how much room is left. */
#include <string.h>

#include "mig.h"

enum { GPU_PROFILES = 18, COMPUTE_PROFILES = 9, ENGINES_SHARED = 0, CAPABLE_GRAPHICS = 2, COMPUTE_GRAPHICS = 1 };

/* ---- GPU instances ---- */

/* The profile of NVML's number. INVALID_ARGUMENT ends an enumeration, NOT_SUPPORTED does not. */
static Return enter_profile(Device device, unsigned number, const void *info, const MigProfile **profile) {
    View view;
    const Gpu *gpu;
    Return result = session_enter_gpu(device, &view, &gpu, NULL);
    if (result != OK) return result;
    if (info == NULL || number >= GPU_PROFILES) return session_leave(INVALID_ARGUMENT);
    const MigModels *models = &view.state->mig;
    for (size_t i = 0; i < models->profile_count; i++) {
        *profile = &models->profiles[i];
        if ((*profile)->table == gpu->mig_model && (*profile)->number == number) return OK;
    }
    return session_leave(NOT_SUPPORTED);
}

static Return enter_profile_id(Device device, unsigned id, const void *out, View *view, const Gpu **gpu,
                               const MigProfile **profile) {
    Return result = session_enter_gpu(device, view, gpu, NULL);
    if (result != OK) return result;
    if ((*gpu)->mig_model < 0) return session_leave(NOT_SUPPORTED);
    *profile = profile_of(view, *gpu, id);
    return out != NULL && *profile != NULL ? OK : session_leave(INVALID_ARGUMENT);
}

static MigProfileInfo info_of(const MigProfile *p) {
    return (MigProfileInfo){
        .id = (unsigned)p->id,
        .slices = (unsigned)p->slices,
        .count = (unsigned)p->count,
        .multiprocessors = (unsigned)p->multiprocessors,
        .copy = (unsigned)p->copy,
        .decoder = (unsigned)p->decoder,
        .encoder = (unsigned)p->encoder,
        .jpeg = (unsigned)p->jpeg,
        .ofa = (unsigned)p->ofa,
        .memory_mib = (unsigned long long)p->memory_mib,
    };
}

/* The versions have the same numbers; the third has capabilities at its end in place of the second's peer-to-peer. */
static Return info_versioned(const MigProfile *profile, void *out) {
    unsigned version;
    memcpy(&version, out, sizeof version);
    MigProfileInfo plain = info_of(profile);
    if (version == STRUCT_VERSION(MigProfileInfo2, 2)) {
        MigProfileInfo2 told = {version, plain.id, 0, plain.slices, plain.count, plain.multiprocessors, plain.copy,
                                plain.decoder, plain.encoder, plain.jpeg, plain.ofa, plain.memory_mib, {0}};
        strcpy(told.name, profile->name);
        memcpy(out, &told, sizeof told);
    } else if (version == STRUCT_VERSION(MigProfileInfo3, 3)) {
        MigProfileInfo3 told = {version, plain.id, plain.slices, plain.count, plain.multiprocessors, plain.copy,
                                plain.decoder, plain.encoder, plain.jpeg, plain.ofa, plain.memory_mib, {0},
                                profile->graphics ? CAPABLE_GRAPHICS : 0};
        strcpy(told.name, profile->name);
        memcpy(out, &told, sizeof told);
    } else {
        return session_leave(VERSION_MISMATCH);
    }
    return session_leave(OK);
}

EXPORT Return nvmlDeviceGetGpuInstanceProfileInfo(Device device, unsigned number, MigProfileInfo *info) {
    const MigProfile *profile;
    Return result = enter_profile(device, number, info, &profile);
    if (result != OK) return result;
    *info = info_of(profile);
    return session_leave(OK);
}

EXPORT Return nvmlDeviceGetGpuInstanceProfileInfoV(Device device, unsigned number, void *info) {
    const MigProfile *profile;
    Return result = enter_profile(device, number, info, &profile);
    return result != OK ? result : info_versioned(profile, info);
}

EXPORT Return nvmlDeviceGetGpuInstanceProfileInfoByIdV(Device device, unsigned id, void *info) {
    View view;
    const Gpu *gpu;
    const MigProfile *profile = NULL;
    Return result = enter_profile_id(device, id, info, &view, &gpu, &profile);
    return result != OK ? result : info_versioned(profile, info);
}

static void placements(MigPlacement *out, const unsigned *starts, size_t count, long long size) {
    for (size_t i = 0; i < count; i++) out[i] = (MigPlacement){starts[i], (unsigned)size};
}

EXPORT Return nvmlDeviceGetGpuInstancePossiblePlacements_v2(Device device, unsigned id, MigPlacement *out,
                                                            unsigned *count) {
    View view;
    const Gpu *gpu;
    const MigProfile *profile;
    Return result = enter_profile_id(device, id, count, &view, &gpu, &profile);
    if (result != OK) return result;
    /* The caller has asked for the number first: there is no size to check. */
    if (out != NULL) placements(out, profile->starts, profile->start_count, profile->size);
    *count = (unsigned)profile->start_count;
    return session_leave(OK);
}

EXPORT Return nvmlDeviceGetGpuInstancePossiblePlacements(Device device, unsigned id, MigPlacement *out,
                                                         unsigned *count) {
    return nvmlDeviceGetGpuInstancePossiblePlacements_v2(device, id, out, count);
}

EXPORT Return nvmlDeviceGetGpuInstanceRemainingCapacity(Device device, unsigned id, unsigned *count) {
    View view;
    const Gpu *gpu;
    const MigProfile *profile;
    Return result = enter_profile_id(device, id, count, &view, &gpu, &profile);
    if (result != OK) return result;
    if (!gpu->mig_mode) return session_leave(NOT_SUPPORTED);
    *count = (unsigned)free_of(gpu, -1, id);
    return session_leave(OK);
}

/* ---- Compute instances ---- */

static Return enter_compute_profile(GpuInstanceRef ref, unsigned id, const void *out, View *view, const Gpu **gpu,
                                    const MigComputeProfile **profile) {
    const MigInstance *instance;
    Return result = enter_instance(ref, view, gpu, &instance);
    if (result != OK) return result;
    if (out == NULL || id >= COMPUTE_PROFILES) return session_leave(INVALID_ARGUMENT);
    *profile = compute_profile_of(view, *gpu, instance->profile, id);
    return *profile != NULL ? OK : session_leave(NOT_SUPPORTED);
}

static MigComputeInfo compute_info_of(const View *view, const Gpu *gpu, const MigComputeProfile *p) {
    const MigProfile *parent = profile_of(view, gpu, p->parent);
    return (MigComputeInfo){
        (unsigned)p->id, (unsigned)p->slices, (unsigned)p->count, (unsigned)p->multiprocessors, (unsigned)parent->copy,
        (unsigned)parent->decoder, (unsigned)parent->encoder, (unsigned)parent->jpeg, (unsigned)parent->ofa};
}

EXPORT Return nvmlGpuInstanceGetComputeInstanceProfileInfo(GpuInstanceRef ref, unsigned number, unsigned engines,
                                                           MigComputeInfo *info) {
    View view;
    const Gpu *gpu;
    const MigComputeProfile *profile;
    Return result = enter_compute_profile(ref, number, info, &view, &gpu, &profile);
    if (result != OK) return result;
    if (engines != ENGINES_SHARED) return session_leave(INVALID_ARGUMENT);
    *info = compute_info_of(&view, gpu, profile);
    return session_leave(OK);
}

EXPORT Return nvmlGpuInstanceGetComputeInstanceProfileInfoV(GpuInstanceRef ref, unsigned number, unsigned engines,
                                                            void *info) {
    View view;
    const Gpu *gpu;
    const MigComputeProfile *profile;
    unsigned version;
    Return result = enter_compute_profile(ref, number, info, &view, &gpu, &profile);
    if (result != OK) return result;
    if (engines != ENGINES_SHARED) return session_leave(INVALID_ARGUMENT);
    memcpy(&version, info, sizeof version);
    MigComputeInfo3 told = {.version = version, .info = compute_info_of(&view, gpu, profile)};
    strcpy(told.name, profile->name);
    told.capabilities = profile_of(&view, gpu, profile->parent)->graphics ? COMPUTE_GRAPHICS : 0;
    if (version == STRUCT_VERSION(MigComputeInfo2, 2))
        memcpy(info, &told, sizeof(MigComputeInfo2));
    else if (version == STRUCT_VERSION(MigComputeInfo3, 3))
        memcpy(info, &told, sizeof told);
    else
        return session_leave(VERSION_MISMATCH);
    return session_leave(OK);
}

EXPORT Return nvmlGpuInstanceGetComputeInstancePossiblePlacements(GpuInstanceRef ref, unsigned id, MigPlacement *out,
                                                                  unsigned *count) {
    View view;
    const Gpu *gpu;
    const MigComputeProfile *profile;
    Return result = enter_compute_profile(ref, id, count, &view, &gpu, &profile);
    if (result != OK) return result;
    if (out != NULL) placements(out, profile->starts, profile->start_count, profile->slices);
    *count = (unsigned)profile->start_count;
    return session_leave(OK);
}

EXPORT Return nvmlGpuInstanceGetComputeInstanceRemainingCapacity(GpuInstanceRef ref, unsigned id, unsigned *count) {
    View view;
    const Gpu *gpu;
    const MigComputeProfile *profile;
    Return result = enter_compute_profile(ref, id, count, &view, &gpu, &profile);
    if (result != OK) return result;
    *count = (unsigned)free_of(gpu, ref->id, id);
    return session_leave(OK);
}
