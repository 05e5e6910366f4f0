/* What the state tells of a GPU by name, and the calls of the API that give such a text as it is. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "getter.h"
#include "now.h"

/* A text that follows from what holds now: details.py, details_of. */
static Return moving(const View *view, const Gpu *gpu, const char *text, char *out, unsigned length) {
    char shown[64], *rest;
    long long first = strtoll(text + 2, &rest, 10);
    if (text[1] == 'c' || text[1] == 'h' || text[1] == 's') {
        Totals totals = totals_now(view, gpu);
        long long held = text[1] == 'c' ? totals.capped : text[1] == 'h' ? totals.hot : totals.cooled;
        snprintf(shown, sizeof shown, "%lld us", held / 1000);
    } else if (text[1] == 't') {
        snprintf(shown, sizeof shown, "%lld%.8s", first - temperature_now(view, gpu), rest);
    } else {
        long long whole = strtoll(rest, NULL, 10);
        long long part = whole > 0 ? span_now(view, gpu)->power * first / whole : 0;
        snprintf(shown, sizeof shown, "%lld.%02lld W", part / 1000, part % 1000 / 10);
    }
    return text_out(shown, out, length);
}

static Return detail(Device device, const char *key, char *out, unsigned length) {
    View view;
    const Gpu *gpu;
    Return result = session_enter_gpu(device, &view, &gpu, NULL);
    if (result != OK) return result;
    const char *text = detail_text(gpu, key);
    if (text == NULL) return session_leave(NOT_FOUND);
    return session_leave(text[0] == '=' ? moving(&view, gpu, text, out, length) : text_out(text, out, length));
}

static Return bus_id_at(unsigned index, char *out, unsigned length) {
    View view;
    Return result = session_enter(&view);
    if (result != OK) return result;
    if (index >= view.count) return session_leave(NOT_FOUND);
    return session_leave(text_out(view.state->gpus[view.gpus[index]].bus_id, out, length));
}

EXPORT Return nvmlInternalGetExportTable(const void **out, const void *id) {
    static const DetailTable TABLE = {sizeof TABLE, detail, gpu_reset, driver_set, bus_id_at};
    if (out == NULL || id == NULL) return INVALID_ARGUMENT;
    if (memcmp(id, DETAIL_TABLE_ID, sizeof DETAIL_TABLE_ID) != 0) return NOT_SUPPORTED;
    *out = &TABLE;
    return OK;
}

static unsigned number_of(const char *text) { return text ? (unsigned)strtoul(text, NULL, 0) : 0; }

/* ---- Addressing, C2C, the module ---- */

EXPORT Return nvmlDeviceGetAddressingMode(Device device, void *out) {
    static const char *const WORDS[] = {"None", "HMM", "ATS"};
    AddressingMode told;
    View view;
    const Gpu *gpu;
    Return result = session_enter_gpu(device, &view, &gpu, NULL);
    if (result != OK) return result;
    if (out == NULL) return session_leave(INVALID_ARGUMENT);
    memcpy(&told.version, out, sizeof told.version);
    if (told.version != STRUCT_VERSION(told, 1)) return session_leave(VERSION_MISMATCH);
    const char *text = detail_text(gpu, "addressing_mode");
    if (text == NULL) return session_leave(NOT_SUPPORTED);
    for (told.mode = 0; told.mode < 2 && strcmp(WORDS[told.mode], text) != 0;) told.mode++;
    memcpy(out, &told, sizeof told);
    return session_leave(OK);
}

GETTER_IF(nvmlDeviceGetC2cModeInfoV, unsigned, detail_text(gpu, "c2c_mode") != NULL,
          strcmp(detail_text(gpu, "c2c_mode"), "Enabled") == 0)
GETTER_IF(nvmlDeviceGetModuleId, unsigned, detail_text(gpu, "module_id") != NULL,
          number_of(detail_text(gpu, "module_id")))

EXPORT Return nvmlDeviceGetPlatformInfo(Device device, void *out) {
    PlatformInfo told;
    View view;
    const Gpu *gpu;
    Return result = session_enter_gpu(device, &view, &gpu, NULL);
    if (result != OK) return result;
    if (out == NULL) return session_leave(INVALID_ARGUMENT);
    memcpy(&told.version, out, sizeof told.version);
    unsigned version = told.version;
    if (version != STRUCT_VERSION(told, 1) && version != STRUCT_VERSION(told, 2)) return session_leave(VERSION_MISMATCH);
    const char *chassis = detail_text(gpu, "chassis_serial_number");
    if (chassis == NULL) return session_leave(NOT_SUPPORTED);
    memset(&told, 0, sizeof told);
    told.version = version;
    unsigned long long guid = strtoull(detail_text(gpu, "gpu_fabric_guid"), NULL, 0);
    memcpy(told.fabric_guid, &guid, sizeof guid);
    memcpy(told.chassis, chassis, strnlen(chassis, sizeof told.chassis));
    told.slot = (unsigned char)number_of(detail_text(gpu, "slot_number"));
    told.tray = (unsigned char)number_of(detail_text(gpu, "tray_index"));
    told.host = (unsigned char)number_of(detail_text(gpu, "host_id"));
    told.peer = 1; /* connected to switches */
    told.module = (unsigned char)number_of(detail_text(gpu, "module_id"));
    memcpy(out, &told, sizeof told);
    return session_leave(OK);
}

/* ---- The fabric of NVSwitch systems ---- */

enum { FABRIC_COMPLETED = 3, HEALTHY = 1, ALL_WELL = 0xAA /* four pairs of bits, each "false" */ };

EXPORT Return nvmlDeviceGetGpuFabricInfo(Device device, void *out) {
    FabricInfo told = {.state = FABRIC_COMPLETED};
    View view;
    const Gpu *gpu;
    Return result = session_enter_gpu(device, &view, &gpu, NULL);
    if (result != OK) return result;
    if (out == NULL) return session_leave(INVALID_ARGUMENT);
    if (detail_text(gpu, "fabric_state") == NULL) return session_leave(NOT_SUPPORTED);
    told.clique = number_of(detail_text(gpu, "fabric_clique"));
    memcpy(out, &told, sizeof told);
    return session_leave(OK);
}

EXPORT Return nvmlDeviceGetGpuFabricInfoV(Device device, void *out) {
    FabricInfoV told = {.state = FABRIC_COMPLETED};
    enum { SIZE_V2 = 36 };
    View view;
    const Gpu *gpu;
    Return result = session_enter_gpu(device, &view, &gpu, NULL);
    if (result != OK) return result;
    if (out == NULL) return session_leave(INVALID_ARGUMENT);
    memcpy(&told.version, out, sizeof told.version);
    if (told.version != (SIZE_V2 | 2u << 24) && told.version != STRUCT_VERSION(told, 3))
        return session_leave(VERSION_MISMATCH);
    if (detail_text(gpu, "fabric_state") == NULL) return session_leave(NOT_SUPPORTED);
    told.clique = number_of(detail_text(gpu, "fabric_clique"));
    if (detail_text(gpu, "fabric_summary")) {
        told.health = ALL_WELL;
        told.summary = HEALTHY;
    }
    memcpy(out, &told, told.version >> 24 == 2 ? SIZE_V2 : sizeof told);
    return session_leave(OK);
}
