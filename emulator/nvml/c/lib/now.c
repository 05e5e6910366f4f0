#include "now.h"

#include <time.h>

enum { NS_PER_S = 1000000000, MILLION = 1000000 };

/* Emulated nanoseconds, at a moment so many real ones ago. */
static long long clock_at(const State *state, long long ago) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    long long passed = (long long)now.tv_sec * NS_PER_S + now.tv_nsec - ago - state->clock_monotonic;
    long long speed = state->clock_speed;
    if (speed == CLOCK_SPEED) return state->clock_emulated + passed;
    return state->clock_emulated + passed / MILLION * speed + passed % MILLION * speed / MILLION;
}

static long long clock_now(const State *state) { return clock_at(state, 0); }

long long emulated_now(const View *view) { return clock_now(view->state); }

/* After the last span that one holds. */
static const Span *span_at(const Gpu *gpu, long long at) {
    size_t low = 0, high = gpu->span_count - 1;
    while (low < high) {
        size_t middle = (low + high + 1) / 2;
        if (gpu->spans[middle].at <= at)
            low = middle;
        else
            high = middle - 1;
    }
    return &gpu->spans[low];
}

const Span *span_now(const View *view, const Gpu *gpu) {
    if (gpu->span_count == 1) return gpu->spans; /* the clock would cost as much as the call */
    return span_at(gpu, clock_now(view->state));
}

const Span *span_before(const View *view, const Gpu *gpu, long long ago) {
    return span_at(gpu, clock_at(view->state, ago));
}

/* The span, and the nanoseconds since its beginning. */
static const Span *passed_now(const View *view, const Gpu *gpu, long long *passed) {
    long long at = clock_now(view->state);
    const Span *span = span_at(gpu, at);
    *passed = at > span->at ? at - span->at : 0;
    return span;
}

unsigned long long energy_now(const View *view, const Gpu *gpu) {
    long long passed;
    const Span *span = passed_now(view, gpu, &passed);
    long long seconds = passed / NS_PER_S, rest = passed % NS_PER_S;
    return (unsigned long long)(span->energy + span->power * seconds +
                                (span->energy_rest + span->power * rest) / NS_PER_S);
}

Totals totals_now(const View *view, const Gpu *gpu) {
    long long passed;
    const Span *span = passed_now(view, gpu, &passed);
    return totals_after(span, passed);
}

/* e to the power of -x: the C library's own would ask for newer versions of it than this library does. */
static double decay(double x) {
    if (x > 60) return 0;
    unsigned halvings = 0;
    for (; x > 0.0625; halvings++) x /= 2;
    double sum = 1, term = 1;
    for (int i = 1; i <= 10; i++) {
        term *= -x / i;
        sum += term;
    }
    while (halvings-- > 0) sum *= sum;
    return sum;
}

static double degrees_now(const View *view, const Gpu *gpu) {
    long long passed;
    const Span *span = passed_now(view, gpu, &passed);
    double start = (double)span->temperature / MILLION, end = (double)span->target / MILLION;
    if (span->temperature == span->target || view->state->lag <= 0) return end;
    return end + (start - end) * decay((double)passed / (double)view->state->lag);
}

static long long rounded(double value) { return (long long)(value < 0 ? value - 0.5 : value + 0.5); }

long long temperature_now(const View *view, const Gpu *gpu) { return rounded(degrees_now(view, gpu)); }

long long memory_temperature_now(const View *view, const Gpu *gpu) {
    return gpu->memory_warmer < 0 ? -1 : rounded(degrees_now(view, gpu) + (double)gpu->memory_warmer);
}

long long fan_now(const View *view, const Gpu *gpu) {
    if (gpu->fan_low < 0 || gpu->fan_hot <= gpu->fan_cold) return -1;
    if (gpu->fan_fixed >= 0) return gpu->fan_fixed;
    double share = (degrees_now(view, gpu) - (double)gpu->fan_cold) / (double)(gpu->fan_hot - gpu->fan_cold);
    if (share < 0) share = 0;
    if (share > 1) share = 1;
    return rounded((double)gpu->fan_low + (double)(gpu->fan_high - gpu->fan_low) * share);
}

unsigned share_now(const View *view, const Gpu *gpu, size_t process) {
    const Span *span = span_now(view, gpu);
    return process < span->share_count ? gpu->shares[span->shares + process] : 0;
}
