/* Workload power profiles: those that GB200 boards list, in `nvidia-smi power-profiles -l` of driver 580; on boards of
 * Blackwell with HBM. None is requested, and none can be. */
#include <string.h>

#include "getter.h"

static const unsigned KNOWN[] = {0, 1, 2, 3, 5, 6, 7, 13};

static int has_profiles(const Gpu *gpu) { return gpu->architecture > ARCH_HOPPER && detail_text(gpu, "memory_power") != NULL; }

static ProfileMask known_mask(void) {
    ProfileMask known = {{0}};
    for (size_t i = 0; i < sizeof KNOWN / sizeof *KNOWN; i++) known.mask[KNOWN[i] / 32] |= 1u << KNOWN[i] % 32;
    return known;
}

static void fill(PowerProfiles *out) {
    unsigned version = out->version;
    memset(out, 0, sizeof *out);
    out->version = version;
    out->known = known_mask();
    for (size_t i = 0; i < sizeof KNOWN / sizeof *KNOWN; i++)
        out->profiles[KNOWN[i]] = (PowerProfile){STRUCT_VERSION(PowerProfile, 1), KNOWN[i], 0, {{0}}};
}

VERSIONED_IF(nvmlDeviceWorkloadPowerProfileGetProfilesInfo, PowerProfiles, has_profiles(gpu), fill(out))

VERSIONED_IF(nvmlDeviceWorkloadPowerProfileGetCurrentProfiles, PowerProfilesNow, has_profiles(gpu),
             *out = (PowerProfilesNow){.version = out->version, .known = known_mask()})
