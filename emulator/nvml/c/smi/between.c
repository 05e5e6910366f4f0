#include "between.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    Device device;
    Violation power, thermal;
    GpmSampleHandle sample;
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

static Turn *turn_of(Device device) {
    for (unsigned i = 0; i < turn_count; i++)
        if (turns[i].device == device) return &turns[i];
    Turn *more = realloc(turns, (turn_count + 1) * sizeof *more);
    if (more == NULL) return NULL;
    turns = more;
    turns[turn_count] = (Turn){.device = device};
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

static void sampled(Turn *turn, const Metrics *metrics, Between *between) {
    GpmSampleHandle fresh = NULL;
    if (metrics->count == 0 || api.nvmlGpmSampleAlloc(&fresh) != OK) return;
    if (api.nvmlGpmSampleGet(turn->device, fresh) != OK) {
        api.nvmlGpmSampleFree(fresh);
        return;
    }
    if (turn->sample != NULL) {
        measure(turn->sample, fresh, metrics, between);
        api.nvmlGpmSampleFree(turn->sample);
    }
    turn->sample = fresh;
}

Between between_turns(Device device, const Metrics *metrics) {
    enum { POWER = 0, THERMAL = 1 };
    Between between = {0};
    Violation power = {0, 0}, thermal = {0, 0};
    Turn *turn = turn_of(device);
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
    for (unsigned i = 0; i < turn_count; i++)
        if (turns[i].sample != NULL) api.nvmlGpmSampleFree(turns[i].sample);
    free(turns);
    turns = NULL;
    turn_count = 0;
}
