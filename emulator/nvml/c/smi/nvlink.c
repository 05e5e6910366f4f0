/* nvlink: the links of each GPU, what they can, what is at their ends, and what went over them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "gpus.h"

enum { STATUS = 's', CAPABILITIES = 'c', ADDRESSES = 'p', ERRORS = 'e', RESET_ERRORS = 'r', THROUGHPUT = 'g' };

typedef struct {
    char what;
    const char *ids, *counter; /* of -gt: d for data, r with what surrounds it */
    long link;                 /* -1: all */
} Wish;

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

static void errors(Device device, unsigned link) {
    static const struct {
        unsigned counter;
        const char *name;
    } COUNTERS[] = {{0, "Replay Errors"}, {1, "Recovery Errors"}, {2, "CRC Errors"}};
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
    case ERRORS: errors(device, link); break;
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
        {"-re", "--reseterrorcounters", RESET_ERRORS},
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
        if (what == 0 || wish->what != 0) return 0;
        wish->what = what;
    }
    return wish->what != 0;
}

int nvlink(int count, char **arguments) {
    Wish wish = {0, NULL, NULL, -1};
    int code = 0;
    if (!parse(count, arguments, &wish)) return misused("Usage: nvlink -s | -c | -p | -e | -re | -gt d|r [-i ID] [-l LINK].");
    api_open(0);
    Selection selection = select_gpus(wish.ids, "No devices were found");
    for (unsigned i = 0; i < selection.count && code == 0; i++) {
        char index[VALUE_SIZE], name[VALUE_SIZE], uuid[VALUE_SIZE];
        value_of(selection.devices[i], "index", index, 0);
        value_of(selection.devices[i], "name", name, 0);
        value_of(selection.devices[i], "uuid", uuid, 0);
        printf("GPU %s: %s (UUID: %s)\n", index, name, uuid);
        code = links(selection.devices[i], &wish);
    }
    free(selection.devices);
    return code;
}
