/* Settings of one GPU: asked of the host, which knows what its driver and its model take. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "holding.h"
#include "now.h"
#include "session.h"

int may_set(void) {
    const char *rights = getenv("MEWS_NVML_RIGHTS");
    return rights == NULL || strcmp(rights, "none") != 0;
}

/* One request about this GPU. `form` follows its verb and bus address. */
__attribute__((format(printf, 3, 4))) static Return ask(Device device, const char *verb, const char *form, ...) {
    View view;
    const Gpu *gpu;
    char words[192];
    Return result = session_enter_gpu(device, &view, &gpu, NULL);
    if (result != OK) return result;
    int length = snprintf(words, sizeof words, "%s %04x:%02x:%02x.0 ", verb, gpu->domain, gpu->bus, gpu->device);
    session_leave(OK);
    if (!may_set()) return NO_PERMISSION;
    va_list arguments;
    va_start(arguments, form);
    vsnprintf(words + length, sizeof words - (size_t)length, form, arguments);
    va_end(arguments);
    return host_request(words);
}

/* For an argument that is wrong whatever the host says: a device that cannot be asked comes first. */
static Return invalid(Device device) {
    View view;
    const Gpu *gpu;
    Return result = session_enter_gpu(device, &view, &gpu, NULL);
    return result != OK ? result : session_leave(INVALID_ARGUMENT);
}

EXPORT Return nvmlDeviceSetPersistenceMode(Device device, unsigned mode) {
    if (mode > 1) return invalid(device);
    return ask(device, "persistence", "%u", mode);
}

Return driver_set(Device device, const char *name, const unsigned *value) {
    return value == NULL ? ask(device, "set", "%s", name) : ask(device, "set", "%s %u", name, *value);
}

/* ---- Power and clocks ---- */

EXPORT Return nvmlDeviceSetPowerManagementLimit(Device device, unsigned limit) {
    return ask(device, "set", "power-limit %u", limit);
}

EXPORT Return nvmlDeviceSetPowerManagementLimit_v2(Device device, const PowerValue *value) {
    enum { SCOPE_GPU = 0 };
    if (value == NULL) return invalid(device);
    if (value->version != STRUCT_VERSION(*value, 2)) return VERSION_MISMATCH;
    if (value->scope != SCOPE_GPU) return NOT_SUPPORTED;
    return ask(device, "set", "power-limit %u", value->milliwatts);
}

EXPORT Return nvmlDeviceSetGpuLockedClocks(Device device, unsigned low, unsigned high) {
    return ask(device, "set", "gpu-clocks %u %u", low, high);
}
EXPORT Return nvmlDeviceResetGpuLockedClocks(Device device) { return ask(device, "set", "gpu-clocks"); }

EXPORT Return nvmlDeviceSetMemoryLockedClocks(Device device, unsigned low, unsigned high) {
    return ask(device, "set", "memory-clocks %u %u", low, high);
}
EXPORT Return nvmlDeviceResetMemoryLockedClocks(Device device) { return ask(device, "set", "memory-clocks"); }

EXPORT Return nvmlDeviceSetApplicationsClocks(Device device, unsigned memory, unsigned graphics) {
    return ask(device, "set", "applications-clocks %u %u", memory, graphics);
}
EXPORT Return nvmlDeviceResetApplicationsClocks(Device device) { return ask(device, "set", "applications-clocks"); }

/* ---- Modes ---- */

EXPORT Return nvmlDeviceSetComputeMode(Device device, unsigned mode) {
    return ask(device, "set", "compute-mode %u", mode);
}

EXPORT Return nvmlDeviceSetEccMode(Device device, unsigned mode) { return ask(device, "set", "ecc %u", mode); }

EXPORT Return nvmlDeviceSetAccountingMode(Device device, unsigned mode) {
    if (mode > 1) return invalid(device);
    return ask(device, "set", "accounting %u", mode);
}

EXPORT Return nvmlDeviceClearAccountingPids(Device device) { return ask(device, "set", "accounting-clear"); }

EXPORT Return nvmlDeviceClearEccErrorCounts(Device device, unsigned counter) {
    return ask(device, "set", "ecc-errors %u", counter);
}

/* Only the target can be set. */
EXPORT Return nvmlDeviceSetTemperatureThreshold(Device device, unsigned type, int *celsius) {
    enum { TYPES = 8 };
    View view;
    const Gpu *gpu;
    if (celsius == NULL || *celsius < 0 || type >= TYPES) return invalid(device);
    if (type == THRESHOLD_TARGET) return ask(device, "set", "target-temperature %d", *celsius);
    Return result = session_enter_gpu(device, &view, &gpu, NULL);
    return result != OK ? result : session_leave(NOT_SUPPORTED);
}

/* ---- GPM: the host knows which state is one ---- */

EXPORT Return nvmlGpmSetStreamingEnabled(Device device, unsigned state) {
    return ask(device, "set", "gpm-streaming %u", state);
}

/* ---- Fans: those of a board turn alike ---- */

enum { POLICY_AUTOMATIC = 0, POLICY_MANUAL = 1 };

EXPORT Return nvmlDeviceSetFanSpeed_v2(Device device, unsigned fan, unsigned speed) {
    if (fan >= FANS) return invalid(device);
    return ask(device, "set", "fan %u", speed);
}

EXPORT Return nvmlDeviceSetDefaultFanSpeed_v2(Device device, unsigned fan) {
    if (fan >= FANS) return invalid(device);
    return ask(device, "set", "fan");
}

EXPORT Return nvmlDeviceGetFanControlPolicy_v2(Device device, unsigned fan, unsigned *policy) {
    View view;
    const Gpu *gpu;
    Return result = session_enter_gpu(device, &view, &gpu, NULL);
    if (result != OK) return result;
    if (gpu->fan_low < 0) return session_leave(NOT_SUPPORTED);
    if (policy == NULL || fan >= FANS) return session_leave(INVALID_ARGUMENT);
    *policy = gpu->fan_fixed >= 0 ? POLICY_MANUAL : POLICY_AUTOMATIC;
    return session_leave(OK);
}

EXPORT Return nvmlDeviceSetFanControlPolicy(Device device, unsigned fan, unsigned policy) {
    View view;
    const Gpu *gpu;
    Return result = session_enter_gpu(device, &view, &gpu, NULL);
    if (result != OK) return result;
    unsigned speed = (unsigned)fan_now(&view, gpu);
    session_leave(OK);
    if (fan >= FANS || policy > POLICY_MANUAL) return INVALID_ARGUMENT;
    return policy == POLICY_MANUAL ? ask(device, "set", "fan %u", speed) : ask(device, "set", "fan");
}
