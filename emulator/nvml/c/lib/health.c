/* What a board tells of its own condition: SRAM errors, repairs, the inforom. */
#include <stdlib.h>
#include <string.h>

#include "getter.h"

/* Its SRAM's errors are counted apart from Ampere on; those that are set are all of its memory. */
static int counts_sram(const Gpu *gpu) { return gpu->ecc_mode == 1 && gpu->architecture >= ARCH_AMPERE; }

VERSIONED_IF(nvmlDeviceGetSramEccErrorStatus, SramStatus, counts_sram(gpu),
             *out = (SramStatus){.version = out->version})

VERSIONED_IF(nvmlDeviceGetSramUniqueUncorrectedEccErrorCounts, SramErrors, counts_sram(gpu), out->count = 0)

VERSIONED_IF(nvmlDeviceGetRepairStatus, RepairStatus, gpu->architecture >= ARCH_AMPERE,
             out->channel_pending = out->tpc_pending = 0)

GETTER_IF(nvmlDeviceGetUnrepairableMemoryFlag_v1, unsigned, detail_text(gpu, "unrepairable_memory") != NULL, 0)

/* ---- The inforom ---- */

static const char *inforom(const Gpu *gpu, unsigned object) {
    static const char *const KEYS[] = {"inforom_oem", "inforom_ecc", "inforom_power"};
    return object < sizeof KEYS / sizeof *KEYS ? detail_text(gpu, KEYS[object]) : NULL;
}

STRING_IF(nvmlDeviceGetInforomImageVersion, session_enter_gpu, detail_text(gpu, "inforom_image") != NULL,
          detail_text(gpu, "inforom_image"))

EXPORT Return nvmlDeviceGetInforomVersion(Device device, unsigned object, char *out, unsigned length) {
    enum { OBJECTS = 4 };
    View view;
    const Gpu *gpu;
    Return result = session_enter_gpu(device, &view, &gpu, NULL);
    if (result != OK) return result;
    if (object >= OBJECTS) return session_leave(INVALID_ARGUMENT);
    const char *text = inforom(gpu, object);
    return session_leave(text == NULL ? NOT_SUPPORTED : text_out(text, out, length));
}

/* A sum over what the inforom says: the same for boards of the same inforom. */
static unsigned checksum(const Gpu *gpu) {
    unsigned sum = 5381;
    const char *texts[] = {detail_text(gpu, "inforom_image"), inforom(gpu, 0), inforom(gpu, 1)};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        for (const char *c = texts[i] ? texts[i] : ""; *c; c++) sum = sum * 33 + (unsigned char)*c;
    return sum;
}

GETTER(nvmlDeviceGetInforomConfigurationChecksum, unsigned, checksum(gpu))

EXPORT Return nvmlDeviceValidateInforom(Device device) {
    View view;
    const Gpu *gpu;
    Return result = session_enter_gpu(device, &view, &gpu, NULL);
    return result != OK ? result : session_leave(OK);
}

/* ---- Capabilities: none of a memory that several nodes share ---- */

VERSIONED_IF(nvmlDeviceGetCapabilities, Capabilities, 1, out->mask = 0)

/* ---- Confidential computing: off, so that no memory is protected ---- */

STRUCT_IF(nvmlDeviceGetConfComputeMemSizeInfo, ProtectedSizes, gpu->architecture >= ARCH_HOPPER,
          *out = (ProtectedSizes){0, (unsigned long long)gpu->memory_total / 1024})

STRUCT_IF(nvmlDeviceGetConfComputeProtectedMemoryUsage, Memory, 1, *out = (Memory){0, 0, 0})

EXPORT Return nvmlSystemGetConfComputeState(ConfidentialState *out) {
    View view;
    Return result = session_enter(&view);
    if (result != OK) return result;
    if (out == NULL) return session_leave(INVALID_ARGUMENT);
    *out = (ConfidentialState){0, 0, 0};
    return session_leave(OK);
}

/* Whether a GPU of this host could do it. */
static int is_capable(const View *view) {
    for (size_t i = 0; i < view->count; i++)
        if (view->state->gpus[view->gpus[i]].architecture >= ARCH_HOPPER) return 1;
    return 0;
}

EXPORT Return nvmlSystemGetConfComputeCapabilities(ConfidentialAbility *out) {
    enum { NO_CPU = 0 };
    View view;
    Return result = session_enter(&view);
    if (result != OK) return result;
    if (out == NULL) return session_leave(INVALID_ARGUMENT);
    *out = (ConfidentialAbility){NO_CPU, (unsigned)is_capable(&view)};
    return session_leave(OK);
}

EXPORT Return nvmlSystemGetConfComputeGpusReadyState(unsigned *ready) {
    View view;
    Return result = session_enter(&view);
    if (result != OK) return result;
    if (ready == NULL) return session_leave(INVALID_ARGUMENT);
    if (!is_capable(&view)) return session_leave(NOT_SUPPORTED);
    *ready = 0;
    return session_leave(OK);
}

EXPORT Return nvmlSystemGetConfComputeSettings(ConfidentialSettings *out) {
    View view;
    Return result = session_enter(&view);
    if (result != OK) return result;
    if (out == NULL) return session_leave(INVALID_ARGUMENT);
    if (out->version != STRUCT_VERSION(*out, 1)) return session_leave(VERSION_MISMATCH);
    *out = (ConfidentialSettings){out->version, 0, 0, 0, 0};
    return session_leave(OK);
}

/* ---- Sessions of encoders and of frame buffer capture: there are none ---- */

static Return no_sessions(Device device, unsigned *count) {
    View view;
    const Gpu *gpu;
    Return result = session_enter_gpu(device, &view, &gpu, NULL);
    if (result != OK) return result;
    if (count == NULL) return session_leave(INVALID_ARGUMENT);
    *count = 0;
    return session_leave(OK);
}

EXPORT Return nvmlDeviceGetEncoderSessions(Device device, unsigned *count, void *sessions) {
    return no_sessions(device, count);
}

EXPORT Return nvmlDeviceGetFBCSessions(Device device, unsigned *count, void *sessions) {
    return no_sessions(device, count);
}

/* Application clocks are root's to set; boards of data centres have no auto boost to restrict. */
EXPORT Return nvmlDeviceGetAPIRestriction(Device device, unsigned api, unsigned *out) {
    enum { APPLICATION_CLOCKS = 0, AUTO_BOOST = 1, RESTRICTED = 1 };
    View view;
    const Gpu *gpu;
    Return result = session_enter_gpu(device, &view, &gpu, NULL);
    if (result != OK) return result;
    if (out == NULL || api > AUTO_BOOST) return session_leave(INVALID_ARGUMENT);
    if (api == AUTO_BOOST || gpu->fan_low >= 0) return session_leave(NOT_SUPPORTED);
    *out = RESTRICTED;
    return session_leave(OK);
}
