/* How devices are joined to each other and to the processors. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "getter.h"
#include "nvlink.h"

int joint(const View *view, size_t a, size_t b) {
    size_t count = view->state->gpu_count;
    if (a == b) return LEVEL_INTERNAL;
    if (view->state->topology == NULL) return LEVEL_SYSTEM;
    return view->state->topology[a * count + b];
}

/* The PCIe level also of those that NVLinks join: by their NUMA nodes where the state has no levels. */
static unsigned level_of(const View *view, size_t a, size_t b) {
    int told = joint(view, a, b);
    if (told >= 0) return (unsigned)told;
    if (view->state->levels != NULL) return (unsigned)view->state->levels[a * view->state->gpu_count + b];
    return view->state->gpus[a].numa_node == view->state->gpus[b].numa_node ? LEVEL_NODE : LEVEL_SYSTEM;
}

static Return enter_both(Device one, Device two, View *view, size_t *a, size_t *b) {
    const Gpu *gpu;
    size_t first, second;
    Return result = session_enter_gpu(one, view, &gpu, &first);
    if (result != OK) return result;
    if (view_gpu(view, two, &second) == NULL) return session_leave(handle_known(two) ? GPU_IS_LOST : INVALID_ARGUMENT);
    *a = view->gpus[first];
    *b = view->gpus[second];
    return OK;
}

EXPORT Return nvmlDeviceGetTopologyCommonAncestor(Device one, Device two, unsigned *level) {
    View view;
    size_t a, b;
    Return result = enter_both(one, two, &view, &a, &b);
    if (result != OK) return result;
    if (level == NULL) return session_leave(INVALID_ARGUMENT);
    *level = level_of(&view, a, b);
    return session_leave(OK);
}

EXPORT Return nvmlDeviceGetTopologyNearestGpus(Device device, unsigned level, unsigned *count, Device *out) {
    View view;
    const Gpu *gpu;
    size_t index;
    Return result = session_enter_gpu(device, &view, &gpu, &index);
    if (result != OK) return result;
    if (count == NULL) return session_leave(INVALID_ARGUMENT);
    unsigned there = 0, room = out ? *count : 0;
    for (size_t i = 0; i < view.count; i++) {
        if (i == index || level_of(&view, view.gpus[index], view.gpus[i]) != level) continue;
        if (there < room) out[there] = view.handles[i];
        there++;
    }
    *count = there < room || out == NULL ? there : room;
    return session_leave(OK);
}

EXPORT Return nvmlDeviceOnSameBoard(Device one, Device two, int *same) {
    View view;
    size_t a, b;
    Return result = enter_both(one, two, &view, &a, &b);
    if (result != OK) return result;
    if (same == NULL) return session_leave(INVALID_ARGUMENT);
    *same = a == b;
    return session_leave(OK);
}

EXPORT Return nvmlDeviceGetP2PStatus(Device one, Device two, unsigned index, unsigned *status) {
    enum { READ = 0, WRITE = 1, NVLINK = 2, ATOMICS = 3, PCI = 4 };
    View view;
    size_t a, b;
    Return result = enter_both(one, two, &view, &a, &b);
    if (result != OK) return result;
    if (status == NULL || a == b || index > PCI) return session_leave(INVALID_ARGUMENT);
    int links = joint(&view, a, b) < 0;
    if (index == NVLINK || index == ATOMICS)
        *status = links ? P2P_OK : P2P_UNSUPPORTED;
    else
        *status = links || level_of(&view, a, b) != LEVEL_SYSTEM ? P2P_OK : P2P_CHIPSET;
    return session_leave(OK);
}

/* ---- Processors and memory nodes ---- */

enum { WORD_BITS = 8 * sizeof(unsigned long) };

static void set_bit(unsigned long *words, unsigned size, unsigned long bit) {
    if (bit / WORD_BITS < size) words[bit / WORD_BITS] |= 1ul << (bit % WORD_BITS);
}

static const char *digits(const char *text, unsigned long *value) {
    *value = 0;
    for (; *text >= '0' && *text <= '9'; text++)
        if (*value < 1000000) *value = *value * 10 + (unsigned long)(*text - '0');
    return text;
}

/* "0-23,48-71" into bits. */
static void cpus_into(const char *list, unsigned size, unsigned long *words) {
    while (*list >= '0' && *list <= '9') {
        unsigned long first, last;
        list = digits(list, &first);
        last = first;
        if (*list == '-') list = digits(list + 1, &last);
        for (unsigned long cpu = first; cpu <= last && cpu / WORD_BITS < size; cpu++) set_bit(words, size, cpu);
        if (*list == ',') list++;
    }
}

EXPORT Return nvmlDeviceGetCpuAffinity(Device device, unsigned size, unsigned long *out) {
    View view;
    const Gpu *gpu;
    Return result = session_enter_gpu(device, &view, &gpu, NULL);
    if (result != OK) return result;
    if (out == NULL || size == 0) return session_leave(INVALID_ARGUMENT);
    if (gpu->cpus[0] == 0) return session_leave(NOT_SUPPORTED);
    memset(out, 0, size * sizeof *out);
    cpus_into(gpu->cpus, size, out);
    return session_leave(OK);
}

EXPORT Return nvmlDeviceGetCpuAffinityWithinScope(Device device, unsigned size, unsigned long *out, unsigned scope) {
    return scope > 1 ? INVALID_ARGUMENT : nvmlDeviceGetCpuAffinity(device, size, out);
}

EXPORT Return nvmlDeviceGetMemoryAffinity(Device device, unsigned size, unsigned long *out, unsigned scope) {
    View view;
    const Gpu *gpu;
    Return result = session_enter_gpu(device, &view, &gpu, NULL);
    if (result != OK) return result;
    if (out == NULL || size == 0 || scope > 1) return session_leave(INVALID_ARGUMENT);
    if (gpu->numa_node < 0) return session_leave(NOT_SUPPORTED);
    memset(out, 0, size * sizeof *out);
    set_bit(out, size, (unsigned long)gpu->numa_node);
    return session_leave(OK);
}

EXPORT Return nvmlSystemGetTopologyGpuSet(unsigned cpu, unsigned *count, Device *out) {
    enum { WORDS = 64 };
    View view;
    Return result = session_enter(&view);
    if (result != OK) return result;
    if (count == NULL || cpu >= WORDS * WORD_BITS) return session_leave(INVALID_ARGUMENT);
    unsigned there = 0, room = out ? *count : 0;
    for (size_t i = 0; i < view.count; i++) {
        unsigned long words[WORDS] = {0};
        cpus_into(view.state->gpus[view.gpus[i]].cpus, WORDS, words);
        if ((words[cpu / WORD_BITS] >> (cpu % WORD_BITS) & 1) == 0) continue;
        if (there < room) out[there] = view.handles[i];
        there++;
    }
    *count = there < room || out == NULL ? there : room;
    return session_leave(OK);
}
