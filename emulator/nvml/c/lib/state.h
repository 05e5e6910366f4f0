/* The state file: what the host shows, parsed into one immutable value. */
#ifndef MEWS_STATE_H
#define MEWS_STATE_H

#include "mig_state.h"
#include "nvml.h"

enum { EVENT_MAX = 256, CLOCK_SPEED = 1000000 };
enum { FANS = 2 }; /* of a board that has any */

/* What a board adds up: percent of utilisation times ns, kilobytes over the PCIe link each way, and ns for which its
 * clocks were held back by the power limit, its temperature, locked or application clocks, and its target
 * temperature. */
typedef struct {
    long long work, traffic, capped, hot, locked, cooled;
} Totals;

enum { REASON_LOCKED = 0x2, REASON_POWER_CAP = 0x4, REASON_SW_THERMAL = 0x20, REASON_HW_THERMAL = 0x40 };

/* What holds for a while (state.py documents it): within, energy grows with the time, the temperature lags. */
typedef struct {
    long long at, until; /* emulated nanoseconds; until < 0: for ever */
    long long utilization, memory_utilization, power, sm_clock, memory_clock, video_clock, pstate, reasons, pcie;
    long long energy, energy_rest; /* mJ and pJ at the beginning */
    long long temperature, target; /* millionths of a degree */
    Totals totals;                 /* at the beginning */
    size_t shares, share_count;    /* where in the GPU's shares those of its processes are */
} Span;

typedef struct {
    unsigned pid;
    char kind;
    unsigned long long used;
    char name[128];
    unsigned gpu_instance, compute_instance; /* NO_INSTANCE for those of a whole GPU */
} Process;

/* What accounting knows of a process: percent over its life, bytes, and emulated nanoseconds; ended < 0: it runs. */
typedef struct {
    long long pid, utilization, memory_utilization, max_memory, began, ended;
} Account;

/* What only nvidia-smi shows, and calls that give it as it is. */
typedef struct {
    char key[40], text[96];
} Detail;

typedef struct {
    unsigned domain, bus, device;
} LinkEnd;

typedef struct {
    char bus_id[BUS_ID_SIZE], uuid[UUID_SIZE], serial[64], vbios[32], name[NAME_SIZE], part_number[64], cpus[256];
    long long index, minor, numa_node;
    long long brand, architecture, cc_major, cc_minor, cores, bus_width, device_id, subsystem_id;
    long long memory_total, memory_reserved, memory_used, bar1_total, bar1_used;
    long long max_sm_clock, max_memory_clock, max_video_clock;
    long long power_limit, power_default, power_min, power_max;
    long long memory_warmer, slowdown_temperature, shutdown_temperature, max_temperature;
    long long memory_max_temperature, fan_low, fan_high, fan_cold, fan_hot, fan_fixed;
    long long application_memory_clock, application_sm_clock;
    long long pcie_gen, pcie_width, max_pcie_gen, max_pcie_width;
    long long ecc_mode, ecc_pending, ecc_volatile_corrected, ecc_volatile_uncorrected, ecc_aggregate_corrected;
    long long ecc_aggregate_uncorrected, remapped_rows, remap_pending, remap_failed, pcie_replays;
    long long persistence, compute_mode, accounting, draining, lost, unknown_error, mig_capable, nvlinks;
    long long link_threshold, link_bandwidth; /* of NVLinks: 0 = the longest, and all of them */
    long long mig_mode, mig_pending, mig_model; /* the number of its table, -1 without MIG */
    unsigned domain, bus, device;
    Process *processes;
    size_t process_count;
    Account *accounts;
    size_t account_count;
    Totals totals; /* at the beginning of the first span */
    Span *spans;   /* at least one */
    size_t span_count;
    unsigned char *shares;
    size_t share_count;
    Detail *details;
    size_t detail_count;
    LinkEnd *link_ends; /* of the GPUs at the ends of its NVLinks, in their order, there or not; NULL = by topology */
    size_t link_end_count;
    MigOfGpu mig;
} Gpu;

typedef struct {
    unsigned long long sequence, data;
    unsigned device_type, system_type; /* one of the two is 0 */
    char bus_id[BUS_ID_SIZE];
    unsigned domain, bus, device;
    unsigned gpu_instance, compute_instance; /* NO_INSTANCE for those of a whole GPU */
} Event;

typedef struct {
    char driver_version[80], nvml_version[80], dev_root[512];
    long long cuda_version, driver_loaded, switched;
    long long clock_monotonic, clock_emulated, clock_speed, lag; /* ns, ns, millionths, ns */
    Gpu *gpus;
    size_t gpu_count;
    short *topology; /* gpu_count squared: a level, or minus the number of NVLinks; NULL = not told */
    short *levels;   /* likewise, PCIe levels alone; NULL = by NUMA node where NVLinks join a pair */
    Event *events;
    size_t event_count;
    MigModels mig;
} State;

/* Parse a whole file. NULL for anything that is not exactly a state file of a known version. */
State *state_parse(const char *bytes, size_t length);
void state_free(State *state);

/* "0000:44:00.0" or "00000000:44:00.0" (function optional) into numbers; 0 when it is neither. */
int bus_id_parse(const char *text, unsigned *domain, unsigned *bus, unsigned *device);

/* Decimal digits, sign allowed; 0 when there is anything else. */
int number_parse(const char *text, long long *value);

/* The totals of a span after so many nanoseconds. */
Totals totals_after(const Span *span, long long passed);
/* The next word, cut off the rest, and an array with room for one more: what reads lines uses. */
char *state_word(char **rest);
void *state_grown(void *array, size_t count, size_t size);

/* The text of a detail, NULL where the state has none. */
const char *detail_text(const Gpu *gpu, const char *key);

#endif
