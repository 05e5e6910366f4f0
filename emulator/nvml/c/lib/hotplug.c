/* Drain, removal and discovery: asked of the host, which knows who holds what. */
#include <stdio.h>

#include "holding.h"
#include "session.h"

typedef struct {
    unsigned domain, bus, device;
} Address;

/* By its text where there is one, by its numbers otherwise. */
static int address_of(const PciInfo *info, Address *address) {
    char text[BUS_ID_SIZE + 1] = {0};
    for (size_t i = 0; i < BUS_ID_SIZE && info->bus_id[i]; i++) text[i] = info->bus_id[i];
    if (text[0] && bus_id_parse(text, &address->domain, &address->bus, &address->device)) return 1;
    *address = (Address){info->domain, info->bus, info->device};
    return info->domain <= 0xFFFFFFFu && info->bus <= 0xFF && info->device <= 0x1F;
}

static Return entered(void) {
    View view;
    Return result = session_enter(&view);
    return result != OK ? result : session_leave(OK);
}

static Return ask(const char *verb, const Address *at, const char *rest) {
    char words[128];
    snprintf(words, sizeof words, "%s %04x:%02x:%02x.0%s", verb, at->domain, at->bus, at->device, rest);
    return host_request(words);
}

EXPORT Return nvmlDeviceModifyDrainState(const PciInfo *info, unsigned state) {
    Address at;
    Return result = entered();
    if (result != OK) return result;
    if (info == NULL || state > 1 || !address_of(info, &at)) return INVALID_ARGUMENT;
    return ask("drain", &at, state ? " 1" : " 0");
}

EXPORT Return nvmlDeviceQueryDrainState(const PciInfo *info, unsigned *state) {
    Address at;
    View view;
    Return result = session_enter(&view);
    if (result != OK) return result;
    if (info == NULL || state == NULL || !address_of(info, &at)) return session_leave(INVALID_ARGUMENT);
    for (size_t i = 0; i < view.state->gpu_count; i++) {
        const Gpu *gpu = &view.state->gpus[i];
        if (gpu->domain != at.domain || gpu->bus != at.bus || gpu->device != at.device) continue;
        *state = gpu->draining != 0;
        return session_leave(OK);
    }
    return session_leave(NOT_FOUND);
}

/* This process' own hold does not count: it lets go before it asks. */
EXPORT Return nvmlDeviceRemoveGpu_v2(const PciInfo *info, unsigned detach, unsigned link) {
    Address at;
    char rest[8];
    Return result = entered();
    if (result != OK) return result;
    if (info == NULL || detach > 1 || link > 1 || !address_of(info, &at)) return INVALID_ARGUMENT;
    session_drop(at.domain, at.bus, at.device);
    snprintf(rest, sizeof rest, " %u %u", detach, link);
    result = ask("remove", &at, rest);
    if (result != OK) session_retake();
    return result;
}

/* For our own nvidia-smi: NVML has no such call. This process' own hold does not count here, either. */
Return gpu_reset(const PciInfo *info) {
    Address at;
    Return result = entered();
    if (result != OK) return result;
    if (info == NULL || !address_of(info, &at)) return INVALID_ARGUMENT;
    session_drop(at.domain, at.bus, at.device);
    result = ask("reset", &at, "");
    if (result != OK) session_retake();
    return result;
}

EXPORT Return nvmlDeviceRemoveGpu(const PciInfo *info) { return nvmlDeviceRemoveGpu_v2(info, 0, 0); }

/* An address of zeros scans everything. */
EXPORT Return nvmlDeviceDiscoverGpus(const PciInfo *info) {
    Address at;
    Return result = entered();
    if (result != OK) return result;
    if (info == NULL || !address_of(info, &at)) return INVALID_ARGUMENT;
    if (at.domain == 0 && at.bus == 0 && at.device == 0) return host_request("discover all");
    return ask("discover", &at, "");
}
