/* -q and -q -x: one tree, written as text or as XML. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "commands.h"
#include "gpus.h"

enum { LABEL_WIDTH = 42 };

static int as_xml, depth;

static void indent(void) {
    for (int i = 0; i < depth; i++) fputs(as_xml ? "\t" : "    ", stdout);
}

static void escaped(const char *text) {
    for (; *text; text++) {
        if (as_xml && *text == '<') fputs("&lt;", stdout);
        else if (as_xml && *text == '>') fputs("&gt;", stdout);
        else if (as_xml && *text == '&') fputs("&amp;", stdout);
        else putchar(*text);
    }
}

static void leaf(const char *label, const char *tag, const char *value) {
    indent();
    if (as_xml) {
        printf("<%s>", tag);
        escaped(value);
        printf("</%s>\n", tag);
    } else {
        printf("%-*s: %s\n", LABEL_WIDTH - 4 * depth, label, value);
    }
}

static void open_node(const char *label, const char *tag) {
    indent();
    printf(as_xml ? "<%s>\n" : "%s\n", as_xml ? tag : label);
    depth++;
}

static void close_node(const char *tag) {
    depth--;
    if (!as_xml) return;
    indent();
    printf("</%s>\n", tag);
}

static void field(Device device, const char *label, const char *tag, const char *name) {
    char value[VALUE_SIZE] = {0};
    value_of(device, name, value, 1);
    leaf(label, tag, value);
}

/* Fields whose number has no unit in CSV, but has one here. */
static void field_in(Device device, const char *label, const char *tag, const char *name, const char *unit) {
    char value[VALUE_SIZE] = {0};
    value_of(device, name, value, 0);
    if (strcmp(value, "N/A") != 0) strncat(value, unit, sizeof value - strlen(value) - 1);
    leaf(label, tag, value);
}

typedef struct {
    const char *label, *tag, *name;
} Row;

static void node(Device device, const char *label, const char *tag, const Row *rows, size_t count) {
    open_node(label, tag);
    for (size_t i = 0; i < count; i++) field(device, rows[i].label, rows[i].tag, rows[i].name);
    close_node(tag);
}

#define NODE(device, label, tag, rows) node(device, label, tag, rows, sizeof rows / sizeof *rows)

static void identity(Device device) {
    static const Row MIG[] = {{"Current", "current_mig", "mig.mode.current"}, {"Pending", "pending_mig", "mig.mode.pending"}};
    static const Row MODEL[] = {{"Current", "current_dm", "driver_model.current"}, {"Pending", "pending_dm", "driver_model.pending"}};
    static const Row INFOROM[] = {{"Image Version", "img_version", "inforom.img"},
                                  {"OEM Object", "oem_object", "inforom.oem"},
                                  {"ECC Object", "ecc_object", "inforom.ecc"},
                                  {"Power Management Object", "pwr_object", "inforom.pwr"}};
    static const Row GOM[] = {{"Current", "current_gom", "gom.current"}, {"Pending", "pending_gom", "gom.pending"}};
    static const Row VIRTUAL[] = {{"Virtualization Mode", "virtualization_mode", "virtualization_mode"},
                                  {"Host VGPU Mode", "host_vgpu_mode", "gom.current"}};
    field(device, "Product Name", "product_name", "name");
    field(device, "Product Brand", "product_brand", "product_brand");
    field(device, "Product Architecture", "product_architecture", "product_architecture");
    field(device, "Display Mode", "display_mode", "display_mode");
    field(device, "Display Active", "display_active", "display_active");
    field(device, "Persistence Mode", "persistence_mode", "persistence_mode");
    field(device, "Addressing Mode", "addressing_mode", "addressing_mode");
    NODE(device, "MIG Mode", "mig_mode", MIG);
    if (as_xml) leaf("MIG Devices", "mig_devices", "None");
    field(device, "Accounting Mode", "accounting_mode", "accounting.mode");
    field(device, "Accounting Mode Buffer Size", "accounting_mode_buffer_size", "accounting.buffer_size");
    NODE(device, "Driver Model", "driver_model", MODEL);
    field(device, "Serial Number", "serial", "serial");
    field(device, "GPU UUID", "uuid", "uuid");
    field(device, "Minor Number", "minor_number", "minor_number");
    field(device, "VBIOS Version", "vbios_version", "vbios_version");
    field(device, "MultiGPU Board", "multigpu_board", "multigpu_board");
    field(device, "Board ID", "board_id", "board_id");
    field(device, "Board Part Number", "board_part_number", "board_part_number");
    NODE(device, "Inforom Version", "inforom_version", INFOROM);
    NODE(device, "GPU Operation Mode", "gpu_operation_mode", GOM);
    field(device, "GSP Firmware Version", "gsp_firmware_version", "gsp_firmware_version");
    NODE(device, "GPU Virtualization Mode", "gpu_virtualization_mode", VIRTUAL);
}

/* "0x44" is printed as "44" in XML, and as it is in text. */
static void pci(Device device) {
    static const Row GENERATION[] = {{"Max", "max_link_gen", "pcie.link.gen.max"},
                                     {"Current", "current_link_gen", "pcie.link.gen.current"}};
    char value[VALUE_SIZE];
    open_node("PCI", "pci");
    const Row rows[] = {{"Bus", "pci_bus", "pci.bus"}, {"Device", "pci_device", "pci.device"},
                        {"Domain", "pci_domain", "pci.domain"}, {"Device Id", "pci_device_id", "pci.device_id"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        value_of(device, rows[i].name, value, 0);
        leaf(rows[i].label, rows[i].tag, as_xml && strncmp(value, "0x", 2) == 0 ? value + 2 : value);
    }
    field(device, "Bus Id", "pci_bus_id", "pci.bus_id");
    value_of(device, "pci.sub_device_id", value, 0);
    leaf("Sub System Id", "pci_sub_system_id", as_xml && strncmp(value, "0x", 2) == 0 ? value + 2 : value);
    open_node("GPU Link Info", "pci_gpu_link_info");
    NODE(device, "PCIe Generation", "pcie_gen", GENERATION);
    open_node("Link Width", "link_widths");
    field_in(device, "Max", "max_link_width", "pcie.link.width.max", "x");
    field_in(device, "Current", "current_link_width", "pcie.link.width.current", "x");
    close_node("link_widths");
    close_node("pci_gpu_link_info");
    field(device, "Replays Since Reset", "replay_counter", "pcie.replay_counter");
    field(device, "Tx Throughput", "tx_util", "pcie.tx_util");
    field(device, "Rx Throughput", "rx_util", "pcie.rx_util");
    close_node("pci");
}

static void load(Device device) {
    static const Row REASONS[] = {
        {"Idle", "clocks_event_reason_gpu_idle", "clocks_event_reasons.gpu_idle"},
        {"Applications Clocks Setting", "clocks_event_reason_applications_clocks_setting",
         "clocks_event_reasons.applications_clocks_setting"},
        {"SW Power Cap", "clocks_event_reason_sw_power_cap", "clocks_event_reasons.sw_power_cap"},
        {"HW Slowdown", "clocks_event_reason_hw_slowdown", "clocks_event_reasons.hw_slowdown"},
        {"HW Thermal Slowdown", "clocks_event_reason_hw_thermal_slowdown", "clocks_event_reasons.hw_thermal_slowdown"},
        {"HW Power Brake Slowdown", "clocks_event_reason_hw_power_brake_slowdown",
         "clocks_event_reasons.hw_power_brake_slowdown"},
        {"Sync Boost", "clocks_event_reason_sync_boost", "clocks_event_reasons.sync_boost"},
        {"SW Thermal Slowdown", "clocks_event_reason_sw_thermal_slowdown", "clocks_event_reasons.sw_thermal_slowdown"}};
    static const Row MEMORY[] = {{"Total", "total", "memory.total"}, {"Reserved", "reserved", "memory.reserved"},
                                 {"Used", "used", "memory.used"}, {"Free", "free", "memory.free"}};
    static const Row BAR1[] = {{"Total", "total", "bar1.total"}, {"Used", "used", "bar1.used"}, {"Free", "free", "bar1.free"}};
    static const Row LOAD[] = {{"Gpu", "gpu_util", "utilization.gpu"}, {"Memory", "memory_util", "utilization.memory"},
                               {"Encoder", "encoder_util", "utilization.encoder"},
                               {"Decoder", "decoder_util", "utilization.decoder"},
                               {"JPEG", "jpeg_util", "utilization.jpeg"}, {"OFA", "ofa_util", "utilization.ofa"}};
    static const Row ENCODER[] = {{"Active Sessions", "session_count", "encoder.stats.sessionCount"},
                                  {"Average FPS", "average_fps", "encoder.stats.averageFps"},
                                  {"Average Latency", "average_latency", "encoder.stats.averageLatency"}};
    field(device, "Fan Speed", "fan_speed", "fan.speed");
    field(device, "Performance State", "performance_state", "pstate");
    NODE(device, "Clocks Event Reasons", "clocks_event_reasons", REASONS);
    NODE(device, "FB Memory Usage", "fb_memory_usage", MEMORY);
    NODE(device, "BAR1 Memory Usage", "bar1_memory_usage", BAR1);
    field(device, "Compute Mode", "compute_mode", "compute_mode");
    NODE(device, "Utilization", "utilization", LOAD);
    NODE(device, "Encoder Stats", "encoder_stats", ENCODER);
}

static void errors(Device device) {
    static const Row MODE[] = {{"Current", "current_ecc", "ecc.mode.current"}, {"Pending", "pending_ecc", "ecc.mode.pending"}};
    static const Row VOLATILE[] = {{"SRAM Correctable", "sram_correctable", "ecc.errors.corrected.volatile.sram"},
                                   {"SRAM Uncorrectable", "sram_uncorrectable", "ecc.errors.uncorrected.volatile.sram"},
                                   {"DRAM Correctable", "dram_correctable", "ecc.errors.corrected.volatile.dram"},
                                   {"DRAM Uncorrectable", "dram_uncorrectable", "ecc.errors.uncorrected.volatile.dram"}};
    static const Row EVER[] = {{"SRAM Correctable", "sram_correctable", "ecc.errors.corrected.aggregate.sram"},
                               {"SRAM Uncorrectable", "sram_uncorrectable", "ecc.errors.uncorrected.aggregate.sram"},
                               {"DRAM Correctable", "dram_correctable", "ecc.errors.corrected.aggregate.dram"},
                               {"DRAM Uncorrectable", "dram_uncorrectable", "ecc.errors.uncorrected.aggregate.dram"}};
    static const Row REMAPPED[] = {{"Correctable Error", "remapped_row_corr", "remapped_rows.correctable"},
                                   {"Uncorrectable Error", "remapped_row_unc", "remapped_rows.uncorrectable"},
                                   {"Pending", "remapped_row_pending", "remapped_rows.pending"},
                                   {"Remapping Failure Occurred", "remapped_row_failure", "remapped_rows.failure"}};
    NODE(device, "ECC Mode", "ecc_mode", MODE);
    open_node("ECC Errors", "ecc_errors");
    NODE(device, "Volatile", "volatile", VOLATILE);
    NODE(device, "Aggregate", "aggregate", EVER);
    close_node("ecc_errors");
    open_node("Retired Pages", "retired_pages");
    open_node("Single Bit ECC", "multiple_single_bit_retirement");
    field(device, "Retired Count", "retired_count", "retired_pages.sbe");
    close_node("multiple_single_bit_retirement");
    open_node("Double Bit ECC", "double_bit_retirement");
    field(device, "Retired Count", "retired_count", "retired_pages.dbe");
    close_node("double_bit_retirement");
    field(device, "Pending Page Blacklist", "pending_blacklist", "retired_pages.pending");
    close_node("retired_pages");
    NODE(device, "Remapped Rows", "remapped_rows", REMAPPED);
}

static void heat_and_power(Device device) {
    static const Row POWER[] = {{"Power Draw", "power_draw", "power.draw"},
                                {"Current Power Limit", "current_power_limit", "enforced.power.limit"},
                                {"Requested Power Limit", "requested_power_limit", "power.limit"},
                                {"Default Power Limit", "default_power_limit", "power.default_limit"},
                                {"Min Power Limit", "min_power_limit", "power.min_limit"},
                                {"Max Power Limit", "max_power_limit", "power.max_limit"}};
    open_node("Temperature", "temperature");
    field_in(device, "GPU Current Temp", "gpu_temp", "temperature.gpu", " C");
    field_in(device, "GPU Shutdown Temp", "gpu_temp_max_threshold", "temperature.gpu.shutdown", " C");
    field_in(device, "GPU Slowdown Temp", "gpu_temp_slow_threshold", "temperature.gpu.slowdown", " C");
    field_in(device, "GPU Max Operating Temp", "gpu_temp_max_gpu_threshold", "temperature.gpu.max", " C");
    field_in(device, "Memory Current Temp", "memory_temp", "temperature.memory", " C");
    field_in(device, "Memory Max Operating Temp", "gpu_temp_max_mem_threshold", "temperature.memory.max", " C");
    close_node("temperature");
    open_node("GPU Power Readings", "gpu_power_readings");
    field(device, "Power State", "power_state", "pstate");
    for (size_t i = 0; i < sizeof POWER / sizeof *POWER; i++) field(device, POWER[i].label, POWER[i].tag, POWER[i].name);
    close_node("gpu_power_readings");
}

static void clocks(Device device) {
    static const Row NOW[] = {{"Graphics", "graphics_clock", "clocks.gr"}, {"SM", "sm_clock", "clocks.sm"},
                              {"Memory", "mem_clock", "clocks.mem"}, {"Video", "video_clock", "clocks.video"}};
    static const Row APPLICATIONS[] = {{"Graphics", "graphics_clock", "clocks.applications.gr"},
                                       {"Memory", "mem_clock", "clocks.applications.mem"}};
    static const Row DEFAULTS[] = {{"Graphics", "graphics_clock", "clocks.default_applications.gr"},
                                   {"Memory", "mem_clock", "clocks.default_applications.mem"}};
    static const Row MAX[] = {{"Graphics", "graphics_clock", "clocks.max.gr"}, {"SM", "sm_clock", "clocks.max.sm"},
                              {"Memory", "mem_clock", "clocks.max.mem"}, {"Video", "video_clock", "clocks.max.video"}};
    NODE(device, "Clocks", "clocks", NOW);
    NODE(device, "Applications Clocks", "applications_clocks", APPLICATIONS);
    NODE(device, "Default Applications Clocks", "default_applications_clocks", DEFAULTS);
    NODE(device, "Max Clocks", "max_clocks", MAX);
}

static void one_process(const SmiProcess *process) {
    char value[VALUE_SIZE];
    if (as_xml) open_node("", "process_info");
    snprintf(value, sizeof value, "%u", process->info.pid);
    if (as_xml) {
        leaf("GPU instance ID", "gpu_instance_id", "N/A");
        leaf("Compute instance ID", "compute_instance_id", "N/A");
        leaf("Process ID", "pid", value);
    } else {
        indent();
        printf("%-*s: %s\n", LABEL_WIDTH - 4 * depth, "Process ID", value);
        depth++;
    }
    snprintf(value, sizeof value, "%c", process->kind);
    leaf("Type", "type", value);
    leaf("Name", "process_name", process->name);
    snprintf(value, sizeof value, "%llu MiB", process->info.used_memory >> 20);
    leaf("Used GPU Memory", "used_memory", value);
    if (as_xml) close_node("process_info");
    else depth--;
}

static void processes(Device device) {
    unsigned count;
    SmiProcess *all = processes_of(device, &count);
    if (count == 0 && !as_xml) {
        leaf("Processes", "processes", "None");
    } else {
        open_node("Processes", "processes");
        for (unsigned i = 0; i < count; i++) one_process(&all[i]);
        close_node("processes");
    }
    free(all);
}

static void one_gpu(Device device) {
    char bus_id[VALUE_SIZE];
    bus_id_of(device, bus_id);
    indent();
    printf(as_xml ? "<gpu id=\"%s\">\n" : "GPU %s\n", bus_id);
    depth++;
    identity(device);
    pci(device);
    load(device);
    errors(device);
    heat_and_power(device);
    clocks(device);
    processes(device);
    depth--;
    puts(as_xml ? "\t</gpu>" : "");
}

int show_details(const char *ids, int xml) {
    char now[64], count[16], driver[VALUE_SIZE] = "N/A", cuda_text[16];
    int cuda = 0;
    unsigned attached = 0;
    time_t seconds = time(NULL);
    struct tm parts;
    as_xml = xml;
    Selection selection = select_gpus(ids, "No devices were found");
    localtime_r(&seconds, &parts);
    strftime(now, sizeof now, "%a %b %e %H:%M:%S %Y", &parts);
    api.nvmlSystemGetDriverVersion(driver, sizeof driver);
    api.nvmlSystemGetCudaDriverVersion_v2(&cuda);
    api.nvmlDeviceGetCount_v2(&attached);
    snprintf(cuda_text, sizeof cuda_text, "%d.%d", cuda / 1000, cuda % 1000 / 10);
    snprintf(count, sizeof count, "%u", attached);
    if (xml)
        puts("<?xml version=\"1.0\" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM \"nvsmi_device_v12.dtd\">\n<nvidia_smi_log>");
    else
        puts("\n==============NVSMI LOG==============\n");
    depth = xml;
    leaf("Timestamp", "timestamp", now);
    leaf("Driver Version", "driver_version", driver);
    leaf("CUDA Version", "cuda_version", cuda_text);
    if (!xml) puts("");
    leaf("Attached GPUs", "attached_gpus", count);
    for (unsigned i = 0; i < selection.count; i++) one_gpu(selection.devices[i]);
    if (xml) puts("</nvidia_smi_log>");
    free(selection.devices);
    return 0;
}
