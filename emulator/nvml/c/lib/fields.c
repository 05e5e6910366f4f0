/* nvmlDeviceGetFieldValues: many values in one call, each with its own result. The numbers are those of the API
 * reference's list of field identifiers; which of them a generation lacks follows its remarks. */
#include "fields.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "getter.h"
#include "now.h"
#include "nvlink.h"

Told told_number(long long value) { return (Told){OK, VALUE_UINT, value}; }
Told told_wide(long long value) { return (Told){OK, VALUE_ULL, value}; }
Told told_signed(long long value) { return (Told){OK, VALUE_INT, value}; }
Told told_none(void) { return (Told){NOT_SUPPORTED, 0, 0}; }

static Told number_if(int condition, long long value) { return condition ? told_number(value) : told_none(); }
static Told wide_if(int condition, long long value) { return condition ? told_wide(value) : told_none(); }

/* The number that a detail begins with; none without that detail. */
static Told detail_number(const Gpu *gpu, const char *key, Told (*told)(long long)) {
    const char *text = detail_text(gpu, key);
    return text == NULL ? told_none() : told(strtoll(text, NULL, 0));
}

/* Only boards of these generations keep counts by unit; from Ampere on SRAM counts as one. */
static Told ecc_field(const Gpu *gpu, unsigned field) {
    if (gpu->ecc_mode != 1) return told_none();
    switch (field) {
    case 3: case 11: return told_wide(gpu->ecc_volatile_corrected);
    case 4: case 12: return told_wide(gpu->ecc_volatile_uncorrected);
    case 5: case 22: return told_wide(gpu->ecc_aggregate_corrected);
    case 6: case 23: return told_wide(gpu->ecc_aggregate_uncorrected);
    default: return wide_if(gpu->architecture <= ARCH_VOLTA, 0);
    }
}

/* Nanoseconds for which a policy held the clocks back. */
static Told policy_field(const View *view, const Gpu *gpu, unsigned field) {
    Totals totals = totals_now(view, gpu);
    switch (field) {
    case 74: return told_wide(totals.capped);
    case 75: return told_wide(totals.hot + totals.cooled);
    case 269: return told_wide(totals.cooled);
    case 270: return told_wide(totals.hot);
    case 80: return told_wide(totals.locked);
    default: return told_wide(0);
    }
}

/* Of the GPU, or with scope 1 of the module that it shares with a processor. */
static Told power_field(const View *view, const Gpu *gpu, unsigned field, unsigned scope) {
    const char *module = detail_text(gpu, "module_power_limit");
    if (scope > 1) return (Told){INVALID_ARGUMENT, 0, 0};
    if (scope == 1 && module == NULL) return told_none();
    long long most = scope ? strtoll(module, NULL, 10) * 1000 : 0;
    switch (field) {
    case 185: case 186:
        if (field == 185 && detail_text(gpu, "average_power") == NULL) return told_none();
        if (scope == 0 || gpu->power_default <= 0) return told_number(span_now(view, gpu)->power);
        return told_number(span_now(view, gpu)->power * (most / 1000) / (gpu->power_default / 1000));
    case 187: return scope ? told_number(strtoll(detail_text(gpu, "module_power_min"), NULL, 10) * 1000)
                           : told_number(gpu->power_min);
    case 188: return told_number(scope ? most : gpu->power_max);
    case 189: return told_number(scope ? most : gpu->power_default);
    default: return told_number(scope ? most : gpu->power_limit);
    }
}

/* Error counters of the link to the host, from Ampere on, and the bytes over it. */
static Told pcie_field(const View *view, const Gpu *gpu, unsigned field) {
    enum { BYTES_PER_KB = 1000 };
    if (field == 94) return told_number(gpu->pcie_replays);
    if (field == 95) return told_number(0);
    if (gpu->architecture < ARCH_AMPERE) return told_none();
    if (field == 197 || field == 198) return told_wide(totals_now(view, gpu).traffic * BYTES_PER_KB);
    return told_number(0);
}

/* The links to a Grace processor, that never fail. Of its ten, each of two GPUs has half (GB200, as nvidia-smi c2c -s
 * shows them). */
static Told c2c_field(const Gpu *gpu, unsigned field, unsigned scope) {
    enum { LINKS = 5, MBPS = 44712 };
    const char *mode = detail_text(gpu, "c2c_mode");
    if (mode == NULL || strcmp(mode, "Enabled") != 0) return told_none();
    if (field == 170) return told_number(LINKS);
    if (scope >= LINKS) return (Told){INVALID_ARGUMENT, 0, 0};
    if (field == 171) return told_number(1);
    if (field == 172) return told_number(MBPS);
    return field == 234 ? told_number(0) : told_wide(0);
}

/* What atomic operations the slot takes: all but the compare-and-swap of 128 bits. */
static Told atomics_field(const Gpu *gpu) {
    enum { UP_TO_CAS64 = 0x3F };
    return number_if(detail_text(gpu, "atomic_caps") != NULL, UP_TO_CAS64);
}

static Told recovery_field(const Gpu *gpu) {
    static const char *const WORDS[] = {"None", "Reset", "Reboot", "Drain P2P", "Drain and Reset"};
    const char *text = detail_text(gpu, "recovery_action");
    for (unsigned i = 0; text != NULL && i < sizeof WORDS / sizeof *WORDS; i++)
        if (strcmp(WORDS[i], text) == 0) return told_number(i);
    return told_none();
}

/* Only root may look at power smoothing, on the boards that have it. */
static Told smoothing_field(const Gpu *gpu) {
    return (Told){detail_text(gpu, "power_smoothing") != NULL ? NO_PERMISSION : NOT_SUPPORTED, 0, 0};
}

/* Pages go for errors of two bits alone. */
static Told retired_field(const Gpu *gpu, unsigned field) {
    int retires = gpu->ecc_mode >= 0 && gpu->architecture < ARCH_AMPERE;
    if (field == 31 || field == 93) return wide_if(retires, gpu->ecc_volatile_uncorrected > 0);
    return wide_if(retires, field == 30 ? pages_retired(gpu) : 0);
}

static Told rows_field(const Gpu *gpu, unsigned field) {
    const long long remapped[] = {0, gpu->remapped_rows, gpu->remap_pending, gpu->remap_failed};
    return number_if(gpu->ecc_mode >= 0 && gpu->architecture >= ARCH_AMPERE, remapped[field - 142]);
}

static int within(unsigned field, unsigned first, unsigned last) { return field >= first && field <= last; }

static Told told_of(const View *view, const Gpu *gpu, size_t place, unsigned field, unsigned scope) {
    if (within(field, 3, 28)) return ecc_field(gpu, field);
    if (within(field, 29, 31) || field == 92 || field == 93) return retired_field(gpu, field);
    if (within(field, 74, 81) || within(field, 269, 271)) return policy_field(view, gpu, field);
    if (within(field, 142, 145)) return rows_field(gpu, field);
    if (field == 94 || field == 95 || field == 169 || within(field, 173, 183) || field == 197 || field == 198)
        return pcie_field(view, gpu, field);
    if (within(field, 170, 172) || within(field, 231, 234)) return c2c_field(gpu, field, scope);
    if (within(field, 185, 190) || field == 192) return power_field(view, gpu, field, scope);
    if (within(field, 251, 268) || within(field, 275, 288)) return smoothing_field(gpu);
    switch (field) {
    case 1: return number_if(gpu->ecc_mode >= 0, gpu->ecc_mode);
    case 2: return number_if(gpu->ecc_mode >= 0, gpu->ecc_pending);
    case 82: return number_if(gpu->memory_warmer >= 0, memory_temperature_now(view, gpu));
    case 83: case 191: return told_wide((long long)energy_now(view, gpu));
    case 184: case 199: return told_number(gpu->mig_capable && gpu->architecture >= ARCH_HOPPER);
    case 193: return detail_number(gpu, "tlimit_shutdown", told_signed);
    case 194: return detail_number(gpu, "tlimit_slowdown", told_signed);
    case 195: return detail_number(gpu, "tlimit_memory", told_signed);
    case 196: return detail_number(gpu, "tlimit_max", told_signed);
    case 228: case 229: return atomics_field(gpu);
    case 230: return recovery_field(gpu);
    case 274: return detail_number(gpu, "edpp", told_number);
    default: return link_field(view, gpu, place, field, scope);
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
        Told told = told_of(&view, gpu, view.gpus[index], values[i].field, values[i].scope);
        values[i].result = told.result;
        if (told.result != OK) continue;
        values[i].timestamp = (long long)now.tv_sec * 1000000 + now.tv_nsec / 1000;
        values[i].latency = 0;
        values[i].type = told.type;
        values[i].value.ll = told.value;
    }
    return session_leave(OK);
}

/* Errors of the slot's link and of NVLinks: none ever occur, so that none are left to clear. The other fields, energy
 * and traffic among them, cannot be cleared. */
static int is_clearable(unsigned field) {
    return within(field, 32, 59) || within(field, 96, 119) || within(field, 148, 163) || within(field, 173, 183) ||
           within(field, 206, 215) || field == 169 || field == 219 || field == 221;
}

/* The API reference: OK where any of them was cleared. */
EXPORT Return nvmlDeviceClearFieldValues(Device device, int count, FieldValue *values) {
    View view;
    const Gpu *gpu;
    size_t index;
    int cleared = 0;
    Return result = session_enter_gpu(device, &view, &gpu, &index);
    if (result != OK) return result;
    if (values == NULL || count < 1) return session_leave(INVALID_ARGUMENT);
    for (int i = 0; i < count; i++) {
        Told told = told_of(&view, gpu, view.gpus[index], values[i].field, values[i].scope);
        if (told.result == OK && !is_clearable(values[i].field)) told.result = NOT_SUPPORTED;
        if (told.result == OK && !may_set()) told.result = NO_PERMISSION;
        values[i].result = told.result;
        cleared += told.result == OK;
    }
    return session_leave(cleared ? OK : values[0].result);
}
