/* Load, temperature, power, clocks and the PCIe link. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "getter.h"
#include "now.h"

enum { SAMPLING_US = 167000, PSTATES = 16, PSTATE_UNKNOWN = 32 };

EXPORT Return nvmlDeviceGetUtilizationRates(Device device, Utilization *out) {
    View view;
    const Gpu *gpu;
    Return result = session_enter_gpu(device, &view, &gpu, NULL);
    if (result != OK) return result;
    if (out == NULL) return session_leave(INVALID_ARGUMENT);
    if (gpu->mig_mode) return session_leave(NOT_SUPPORTED); /* says the API's reference of all five */
    const Span *span = span_now(&view, gpu);
    *out = (Utilization){(unsigned)span->utilization, (unsigned)span->memory_utilization};
    return session_leave(OK);
}

PAIR_IF(nvmlDeviceGetEncoderUtilization, unsigned, !gpu->mig_mode, 0, SAMPLING_US)
PAIR_IF(nvmlDeviceGetDecoderUtilization, unsigned, !gpu->mig_mode, 0, SAMPLING_US)
PAIR_IF(nvmlDeviceGetJpgUtilization, unsigned, gpu->architecture >= ARCH_TURING && !gpu->mig_mode, 0, SAMPLING_US)
PAIR_IF(nvmlDeviceGetOfaUtilization, unsigned, gpu->architecture >= ARCH_TURING && !gpu->mig_mode, 0, SAMPLING_US)

EXPORT Return nvmlDeviceGetEncoderCapacity(Device device, unsigned type, unsigned *capacity) {
    View view;
    const Gpu *gpu;
    Return result = session_enter_gpu(device, &view, &gpu, NULL);
    if (result != OK) return result;
    if (capacity == NULL || type > 2) return session_leave(INVALID_ARGUMENT);
    *capacity = 100;
    return session_leave(OK);
}

static Return no_sessions(Device device, unsigned *one, unsigned *two, unsigned *three) {
    View view;
    const Gpu *gpu;
    Return result = session_enter_gpu(device, &view, &gpu, NULL);
    if (result != OK) return result;
    if (!one || !two || !three) return session_leave(INVALID_ARGUMENT);
    *one = *two = *three = 0;
    return session_leave(OK);
}

EXPORT Return nvmlDeviceGetEncoderStats(Device device, unsigned *sessions, unsigned *fps, unsigned *latency) {
    return no_sessions(device, sessions, fps, latency);
}

EXPORT Return nvmlDeviceGetFBCStats(Device device, FbcStats *stats) {
    if (stats == NULL) return INVALID_ARGUMENT;
    return no_sessions(device, &stats->sessions, &stats->fps, &stats->latency);
}

/* ---- Temperature ---- */

static Return temperature_of(Device device, unsigned sensor, int *out) {
    View view;
    const Gpu *gpu;
    Return result = session_enter_gpu(device, &view, &gpu, NULL);
    if (result != OK) return result;
    if (out == NULL || sensor != 0) return session_leave(INVALID_ARGUMENT);
    *out = (int)temperature_now(&view, gpu);
    return session_leave(OK);
}

EXPORT Return nvmlDeviceGetTemperature(Device device, unsigned sensor, unsigned *out) {
    return temperature_of(device, sensor, (int *)out);
}

EXPORT Return nvmlDeviceGetTemperatureV(Device device, TemperatureV *out) {
    if (out == NULL) return INVALID_ARGUMENT;
    if (out->version != STRUCT_VERSION(*out, 1)) return VERSION_MISMATCH;
    return temperature_of(device, out->sensor, &out->temperature);
}

VERSIONED_IF(nvmlDeviceGetMarginTemperature, MarginTemperature, gpu->architecture >= ARCH_ADA,
             out->margin = (int)(gpu->slowdown_temperature - temperature_now(&view, gpu)))

/* What "acoustic" thresholds are: the target that users set, and its bounds. */
static long long target_of(const Gpu *gpu, unsigned type) {
    static const char *const KEYS[] = {"target_temperature_min", "target_temperature", "target_temperature_max"};
    const char *text = detail_text(gpu, KEYS[type - THRESHOLD_TARGET_MIN]);
    return text == NULL ? -1 : strtoll(text, NULL, 10);
}

EXPORT Return nvmlDeviceGetTemperatureThreshold(Device device, unsigned type, unsigned *out) {
    View view;
    const Gpu *gpu;
    Return result = session_enter_gpu(device, &view, &gpu, NULL);
    if (result != OK) return result;
    if (out == NULL || type > 7) return session_leave(INVALID_ARGUMENT);
    long long at = -1;
    if (type == THRESHOLD_SHUTDOWN) at = gpu->shutdown_temperature;
    if (type == THRESHOLD_SLOWDOWN) at = gpu->slowdown_temperature;
    if (type == THRESHOLD_GPU_MAX) at = gpu->max_temperature;
    if (type == THRESHOLD_MEMORY_MAX && gpu->memory_warmer >= 0) at = gpu->memory_max_temperature;
    if (type >= THRESHOLD_TARGET_MIN && type <= THRESHOLD_TARGET_MAX) at = target_of(gpu, type);
    if (at < 0) return session_leave(NOT_SUPPORTED);
    *out = (unsigned)at;
    return session_leave(OK);
}

EXPORT Return nvmlDeviceGetThermalSettings(Device device, unsigned sensor, ThermalSettings *out) {
    enum { INTERNAL_SENSOR = 1, TARGET_GPU = 1, ALL_SENSORS = 15 };
    View view;
    const Gpu *gpu;
    Return result = session_enter_gpu(device, &view, &gpu, NULL);
    if (result != OK) return result;
    if (out == NULL || (sensor != 0 && sensor != ALL_SENSORS)) return session_leave(INVALID_ARGUMENT);
    memset(out, 0, sizeof *out);
    out->count = 1;
    out->sensor[0].controller = INTERNAL_SENSOR;
    out->sensor[0].max = (int)gpu->shutdown_temperature;
    out->sensor[0].current = (int)temperature_now(&view, gpu);
    out->sensor[0].target = TARGET_GPU;
    return session_leave(OK);
}

/* ---- Fans ---- */

GETTER_IF(nvmlDeviceGetFanSpeed, unsigned, gpu->fan_low >= 0, fan_now(&view, gpu))
GETTER(nvmlDeviceGetNumFans, unsigned, gpu->fan_low >= 0 ? FANS : 0)
PAIR_IF(nvmlDeviceGetMinMaxFanSpeed, unsigned, gpu->fan_low >= 0, gpu->fan_low, 100)

static Return one_fan(Device device, unsigned fan, unsigned *out) {
    View view;
    const Gpu *gpu;
    Return result = session_enter_gpu(device, &view, &gpu, NULL);
    if (result != OK) return result;
    if (gpu->fan_low < 0) return session_leave(NOT_SUPPORTED);
    if (out == NULL || fan >= FANS) return session_leave(INVALID_ARGUMENT);
    *out = (unsigned)fan_now(&view, gpu);
    return session_leave(OK);
}

EXPORT Return nvmlDeviceGetFanSpeed_v2(Device device, unsigned fan, unsigned *out) { return one_fan(device, fan, out); }
EXPORT Return nvmlDeviceGetTargetFanSpeed(Device device, unsigned fan, unsigned *out) {
    return one_fan(device, fan, out);
}

/* ---- Power ---- */

GETTER(nvmlDeviceGetPowerUsage, unsigned, span_now(&view, gpu)->power)
GETTER(nvmlDeviceGetPowerManagementLimit, unsigned, gpu->power_limit)
GETTER(nvmlDeviceGetPowerManagementDefaultLimit, unsigned, gpu->power_default)
GETTER(nvmlDeviceGetEnforcedPowerLimit, unsigned, gpu->power_limit)
GETTER(nvmlDeviceGetPowerManagementMode, unsigned, 1)
GETTER(nvmlDeviceGetTotalEnergyConsumption, unsigned long long, energy_now(&view, gpu))
PAIR_IF(nvmlDeviceGetPowerManagementLimitConstraints, unsigned, 1, gpu->power_min, gpu->power_max)

/* ---- Performance states and clocks ---- */

GETTER(nvmlDeviceGetPerformanceState, unsigned, span_now(&view, gpu)->pstate)
GETTER(nvmlDeviceGetPowerState, unsigned, span_now(&view, gpu)->pstate)
GETTER(nvmlDeviceGetCurrentClocksEventReasons, unsigned long long, span_now(&view, gpu)->reasons)
GETTER(nvmlDeviceGetCurrentClocksThrottleReasons, unsigned long long, span_now(&view, gpu)->reasons)
GETTER(nvmlDeviceGetSupportedClocksEventReasons, unsigned long long, 0x1FF)
GETTER(nvmlDeviceGetSupportedClocksThrottleReasons, unsigned long long, 0x1FF)
GETTER(nvmlDeviceGetAdaptiveClockInfoStatus, unsigned, 1)

EXPORT Return nvmlDeviceGetSupportedPerformanceStates(Device device, unsigned *out, unsigned size) {
    View view;
    const Gpu *gpu;
    Return result = session_enter_gpu(device, &view, &gpu, NULL);
    if (result != OK) return result;
    if (out == NULL) return session_leave(INVALID_ARGUMENT);
    unsigned count = span_now(&view, gpu)->pstate == 8 || gpu->fan_low >= 0 ? 2 : 1;
    if (size / sizeof *out < count) return session_leave(INSUFFICIENT_SIZE);
    for (unsigned i = 0; i < size / sizeof *out; i++) out[i] = i == 0 ? 0 : i < count ? 8 : PSTATE_UNKNOWN;
    return session_leave(OK);
}

EXPORT Return nvmlDeviceGetDynamicPstatesInfo(Device device, DynamicPstates *out) {
    View view;
    const Gpu *gpu;
    Return result = session_enter_gpu(device, &view, &gpu, NULL);
    if (result != OK) return result;
    if (out == NULL) return session_leave(INVALID_ARGUMENT);
    memset(out, 0, sizeof *out);
    out->utilization[0].present = out->utilization[1].present = 1;
    const Span *span = span_now(&view, gpu);
    out->utilization[0].percent = (unsigned)span->utilization;
    out->utilization[1].percent = (unsigned)span->memory_utilization;
    return session_leave(OK);
}

static long long clock_now(const View *view, const Gpu *gpu, unsigned type) {
    const Span *span = span_now(view, gpu);
    const long long now[] = {span->sm_clock, span->sm_clock, span->memory_clock, span->video_clock};
    return now[type];
}

static long long clock_max(const View *view, const Gpu *gpu, unsigned type) {
    const long long max[] = {gpu->max_sm_clock, gpu->max_sm_clock, gpu->max_memory_clock, gpu->max_video_clock};
    return max[type];
}

static Return clock_of(Device device, unsigned type, unsigned *out,
                       long long (*pick)(const View *, const Gpu *, unsigned)) {
    View view;
    const Gpu *gpu;
    Return result = session_enter_gpu(device, &view, &gpu, NULL);
    if (result != OK) return result;
    if (out == NULL || type > CLOCK_VIDEO) return session_leave(INVALID_ARGUMENT);
    *out = (unsigned)pick(&view, gpu, type);
    return session_leave(OK);
}

EXPORT Return nvmlDeviceGetClockInfo(Device device, unsigned type, unsigned *out) {
    return clock_of(device, type, out, clock_now);
}
EXPORT Return nvmlDeviceGetMaxClockInfo(Device device, unsigned type, unsigned *out) {
    return clock_of(device, type, out, clock_max);
}
EXPORT Return nvmlDeviceGetMaxCustomerBoostClock(Device device, unsigned type, unsigned *out) {
    return clock_of(device, type, out, clock_max);
}

static long long clock_wanted(const View *view, const Gpu *gpu, unsigned type) {
    return type == CLOCK_MEMORY ? gpu->application_memory_clock : gpu->application_sm_clock;
}

/* Application clocks are of the graphics and memory domains of boards for data centres. */
static Return application_clock(Device device, unsigned type, unsigned *out,
                                long long (*pick)(const View *, const Gpu *, unsigned)) {
    View view;
    const Gpu *gpu;
    Return result = session_enter_gpu(device, &view, &gpu, NULL);
    if (result != OK) return result;
    if (out == NULL || type > CLOCK_VIDEO) return session_leave(INVALID_ARGUMENT);
    if (gpu->fan_low >= 0 || type == CLOCK_VIDEO) return session_leave(NOT_SUPPORTED);
    *out = (unsigned)pick(&view, gpu, type);
    return session_leave(OK);
}

EXPORT Return nvmlDeviceGetApplicationsClock(Device device, unsigned type, unsigned *out) {
    return application_clock(device, type, out, clock_wanted);
}
EXPORT Return nvmlDeviceGetDefaultApplicationsClock(Device device, unsigned type, unsigned *out) {
    return application_clock(device, type, out, clock_max);
}

EXPORT Return nvmlDeviceGetClock(Device device, unsigned type, unsigned which, unsigned *out) {
    enum { CURRENT = 0, TARGET = 1, DEFAULT = 2, BOOST = 3 };
    if (which == CURRENT) return clock_of(device, type, out, clock_now);
    if (which == TARGET || which == DEFAULT)
        return application_clock(device, type, out, which == TARGET ? clock_wanted : clock_max);
    return which == BOOST ? clock_of(device, type, out, clock_max) : INVALID_ARGUMENT;
}

EXPORT Return nvmlDeviceGetMinMaxClockOfPState(Device device, unsigned type, unsigned pstate, unsigned *low,
                                               unsigned *high) {
    View view;
    const Gpu *gpu;
    Return result = session_enter_gpu(device, &view, &gpu, NULL);
    if (result != OK) return result;
    if (!low || !high || type > CLOCK_VIDEO || pstate >= PSTATES) return session_leave(INVALID_ARGUMENT);
    if (pstate != 0) return session_leave(NOT_SUPPORTED);
    *high = (unsigned)clock_max(&view, gpu, type);
    *low = type == CLOCK_MEMORY ? *high : *high / 8;
    return session_leave(OK);
}

/* Falling from `top` by `step`, not below `bottom`. */
static Return ladder(unsigned top, unsigned bottom, unsigned step, unsigned *count, unsigned *out) {
    unsigned there = 1 + (top > bottom ? (top - bottom) / step : 0), room = *count;
    *count = there;
    if (out == NULL || room < there) return INSUFFICIENT_SIZE;
    for (unsigned i = 0; i < there; i++) out[i] = top - i * step;
    return OK;
}

EXPORT Return nvmlDeviceGetSupportedMemoryClocks(Device device, unsigned *count, unsigned *out) {
    View view;
    const Gpu *gpu;
    Return result = session_enter_gpu(device, &view, &gpu, NULL);
    if (result != OK) return result;
    if (count == NULL) return session_leave(INVALID_ARGUMENT);
    unsigned top = (unsigned)gpu->max_memory_clock;
    return session_leave(ladder(top, top, 1, count, out));
}

EXPORT Return nvmlDeviceGetSupportedGraphicsClocks(Device device, unsigned memory_clock, unsigned *count, unsigned *out) {
    enum { STEP = 15 };
    View view;
    const Gpu *gpu;
    Return result = session_enter_gpu(device, &view, &gpu, NULL);
    if (result != OK) return result;
    if (count == NULL) return session_leave(INVALID_ARGUMENT);
    if (memory_clock != (unsigned)gpu->max_memory_clock) return session_leave(NOT_FOUND);
    unsigned top = (unsigned)gpu->max_sm_clock % 100000;
    return session_leave(ladder(top, top / 8, STEP, count, out));
}

EXPORT Return nvmlDeviceGetViolationStatus(Device device, unsigned policy, Violation *out) {
    enum { POWER = 0, THERMAL = 1, LOCKED = 10, POLICIES = 12 };
    View view;
    const Gpu *gpu;
    Return result = session_enter_gpu(device, &view, &gpu, NULL);
    if (result != OK) return result;
    if (out == NULL || policy >= POLICIES) return session_leave(INVALID_ARGUMENT);
    Totals totals = totals_now(&view, gpu);
    long long held = policy == POWER     ? totals.capped
                     : policy == THERMAL ? totals.hot + totals.cooled
                     : policy == LOCKED  ? totals.locked
                                         : 0;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    unsigned long long us = (unsigned long long)now.tv_sec * 1000000ull + (unsigned long long)now.tv_nsec / 1000;
    *out = (Violation){us, (unsigned long long)held};
    return session_leave(OK);
}

/* ---- PCIe ---- */

static unsigned lane_mbps(long long gen) {
    const unsigned speeds[] = {0, 2500, 5000, 8000, 16000, 32000, 64000};
    return gen >= 0 && gen < 7 ? speeds[gen] : 0;
}

GETTER(nvmlDeviceGetMaxPcieLinkGeneration, unsigned, gpu->max_pcie_gen)
GETTER(nvmlDeviceGetGpuMaxPcieLinkGeneration, unsigned, gpu->max_pcie_gen)
GETTER(nvmlDeviceGetMaxPcieLinkWidth, unsigned, gpu->max_pcie_width)
GETTER(nvmlDeviceGetCurrPcieLinkGeneration, unsigned, gpu->pcie_gen)
GETTER(nvmlDeviceGetCurrPcieLinkWidth, unsigned, gpu->pcie_width)
GETTER(nvmlDeviceGetPcieLinkMaxSpeed, unsigned, gpu->max_pcie_gen)
GETTER(nvmlDeviceGetPcieSpeed, unsigned, lane_mbps(gpu->pcie_gen))
GETTER(nvmlDeviceGetPcieReplayCounter, unsigned, gpu->pcie_replays)

/* Kilobytes per second, following the load. */
EXPORT Return nvmlDeviceGetPcieThroughput(Device device, unsigned counter, unsigned *out) {
    View view;
    const Gpu *gpu;
    Return result = session_enter_gpu(device, &view, &gpu, NULL);
    if (result != OK) return result;
    if (out == NULL || counter > 1) return session_leave(INVALID_ARGUMENT);
    *out = (unsigned)span_now(&view, gpu)->pcie;
    return session_leave(OK);
}
