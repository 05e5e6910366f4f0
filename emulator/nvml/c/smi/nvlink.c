/* nvlink: the links of each GPU, what they can, what is at their ends, and what went over them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "gpus.h"

enum {
    STATUS = 's', CAPABILITIES = 'c', ADDRESSES = 'p', REMOTE = 'R', ERRORS = 'e', LANE_ERRORS = 'l', RESET_ERRORS = 'r',
    THROUGHPUT = 'g', LOW_POWER = 'w', BANDWIDTH = 'b', SET_LOW_POWER = 'W', SET_BANDWIDTH = 'B'
};

static const char HELP[] =
    "nvidia-smi nvlink -s | -c | -p | -R [-i ID] [-l LINK]\n"
    "                                             show the status of NVLinks, what they can, their ends, and\n"
    "                                             the links there\n"
    "nvidia-smi nvlink -e | -ec | -re [-i ID] [-l LINK]   show errors | of each lane | reset the counters\n"
    "nvidia-smi nvlink -gt d|r [-i ID] [-l LINK]  show KiB of data (d) or of all (r)\n"
    "nvidia-smi nvlink -gLowPwrInfo [-i ID] [-l LINK]   show when idle links sleep\n"
    "nvidia-smi nvlink -sLowPwrThres N [-i ID]    let idle links sleep after N units of 100 us\n"
    "nvidia-smi nvlink -gBwMode [-i ID]           show how many of the links are in use\n"
    "nvidia-smi nvlink -sBwMode FULL|OFF|MIN|HALF|3QUARTER|values [-i ID]   set it, of all GPUs before Blackwell | list\n";

typedef struct {
    char what;
    const char *ids, *counter; /* of -gt: d for data, r with what surrounds it */
    long link;                 /* -1: all */
    unsigned value;            /* that is set */
} Wish;

static const char *const MODES[] = {"FULL", "OFF", "MIN", "HALF", "3QUARTER"};

enum { MODE_COUNT = sizeof MODES / sizeof *MODES, VALUES = 0xFF }; /* VALUES: list them */

/* The number of a bandwidth mode, or of a threshold; 0 where the text is none. */
static int value_in(const char *text, char what, unsigned *out) {
    char *end;
    if (what == SET_BANDWIDTH) {
        for (*out = 0; *out < MODE_COUNT; ++*out)
            if (strcmp(text, MODES[*out]) == 0) return 1;
        *out = VALUES;
        return strcmp(text, "values") == 0;
    }
    unsigned long units = strtoul(text, &end, 10);
    *out = (unsigned)units;
    return *text >= '0' && *text <= '9' && *end == 0 && units <= 0xFFFFFFFFul;
}

static const char *speed_of(unsigned version) {
    static const char *const SPEEDS[] = {"", "20", "25.781", "25", "26.562", "53.125"};
    return version < sizeof SPEEDS / sizeof *SPEEDS ? SPEEDS[version] : "";
}

static void status(Device device, unsigned link) {
    unsigned active = 0, version = 0;
    api.nvmlDeviceGetNvLinkState(device, link, &active);
    if (active && api.nvmlDeviceGetNvLinkVersion(device, link, &version) == OK)
        printf("\t Link %u: %s GB/s\n", link, speed_of(version));
    else
        printf("\t Link %u: <inactive>\n", link);
}

static void capabilities(Device device, unsigned link) {
    static const char *const NAMES[] = {"P2P is supported",         "Access to system memory supported",
                                        "P2P atomics supported",    "System memory atomics supported",
                                        "SLI is supported",         "Link is supported"};
    for (unsigned i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        unsigned can = 0;
        if (api.nvmlDeviceGetNvLinkCapability(device, link, i, &can) == OK)
            printf("\t Link %u, %s: %s\n", link, NAMES[i], can ? "true" : "false");
    }
}

static void address(Device device, unsigned link) {
    PciInfo end = {0};
    if (api.nvmlDeviceGetNvLinkRemotePciInfo_v2(device, link, &end) == OK) printf("\t Link %u: %s\n", link, end.bus_id);
}

/* A field about a link; 0 where there is none. */
static int field_of(Device device, unsigned field, unsigned link, FieldValue *value) {
    *value = (FieldValue){.field = field, .scope = link};
    return api.nvmlDeviceGetFieldValues(device, 1, value) == OK && value->result == OK;
}

static void remote(Device device, unsigned link) {
    enum { REMOTE_LINK = 146 };
    PciInfo end = {0};
    FieldValue there;
    if (api.nvmlDeviceGetNvLinkRemotePciInfo_v2(device, link, &end) != OK) return;
    printf("\t Link %u: Remote Device %s: Link ", link, end.bus_id);
    if (field_of(device, REMOTE_LINK, link, &there)) printf("%u\n", there.value.ui);
    else puts("N/A");
}

/* What NVLink 5 counts instead. */
static void counts(Device device, unsigned link) {
    static const struct {
        unsigned field;
        const char *name;
    } COUNTS[] = {
        {201, "Tx packets"}, {202, "Tx bytes"}, {203, "Rx packets"}, {204, "Rx bytes"},
        {206, "Malformed packet Errors"}, {207, "Buffer overrun Errors"}, {208, "Rx Errors"}, {209, "Rx remote Errors"},
        {210, "Rx General Errors"}, {211, "Local link integrity Errors"}, {212, "Tx discards"},
        {213, "Link recovery successful events"}, {214, "Link recovery failed events"},
        {215, "Total link recovery events"}, {219, "Effective Errors"}, {220, "Effective BER"},
        {221, "Symbol Errors"}, {222, "Symbol BER"},
    };
    enum { EFFECTIVE_BER = 220, SYMBOL_BER = 222, FEC_FIRST = 235, FEC_COUNT = 16 };
    FieldValue value;
    for (size_t i = 0; i < sizeof COUNTS / sizeof *COUNTS; i++) {
        if (!field_of(device, COUNTS[i].field, link, &value)) continue;
        if (COUNTS[i].field == EFFECTIVE_BER || COUNTS[i].field == SYMBOL_BER)
            printf("\t Link %u: %s: 15e-255\n", link, COUNTS[i].name); /* the least that it can be */
        else
            printf("\t Link %u: %s: %llu\n", link, COUNTS[i].name, value.value.ull);
    }
    for (unsigned i = 0; i < FEC_COUNT; i++)
        if (field_of(device, FEC_FIRST + i, link, &value))
            printf("\t Link %u: FEC Errors - %u: %llu\n", link, i, value.value.ull);
}

enum { COUNTING_PACKETS = 5 }; /* the first version of NVLink that does */

static void lane_errors(Device device, unsigned link) {
    static const unsigned LANES[] = {0, 8, 8, 4, 2};
    unsigned version = 0;
    if (api.nvmlDeviceGetNvLinkVersion(device, link, &version) != OK) return;
    if (version >= COUNTING_PACKETS) printf("\t Link %u: N/A\n", link);
    else
        for (unsigned lane = 0; lane < LANES[version]; lane++)
            printf("\t Link %u, Lane %u: CRC Errors: 0\n", link, lane); /* as those of the link */
}

static void low_power(Device device, unsigned link) {
    enum { POWER_STATE = 167, THRESHOLD = 168 };
    FieldValue state, threshold;
    if (field_of(device, POWER_STATE, link, &state) && field_of(device, THRESHOLD, link, &threshold))
        printf("\t Link %u: Power State: %s, Low Power Threshold: %u\n", link,
               state.value.ui ? "Low Power" : "High Speed", threshold.value.ui);
    else
        printf("\t Link %u: Low Power Threshold: N/A\n", link);
}

static void low_power_range(Device device) {
    enum { MOST = 200, LEAST = 223, UNITS = 224, UNIT_50US = 1, ALL = -1 };
    FieldValue most, least, unit;
    if (field_of(device, MOST, (unsigned)ALL, &most) && field_of(device, LEAST, (unsigned)ALL, &least) &&
        field_of(device, UNITS, (unsigned)ALL, &unit))
        printf("\t Low Power Threshold Range: %u to %u, in units of %u us\n", least.value.ui, most.value.ui,
               unit.value.ui == UNIT_50US ? 50 : 100);
}

static void errors(Device device, unsigned link) {
    unsigned version = 0;
    static const struct {
        unsigned counter;
        const char *name;
    } COUNTERS[] = {{0, "Replay Errors"}, {1, "Recovery Errors"}, {2, "CRC Errors"}};
    if (api.nvmlDeviceGetNvLinkVersion(device, link, &version) == OK && version >= COUNTING_PACKETS)
        return counts(device, link);
    for (unsigned i = 0; i < sizeof COUNTERS / sizeof *COUNTERS; i++) {
        unsigned long long count = 0;
        if (api.nvmlDeviceGetNvLinkErrorCounter(device, link, COUNTERS[i].counter, &count) == OK)
            printf("\t Link %u: %s: %llu\n", link, COUNTERS[i].name, count);
    }
}

static void throughput(Device device, unsigned link, int raw) {
    enum { DATA_TX = 138, RAW_TX = 140 };
    FieldValue values[2] = {{.field = raw ? RAW_TX : DATA_TX, .scope = link}, {.field = raw ? RAW_TX + 1 : DATA_TX + 1, .scope = link}};
    if (api.nvmlDeviceGetFieldValues(device, 2, values) != OK) return;
    for (int i = 0; i < 2; i++) {
        printf("\t Link %u: %s %s: ", link, raw ? "Raw" : "Data", i ? "Rx" : "Tx");
        if (values[i].result == OK) printf("%llu KiB\n", values[i].value.ull);
        else puts("N/A");
    }
}

static int one_link(Device device, unsigned link, const Wish *wish) {
    Return result = OK;
    switch (wish->what) {
    case STATUS: status(device, link); break;
    case CAPABILITIES: capabilities(device, link); break;
    case ADDRESSES: address(device, link); break;
    case REMOTE: remote(device, link); break;
    case ERRORS: errors(device, link); break;
    case LANE_ERRORS: lane_errors(device, link); break;
    case LOW_POWER: low_power(device, link); break;
    case THROUGHPUT: throughput(device, link, *wish->counter == 'r'); break;
    default: result = api.nvmlDeviceResetNvLinkErrorCounters(device, link);
    }
    if (result != OK) printf("\t Link %u: %s\n", link, api.nvmlErrorString(result));
    else if (wish->what == RESET_ERRORS) printf("\t Link %u: error counters were reset\n", link);
    return exit_code_of(result);
}

static int links(Device device, const Wish *wish) {
    int code = 0;
    for (unsigned link = 0; link < NVLINK_MAX && code == 0; link++) {
        unsigned active = 0;
        if (wish->link >= 0 && wish->link != (long)link) continue;
        if (api.nvmlDeviceGetNvLinkState(device, link, &active) == OK) code = one_link(device, link, wish);
    }
    return code;
}

static int parse(int count, char **arguments, Wish *wish) {
    static const struct {
        const char *brief, *name;
        char what;
    } SHOWN[] = {
        {"-s", "--status", STATUS},           {"-c", "--capabilities", CAPABILITIES},
        {"-p", "--pcibusid", ADDRESSES},      {"-e", "--errorcounters", ERRORS},
        {"-R", "--remotelinkinfo", REMOTE},   {"-ec", "--crcerrorcounters", LANE_ERRORS},
        {"-re", "--reseterrorcounters", RESET_ERRORS},
        {"-gLowPwrInfo", "--getLowPowerInfo", LOW_POWER}, {"-gBwMode", "--getBandwidthMode", BANDWIDTH},
    };
    for (int at = 0; at < count; at++) {
        const char *text = NULL;
        char what = 0, *end;
        for (size_t i = 0; i < sizeof SHOWN / sizeof *SHOWN; i++)
            if (strcmp(arguments[at], SHOWN[i].brief) == 0 || strcmp(arguments[at], SHOWN[i].name) == 0)
                what = SHOWN[i].what;
        if (what == 0 && valued("--id", "-i", count, arguments, &at, &wish->ids)) continue;
        if (what == 0 && valued("--link", "-l", count, arguments, &at, &text)) {
            wish->link = strtol(text, &end, 10);
            if (*text < '0' || *text > '9' || *end != 0) return 0;
            continue;
        }
        if (what == 0 && valued("--getthroughput", "-gt", count, arguments, &at, &wish->counter)) {
            if (strcmp(wish->counter, "d") != 0 && strcmp(wish->counter, "r") != 0) return 0;
            what = THROUGHPUT;
        }
        if (what == 0 && valued("--setLowPowerThreshold", "-sLowPwrThres", count, arguments, &at, &text)) what = SET_LOW_POWER;
        else if (what == 0 && valued("--setBandwidthMode", "-sBwMode", count, arguments, &at, &text)) what = SET_BANDWIDTH;
        if ((what == SET_LOW_POWER || what == SET_BANDWIDTH) && !value_in(text, what, &wish->value)) return 0;
        if (what == 0 || wish->what != 0) return 0;
        wish->what = what;
    }
    return wish->what != 0;
}

/* Options that do nothing here. NVML gave up the first four. */
static const Option NOT_EMULATED[] = {
    {"-sc", "--setcontrol"}, {"-gc", "--getcontrol"}, {"-g", "--getcounters"}, {"-r", "--resetcounters"},
    {"-cBridge", "--checkBridge"},
    {"-info", "--info"}, {"-gLWidth", "--getLinkWidth"}, {"-sLWidth", "--setLinkWidth"}, {NULL, NULL},
};

/* Of a whole host on boards of Hopper, of each GPU on later ones. */
static int bandwidth_of_gpus(const Wish *wish, Return of_host) {
    unsigned told = 0;
    Selection selection = select_gpus(wish->ids, "No devices were found");
    for (unsigned i = 0; i < selection.count; i++) {
        LinkMode mode = {.version = STRUCT_VERSION(mode, 1)};
        if (api.nvmlDeviceGetNvlinkBwMode(selection.devices[i], &mode) != OK) continue;
        told++;
        name_gpu(selection.devices[i]);
        printf("\t NvLink bandwidth mode: %s\n", mode.mode < MODE_COUNT ? MODES[mode.mode] : "N/A");
    }
    free(selection.devices);
    if (told == 0) puts("Getting nvlink bandwidth mode is not supported");
    return told ? 0 : exit_code_of(of_host);
}

static int bandwidth_mode(const Wish *wish) {
    unsigned mode = 0;
    Return result = api.nvmlSystemGetNvlinkBwMode(&mode);
    if (result == NOT_SUPPORTED) return bandwidth_of_gpus(wish, result);
    if (result != OK) puts("Unable to read nvlink bandwidth mode");
    else printf("NvLink bandwidth mode: %s\n", mode < MODE_COUNT ? MODES[mode] : "N/A");
    return exit_code_of(result);
}

/* One GPU's mode is set, or with VALUES its modes are listed. */
static Return own_bandwidth(Device device, unsigned wanted) {
    LinkModes modes = {.version = STRUCT_VERSION(modes, 1)};
    LinkMode mode = {STRUCT_VERSION(mode, 1), 0, (unsigned char)wanted};
    Return result = api.nvmlDeviceGetNvlinkSupportedBwModes(device, &modes);
    if (result == OK && wanted != VALUES) result = api.nvmlDeviceSetNvlinkBwMode(device, &mode);
    if (result != OK) return result;
    name_gpu(device);
    if (wanted != VALUES) printf("\t Set NvLink bandwidth mode to %s\n", MODES[wanted]);
    for (unsigned i = 0; wanted == VALUES && i < modes.count; i++)
        printf("\t %s\n", modes.modes[i] < MODE_COUNT ? MODES[modes.modes[i]] : "N/A");
    return OK;
}

static int set_bandwidth_of_gpus(const Wish *wish) {
    Return result = OK;
    unsigned done = 0;
    Selection selection = select_gpus(wish->ids, "No devices were found");
    for (unsigned i = 0; i < selection.count && (result == OK || result == NOT_SUPPORTED); i++) {
        result = own_bandwidth(selection.devices[i], wish->value);
        done += result == OK;
    }
    free(selection.devices);
    if (done > 0 && result == NOT_SUPPORTED) return 0;
    if (result != OK) printf("Unable to set NvLink bandwidth mode: %s\n", api.nvmlErrorString(result));
    return exit_code_of(result);
}

static int set_bandwidth_mode(const Wish *wish) {
    unsigned now = 0;
    Return result = api.nvmlSystemGetNvlinkBwMode(&now);
    if (result == NOT_SUPPORTED) return set_bandwidth_of_gpus(wish);
    for (unsigned mode = 0; wish->value == VALUES && mode < MODE_COUNT; mode++) puts(MODES[mode]);
    if (wish->value == VALUES) return 0;
    result = api.nvmlSystemSetNvlinkBwMode(wish->value);
    if (result == OK) printf("Set NvLink bandwidth mode to %s\n", MODES[wish->value]);
    else printf("Unable to set NvLink bandwidth mode: %s\n", api.nvmlErrorString(result));
    return exit_code_of(result);
}

static int set_low_power(Device device, unsigned units) {
    LinkThreshold threshold = {units};
    Return result = api.nvmlDeviceSetNvLinkDeviceLowPowerThreshold(device, &threshold);
    if (result == OK) puts("\t Low Power Threshold was set");
    else printf("\t Unable to set Low Power Threshold: %s\n", api.nvmlErrorString(result));
    return exit_code_of(result);
}

int nvlink(int count, char **arguments) {
    Wish wish = {0, NULL, NULL, -1, 0};
    int code = 0;
    const char *refused = refused_of(NOT_EMULATED, count, arguments);
    if (help_asked(count, arguments)) return help(HELP);
    if (refused) return not_emulated(refused);
    if (!parse(count, arguments, &wish))
        return misused("Usage: nvlink -s | -c | -p | -R | -e | -ec | -re | -gt d|r | -gLowPwrInfo |"
                       " -sLowPwrThres N | -gBwMode | -sBwMode MODE [-i ID] [-l LINK].");
    api_open(0);
    if (wish.what == BANDWIDTH) return bandwidth_mode(&wish);
    if (wish.what == SET_BANDWIDTH) return set_bandwidth_mode(&wish);
    Selection selection = select_gpus(wish.ids, "No devices were found");
    for (unsigned i = 0; i < selection.count && code == 0; i++) {
        name_gpu(selection.devices[i]);
        if (wish.what == LOW_POWER) low_power_range(selection.devices[i]);
        code = wish.what == SET_LOW_POWER ? set_low_power(selection.devices[i], wish.value)
                                          : links(selection.devices[i], &wish);
    }
    free(selection.devices);
    return code;
}
