/* Memory, its errors, and the processes that use it. */
#include <string.h>
#include <time.h>

#include "getter.h"
#include "mig.h"
#include "now.h"

static const unsigned long long MIB = 1 << 20;

static Return memory_of(Device device, Memory2 *told) {
    ENTER_DEVICE(device, NULL);
    const MigInstance *instance = mig ? instance_of(gpu, mig->instance) : NULL;
    if (instance != NULL) {
        told->total = instance_total(&view, gpu, instance);
        told->reserved = 0;
        told->used = instance_used(gpu, instance);
        if (told->used > told->total) told->used = told->total;
        told->free = told->total - told->used;
        return session_leave(OK);
    }
    told->total = (unsigned long long)gpu->memory_total;
    told->reserved = (unsigned long long)gpu->memory_reserved;
    told->used = (unsigned long long)gpu->memory_used;
    told->free = told->total - told->reserved - told->used;
    return session_leave(OK);
}

/* The first version counts what is reserved as used. */
EXPORT Return nvmlDeviceGetMemoryInfo(Device device, Memory *memory) {
    Memory2 told;
    if (memory == NULL) return INVALID_ARGUMENT;
    Return result = memory_of(device, &told);
    if (result == OK) *memory = (Memory){told.total, told.free, told.used + told.reserved};
    return result;
}

EXPORT Return nvmlDeviceGetMemoryInfo_v2(Device device, Memory2 *memory) {
    Memory2 told;
    if (memory == NULL) return INVALID_ARGUMENT;
    if (memory->version != STRUCT_VERSION(*memory, 2)) return VERSION_MISMATCH;
    Return result = memory_of(device, &told);
    told.version = memory->version;
    if (result == OK) *memory = told;
    return result;
}

/* The units of memory of the profile that takes all of it. */
static unsigned long long units_of(const View *view, const Gpu *gpu) {
    long long most = 1;
    for (size_t i = 0; i < view->state->mig.profile_count; i++) {
        const MigProfile *one = &view->state->mig.profiles[i];
        if (one->table == gpu->mig_model && one->size > most) most = one->size;
    }
    return (unsigned long long)most;
}

EXPORT Return nvmlDeviceGetBAR1MemoryInfo(Device device, Bar1Memory *memory) {
    ENTER_DEVICE(device, NULL);
    if (memory == NULL) return session_leave(INVALID_ARGUMENT);
    unsigned long long total = (unsigned long long)gpu->bar1_total, used = (unsigned long long)gpu->bar1_used;
    if (mig != NULL) { /* its share, of which the driver itself has one MiB */
        total = total * (unsigned long long)instance_of(gpu, mig->instance)->size / units_of(&view, gpu) - MIB;
        used = 0;
    }
    if (used > total) used = total;
    *memory = (Bar1Memory){total, total - used, used};
    return session_leave(OK);
}

/* ---- ECC ---- */

enum { CORRECTED = 0, VOLATILE = 0 };
enum { LOCATION_L2 = 1, LOCATION_MEMORY = 2, LOCATION_REGISTERS = 3, LOCATION_SRAM = 7, LOCATION_COUNT = 8 };

PAIR_IF(nvmlDeviceGetEccMode, unsigned, gpu->ecc_mode >= 0, gpu->ecc_mode, gpu->ecc_pending)
GETTER_IF(nvmlDeviceGetDefaultEccMode, unsigned, gpu->ecc_mode >= 0, 1)

static unsigned long long ecc_count(const Gpu *gpu, unsigned error, unsigned counter) {
    long long count = counter == VOLATILE
                          ? (error == CORRECTED ? gpu->ecc_volatile_corrected : gpu->ecc_volatile_uncorrected)
                          : (error == CORRECTED ? gpu->ecc_aggregate_corrected : gpu->ecc_aggregate_uncorrected);
    return (unsigned long long)count;
}

static Return enter_ecc(Device device, unsigned error, unsigned counter, const void *out, const Gpu **gpu) {
    View view;
    Return result = session_enter_gpu(device, &view, gpu, NULL);
    if (result != OK) return result;
    if (out == NULL || error > 1 || counter > 1) return session_leave(INVALID_ARGUMENT);
    return (*gpu)->ecc_mode == 1 ? OK : session_leave(NOT_SUPPORTED);
}

EXPORT Return nvmlDeviceGetTotalEccErrors(Device device, unsigned error, unsigned counter, unsigned long long *count) {
    const Gpu *gpu;
    Return result = enter_ecc(device, error, counter, count, &gpu);
    if (result != OK) return result;
    *count = ecc_count(gpu, error, counter);
    return session_leave(OK);
}

/* All errors are counted in the device's memory. Of a MIG device, the API reference has only the uncorrectable errors
 * of its SRAM since the driver was loaded. */
EXPORT Return nvmlDeviceGetMemoryErrorCounter(Device device, unsigned error, unsigned counter, unsigned location,
                                              unsigned long long *count) {
    ENTER_DEVICE(device, NULL);
    if (count == NULL || error > 1 || counter > 1 || location >= LOCATION_COUNT) return session_leave(INVALID_ARGUMENT);
    int told = mig == NULL || (error != CORRECTED && counter == VOLATILE && location == LOCATION_SRAM);
    if (gpu->ecc_mode != 1 || !told) return session_leave(NOT_SUPPORTED);
    *count = location == LOCATION_MEMORY ? ecc_count(gpu, error, counter) : 0;
    return session_leave(OK);
}

EXPORT Return nvmlDeviceGetDetailedEccErrors(Device device, unsigned error, unsigned counter, EccDetail *detail) {
    const Gpu *gpu;
    Return result = enter_ecc(device, error, counter, detail, &gpu);
    if (result != OK) return result;
    *detail = (EccDetail){0, 0, ecc_count(gpu, error, counter), 0};
    return session_leave(OK);
}

static int retires_pages(const Gpu *gpu) { return gpu->ecc_mode >= 0 && gpu->architecture < ARCH_AMPERE; }
static int remaps_rows(const Gpu *gpu) { return gpu->ecc_mode >= 0 && gpu->architecture >= ARCH_AMPERE; }

/* Before Ampere each uncorrectable error costs a page of 4 KiB, up to a limit, once the driver is loaded anew. */
unsigned pages_retired(const Gpu *gpu) {
    enum { MOST = 64 };
    if (!retires_pages(gpu) || gpu->remapped_rows < 0) return 0;
    return gpu->remapped_rows < MOST ? (unsigned)gpu->remapped_rows : MOST; /* errors over its life, as rows are */
}

GETTER_IF(nvmlDeviceGetRetiredPagesPendingStatus, unsigned, retires_pages(gpu), gpu->ecc_volatile_uncorrected > 0)

/* An address of the board that stays the same for the same board and number. */
static unsigned long long page_address(const Gpu *gpu, unsigned number) {
    enum { PAGE_BITS = 12 };
    unsigned long long hash = 14695981039346656037ull + number;
    for (const char *c = gpu->uuid; *c; c++) hash = (hash ^ (unsigned char)*c) * 1099511628211ull;
    unsigned long long pages = (unsigned long long)gpu->memory_total >> PAGE_BITS;
    return pages ? hash % pages << PAGE_BITS : 0;
}

/* When a page was retired is not known: 0. Without a buffer their number alone is told. */
static Return retired_pages(Device device, unsigned cause, unsigned *count, unsigned long long *pages,
                            unsigned long long *times) {
    enum { SINGLE_BIT = 0, DOUBLE_BIT = 1 };
    View view;
    const Gpu *gpu;
    Return result = session_enter_gpu(device, &view, &gpu, NULL);
    if (result != OK) return result;
    if (count == NULL || cause > DOUBLE_BIT) return session_leave(INVALID_ARGUMENT);
    if (!retires_pages(gpu)) return session_leave(NOT_SUPPORTED);
    unsigned room = *count;
    *count = cause == DOUBLE_BIT ? pages_retired(gpu) : 0;
    if (pages == NULL) return session_leave(OK);
    if (*count > room) return session_leave(INSUFFICIENT_SIZE);
    for (unsigned i = 0; i < *count; i++) {
        pages[i] = page_address(gpu, i);
        if (times != NULL) times[i] = 0;
    }
    return session_leave(OK);
}

EXPORT Return nvmlDeviceGetRetiredPages(Device device, unsigned cause, unsigned *count, unsigned long long *pages) {
    return retired_pages(device, cause, count, pages, NULL);
}

EXPORT Return nvmlDeviceGetRetiredPages_v2(Device device, unsigned cause, unsigned *count, unsigned long long *pages,
                                           unsigned long long *times) {
    return retired_pages(device, cause, count, pages, times);
}

EXPORT Return nvmlDeviceGetRemappedRows(Device device, unsigned *corrected, unsigned *uncorrected, unsigned *pending,
                                        unsigned *failed) {
    View view;
    const Gpu *gpu;
    Return result = session_enter_gpu(device, &view, &gpu, NULL);
    if (result != OK) return result;
    if (!corrected || !uncorrected || !pending || !failed) return session_leave(INVALID_ARGUMENT);
    /* Not while MIG divides it (API reference; captures of an H100). */
    if (!remaps_rows(gpu) || (gpu->mig_mode && gpu->mig.instance_count > 0)) return session_leave(NOT_SUPPORTED);
    *corrected = 0;
    *uncorrected = (unsigned)gpu->remapped_rows;
    *pending = (unsigned)gpu->remap_pending;
    *failed = (unsigned)gpu->remap_failed;
    return session_leave(OK);
}

EXPORT Return nvmlDeviceGetRowRemapperHistogram(Device device, RemapperHistogram *histogram) {
    enum { HBM_BANKS = 640, GDDR_BANKS = 192, HBM_BITS = 2048 };
    View view;
    const Gpu *gpu;
    Return result = session_enter_gpu(device, &view, &gpu, NULL);
    if (result != OK) return result;
    if (histogram == NULL) return session_leave(INVALID_ARGUMENT);
    if (!remaps_rows(gpu)) return session_leave(NOT_SUPPORTED);
    unsigned banks = gpu->bus_width >= HBM_BITS ? HBM_BANKS : GDDR_BANKS;
    unsigned used = gpu->remapped_rows < banks ? (unsigned)gpu->remapped_rows : banks; /* a row of each */
    *histogram = (RemapperHistogram){banks - used, used, 0, 0, 0};
    return session_leave(OK);
}

/* ---- Processes ---- */

/* Whether a MIG device has it; `mig` NULL: any. */
static int runs_on(const Process *process, const MigDevice *mig) {
    if (mig == NULL) return 1;
    return (long long)process->gpu_instance == mig->instance && (long long)process->compute_instance == mig->id;
}

/* The old layout has no instances; size tells which one is filled. */
static Return processes_of(Device device, char kind, unsigned *count, void *out, size_t size) {
    ENTER_DEVICE(device, NULL);
    if (count == NULL || (*count > 0 && out == NULL)) return session_leave(INVALID_ARGUMENT);
    unsigned there = 0, room = *count;
    for (size_t i = 0; i < gpu->process_count; i++) {
        const Process *process = &gpu->processes[i];
        if (process->kind != kind || !runs_on(process, mig)) continue;
        ProcessInfo info;
        memset(&info, 0, sizeof info);
        info.pid = process->pid;
        info.used_memory = process->used;
        info.gpu_instance = process->gpu_instance;
        info.compute_instance = process->compute_instance;
        if (there < room) memcpy((char *)out + there * size, &info, size);
        there++;
    }
    *count = there;
    return session_leave(there > room ? INSUFFICIENT_SIZE : OK);
}

#define PROCESSES(name, kind)                                                                     \
    EXPORT Return name(Device device, unsigned *count, ProcessInfo1 *out) {                       \
        return processes_of(device, kind, count, out, sizeof *out);                               \
    }                                                                                             \
    EXPORT Return name##_v2(Device device, unsigned *count, ProcessInfo *out) {                   \
        return processes_of(device, kind, count, out, sizeof *out);                               \
    }                                                                                             \
    EXPORT Return name##_v3(Device device, unsigned *count, ProcessInfo *out) {                   \
        return processes_of(device, kind, count, out, sizeof *out);                               \
    }

PROCESSES(nvmlDeviceGetComputeRunningProcesses, 'C')
PROCESSES(nvmlDeviceGetGraphicsRunningProcesses, 'G')
PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses, 'M')

EXPORT Return nvmlDeviceGetRunningProcessDetailList(Device device, ProcessDetailList *list) {
    static const char KINDS[] = {'C', 'G', 'M'};
    View view;
    const Gpu *gpu;
    Return result = session_enter_gpu(device, &view, &gpu, NULL);
    if (result != OK) return result;
    if (list == NULL || list->mode >= sizeof KINDS) return session_leave(INVALID_ARGUMENT);
    if (list->version != STRUCT_VERSION(*list, 1)) return session_leave(VERSION_MISMATCH);
    unsigned there = 0, room = list->processes ? list->count : 0;
    for (size_t i = 0; i < gpu->process_count; i++) {
        const Process *process = &gpu->processes[i];
        if (process->kind != KINDS[list->mode]) continue;
        if (there < room)
            list->processes[there] =
                (ProcessDetail){process->pid, process->used, process->gpu_instance, process->compute_instance, 0};
        there++;
    }
    list->count = there;
    return session_leave(there > room ? INSUFFICIENT_SIZE : OK);
}

EXPORT Return nvmlDeviceGetProcessUtilization(Device device, ProcessSample *samples, unsigned *count,
                                              unsigned long long since) {
    View view;
    const Gpu *gpu;
    Return result = session_enter_gpu(device, &view, &gpu, NULL);
    if (result != OK) return result;
    if (count == NULL) return session_leave(INVALID_ARGUMENT);
    unsigned there = (unsigned)gpu->process_count, room = samples ? *count : 0;
    *count = there;
    if (there == 0) return session_leave(NOT_FOUND);
    if (there > room) return session_leave(INSUFFICIENT_SIZE);
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    unsigned long long time = (unsigned long long)now.tv_sec * 1000000 + (unsigned long long)now.tv_nsec / 1000;
    unsigned busy = (unsigned)span_now(&view, gpu)->utilization;
    if (busy == 0) busy = 1;
    for (unsigned i = 0; i < there; i++)
        samples[i] = (ProcessSample){gpu->processes[i].pid, time, share_now(&view, gpu, i),
                                     share_now(&view, gpu, i) * (unsigned)span_now(&view, gpu)->memory_utilization /
                                         busy, 0, 0};
    return session_leave(OK);
}
