/* How devices are joined to each other and to the processors. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "getter.h"

/* Negative: that many NVLinks. Otherwise the PCIe level. */
static int joint(const View *view, size_t a, size_t b) {
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

/* ---- NVLinks: numbered in the order of the GPUs at their other ends ---- */

static int is_at(const Gpu *gpu, const LinkEnd *end) {
    return gpu->domain == end->domain && gpu->bus == end->bus && gpu->device == end->device;
}

/* A link whose other GPU is away is inactive. */
static unsigned active(const View *view, const Gpu *gpu, unsigned link) {
    if (gpu->link_ends == NULL) return 1;
    for (size_t other = 0; other < view->state->gpu_count; other++)
        if (is_at(&view->state->gpus[other], &gpu->link_ends[link])) return !view->state->gpus[other].lost;
    return 0;
}

static unsigned links_of(const View *view, size_t gpu) {
    unsigned total = 0;
    if (view->state->gpus[gpu].link_ends != NULL) return (unsigned)view->state->gpus[gpu].link_end_count;
    if (view->state->switched && view->state->gpus[gpu].nvlinks > 0) return (unsigned)view->state->gpus[gpu].nvlinks;
    for (size_t other = 0; other < view->state->gpu_count; other++) {
        int told = joint(view, gpu, other);
        if (told >= 0) continue;
        if (view->state->switched) return (unsigned)-told;
        total += (unsigned)-told;
    }
    return total < NVLINK_MAX ? total : NVLINK_MAX;
}

/* The GPU at the end of a link of a host without switches, or NULL. */
static const Gpu *link_end(const View *view, size_t gpu, unsigned link) {
    unsigned before = 0;
    for (size_t other = 0; other < view->state->gpu_count; other++) {
        int told = joint(view, gpu, other);
        if (told < 0) before += (unsigned)-told;
        if (link < before) return &view->state->gpus[other];
    }
    return NULL;
}

static Return enter_link(Device device, unsigned link, const void *out, View *view, const Gpu **gpu, size_t *place) {
    size_t index;
    Return result = session_enter_gpu(device, view, gpu, &index);
    if (result != OK) return result;
    *place = view->gpus[index];
    unsigned links = links_of(view, *place);
    if (out == NULL || link >= NVLINK_MAX) return session_leave(INVALID_ARGUMENT);
    if (links == 0) return session_leave(NOT_SUPPORTED);
    return link < links ? OK : session_leave(INVALID_ARGUMENT);
}

#define LINK(name, type, expression)                                           \
    EXPORT Return name(Device device, unsigned link, type *out) {              \
        View view;                                                             \
        const Gpu *gpu;                                                        \
        size_t place;                                                          \
        Return result = enter_link(device, link, out, &view, &gpu, &place);    \
        if (result != OK) return result;                                       \
        *out = (type)(expression);                                             \
        return session_leave(OK);                                              \
    }

static unsigned link_version(const Gpu *gpu) {
    if (gpu->architecture <= ARCH_VOLTA) return 2;
    if (gpu->architecture <= ARCH_ADA) return 3;
    return gpu->architecture == ARCH_HOPPER ? 4 : 5;
}

LINK(nvmlDeviceGetNvLinkState, unsigned, active(&view, gpu, link))
LINK(nvmlDeviceGetNvLinkVersion, unsigned, link_version(gpu))
LINK(nvmlDeviceGetNvLinkRemoteDeviceType, unsigned, view.state->switched ? REMOTE_SWITCH : REMOTE_GPU)

EXPORT Return nvmlDeviceGetNvLinkCapability(Device device, unsigned link, unsigned capability, unsigned *out) {
    enum { SLI_BRIDGE = 4, VALID = 5 };
    View view;
    const Gpu *gpu;
    size_t place;
    Return result = enter_link(device, link, out, &view, &gpu, &place);
    if (result != OK) return result;
    if (capability > VALID) return session_leave(INVALID_ARGUMENT);
    *out = capability != SLI_BRIDGE;
    return session_leave(OK);
}

EXPORT Return nvmlDeviceGetNvLinkErrorCounter(Device device, unsigned link, unsigned counter, unsigned long long *out) {
    enum { COUNTERS = 5 };
    View view;
    const Gpu *gpu;
    size_t place;
    Return result = enter_link(device, link, out, &view, &gpu, &place);
    if (result != OK) return result;
    if (counter >= COUNTERS) return session_leave(INVALID_ARGUMENT);
    *out = 0;
    return session_leave(OK);
}

static void address(PciInfo *info, unsigned domain, unsigned bus, unsigned device, unsigned id) {
    memset(info, 0, sizeof *info);
    snprintf(info->bus_id_legacy, sizeof info->bus_id_legacy, "%04X:%02X:%02X.0", domain & 0xFFFF, bus, device);
    snprintf(info->bus_id, sizeof info->bus_id, "%08X:%02X:%02X.0", domain, bus, device);
    info->domain = domain;
    info->bus = bus;
    info->device = device;
    info->device_id = id;
}

/* Two links to each of six switches, as an A100 has them; switches sit on buses of their own. */
EXPORT Return nvmlDeviceGetNvLinkRemotePciInfo_v2(Device device, unsigned link, PciInfo *info) {
    enum { SWITCHES = 6, SWITCH_BUS = 0xF0, SWITCH_ID = 0x1AF110DE };
    View view;
    const Gpu *gpu;
    size_t place;
    Return result = enter_link(device, link, info, &view, &gpu, &place);
    if (result != OK) return result;
    if (gpu->link_ends != NULL) {
        const LinkEnd *there = &gpu->link_ends[link];
        address(info, there->domain, there->bus, there->device, (unsigned)gpu->device_id);
        return session_leave(OK);
    }
    const Gpu *end = view.state->switched ? NULL : link_end(&view, place, link);
    if (end != NULL)
        address(info, end->domain, end->bus, end->device, (unsigned)end->device_id);
    else
        address(info, 0, SWITCH_BUS + link % SWITCHES, 0, SWITCH_ID);
    return session_leave(OK);
}

EXPORT Return nvmlDeviceGetNvLinkRemotePciInfo(Device device, unsigned link, PciInfo *info) {
    return nvmlDeviceGetNvLinkRemotePciInfo_v2(device, link, info);
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
