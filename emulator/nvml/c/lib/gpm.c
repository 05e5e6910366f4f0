/* GPU performance monitoring, on Hopper and later: what a load does between two samples. How much of its time a load
 * spends in which unit is assumed: half of it in the tensor cores with 16-bit numbers, a tenth in each other unit. */
#include "gpm.h"

#include <stdlib.h>
#include <string.h>

#include "getter.h"
#include "mig.h"
#include "now.h"
#include "nvlink.h"

struct GpmSample {
    struct GpmSample *next;
    char uuid[UUID_SIZE]; /* "" before the first use */
    Totals totals;
    long long at;                                 /* emulated nanoseconds */
    double memory_share;                          /* of the utilisation, what the memory is busy */
    unsigned links, active;                       /* a bit each */
    unsigned long long link_kilobytes;            /* over each link */
    int joined;                                   /* to a processor by NVLink-C2C */
    long long instance;                           /* the serial number of a MIG instance, -1 for the whole GPU */
    double part, size; /* of the whole GPU's load now, what the instance's processes have; of its units, its own */
};

static struct GpmSample *samples;

static struct GpmSample **place_of(GpmSampleHandle sample) {
    struct GpmSample **place = &samples;
    while (*place != NULL && *place != sample) place = &(*place)->next;
    return *place ? place : NULL;
}

void gpm_forget_all(void) {
    while (samples != NULL) {
        struct GpmSample *next = samples->next;
        free(samples);
        samples = next;
    }
}

/* Streaming changes nothing of the samples. */
EXPORT Return nvmlGpmQueryIfStreamingEnabled(Device device, unsigned *state) {
    View view;
    const Gpu *gpu;
    Return result = session_enter_gpu(device, &view, &gpu, NULL);
    if (result != OK) return result;
    const char *text = detail_text(gpu, "gpm_streaming");
    if (state == NULL) return session_leave(INVALID_ARGUMENT);
    if (text == NULL) return session_leave(NOT_SUPPORTED);
    *state = *text == '1';
    return session_leave(OK);
}

EXPORT Return nvmlGpmSampleAlloc(GpmSampleHandle *sample) {
    View view;
    Return result = session_enter(&view);
    if (result != OK) return result;
    if (sample == NULL) return session_leave(INVALID_ARGUMENT);
    struct GpmSample *fresh = calloc(1, sizeof *fresh);
    if (fresh == NULL) return session_leave(OUT_OF_MEMORY);
    fresh->next = samples;
    *sample = samples = fresh;
    return session_leave(OK);
}

EXPORT Return nvmlGpmSampleFree(GpmSampleHandle sample) {
    View view;
    Return result = session_enter(&view);
    if (result == UNINITIALIZED) return result;
    if (result != OK) return OK; /* without a driver there is nothing to keep */
    struct GpmSample **place = place_of(sample);
    if (place == NULL) return session_leave(INVALID_ARGUMENT);
    *place = sample->next;
    free(sample);
    return session_leave(OK);
}

static int is_supported(const Gpu *gpu) { return gpu->architecture >= ARCH_HOPPER; }

static void take(const View *view, const Gpu *gpu, size_t place, struct GpmSample *sample) {
    const Span *span = span_now(view, gpu);
    const char *c2c = detail_text(gpu, "c2c_mode");
    memcpy(sample->uuid, gpu->uuid, sizeof sample->uuid);
    sample->at = emulated_now(view);
    sample->totals = totals_now(view, gpu);
    sample->memory_share = span->utilization > 0 ? (double)span->memory_utilization / (double)span->utilization : 0;
    sample->links = links_of(view, place);
    sample->active = 0;
    for (unsigned link = 0; link < sample->links; link++)
        if (link_active(view, gpu, link)) sample->active |= 1u << link;
    sample->link_kilobytes = link_kilobytes(gpu, sample->totals.traffic);
    sample->joined = c2c != NULL && strcmp(c2c, "Enabled") == 0;
    sample->instance = NO_INSTANCE;
    sample->part = sample->size = 1;
}

/* As `take` left it for the GPU, cut down to one of its instances, which NVLinks do not reach. */
static void cut(const View *view, const Gpu *gpu, const MigInstance *instance, struct GpmSample *sample) {
    const MigProfile *profile = profile_of(view, gpu, instance->profile);
    double mine = 0, all = 0, slices = 1;
    for (size_t i = 0; i < gpu->process_count; i++) {
        unsigned share = share_now(view, gpu, i);
        all += share;
        if (gpu->processes[i].gpu_instance == (unsigned)instance->id) mine += share;
    }
    for (size_t i = 0; i < view->state->mig.profile_count; i++) {
        const MigProfile *other = &view->state->mig.profiles[i];
        if (other->table == gpu->mig_model && (double)other->slices > slices) slices = (double)other->slices;
    }
    sample->instance = instance->serial;
    sample->part = all > 0 ? mine / all : 0;
    sample->size = profile != NULL ? (double)profile->slices / slices : 1;
    sample->links = sample->active = 0;
    sample->joined = 0;
}

/* Enters for a sample of a GPU that has them; anything but OK has left again. `place`: the GPU's in the state. */
static Return enter_sample(Device device, GpmSampleHandle sample, View *view, const Gpu **gpu, size_t *place) {
    size_t index;
    Return result = session_enter_gpu(device, view, gpu, &index);
    if (result != OK) return result;
    if (place_of(sample) == NULL) return session_leave(INVALID_ARGUMENT);
    if (!is_supported(*gpu)) return session_leave(NOT_SUPPORTED);
    *place = view->gpus[index];
    return OK;
}

EXPORT Return nvmlGpmSampleGet(Device device, GpmSampleHandle sample) {
    View view;
    const Gpu *gpu;
    size_t place;
    Return result = enter_sample(device, sample, &view, &gpu, &place);
    if (result != OK) return result;
    take(&view, gpu, place, sample);
    return session_leave(OK);
}

EXPORT Return nvmlGpmMigSampleGet(Device device, unsigned id, GpmSampleHandle sample) {
    View view;
    const Gpu *gpu;
    size_t place;
    Return result = enter_sample(device, sample, &view, &gpu, &place);
    if (result != OK) return result;
    if (!gpu->mig_mode) return session_leave(NOT_SUPPORTED);
    const MigInstance *instance = instance_of(gpu, id);
    if (instance == NULL) return session_leave(NOT_FOUND);
    take(&view, gpu, place, sample);
    cut(&view, gpu, instance, sample);
    return session_leave(OK);
}

EXPORT Return nvmlGpmQueryDeviceSupport(Device device, GpmSupport *support) {
    View view;
    const Gpu *gpu;
    Return result = session_enter_gpu(device, &view, &gpu, NULL);
    if (result != OK) return result;
    if (support == NULL) return session_leave(INVALID_ARGUMENT);
    if (support->version != 1) return session_leave(VERSION_MISMATCH);
    support->supported = is_supported(gpu);
    return session_leave(OK);
}

/* ---- Metrics ---- */

typedef struct {
    double busy, memory;  /* percent */
    double slot, link;    /* MiB/s over PCIe, and over one NVLink */
    const struct GpmSample *end;
} Between;

static const struct {
    unsigned id;
    const char *brief, *name;
    double share; /* of the utilisation */
} UNITS[] = {
    {1, "gr_util", "Graphics engine busy", 1},          {2, "sm_util", "Multiprocessors busy", 1},
    {3, "sm_occupancy", "Warps that are resident", 0.5}, {4, "int_util", "Integer units busy", 0.1},
    {5, "tensor_util", "Tensor cores busy", 0.5},       {6, "dfma_util", "Tensor cores busy, 64-bit numbers", 0},
    {7, "hmma_util", "Tensor cores busy, 16-bit numbers", 0.5}, {9, "imma_util", "Tensor cores busy, integers", 0},
    {11, "fp64_util", "64-bit units busy", 0},          {12, "fp32_util", "32-bit units busy", 0.1},
    {13, "fp16_util", "16-bit units busy", 0.1},
};

static void tell(GpmMetric *metric, double value, const char *brief, const char *name, const char *unit) {
    metric->result = OK;
    metric->value = value;
    metric->info.brief = brief;
    metric->info.name = name;
    metric->info.unit = unit;
}

/* Engines that no load uses: seven decoders, seven for JPEG, one for optical flow. */
static int is_engine(unsigned id) { return (id >= 30 && id <= 36) || (id >= 40 && id <= 46) || id == 50; }

static unsigned bits(unsigned word) {
    unsigned count = 0;
    for (; word; word &= word - 1) count++;
    return count;
}

static void measure(GpmMetric *metric, const Between *between) {
    static const char RATE[] = "MiB/s", PERCENT[] = "%";
    enum { FIRST_LINK = 62, LAST_LINK = 97, FIRST_C2C = 100, LAST_C2C = 143 };
    unsigned id = metric->id, links = between->end->links;
    metric->result = NOT_SUPPORTED;
    for (size_t i = 0; i < sizeof UNITS / sizeof *UNITS; i++)
        if (UNITS[i].id == id) tell(metric, between->busy * UNITS[i].share, UNITS[i].brief, UNITS[i].name, PERCENT);
    if (id == 10) tell(metric, between->memory, "dram_util", "Memory bandwidth in use", PERCENT);
    if (id == 20) tell(metric, between->slot, "pcie_tx", "PCIe traffic sent", RATE);
    if (id == 21) tell(metric, between->slot, "pcie_rx", "PCIe traffic received", RATE);
    if (is_engine(id)) tell(metric, 0, "engine_util", "Engine for media busy", PERCENT);
    if ((id == 60 || id == 61) && links > 0)
        tell(metric, between->link * bits(between->end->active), id == 60 ? "nvlink_rx" : "nvlink_tx",
             id == 60 ? "NVLink traffic received" : "NVLink traffic sent", RATE);
    if (id >= FIRST_LINK && id <= LAST_LINK && (id - FIRST_LINK) / 2 < links) {
        int active = between->end->active >> ((id - FIRST_LINK) / 2) & 1;
        tell(metric, active ? between->link : 0, id % 2 ? "nvlink_lane_tx" : "nvlink_lane_rx",
             id % 2 ? "Traffic of one NVLink sent" : "Traffic of one NVLink received", RATE);
    }
    if (id >= FIRST_C2C && id <= LAST_C2C && between->end->joined)
        tell(metric, 0, "c2c", "Traffic with the joined processor", RATE);
}

EXPORT Return nvmlGpmMetricsGet(GpmMetricsGet *wish) {
    static const double KIB = 1000.0 / 1024 / 1024; /* MiB of a kilobyte */
    View view;
    Return result = session_enter(&view);
    if (result != OK) return result;
    if (wish == NULL) return session_leave(INVALID_ARGUMENT);
    if (wish->version != 1) return session_leave(VERSION_MISMATCH);
    const struct GpmSample *first = wish->first, *second = wish->second;
    if (place_of(wish->first) == NULL || place_of(wish->second) == NULL || wish->count > GPM_METRICS)
        return session_leave(INVALID_ARGUMENT);
    if (first->uuid[0] == 0 || strcmp(first->uuid, second->uuid) != 0 || second->at <= first->at ||
        first->instance != second->instance)
        return session_leave(INVALID_ARGUMENT);
    double passed = (double)(second->at - first->at), seconds = passed / 1e9;
    Between between = {.end = second};
    between.busy = (double)(second->totals.work - first->totals.work) / passed * second->part / second->size;
    if (between.busy > 100) between.busy = 100;
    between.memory = between.busy * second->memory_share;
    between.slot = (double)(second->totals.traffic - first->totals.traffic) * KIB / seconds * second->part;
    between.link = (double)(long long)(second->link_kilobytes - first->link_kilobytes) * KIB / seconds;
    for (unsigned i = 0; i < wish->count; i++) measure(&wish->metrics[i], &between);
    return session_leave(OK);
}
