/* Samples of the last seconds: worked out from the spans that the state tells, taken on a grid of the real time. */
#include <time.h>

#include "getter.h"
#include "now.h"

enum { BUFFER = 120, PERIOD_US = 167000, US_PER_S = 1000000 };
enum { POWER, GPU_LOAD, MEMORY_LOAD, ENCODER, DECODER, SM_CLOCK, MEMORY_CLOCK, MODULE_POWER, JPEG, OPTICAL_FLOW, TYPES };

static unsigned long long real_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (unsigned long long)now.tv_sec * US_PER_S + (unsigned long long)now.tv_nsec / 1000;
}

static unsigned value_of(const Gpu *gpu, const Span *span, unsigned type) {
    switch (type) {
    case POWER: return (unsigned)span->power;
    case GPU_LOAD: return (unsigned)span->utilization;
    case MEMORY_LOAD: return (unsigned)span->memory_utilization;
    case SM_CLOCK: return (unsigned)span->sm_clock;
    case MEMORY_CLOCK: return (unsigned)span->memory_clock;
    default: return 0;
    }
}

/* Without a buffer the longest that there may be. Only those after `since`, in microseconds, oldest first. */
EXPORT Return nvmlDeviceGetSamples(Device device, unsigned type, unsigned long long since, unsigned *kind,
                                   unsigned *count, Sample *samples) {
    View view;
    const Gpu *gpu;
    Return result = session_enter_gpu(device, &view, &gpu, NULL);
    if (result != OK) return result;
    if (count == NULL || kind == NULL || type >= TYPES) return session_leave(INVALID_ARGUMENT);
    if (type == MODULE_POWER || (type >= JPEG && gpu->architecture < ARCH_TURING)) return session_leave(NOT_SUPPORTED);
    *kind = VALUE_UINT;
    unsigned room = *count, there = 0;
    unsigned long long now = real_us(), last = now / PERIOD_US;
    *count = BUFFER;
    if (samples == NULL) return session_leave(OK);
    for (unsigned back = BUFFER; back-- > 0;) there += (last - back) * PERIOD_US > since;
    *count = there;
    if (there == 0) return session_leave(NOT_FOUND);
    if (there > room) return session_leave(INSUFFICIENT_SIZE);
    for (unsigned i = 0; i < there; i++) {
        unsigned long long at = (last - (there - 1 - i)) * PERIOD_US;
        samples[i].timestamp = at;
        samples[i].value.ull = 0;
        samples[i].value.ui = value_of(gpu, span_before(&view, gpu, (long long)(now - at) * 1000), type);
    }
    return session_leave(OK);
}

/* All that use the GPU and were seen after `since`: always, as their shares are looked at when asked for. */
EXPORT Return nvmlDeviceGetProcessesUtilizationInfo(Device device, ProcessShares *out) {
    View view;
    const Gpu *gpu;
    Return result = session_enter_gpu(device, &view, &gpu, NULL);
    if (result != OK) return result;
    if (out == NULL) return session_leave(INVALID_ARGUMENT);
    if (out->version != STRUCT_VERSION(*out, 1)) return session_leave(VERSION_MISMATCH);
    unsigned there = (unsigned)gpu->process_count, room = out->processes ? out->count : 0;
    const Span *span = span_now(&view, gpu);
    unsigned long long now = real_us();
    out->count = there;
    if (there == 0) return session_leave(NOT_FOUND);
    if (there > room) return session_leave(INSUFFICIENT_SIZE);
    for (unsigned i = 0; i < there; i++) {
        unsigned share = share_now(&view, gpu, i);
        unsigned memory = span->utilization > 0 ? share * (unsigned)span->memory_utilization / (unsigned)span->utilization : 0;
        out->processes[i] = (ProcessShare){now, gpu->processes[i].pid, share, memory, 0, 0, 0, 0};
    }
    return session_leave(OK);
}
