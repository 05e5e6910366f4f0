/* Every value that nvidia-smi knows by a name: one row and one call each. */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

#include "driver.h"
#include "gpus.h"

__attribute__((format(printf, 3, 4))) static Return told(Return result, char *out, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    if (result == OK) vsnprintf(out, VALUE_SIZE, format, arguments);
    va_end(arguments);
    return result;
}

#define UINT(field, call) \
    static Return field(Device d, char *o) { \
        unsigned v = 0; \
        Return r = api.call(d, &v); \
        return told(r, o, "%u", v); \
    }
#define UINT_OF(field, call, which) \
    static Return field(Device d, char *o) { \
        unsigned v = 0; \
        Return r = api.call(d, which, &v); \
        return told(r, o, "%u", v); \
    }
#define WATT(field, call) \
    static Return field(Device d, char *o) { \
        unsigned v = 0; \
        Return r = api.call(d, &v); \
        return told(r, o, "%u.%02u", v / 1000, v % 1000 / 10); \
    }
#define STRING(field, call) \
    static Return field(Device d, char *o) { \
        return api.call(d, o, VALUE_SIZE); \
    }
#define WORD(field, call, off, on) \
    static Return field(Device d, char *o) { \
        unsigned v = 0; \
        Return r = api.call(d, &v); \
        return told(r, o, "%s", v ? on : off); \
    }
#define PCI(field, format, ...) \
    static Return field(Device d, char *o) { \
        PciInfo p = {0}; \
        Return r = api.nvmlDeviceGetPciInfo_v3(d, &p); \
        return told(r, o, format, __VA_ARGS__); \
    }
#define MEMORY(field, member) \
    static Return field(Device d, char *o) { \
        Memory2 m = {.version = STRUCT_VERSION(m, 2)}; \
        Return r = api.nvmlDeviceGetMemoryInfo_v2(d, &m); \
        return told(r, o, "%llu", m.member >> 20); \
    }
#define BAR1(field, member) \
    static Return field(Device d, char *o) { \
        Bar1Memory m = {0}; \
        Return r = api.nvmlDeviceGetBAR1MemoryInfo(d, &m); \
        return told(r, o, "%llu", m.member >> 20); \
    }
#define LOAD(field, member) \
    static Return field(Device d, char *o) { \
        Utilization u = {0}; \
        Return r = api.nvmlDeviceGetUtilizationRates(d, &u); \
        return told(r, o, "%u", u.member); \
    }
#define SAMPLED(field, call) \
    static Return field(Device d, char *o) { \
        unsigned v = 0, p = 0; \
        Return r = api.call(d, &v, &p); \
        return told(r, o, "%u", v); \
    }
#define ECC_TOTAL(field, error, counter) \
    static Return field(Device d, char *o) { \
        unsigned long long v = 0; \
        Return r = api.nvmlDeviceGetTotalEccErrors(d, error, counter, &v); \
        return told(r, o, "%llu", v); \
    }
#define ECC_AT(field, error, counter, location) \
    static Return field(Device d, char *o) { \
        unsigned long long v = 0; \
        Return r = api.nvmlDeviceGetMemoryErrorCounter(d, error, counter, location, &v); \
        return told(r, o, "%llu", v); \
    }
#define REASON(field, bit) \
    static Return field(Device d, char *o) { \
        unsigned long long v = 0; \
        Return r = api.nvmlDeviceGetCurrentClocksEventReasons(d, &v); \
        return told(r, o, "%s", v & bit ? "Active" : "Not Active"); \
    }

STRING(get_name, nvmlDeviceGetName)
STRING(get_uuid, nvmlDeviceGetUUID)
STRING(get_serial, nvmlDeviceGetSerial)
STRING(get_vbios, nvmlDeviceGetVbiosVersion)
STRING(get_part_number, nvmlDeviceGetBoardPartNumber)
UINT(get_index, nvmlDeviceGetIndex)
UINT(get_minor, nvmlDeviceGetMinorNumber)
WORD(get_display_mode, nvmlDeviceGetDisplayMode, "Disabled", "Enabled")
WORD(get_display_active, nvmlDeviceGetDisplayActive, "Disabled", "Enabled")
WORD(get_persistence, nvmlDeviceGetPersistenceMode, "Disabled", "Enabled")
WORD(get_accounting, nvmlDeviceGetAccountingMode, "Disabled", "Enabled")
UINT(get_accounting_size, nvmlDeviceGetAccountingBufferSize)
WORD(get_multi_gpu, nvmlDeviceGetMultiGpuBoard, "No", "Yes")
WORD(get_virtualization, nvmlDeviceGetVirtualizationMode, "None", "Pass-Through")
PCI(get_bus_id, "%s", p.bus_id)
PCI(get_domain, "0x%04X", p.domain)
PCI(get_bus, "0x%02X", p.bus)
PCI(get_device, "0x%02X", p.device)
PCI(get_device_id, "0x%08X", p.device_id)
PCI(get_subsystem_id, "0x%08X", p.subsystem_id)
UINT(get_gen, nvmlDeviceGetCurrPcieLinkGeneration)
UINT(get_max_gen, nvmlDeviceGetMaxPcieLinkGeneration)
UINT(get_width, nvmlDeviceGetCurrPcieLinkWidth)
UINT(get_max_width, nvmlDeviceGetMaxPcieLinkWidth)
UINT(get_replays, nvmlDeviceGetPcieReplayCounter)
UINT_OF(get_tx, nvmlDeviceGetPcieThroughput, 0)
UINT_OF(get_rx, nvmlDeviceGetPcieThroughput, 1)
UINT(get_fan, nvmlDeviceGetFanSpeed)
MEMORY(get_memory_total, total)
MEMORY(get_memory_reserved, reserved)
MEMORY(get_memory_used, used)
MEMORY(get_memory_free, free)
BAR1(get_bar1_total, total)
BAR1(get_bar1_used, used)
BAR1(get_bar1_free, free)
LOAD(get_utilization, gpu)
LOAD(get_memory_utilization, memory)
SAMPLED(get_encoder, nvmlDeviceGetEncoderUtilization)
SAMPLED(get_decoder, nvmlDeviceGetDecoderUtilization)
SAMPLED(get_jpeg, nvmlDeviceGetJpgUtilization)
SAMPLED(get_ofa, nvmlDeviceGetOfaUtilization)
ECC_TOTAL(get_ecc_corrected, 0, 0)
ECC_TOTAL(get_ecc_uncorrected, 1, 0)
ECC_TOTAL(get_ecc_corrected_ever, 0, 1)
ECC_TOTAL(get_ecc_uncorrected_ever, 1, 1)
ECC_AT(get_ecc_dram_corrected, 0, 0, 2)
ECC_AT(get_ecc_dram_uncorrected, 1, 0, 2)
ECC_AT(get_ecc_dram_corrected_ever, 0, 1, 2)
ECC_AT(get_ecc_dram_uncorrected_ever, 1, 1, 2)
ECC_AT(get_ecc_sram_corrected, 0, 0, 7)
ECC_AT(get_ecc_sram_uncorrected, 1, 0, 7)
ECC_AT(get_ecc_sram_corrected_ever, 0, 1, 7)
ECC_AT(get_ecc_sram_uncorrected_ever, 1, 1, 7)
REASON(get_reason_idle, 0x1)
REASON(get_reason_applications, 0x2)
REASON(get_reason_power_cap, 0x4)
REASON(get_reason_hw_slowdown, 0x8)
REASON(get_reason_sync_boost, 0x10)
REASON(get_reason_sw_thermal, 0x20)
REASON(get_reason_hw_thermal, 0x40)
REASON(get_reason_power_brake, 0x80)
UINT_OF(get_temperature, nvmlDeviceGetTemperature, 0)
UINT_OF(get_shutdown, nvmlDeviceGetTemperatureThreshold, THRESHOLD_SHUTDOWN)
UINT_OF(get_slowdown, nvmlDeviceGetTemperatureThreshold, THRESHOLD_SLOWDOWN)
UINT_OF(get_gpu_max, nvmlDeviceGetTemperatureThreshold, THRESHOLD_GPU_MAX)
UINT_OF(get_memory_max, nvmlDeviceGetTemperatureThreshold, THRESHOLD_MEMORY_MAX)
WORD(get_power_management, nvmlDeviceGetPowerManagementMode, "Disabled", "Enabled")
WATT(get_power, nvmlDeviceGetPowerUsage)
WATT(get_power_limit, nvmlDeviceGetPowerManagementLimit)
WATT(get_power_enforced, nvmlDeviceGetEnforcedPowerLimit)
WATT(get_power_default, nvmlDeviceGetPowerManagementDefaultLimit)
UINT_OF(get_graphics_clock, nvmlDeviceGetClockInfo, CLOCK_GRAPHICS)
UINT_OF(get_sm_clock, nvmlDeviceGetClockInfo, CLOCK_SM)
UINT_OF(get_memory_clock, nvmlDeviceGetClockInfo, CLOCK_MEMORY)
UINT_OF(get_video_clock, nvmlDeviceGetClockInfo, CLOCK_VIDEO)
UINT_OF(get_max_graphics_clock, nvmlDeviceGetMaxClockInfo, CLOCK_GRAPHICS)
UINT_OF(get_max_sm_clock, nvmlDeviceGetMaxClockInfo, CLOCK_SM)
UINT_OF(get_max_memory_clock, nvmlDeviceGetMaxClockInfo, CLOCK_MEMORY)
UINT_OF(get_max_video_clock, nvmlDeviceGetMaxClockInfo, CLOCK_VIDEO)
UINT_OF(get_boost_clock, nvmlDeviceGetMaxCustomerBoostClock, CLOCK_GRAPHICS)
UINT_OF(get_application_graphics, nvmlDeviceGetApplicationsClock, CLOCK_GRAPHICS)
UINT_OF(get_application_memory, nvmlDeviceGetApplicationsClock, CLOCK_MEMORY)
UINT_OF(get_default_graphics, nvmlDeviceGetDefaultApplicationsClock, CLOCK_GRAPHICS)
UINT_OF(get_default_memory, nvmlDeviceGetDefaultApplicationsClock, CLOCK_MEMORY)
WORD(get_retired_pending, nvmlDeviceGetRetiredPagesPendingStatus, "No", "Yes")

static Return retired(Device d, char *o, unsigned cause) {
    unsigned count = 0;
    Return result = api.nvmlDeviceGetRetiredPages(d, cause, &count, NULL);
    return told(result, o, "%u", count);
}

static Return get_retired_single(Device d, char *o) { return retired(d, o, 0); }
static Return get_retired_double(Device d, char *o) { return retired(d, o, 1); }

static Return get_timestamp(Device d, char *o) {
    struct timeval now;
    struct tm parts;
    gettimeofday(&now, NULL);
    localtime_r(&now.tv_sec, &parts);
    size_t length = strftime(o, VALUE_SIZE, "%Y/%m/%d %H:%M:%S", &parts);
    snprintf(o + length, VALUE_SIZE - length, ".%03u", (unsigned)(now.tv_usec / 1000) % 1000);
    return OK;
}

static Return get_driver(Device d, char *o) { return api.nvmlSystemGetDriverVersion(o, VALUE_SIZE); }
static Return get_gsp(Device d, char *o) { return api.nvmlDeviceGetGspFirmwareVersion(d, o); }

static Return get_gsp_mode(Device d, char *o) {
    char version[VALUE_SIZE];
    return told(api.nvmlDeviceGetGspFirmwareVersion(d, version), o, "Enabled");
}

static Return get_count(Device d, char *o) {
    unsigned count = 0;
    Return result = api.nvmlDeviceGetCount_v2(&count);
    return told(result, o, "%u", count);
}

static Return get_board_id(Device d, char *o) {
    unsigned id = 0;
    Return result = api.nvmlDeviceGetBoardId(d, &id);
    return told(result, o, "0x%x", id);
}

static Return get_pstate(Device d, char *o) {
    unsigned state = 0;
    Return result = api.nvmlDeviceGetPerformanceState(d, &state);
    return told(result, o, "P%u", state);
}

static Return word_out(Return result, unsigned place, const char *const *words, unsigned count, char *out) {
    return told(result, out, "%s", place < count ? words[place] : "Unknown");
}

static Return get_brand(Device d, char *o) {
    static const char *const WORDS[] = {"Unknown", "Quadro", "Tesla", "NVS", "Grid", "GeForce", "Titan",
                                        "NVIDIA Virtual Applications", "NVIDIA Virtual PC",
                                        "NVIDIA Virtual Compute Server", "NVIDIA RTX Virtual Workstation",
                                        "NVIDIA Cloud Gaming", "Quadro RTX", "NVIDIA RTX", "NVIDIA", "GeForce RTX"};
    unsigned brand = 0;
    Return result = api.nvmlDeviceGetBrand(d, &brand);
    return word_out(result, brand, WORDS, sizeof WORDS / sizeof *WORDS, o);
}

static Return get_architecture(Device d, char *o) {
    static const char *const WORDS[] = {"Unknown", "Unknown", "Kepler", "Maxwell", "Pascal", "Volta", "Turing",
                                        "Ampere", "Ada Lovelace", "Hopper", "Blackwell"};
    unsigned architecture = 0;
    Return result = api.nvmlDeviceGetArchitecture(d, &architecture);
    return word_out(result, architecture, WORDS, sizeof WORDS / sizeof *WORDS, o);
}

static Return get_compute_mode(Device d, char *o) {
    static const char *const WORDS[] = {"Default", "Exclusive_Thread", "Prohibited", "Exclusive_Process"};
    unsigned mode = 0;
    Return result = api.nvmlDeviceGetComputeMode(d, &mode);
    return word_out(result, mode, WORDS, sizeof WORDS / sizeof *WORDS, o);
}

static Return get_compute_cap(Device d, char *o) {
    int major = 0, minor = 0;
    Return result = api.nvmlDeviceGetCudaComputeCapability(d, &major, &minor);
    return told(result, o, "%d.%d", major, minor);
}

static Return mig_mode(Device d, char *o, int is_pending) {
    unsigned current = 0, pending = 0;
    Return result = api.nvmlDeviceGetMigMode(d, &current, &pending);
    return told(result, o, "%s", (is_pending ? pending : current) ? "Enabled" : "Disabled");
}

static Return get_mig(Device d, char *o) { return mig_mode(d, o, 0); }
static Return get_mig_pending(Device d, char *o) { return mig_mode(d, o, 1); }

static Return ecc_mode(Device d, char *o, int is_pending) {
    unsigned current = 0, pending = 0;
    Return result = api.nvmlDeviceGetEccMode(d, &current, &pending);
    return told(result, o, "%s", (is_pending ? pending : current) ? "Enabled" : "Disabled");
}
static Return get_ecc_mode(Device d, char *o) { return ecc_mode(d, o, 0); }
static Return get_ecc_pending(Device d, char *o) { return ecc_mode(d, o, 1); }

static Return get_memory_temperature(Device d, char *o) {
    enum { MEMORY_TEMPERATURE = 82 };
    FieldValue value = {.field = MEMORY_TEMPERATURE};
    Return result = api.nvmlDeviceGetFieldValues(d, 1, &value);
    return told(result == OK ? value.result : result, o, "%u", value.value.ui);
}

static Return power_bound(Device d, char *o, int upper) {
    unsigned low = 0, high = 0;
    Return result = api.nvmlDeviceGetPowerManagementLimitConstraints(d, &low, &high);
    unsigned milliwatts = upper ? high : low;
    return told(result, o, "%u.%02u", milliwatts / 1000, milliwatts % 1000 / 10);
}

static Return get_power_min(Device d, char *o) { return power_bound(d, o, 0); }
static Return get_power_max(Device d, char *o) { return power_bound(d, o, 1); }

static Return encoder_stat(Device d, char *o, int which) {
    unsigned stats[3] = {0};
    Return result = api.nvmlDeviceGetEncoderStats(d, &stats[0], &stats[1], &stats[2]);
    return told(result, o, "%u", stats[which]);
}

static Return get_encoder_sessions(Device d, char *o) { return encoder_stat(d, o, 0); }
static Return get_encoder_fps(Device d, char *o) { return encoder_stat(d, o, 1); }
static Return get_encoder_latency(Device d, char *o) { return encoder_stat(d, o, 2); }

static Return remapped(Device d, char *o, int which) {
    unsigned rows[4] = {0};
    Return result = api.nvmlDeviceGetRemappedRows(d, &rows[0], &rows[1], &rows[2], &rows[3]);
    return which < 2 ? told(result, o, "%u", rows[which]) : told(result, o, "%s", rows[which] ? "Yes" : "No");
}

static Return get_remapped_corrected(Device d, char *o) { return remapped(d, o, 0); }
static Return get_remapped_uncorrected(Device d, char *o) { return remapped(d, o, 1); }
static Return get_remapped_pending(Device d, char *o) { return remapped(d, o, 2); }
static Return get_remapped_failure(Device d, char *o) { return remapped(d, o, 3); }

static Return get_reasons(Device d, char *o) {
    unsigned long long reasons = 0;
    Return result = api.nvmlDeviceGetCurrentClocksEventReasons(d, &reasons);
    return told(result, o, "0x%016llX", reasons);
}

static Return get_reasons_supported(Device d, char *o) {
    unsigned long long reasons = 0;
    Return result = api.nvmlDeviceGetSupportedClocksEventReasons(d, &reasons);
    return told(result, o, "0x%016llX", reasons);
}

/* The mean over a second, where the model measures one: boards before Ampere and GA100 do not. */
static Return get_average_power(Device d, char *o) {
    return detail_of(d, "average_power", o) == OK ? get_power(d, o) : NOT_SUPPORTED;
}

static const Field FIELDS[] = {
    {"timestamp", NULL, NULL, get_timestamp, NULL, NULL},
    {"driver_version", NULL, NULL, get_driver, NULL, NULL},
    {"kmd_version", NULL, NULL, get_driver, NULL, NULL},
    {"count", NULL, NULL, get_count, NULL, NULL},
    {"name", "gpu_name", NULL, get_name, NULL, NULL},
    {"serial", "gpu_serial", NULL, get_serial, NULL, NULL},
    {"uuid", "gpu_uuid", NULL, get_uuid, NULL, NULL},
    {"pci.bus_id", "gpu_bus_id", NULL, get_bus_id, NULL, NULL},
    {"pci.domain", NULL, NULL, get_domain, NULL, NULL},
    {"pci.bus", NULL, NULL, get_bus, NULL, NULL},
    {"pci.device", NULL, NULL, get_device, NULL, NULL},
    {"pci.device_id", NULL, NULL, get_device_id, NULL, NULL},
    {"pci.sub_device_id", NULL, NULL, get_subsystem_id, NULL, NULL},
    {"pcie.link.gen.current", NULL, NULL, get_gen, NULL, NULL},
    {"pcie.link.gen.gpucurrent", NULL, NULL, get_gen, NULL, NULL},
    {"pcie.link.gen.max", NULL, NULL, get_max_gen, NULL, NULL},
    {"pcie.link.gen.gpumax", NULL, NULL, get_max_gen, NULL, NULL},
    {"pcie.link.width.current", NULL, NULL, get_width, NULL, NULL},
    {"pcie.link.width.max", NULL, NULL, get_max_width, NULL, NULL},
    {"index", NULL, NULL, get_index, NULL, NULL},
    {"display_mode", NULL, NULL, get_display_mode, NULL, "580=N/A|580.126=" GONE "|595.91=N/A"},
    {"display_active", NULL, NULL, get_display_active, NULL, NULL},
    {"persistence_mode", NULL, NULL, get_persistence, NULL, NULL},
    {"accounting.mode", NULL, NULL, get_accounting, NULL, NULL},
    {"accounting.buffer_size", NULL, NULL, get_accounting_size, NULL, NULL},
    {"vbios_version", NULL, NULL, get_vbios, NULL, NULL},
    {"fan.speed", NULL, "%", get_fan, NULL, NULL},
    {"pstate", NULL, NULL, get_pstate, NULL, NULL},
    {"clocks_event_reasons.supported", "clocks_throttle_reasons.supported", NULL, get_reasons_supported, NULL, NULL},
    {"clocks_event_reasons.active", "clocks_throttle_reasons.active", NULL, get_reasons, NULL, NULL},
    {"clocks_event_reasons.gpu_idle", "clocks_throttle_reasons.gpu_idle", NULL, get_reason_idle, NULL, NULL},
    {"clocks_event_reasons.applications_clocks_setting", "clocks_throttle_reasons.applications_clocks_setting", NULL,
     get_reason_applications, NULL, NULL},
    {"clocks_event_reasons.sw_power_cap", "clocks_throttle_reasons.sw_power_cap", NULL,
     get_reason_power_cap, NULL, NULL},
    {"clocks_event_reasons.hw_slowdown", "clocks_throttle_reasons.hw_slowdown", NULL,
     get_reason_hw_slowdown, NULL, NULL},
    {"clocks_event_reasons.hw_thermal_slowdown", "clocks_throttle_reasons.hw_thermal_slowdown", NULL,
     get_reason_hw_thermal, NULL, NULL},
    {"clocks_event_reasons.hw_power_brake_slowdown", "clocks_throttle_reasons.hw_power_brake_slowdown", NULL,
     get_reason_power_brake, NULL, NULL},
    {"clocks_event_reasons.sw_thermal_slowdown", "clocks_throttle_reasons.sw_thermal_slowdown", NULL,
     get_reason_sw_thermal, NULL, NULL},
    {"clocks_event_reasons.sync_boost", "clocks_throttle_reasons.sync_boost", NULL, get_reason_sync_boost, NULL, NULL},
    {"memory.total", NULL, "MiB", get_memory_total, NULL, NULL},
    {"memory.reserved", NULL, "MiB", get_memory_reserved, NULL, NULL},
    {"memory.used", NULL, "MiB", get_memory_used, NULL, NULL},
    {"memory.free", NULL, "MiB", get_memory_free, NULL, NULL},
    {"compute_mode", NULL, NULL, get_compute_mode, NULL, NULL},
    {"compute_cap", NULL, NULL, get_compute_cap, NULL, NULL},
    {"utilization.gpu", NULL, "%", get_utilization, NULL, NULL},
    {"utilization.memory", NULL, "%", get_memory_utilization, NULL, NULL},
    {"utilization.encoder", NULL, "%", get_encoder, NULL, NULL},
    {"utilization.decoder", NULL, "%", get_decoder, NULL, NULL},
    {"utilization.jpeg", NULL, "%", get_jpeg, NULL, NULL},
    {"utilization.ofa", NULL, "%", get_ofa, NULL, NULL},
    {"encoder.stats.sessionCount", NULL, NULL, get_encoder_sessions, NULL, NULL},
    {"encoder.stats.averageFps", NULL, NULL, get_encoder_fps, NULL, NULL},
    {"encoder.stats.averageLatency", NULL, NULL, get_encoder_latency, NULL, NULL},
    {"ecc.mode.current", NULL, NULL, get_ecc_mode, NULL, NULL},
    {"ecc.mode.pending", NULL, NULL, get_ecc_pending, NULL, NULL},
    {"ecc.errors.corrected.volatile.device_memory", NULL, NULL, get_ecc_dram_corrected, NULL, NULL},
    {"ecc.errors.corrected.volatile.dram", NULL, NULL, get_ecc_dram_corrected, NULL, NULL},
    {"ecc.errors.corrected.volatile.sram", NULL, NULL, get_ecc_sram_corrected, NULL, NULL},
    {"ecc.errors.corrected.volatile.total", NULL, NULL, get_ecc_corrected, NULL, NULL},
    {"ecc.errors.corrected.aggregate.device_memory", NULL, NULL, get_ecc_dram_corrected_ever, NULL, NULL},
    {"ecc.errors.corrected.aggregate.dram", NULL, NULL, get_ecc_dram_corrected_ever, NULL, NULL},
    {"ecc.errors.corrected.aggregate.sram", NULL, NULL, get_ecc_sram_corrected_ever, NULL, NULL},
    {"ecc.errors.corrected.aggregate.total", NULL, NULL, get_ecc_corrected_ever, NULL, NULL},
    {"ecc.errors.uncorrected.volatile.device_memory", NULL, NULL, get_ecc_dram_uncorrected, NULL, NULL},
    {"ecc.errors.uncorrected.volatile.dram", NULL, NULL, get_ecc_dram_uncorrected, NULL, NULL},
    {"ecc.errors.uncorrected.volatile.sram", NULL, NULL, get_ecc_sram_uncorrected, NULL, NULL},
    {"ecc.errors.uncorrected.volatile.total", NULL, NULL, get_ecc_uncorrected, NULL, NULL},
    {"ecc.errors.uncorrected.aggregate.device_memory", NULL, NULL, get_ecc_dram_uncorrected_ever, NULL, NULL},
    {"ecc.errors.uncorrected.aggregate.dram", NULL, NULL, get_ecc_dram_uncorrected_ever, NULL, NULL},
    {"ecc.errors.uncorrected.aggregate.sram", NULL, NULL, get_ecc_sram_uncorrected_ever, NULL, NULL},
    {"ecc.errors.uncorrected.aggregate.total", NULL, NULL, get_ecc_uncorrected_ever, NULL, NULL},
    {"ecc.errors.uncorrected.volatile.sram.secded", NULL, NULL, get_ecc_sram_uncorrected, NULL, NULL},
    {"ecc.errors.uncorrected.aggregate.sram.secded", NULL, NULL, get_ecc_sram_uncorrected_ever, NULL, NULL},
    {"ecc.errors.uncorrected.aggregate.sram.l2", NULL, NULL, get_ecc_sram_uncorrected_ever, NULL, NULL},
    {"retired_pages.single_bit_ecc.count", "retired_pages.sbe", NULL, get_retired_single, NULL, NULL},
    {"retired_pages.double_bit.count", "retired_pages.dbe", NULL, get_retired_double, NULL, NULL},
    {"retired_pages.pending", NULL, NULL, get_retired_pending, NULL, NULL},
    {"remapped_rows.correctable", "remapped_rows.sbe", NULL, get_remapped_corrected, NULL, NULL},
    {"remapped_rows.uncorrectable", "remapped_rows.dbe", NULL, get_remapped_uncorrected, NULL, NULL},
    {"remapped_rows.pending", NULL, NULL, get_remapped_pending, NULL, NULL},
    {"remapped_rows.failure", NULL, NULL, get_remapped_failure, NULL, NULL},
    {"temperature.gpu", NULL, NULL, get_temperature, NULL, NULL},
    {"temperature.memory", NULL, NULL, get_memory_temperature, NULL, NULL},
    {"power.management", NULL, NULL, get_power_management, NULL, DEPRECATED},
    {"power.draw", NULL, "W", get_power, NULL, NULL},
    {"power.draw.average", "gpu.power.draw.average", "W", get_average_power, NULL, NULL},
    {"power.draw.instant", "gpu.power.draw.instant", "W", get_power, NULL, NULL},
    {"power.limit", "gpu.power.requested_limit", "W", get_power_limit, NULL, NULL},
    {"enforced.power.limit", "gpu.power.current_limit", "W", get_power_enforced, NULL, NULL},
    {"power.default_limit", "gpu.power.default_limit", "W", get_power_default, NULL, NULL},
    {"power.min_limit", "gpu.power.min_limit", "W", get_power_min, NULL, NULL},
    {"power.max_limit", "gpu.power.max_limit", "W", get_power_max, NULL, NULL},
    {"clocks.current.graphics", "clocks.gr", "MHz", get_graphics_clock, NULL, NULL},
    {"clocks.current.sm", "clocks.sm", "MHz", get_sm_clock, NULL, NULL},
    {"clocks.current.memory", "clocks.mem", "MHz", get_memory_clock, NULL, NULL},
    {"clocks.current.video", "clocks.video", "MHz", get_video_clock, NULL, NULL},
    {"clocks.applications.graphics", "clocks.applications.gr", "MHz", get_application_graphics, NULL, DEPRECATED},
    {"clocks.applications.memory", "clocks.applications.mem", "MHz", get_application_memory, NULL, DEPRECATED},
    {"clocks.default_applications.graphics", "clocks.default_applications.gr", "MHz",
     get_default_graphics, NULL, DEPRECATED},
    {"clocks.default_applications.memory", "clocks.default_applications.mem", "MHz",
     get_default_memory, NULL, DEPRECATED},
    {"clocks.max.graphics", "clocks.max.gr", "MHz", get_max_graphics_clock, NULL, NULL},
    {"clocks.max.sm", NULL, "MHz", get_max_sm_clock, NULL, NULL},
    {"clocks.max.memory", "clocks.max.mem", "MHz", get_max_memory_clock, NULL, NULL},
    {"gsp.mode.current", NULL, NULL, get_gsp_mode, NULL, NULL},
    {"gsp.mode.default", NULL, NULL, get_gsp_mode, NULL, NULL},
    {"mig.mode.current", NULL, NULL, get_mig, NULL, NULL},
    {"mig.mode.pending", NULL, NULL, get_mig_pending, NULL, NULL},
};

/* Shown elsewhere; no words of --query-gpu. */
static const Field INNER[] = {
    {"product_brand", NULL, NULL, get_brand, NULL, NULL},
    {"product_architecture", NULL, NULL, get_architecture, NULL, NULL},
    {"pcie.replay_counter", NULL, NULL, get_replays, NULL, NULL},
    {"pcie.tx_util", NULL, "KB/s", get_tx, NULL, NULL},
    {"pcie.rx_util", NULL, "KB/s", get_rx, NULL, NULL},
    {"minor_number", NULL, NULL, get_minor, NULL, NULL},
    {"gsp_firmware_version", NULL, NULL, get_gsp, NULL, NULL},
    {"multigpu_board", NULL, NULL, get_multi_gpu, NULL, NULL},
    {"board_id", NULL, NULL, get_board_id, NULL, NULL},
    {"board_part_number", NULL, NULL, get_part_number, NULL, NULL},
    {"virtualization_mode", NULL, NULL, get_virtualization, NULL, NULL},
    {"bar1.total", NULL, "MiB", get_bar1_total, NULL, NULL},
    {"bar1.used", NULL, "MiB", get_bar1_used, NULL, NULL},
    {"bar1.free", NULL, "MiB", get_bar1_free, NULL, NULL},
    {"temperature.gpu.shutdown", NULL, NULL, get_shutdown, NULL, NULL},
    {"temperature.gpu.slowdown", NULL, NULL, get_slowdown, NULL, NULL},
    {"temperature.gpu.max", NULL, NULL, get_gpu_max, NULL, NULL},
    {"temperature.memory.max", NULL, NULL, get_memory_max, NULL, NULL},
    {"clocks.max.video", NULL, "MHz", get_max_video_clock, NULL, NULL},
    {"clocks.max.boost", NULL, "MHz", get_boost_clock, NULL, NULL},
};

const Field *field_at(size_t place) {
    size_t own = sizeof FIELDS / sizeof *FIELDS;
    return place < own ? &FIELDS[place] : detail_field_at(place - own);
}

const Field *inner_field_at(size_t place) { return place < sizeof INNER / sizeof *INNER ? &INNER[place] : NULL; }

static int is_named(const Field *field, const char *name, size_t length) {
    if (strlen(field->name) == length && strncmp(field->name, name, length) == 0) return 1;
    return field->alias && strlen(field->alias) == length && strncmp(field->alias, name, length) == 0;
}

static const Field *among(const Field *(*at)(size_t), const char *name, size_t length) {
    const Field *field;
    for (size_t i = 0; (field = at(i)) != NULL; i++)
        if (is_named(field, name, length)) return field;
    return NULL;
}

const Field *field_named(const char *name, size_t length) { return among(field_at, name, length); }

/* A detail without its unit, or what follows its number in words, as "640 bank(s)". */
static Return detail_value(Device device, const Field *field, char *out) {
    Return result = detail_of(device, field->detail, out);
    if (result == OK && *out >= '0' && *out <= '9') out[strcspn(out, " ")] = 0;
    if (result == OK && strcmp(out, "Insufficient Permissions") == 0) return NO_PERMISSION;
    return result == NOT_FOUND ? NOT_SUPPORTED : result;
}

Return field_value(Device device, const Field *field, char *out) {
    return field->get ? field->get(device, out) : detail_value(device, field, out);
}

void value_of(Device device, const char *name, char *out, int with_unit) {
    const Field *field = field_named(name, strlen(name));
    if (field == NULL) field = among(inner_field_at, name, strlen(name));
    Return result = field ? field_value(device, field, out) : NOT_SUPPORTED;
    if (result == NOT_SUPPORTED)
        strcpy(out, "N/A");
    else if (result != OK)
        snprintf(out, VALUE_SIZE, "%s", api.nvmlErrorString(result));
    else if (with_unit && field->unit) {
        size_t length = strlen(out);
        snprintf(out + length, VALUE_SIZE - length, " %s", field->unit);
    }
}

Return detail_of(Device device, const char *key, char *out) {
    return detail_table ? detail_table->detail(device, key, out, VALUE_SIZE) : NOT_FOUND;
}

const char *bus_id_of(Device device, char *out) {
    value_of(device, "pci.bus_id", out, 0);
    return out;
}
