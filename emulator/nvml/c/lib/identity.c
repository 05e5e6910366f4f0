/* Which devices there are, and who they are. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "getter.h"
#include "mig.h"

EXPORT Return nvmlDeviceGetCount_v2(unsigned *count) {
    View view;
    Return result = session_enter(&view);
    if (result != OK) return result;
    if (count == NULL) return session_leave(INVALID_ARGUMENT);
    *count = (unsigned)view.count;
    return session_leave(OK);
}

EXPORT Return nvmlDeviceGetCount(unsigned *count) { return nvmlDeviceGetCount_v2(count); }

EXPORT Return nvmlDeviceGetHandleByIndex_v2(unsigned index, Device *device) {
    View view;
    Return result = session_enter(&view);
    if (result != OK) return result;
    if (device == NULL || index >= view.count) return session_leave(INVALID_ARGUMENT);
    return session_leave(session_give(&view, index, device));
}

EXPORT Return nvmlDeviceGetHandleByIndex(unsigned index, Device *device) {
    return nvmlDeviceGetHandleByIndex_v2(index, device);
}

static Return by_text(const char *text, size_t offset, Device *device) {
    View view;
    Return result = session_enter(&view);
    if (result != OK) return result;
    if (text == NULL || device == NULL || *text == 0) return session_leave(INVALID_ARGUMENT);
    for (size_t i = 0; i < view.count; i++)
        if (strcasecmp((const char *)&view.state->gpus[view.gpus[i]] + offset, text) == 0)
            return session_leave(session_give(&view, i, device));
    return session_leave(NOT_FOUND);
}

/* A MIG device's handle, by its UUID or by the one that drivers before 470 gave it. */
static Return mig_by_uuid(const char *uuid, Device *device) {
    View view;
    char old[UUID_SIZE * 2];
    Return result = session_enter(&view);
    if (result != OK) return result;
    if (device == NULL) return session_leave(INVALID_ARGUMENT);
    for (size_t i = 0; i < view.count; i++) {
        const Gpu *gpu = &view.state->gpus[view.gpus[i]];
        const MigDevice *one;
        for (size_t place = 0; (one = session_mig_at(gpu, place)) != NULL; place++) {
            snprintf(old, sizeof old, "MIG-%s/%lld/%lld", gpu->uuid, one->instance, one->id);
            if (strcasecmp(one->uuid, uuid) != 0 && strcasecmp(old, uuid) != 0) continue;
            if (gpu->lost) return session_leave(GPU_IS_LOST);
            *device = mig_handle(view.handles[i], one->uuid);
            return session_leave(*device != NULL ? OK : OUT_OF_MEMORY);
        }
    }
    return session_leave(NOT_FOUND);
}

EXPORT Return nvmlDeviceGetHandleByUUID(const char *uuid, Device *device) {
    if (uuid != NULL && strncasecmp(uuid, "MIG-", 4) == 0) return mig_by_uuid(uuid, device);
    return by_text(uuid, offsetof(Gpu, uuid), device);
}

EXPORT Return nvmlDeviceGetHandleBySerial(const char *serial, Device *device) {
    return by_text(serial, offsetof(Gpu, serial), device);
}

static int hex_of(const char *text, unsigned char *bytes) {
    size_t count = 0;
    unsigned high = 0;
    for (; *text; text++) {
        if (*text == '-') continue;
        const char *digits = "0123456789abcdef", *at = strchr(digits, *text | 0x20);
        if (at == NULL || count >= 32) return 0;
        unsigned value = (unsigned)(at - digits);
        if (count % 2 == 0) high = value;
        else bytes[count / 2] = (unsigned char)(high * 16 + value);
        count++;
    }
    return count == 32;
}

EXPORT Return nvmlDeviceGetHandleByUUIDV(const UuidV *uuid, Device *device) {
    enum { ASCII = 1, BINARY = 2 };
    char text[64] = {0};
    if (uuid == NULL) return INVALID_ARGUMENT;
    if (uuid->version != STRUCT_VERSION(*uuid, 1)) return VERSION_MISMATCH;
    if (uuid->type == ASCII) {
        memcpy(text, uuid->value.text, sizeof uuid->value.text);
    } else if (uuid->type == BINARY) {
        const unsigned char *b = uuid->value.bytes;
        snprintf(text, sizeof text, "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1],
                 b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]);
    } else {
        return INVALID_ARGUMENT;
    }
    return nvmlDeviceGetHandleByUUID(text, device);
}

EXPORT Return nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, Device *device) {
    unsigned domain, bus, slot;
    View view;
    Return result = session_enter(&view);
    if (result != OK) return result;
    if (bus_id == NULL || device == NULL || !bus_id_parse(bus_id, &domain, &bus, &slot))
        return session_leave(INVALID_ARGUMENT);
    for (size_t i = 0; i < view.count; i++) {
        const Gpu *gpu = &view.state->gpus[view.gpus[i]];
        if (gpu->domain == domain && gpu->bus == bus && gpu->device == slot)
            return session_leave(session_give(&view, i, device));
    }
    return session_leave(NOT_FOUND);
}

EXPORT Return nvmlDeviceGetHandleByPciBusId(const char *bus_id, Device *device) {
    return nvmlDeviceGetHandleByPciBusId_v2(bus_id, device);
}

/* A device that has fallen off the bus still knows who it was. */
EXPORT Return nvmlDeviceGetName(Device device, char *out, unsigned length) {
    View view;
    const Gpu *gpu;
    const MigDevice *mig;
    char name[NAME_SIZE + MIG_NAME + 8];
    Return result = session_enter_any_device(device, &view, &gpu, NULL, &mig);
    if (result != OK) return result;
    if (mig == NULL) return session_leave(text_out(gpu->name, out, length));
    const MigInstance *instance = instance_of(gpu, mig->instance);
    const MigComputeProfile *profile =
        instance ? compute_profile_of(&view, gpu, instance->profile, mig->profile) : NULL;
    snprintf(name, sizeof name, "%s MIG %s", gpu->name, profile ? profile->name : "");
    return session_leave(text_out(name, out, length));
}

EXPORT Return nvmlDeviceGetUUID(Device device, char *out, unsigned length) {
    View view;
    const Gpu *gpu;
    const MigDevice *mig;
    Return result = session_enter_any_device(device, &view, &gpu, NULL, &mig);
    return result != OK ? result : session_leave(text_out(mig ? mig->uuid : gpu->uuid, out, length));
}

STRING_IF(nvmlDeviceGetSerial, session_enter_any, gpu->serial[0], gpu->serial)
STRING_IF(nvmlDeviceGetVbiosVersion, session_enter_any, gpu->vbios[0], gpu->vbios)
STRING_IF(nvmlDeviceGetBoardPartNumber, session_enter_any, gpu->part_number[0], gpu->part_number)

static Return number_of(Device device, unsigned *out, int minor) {
    View view;
    const Gpu *gpu;
    const MigDevice *mig;
    size_t index;
    Return result = session_enter_any_device(device, &view, &gpu, &index, &mig);
    if (result != OK) return result;
    if (mig != NULL && minor) return session_leave(NOT_SUPPORTED);
    if (out == NULL) return session_leave(INVALID_ARGUMENT);
    *out = minor ? (unsigned)gpu->minor : mig ? session_mig_index(gpu, mig) : (unsigned)index;
    return session_leave(OK);
}

EXPORT Return nvmlDeviceGetIndex(Device device, unsigned *out) { return number_of(device, out, 0); }
EXPORT Return nvmlDeviceGetMinorNumber(Device device, unsigned *out) { return number_of(device, out, 1); }

static void address_text(const Gpu *gpu, char *legacy, char *full) {
    if (legacy) snprintf(legacy, BUS_ID_LEGACY_SIZE, "%04X:%02X:%02X.0", gpu->domain & 0xFFFF, gpu->bus, gpu->device);
    if (full) snprintf(full, BUS_ID_SIZE, "%08X:%02X:%02X.0", gpu->domain, gpu->bus, gpu->device);
}

EXPORT Return nvmlDeviceGetPciInfo_v3(Device device, PciInfo *info) {
    View view;
    const Gpu *gpu;
    Return result = session_enter_any(device, &view, &gpu, NULL);
    if (result != OK) return result;
    if (info == NULL) return session_leave(INVALID_ARGUMENT);
    memset(info, 0, sizeof *info);
    address_text(gpu, info->bus_id_legacy, info->bus_id);
    info->domain = gpu->domain;
    info->bus = gpu->bus;
    info->device = gpu->device;
    info->device_id = (unsigned)gpu->device_id;
    info->subsystem_id = (unsigned)gpu->subsystem_id;
    return session_leave(OK);
}

EXPORT Return nvmlDeviceGetPciInfo_v2(Device device, PciInfoOld *info) {
    PciInfo full;
    if (info == NULL) return INVALID_ARGUMENT;
    Return result = nvmlDeviceGetPciInfo_v3(device, &full);
    if (result != OK) return result;
    memset(info, 0, sizeof *info);
    memcpy(info, &full, offsetof(PciInfo, bus_id));
    return OK;
}

/* The first version ends before the subsystem. */
EXPORT Return nvmlDeviceGetPciInfo(Device device, PciInfoOld *info) {
    PciInfo full;
    if (info == NULL) return INVALID_ARGUMENT;
    Return result = nvmlDeviceGetPciInfo_v3(device, &full);
    if (result == OK) memcpy(info, &full, offsetof(PciInfo, subsystem_id));
    return result;
}

EXPORT Return nvmlDeviceGetPciInfoExt(Device device, PciInfoExt *info) {
    View view;
    const Gpu *gpu;
    Return result = session_enter_any(device, &view, &gpu, NULL);
    if (result != OK) return result;
    if (info == NULL) return session_leave(INVALID_ARGUMENT);
    if (info->version != STRUCT_VERSION(*info, 1)) return session_leave(VERSION_MISMATCH);
    address_text(gpu, NULL, info->bus_id);
    info->domain = gpu->domain;
    info->bus = gpu->bus;
    info->device = gpu->device;
    info->device_id = (unsigned)gpu->device_id;
    info->subsystem_id = (unsigned)gpu->subsystem_id;
    info->base_class = 3;
    info->sub_class = gpu->fan_low >= 0 ? 0 : 2;
    return session_leave(OK);
}

GETTER(nvmlDeviceGetBrand, unsigned, gpu->brand)
GETTER(nvmlDeviceGetArchitecture, unsigned, gpu->architecture)
GETTER(nvmlDeviceGetNumGpuCores, unsigned, gpu->cores)
GETTER(nvmlDeviceGetMemoryBusWidth, unsigned, gpu->bus_width)
GETTER(nvmlDeviceGetBusType, unsigned, 2 /* PCIe */)
GETTER(nvmlDeviceGetPowerSource, unsigned, 0 /* AC */)
GETTER(nvmlDeviceGetBoardId, unsigned, gpu->domain << 16 | gpu->bus << 8 | gpu->device)
GETTER(nvmlDeviceGetMultiGpuBoard, unsigned, 0)
GETTER(nvmlDeviceGetDisplayMode, unsigned, detail_text(gpu, "display_mode") && strcmp(detail_text(gpu, "display_mode"), "Enabled") == 0)
GETTER(nvmlDeviceGetDisplayActive, unsigned, 0)
GETTER(nvmlDeviceGetPersistenceMode, unsigned, gpu->persistence != 0)
GETTER(nvmlDeviceGetComputeMode, unsigned, gpu->compute_mode)
GETTER(nvmlDeviceGetVirtualizationMode, unsigned, 0 /* none */)
/* Only where the GPUs' memory itself is nodes: next to a Grace processor. */
GETTER_IF(nvmlDeviceGetNumaNodeId, unsigned, detail_text(gpu, "numa_id") != NULL,
          strtoll(detail_text(gpu, "numa_id"), NULL, 10))
PAIR_IF(nvmlDeviceGetCudaComputeCapability, int, 1, gpu->cc_major, gpu->cc_minor)
PAIR_IF(nvmlDeviceGetGspFirmwareMode, unsigned, gpu->architecture >= ARCH_TURING, 1, 1)

EXPORT Return nvmlDeviceGetGspFirmwareVersion(Device device, char *version) {
    View view;
    const Gpu *gpu;
    Return result = session_enter_gpu(device, &view, &gpu, NULL);
    if (result != OK) return result;
    if (version == NULL) return session_leave(INVALID_ARGUMENT);
    if (gpu->architecture < ARCH_TURING) return session_leave(NOT_SUPPORTED);
    return session_leave(text_out(view.state->driver_version, version, 64));
}

/* The public description identifier: here, the digits of the UUID. */
EXPORT Return nvmlDeviceGetPdi(Device device, void *out) {
    Pdi pdi;
    unsigned char bytes[16] = {0};
    View view;
    const Gpu *gpu;
    Return result = session_enter_gpu(device, &view, &gpu, NULL);
    if (result != OK) return result;
    if (out == NULL) return session_leave(INVALID_ARGUMENT);
    memcpy(&pdi.version, out, sizeof pdi.version);
    if (pdi.version != STRUCT_VERSION(pdi, 1)) return session_leave(VERSION_MISMATCH);
    if (strncmp(gpu->uuid, "GPU-", 4) != 0 || !hex_of(gpu->uuid + 4, bytes)) return session_leave(NOT_SUPPORTED);
    memcpy(&pdi.value, bytes, sizeof pdi.value);
    memcpy((char *)out + offsetof(Pdi, value), &pdi.value, sizeof pdi.value);
    return session_leave(OK);
}
