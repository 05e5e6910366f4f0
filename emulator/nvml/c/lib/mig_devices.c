/* MIG mode, and MIG devices: compute instances as programs see them. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "getter.h"
#include "mig.h"

PAIR_IF(nvmlDeviceGetMigMode, unsigned, gpu->mig_capable, gpu->mig_mode, gpu->mig_pending)
GETTER(nvmlDeviceGetMaxMigDeviceCount, unsigned, gpu->mig_mode ? most_of(&view, gpu) : 0)

EXPORT Return nvmlDeviceSetMigMode(Device device, unsigned mode, Return *status) {
    View view;
    const Gpu *gpu;
    char words[32];
    unsigned kept = 0;
    Return result = session_enter_gpu(device, &view, &gpu, NULL);
    if (result != OK) return result;
    int capable = gpu->mig_capable && gpu->mig_model >= 0;
    session_leave(OK);
    if (status == NULL || mode > 1) return INVALID_ARGUMENT;
    if (!capable) return NOT_SUPPORTED;
    snprintf(words, sizeof words, "mode %u", mode);
    result = ask_mig(device, words, &kept);
    if (result == OK) *status = kept ? IN_USE : OK;
    return result;
}

EXPORT Return nvmlDeviceIsMigDeviceHandle(Device device, unsigned *out) {
    ENTER_DEVICE(device, NULL);
    if (out == NULL) return session_leave(INVALID_ARGUMENT);
    *out = mig != NULL;
    return session_leave(OK);
}

EXPORT Return nvmlDeviceGetMigDeviceHandleByIndex(Device device, unsigned index, Device *out) {
    View view;
    const Gpu *gpu;
    size_t place;
    Return result = session_enter_gpu(device, &view, &gpu, &place);
    if (result != OK) return result;
    if (out == NULL) return session_leave(INVALID_ARGUMENT);
    if (!gpu->mig_mode) return session_leave(NOT_FOUND);
    if (index >= (unsigned)most_of(&view, gpu)) return session_leave(INVALID_ARGUMENT);
    const MigDevice *found = session_mig_at(gpu, index);
    if (found == NULL) return session_leave(NOT_FOUND);
    *out = mig_handle(view.handles[place], found->uuid);
    return session_leave(*out != NULL ? OK : OUT_OF_MEMORY);
}

EXPORT Return nvmlDeviceGetDeviceHandleFromMigDeviceHandle(Device part, Device *device) {
    size_t index;
    ENTER_DEVICE(part, &index);
    if (mig == NULL || device == NULL) return session_leave(INVALID_ARGUMENT);
    *device = view.handles[index];
    return session_leave(OK);
}

static Return id_of(Device device, unsigned *out, int compute) {
    ENTER_DEVICE(device, NULL);
    if (out == NULL) return session_leave(INVALID_ARGUMENT);
    if (mig == NULL) return session_leave(NOT_SUPPORTED);
    *out = (unsigned)(compute ? mig->id : mig->instance);
    return session_leave(OK);
}

EXPORT Return nvmlDeviceGetGpuInstanceId(Device device, unsigned *out) { return id_of(device, out, 0); }
EXPORT Return nvmlDeviceGetComputeInstanceId(Device device, unsigned *out) { return id_of(device, out, 1); }

EXPORT Return nvmlDeviceGetAttributes_v2(Device device, MigAttributes *out) {
    ENTER_DEVICE(device, NULL);
    if (out == NULL) return session_leave(INVALID_ARGUMENT);
    const MigInstance *instance = mig ? instance_of(gpu, mig->instance) : NULL;
    const MigProfile *profile = instance ? profile_of(&view, gpu, instance->profile) : NULL;
    const MigComputeProfile *compute =
        profile ? compute_profile_of(&view, gpu, instance->profile, mig->profile) : NULL;
    if (compute == NULL) return session_leave(NOT_SUPPORTED);
    *out = (MigAttributes){(unsigned)compute->multiprocessors, (unsigned)profile->copy, (unsigned)profile->decoder,
                           (unsigned)profile->encoder, (unsigned)profile->jpeg, (unsigned)profile->ofa,
                           (unsigned)profile->slices, (unsigned)compute->slices,
                           (unsigned long long)profile->memory_mib};
    return session_leave(OK);
}

EXPORT Return nvmlDeviceGetAttributes(Device device, MigAttributes *out) {
    return nvmlDeviceGetAttributes_v2(device, out);
}
