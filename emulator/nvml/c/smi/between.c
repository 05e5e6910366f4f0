#include "between.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WHOLE = -1 };

typedef struct {
    Device device;
    long instance; /* or WHOLE */
    Violation power, thermal;
    GpmSampleHandle older, newer;
} Turn;

static Turn *turns;
static unsigned turn_count;

int metrics_of(const char *text, Metrics *metrics) {
    metrics->count = 0;
    for (;;) {
        char *end;
        unsigned long id = strtoul(text, &end, 10);
        if (*text < '0' || *text > '9' || id < 1 || id >= GPM_METRICS || metrics->count >= GPM_METRICS) return 0;
        metrics->ids[metrics->count++] = (unsigned)id;
        if (*end == 0) return 1;
        if (*end != ',') return 0;
        text = end + 1;
    }
}

/* Those that lines of others show (Lei Mao, "NVIDIA NVML GPU Statistics", 2025; a reader of `dmon --format csv`). */
static const struct {
    unsigned id;
    const char *name;
} HEADS[] = {{1, "gract"}, {2, "smutil"}, {3, "smocc"}, {5, "mmaact"}, {10, "dram"},
             {11, "fp64"}, {12, "fp32"}, {13, "fp16"}, {166, "nvenc0"}};

/* Percent are activities, and what hits a cache; the rest is traffic, and cycles and requests of contexts. */
static int is_percent(unsigned id) {
    return id < 20 || (id >= 30 && id <= 50) || (id >= 160 && id < 170) || (id >= 170 && (id - 170) % 5 == 4);
}

void metric_head(unsigned id, char *name, size_t size, const char **unit) {
    snprintf(name, size, "%u", id);
    for (size_t i = 0; i < sizeof HEADS / sizeof *HEADS; i++)
        if (HEADS[i].id == id) snprintf(name, size, "%s", HEADS[i].name);
    *unit = is_percent(id) ? "GPM:%" : "GPM";
}

static Turn *turn_of(Device device, long instance) {
    for (unsigned i = 0; i < turn_count; i++)
        if (turns[i].device == device && turns[i].instance == instance) return &turns[i];
    Turn *more = realloc(turns, (turn_count + 1) * sizeof *more);
    if (more == NULL) return NULL;
    turns = more;
    turns[turn_count] = (Turn){.device = device, .instance = instance};
    return &turns[turn_count++];
}

/* Percent of the time between two of a counter's values. */
static int percent(const Violation *before, const Violation *now) {
    unsigned long long passed_ns = (now->reference_us - before->reference_us) * 1000;
    if (before->reference_us == 0 || passed_ns == 0) return 0;
    unsigned long long share = ((now->violation_ns - before->violation_ns) * 100 + passed_ns / 2) / passed_ns;
    return share > 100 ? 100 : (int)share;
}

static void measure(GpmSampleHandle first, GpmSampleHandle second, const Metrics *metrics, Between *between) {
    GpmMetricsGet *wish = calloc(1, sizeof *wish);
    if (wish == NULL) return;
    wish->version = 1;
    wish->count = metrics->count;
    wish->first = first;
    wish->second = second;
    for (unsigned i = 0; i < metrics->count; i++) wish->metrics[i].id = metrics->ids[i];
    if (api.nvmlGpmMetricsGet(wish) == OK)
        for (unsigned i = 0; i < metrics->count; i++) {
            between->measured[i] = wish->metrics[i].result == OK;
            between->values[i] = wish->metrics[i].value;
        }
    free(wish);
}

static Return sample_of(const Turn *turn, GpmSampleHandle sample) {
    if (turn->instance == WHOLE) return api.nvmlGpmSampleGet(turn->device, sample);
    return api.nvmlGpmMigSampleGet(turn->device, (unsigned)turn->instance, sample);
}

static void sampled(Turn *turn, const Metrics *metrics, Between *between) {
    GpmSampleHandle fresh = NULL;
    if (metrics->count == 0) return;
    if (turn->older != NULL) {
        measure(turn->older, turn->newer, metrics, between);
        api.nvmlGpmSampleFree(turn->older);
    }
    turn->older = turn->newer;
    turn->newer = NULL;
    if (api.nvmlGpmSampleAlloc(&fresh) == OK && sample_of(turn, fresh) == OK) {
        turn->newer = fresh;
        return;
    }
    if (fresh != NULL) api.nvmlGpmSampleFree(fresh);
    if (turn->older != NULL) api.nvmlGpmSampleFree(turn->older);
    turn->older = NULL;
}

Between between_instance_turns(Device device, unsigned instance, const Metrics *metrics) {
    Between between = {0};
    Turn *turn = turn_of(device, instance);
    if (turn != NULL) sampled(turn, metrics, &between);
    return between;
}

Between between_turns(Device device, const Metrics *metrics) {
    enum { POWER = 0, THERMAL = 1 };
    Between between = {0};
    Violation power = {0, 0}, thermal = {0, 0};
    Turn *turn = turn_of(device, WHOLE);
    if (turn == NULL) return between;
    if (api.nvmlDeviceGetViolationStatus(device, POWER, &power) == OK) between.capped = percent(&turn->power, &power);
    if (api.nvmlDeviceGetViolationStatus(device, THERMAL, &thermal) == OK)
        between.hot = percent(&turn->thermal, &thermal) > 0;
    turn->power = power;
    turn->thermal = thermal;
    sampled(turn, metrics, &between);
    return between;
}

void between_forget(void) {
    for (unsigned i = 0; i < turn_count; i++) {
        if (turns[i].older != NULL) api.nvmlGpmSampleFree(turns[i].older);
        if (turns[i].newer != NULL) api.nvmlGpmSampleFree(turns[i].newer);
    }
    free(turns);
    turns = NULL;
    turn_count = 0;
}
