/* Accounting: what processes used over their lives, while it is on. */
#include <string.h>
#include <time.h>

#include "getter.h"
#include "now.h"

enum { BUFFER = 4000 };

GETTER(nvmlDeviceGetAccountingMode, unsigned, gpu->accounting != 0)
GETTER(nvmlDeviceGetAccountingBufferSize, unsigned, BUFFER)

EXPORT Return nvmlDeviceGetAccountingPids(Device device, unsigned *count, unsigned *pids) {
    View view;
    const Gpu *gpu;
    Return result = session_enter_gpu(device, &view, &gpu, NULL);
    if (result != OK) return result;
    if (count == NULL) return session_leave(INVALID_ARGUMENT);
    if (!gpu->accounting) return session_leave(NOT_SUPPORTED);
    unsigned room = pids ? *count : 0;
    *count = (unsigned)gpu->account_count;
    if (*count > room) return session_leave(INSUFFICIENT_SIZE);
    for (unsigned i = 0; i < *count; i++) pids[i] = (unsigned)gpu->accounts[i].pid;
    return session_leave(OK);
}

/* When it was so many emulated nanoseconds ago, in microseconds of the real time. */
static unsigned long long real_us(const State *state, long long ago) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    long long us = (long long)now.tv_sec * 1000000 + now.tv_nsec / 1000;
    double speed = state->clock_speed > 0 ? (double)state->clock_speed / CLOCK_SPEED : 1;
    double back = (double)ago / 1000 / speed;
    return back < (double)us ? (unsigned long long)(us - (long long)back) : 0;
}

/* The newest of that number: numbers come again. The time is told once the process has ended. */
EXPORT Return nvmlDeviceGetAccountingStats(Device device, unsigned pid, AccountingStats *stats) {
    enum { NS_PER_MS = 1000000 };
    View view;
    const Gpu *gpu;
    const Account *found = NULL;
    Return result = session_enter_gpu(device, &view, &gpu, NULL);
    if (result != OK) return result;
    if (stats == NULL) return session_leave(INVALID_ARGUMENT);
    if (!gpu->accounting) return session_leave(NOT_SUPPORTED);
    for (size_t i = 0; i < gpu->account_count; i++)
        if ((unsigned)gpu->accounts[i].pid == pid) found = &gpu->accounts[i];
    if (found == NULL) return session_leave(NOT_FOUND);
    memset(stats, 0, sizeof *stats);
    stats->gpu = (unsigned)found->utilization;
    stats->memory = (unsigned)found->memory_utilization;
    stats->max_memory = (unsigned long long)found->max_memory;
    stats->running = found->ended < 0;
    if (found->ended > found->began) stats->time = (unsigned long long)(found->ended - found->began) / NS_PER_MS;
    stats->start = real_us(view.state, emulated_now(&view) - found->began);
    return session_leave(OK);
}
