/* nvmlDeviceGetFieldValues: many values in one call, each with its own result. */
#include <time.h>

#include "getter.h"
#include "now.h"

typedef struct {
    Return result;
    int wide; /* unsigned long long instead of unsigned int */
    long long value;
} Told;

static Told number(long long value) { return (Told){OK, 0, value}; }
static Told wide(long long value) { return (Told){OK, 1, value}; }
static Told none(void) { return (Told){NOT_SUPPORTED, 0, 0}; }

static Told ecc_field(const Gpu *gpu, unsigned field) {
    if (gpu->ecc_mode != 1) return none();
    switch (field) {
    case 3: case 11: return wide(gpu->ecc_volatile_corrected);
    case 4: case 12: return wide(gpu->ecc_volatile_uncorrected);
    case 5: case 22: return wide(gpu->ecc_aggregate_corrected);
    case 6: case 23: return wide(gpu->ecc_aggregate_uncorrected);
    default: return wide(0);
    }
}

static unsigned link_count(const View *view, size_t place) {
    unsigned total = 0;
    if (view->state->gpus[place].link_ends != NULL) return (unsigned)view->state->gpus[place].link_end_count;
    for (size_t other = 0; other < view->state->gpu_count && view->state->topology; other++) {
        int told = view->state->topology[place * view->state->gpu_count + other];
        if (told >= 0) continue;
        if (view->state->switched) return (unsigned)-told;
        total += (unsigned)-told;
    }
    return total < NVLINK_MAX ? total : NVLINK_MAX;
}

/* The numbers are those of the API reference's list of field identifiers. */
static Told told_of(const View *view, const Gpu *gpu, size_t place, unsigned field) {
    int volta_or_turing = gpu->ecc_mode >= 0 && gpu->architecture < ARCH_AMPERE;
    int remaps = gpu->ecc_mode >= 0 && gpu->architecture >= ARCH_AMPERE;
    if ((field >= 3 && field <= 6) || (field >= 11 && field <= 17) || (field >= 22 && field <= 28))
        return ecc_field(gpu, field);
    if ((field >= 29 && field <= 31) || field == 92 || field == 93) return volta_or_turing ? wide(0) : none();
    if (field >= 142 && field <= 145) {
        const long long remapped[] = {0, gpu->remapped_rows, gpu->remap_pending, gpu->remap_failed};
        return remaps ? number(remapped[field - 142]) : none();
    }
    switch (field) {
    case 1: return gpu->ecc_mode >= 0 ? number(gpu->ecc_mode) : none();
    case 2: return gpu->ecc_mode >= 0 ? number(gpu->ecc_pending) : none();
    case 82: return gpu->memory_warmer >= 0 ? number(memory_temperature_now(view, gpu)) : none();
    case 83: case 191: return wide((long long)energy_now(view, gpu));
    case 91: return number(link_count(view, place));
    case 94: return number(gpu->pcie_replays);
    case 95: return number(0);
    case 147: return number(view->state->switched ? link_count(view, place) : 0);
    case 185: case 186: return number(span_now(view, gpu)->power);
    case 187: return number(gpu->power_min);
    case 188: return number(gpu->power_max);
    case 189: return number(gpu->power_default);
    case 190: case 192: return number(gpu->power_limit);
    default: return none();
    }
}

EXPORT Return nvmlDeviceGetFieldValues(Device device, int count, FieldValue *values) {
    View view;
    const Gpu *gpu;
    size_t index;
    struct timespec now;
    Return result = session_enter_gpu(device, &view, &gpu, &index);
    if (result != OK) return result;
    if (values == NULL || count < 1) return session_leave(INVALID_ARGUMENT);
    clock_gettime(CLOCK_REALTIME, &now);
    for (int i = 0; i < count; i++) {
        Told told = told_of(&view, gpu, view.gpus[index], values[i].field);
        values[i].result = told.result;
        if (told.result != OK) continue;
        values[i].timestamp = (long long)now.tv_sec * 1000000 + now.tv_nsec / 1000;
        values[i].latency = 0;
        values[i].type = told.wide ? VALUE_ULL : VALUE_UINT;
        values[i].value.ull = (unsigned long long)told.value;
    }
    return session_leave(OK);
}
