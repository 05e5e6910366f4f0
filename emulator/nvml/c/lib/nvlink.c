/* NVLinks: numbered in the order of the GPUs at their other ends. */
#include "nvlink.h"

#include <stdio.h>
#include <string.h>

#include "getter.h"
#include "holding.h"

static int is_at(const Gpu *gpu, const LinkEnd *end) {
    return gpu->domain == end->domain && gpu->bus == end->bus && gpu->device == end->device;
}

/* Quarters of a GPU's links that are in use in each bandwidth mode: all, none, the least, half, three quarters. That the
 * least is one quarter is assumed. */
static const unsigned QUARTERS[] = {4, 0, 1, 2, 3};

int link_active(const View *view, const Gpu *gpu, unsigned link) {
    size_t place = (size_t)(gpu - view->state->gpus), mode = (size_t)gpu->link_bandwidth;
    if (mode > 0 && mode < sizeof QUARTERS / sizeof *QUARTERS && 4 * link >= links_of(view, place) * QUARTERS[mode]) return 0;
    if (gpu->link_ends == NULL) return 1;
    for (size_t other = 0; other < view->state->gpu_count; other++)
        if (is_at(&view->state->gpus[other], &gpu->link_ends[link])) return !view->state->gpus[other].lost;
    return 0;
}

unsigned links_of(const View *view, size_t gpu) {
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

/* The place of the GPU at the end of a link of a host without switches; -1 where it is away. */
static long end_place(const View *view, size_t gpu, unsigned link) {
    const LinkEnd *ends = view->state->gpus[gpu].link_ends;
    unsigned before = 0;
    for (size_t other = 0; other < view->state->gpu_count; other++) {
        int told = joint(view, gpu, other);
        if (told < 0) before += (unsigned)-told;
        if (ends != NULL ? is_at(&view->state->gpus[other], &ends[link]) : link < before) return (long)other;
    }
    return -1;
}

long link_at_end(const View *view, size_t gpu, unsigned link) {
    if (view->state->switched) return link;
    long other = end_place(view, gpu, link);
    unsigned earlier = 0;
    if (other < 0) return -1;
    for (unsigned i = 0; i < link; i++) earlier += end_place(view, gpu, i) == other;
    unsigned links = links_of(view, (size_t)other);
    for (unsigned i = 0; i < links; i++)
        if (end_place(view, (size_t)other, i) == (long)gpu && earlier-- == 0) return i;
    return -1;
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

unsigned link_version(const Gpu *gpu) {
    if (gpu->architecture <= ARCH_VOLTA) return 2;
    if (gpu->architecture <= ARCH_ADA) return 3;
    return gpu->architecture == ARCH_HOPPER ? 4 : 5;
}

unsigned link_mbps(const Gpu *gpu) {
    static const unsigned SPEEDS[] = {0, 20000, 25781, 25000, 26562, 53125};
    return SPEEDS[link_version(gpu)];
}

/* A link carries the share of what it can that the slot carries of what that can: assumed, as loads tell of PCIe alone. */
unsigned long long link_kilobytes(const Gpu *gpu, long long traffic) {
    static const unsigned LANES[] = {0, 250000, 500000, 985000, 1969000, 3938000, 7563000};
    long long gen = gpu->max_pcie_gen, width = gpu->max_pcie_width;
    if (gen < 1 || gen > 6 || width < 1 || traffic <= 0) return 0;
    return (unsigned long long)((double)traffic * link_mbps(gpu) * 1000.0 / ((double)LANES[gen] * (double)width));
}

LINK(nvmlDeviceGetNvLinkState, unsigned, link_active(&view, gpu, link))
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
    long there = view.state->switched ? -1 : end_place(&view, place, link);
    const Gpu *end = there < 0 ? NULL : &view.state->gpus[there];
    if (end != NULL)
        address(info, end->domain, end->bus, end->device, (unsigned)end->device_id);
    else
        address(info, 0, SWITCH_BUS + link % SWITCHES, 0, SWITCH_ID);
    return session_leave(OK);
}

EXPORT Return nvmlDeviceGetNvLinkRemotePciInfo(Device device, unsigned link, PciInfo *info) {
    return nvmlDeviceGetNvLinkRemotePciInfo_v2(device, link, info);
}

/* No link has errors, so that none are left to clear. */
EXPORT Return nvmlDeviceResetNvLinkErrorCounters(Device device, unsigned link) {
    View view;
    const Gpu *gpu;
    size_t place;
    Return result = enter_link(device, link, &link, &view, &gpu, &place);
    return result != OK ? result : session_leave(may_set() ? OK : NO_PERMISSION);
}

/* ---- Settings ---- */

static Return ask(const Gpu *gpu, const char *name, int has_value, unsigned value) {
    char words[128];
    int length = snprintf(words, sizeof words, "set %04x:%02x:%02x.0 %s", gpu->domain, gpu->bus, gpu->device, name);
    if (has_value) snprintf(words + length, sizeof words - (size_t)length, " %u", value);
    session_leave(OK);
    return may_set() ? host_request(words) : NO_PERMISSION;
}

/* After which idle links sleep, from Hopper on. */
EXPORT Return nvmlDeviceSetNvLinkDeviceLowPowerThreshold(Device device, const LinkThreshold *threshold) {
    enum { LONGEST = 0xFFFFFFFFu };
    View view;
    const Gpu *gpu;
    size_t place;
    Return result = enter_link(device, 0, threshold, &view, &gpu, &place);
    if (result != OK) return result;
    if (gpu->architecture < ARCH_HOPPER) return session_leave(NOT_SUPPORTED);
    return ask(gpu, "nvlink-threshold", threshold->units != LONGEST, threshold->units);
}

/* The first GPU whose links can be reduced, NULL for none: this is for whole hosts of Hopper boards; later ones have it
 * for each GPU. */
static const Gpu *reducible(const View *view) {
    for (size_t i = 0; i < view->count; i++) {
        const Gpu *gpu = &view->state->gpus[view->gpus[i]];
        if (gpu->architecture == ARCH_HOPPER && links_of(view, view->gpus[i]) > 0) return gpu;
    }
    return NULL;
}

EXPORT Return nvmlSystemGetNvlinkBwMode(unsigned *mode) {
    View view;
    Return result = session_enter(&view);
    if (result != OK) return result;
    const Gpu *gpu = reducible(&view);
    if (gpu == NULL) return session_leave(NOT_SUPPORTED);
    if (mode == NULL) return session_leave(INVALID_ARGUMENT);
    if (!may_set()) return session_leave(NO_PERMISSION);
    *mode = (unsigned)gpu->link_bandwidth;
    return session_leave(OK);
}

EXPORT Return nvmlSystemSetNvlinkBwMode(unsigned mode) {
    View view;
    Return result = session_enter(&view);
    if (result != OK) return result;
    const Gpu *gpu = reducible(&view);
    if (gpu == NULL) return session_leave(NOT_SUPPORTED);
    if (mode >= sizeof QUARTERS / sizeof *QUARTERS) return session_leave(INVALID_ARGUMENT);
    return ask(gpu, "nvlink-bandwidth", 1, mode);
}

/* ---- The same of one GPU, from Blackwell on. That the mode with all links is the best is assumed. ---- */

static int own_modes(const Gpu *gpu, const View *view, size_t place) {
    return gpu->architecture > ARCH_HOPPER && links_of(view, place) > 0;
}

/* One that says its version, which must be the first. */
#define OWN_MODE(name, type, ...)                                                          \
    EXPORT Return name(Device device, type *out) {                                         \
        View view;                                                                         \
        const Gpu *gpu;                                                                    \
        size_t index;                                                                      \
        Return result = session_enter_gpu(device, &view, &gpu, &index);                    \
        if (result != OK) return result;                                                   \
        if (out == NULL) return session_leave(INVALID_ARGUMENT);                           \
        if (out->version != STRUCT_VERSION(*out, 1)) return session_leave(VERSION_MISMATCH); \
        if (!own_modes(gpu, &view, view.gpus[index])) return session_leave(NOT_SUPPORTED); \
        __VA_ARGS__                                                                        \
    }

enum { OWN_MODES = sizeof QUARTERS / sizeof *QUARTERS };

OWN_MODE(nvmlDeviceGetNvlinkSupportedBwModes, LinkModes, {
    for (unsigned char mode = 0; mode < OWN_MODES; mode++) out->modes[mode] = mode;
    out->count = OWN_MODES;
    return session_leave(OK);
})

OWN_MODE(nvmlDeviceGetNvlinkBwMode, LinkMode, {
    out->mode = (unsigned char)gpu->link_bandwidth;
    out->best = out->mode == 0;
    return session_leave(OK);
})

OWN_MODE(nvmlDeviceSetNvlinkBwMode, LinkMode, {
    unsigned mode = out->best ? 0 : out->mode;
    if (mode >= OWN_MODES) return session_leave(INVALID_ARGUMENT);
    return ask(gpu, "nvlink-own-bandwidth", 1, mode);
})
