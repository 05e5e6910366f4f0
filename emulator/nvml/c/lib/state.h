/* The state file: what the host shows, parsed into one immutable value. */
#ifndef MEWS_STATE_H
#define MEWS_STATE_H

#include "nvml.h"

enum { EVENT_MAX = 256 };

typedef struct {
    unsigned pid;
    char kind;
    unsigned long long used;
    char name[128];
} Process;

/* What only nvidia-smi shows, and calls that give it as it is. */
typedef struct {
    char key[40], text[96];
} Detail;

typedef struct {
    char bus_id[BUS_ID_SIZE], uuid[UUID_SIZE], serial[64], vbios[32], name[NAME_SIZE], part_number[64], cpus[256];
    long long index, minor, numa_node;
    long long brand, architecture, cc_major, cc_minor, cores, bus_width, device_id, subsystem_id;
    long long memory_total, memory_reserved, memory_used, bar1_total, bar1_used;
    long long sm_clock, memory_clock, video_clock, max_sm_clock, max_memory_clock, max_video_clock;
    long long power, power_limit, power_default, power_min, power_max, energy;
    long long temperature, memory_temperature, slowdown_temperature, shutdown_temperature, fan;
    long long utilization, memory_utilization, pstate, idle;
    long long pcie_gen, pcie_width, max_pcie_gen, max_pcie_width;
    long long ecc_mode, ecc_volatile_corrected, ecc_volatile_uncorrected, ecc_aggregate_corrected;
    long long ecc_aggregate_uncorrected;
    long long persistence, compute_mode, draining, lost, unknown_error, mig_capable, nvlinks;
    unsigned domain, bus, device;
    Process *processes;
    size_t process_count;
    Detail *details;
    size_t detail_count;
} Gpu;

typedef struct {
    unsigned long long sequence, data;
    unsigned device_type, system_type; /* one of the two is 0 */
    char bus_id[BUS_ID_SIZE];
    unsigned domain, bus, device;
} Event;

typedef struct {
    char driver_version[80], nvml_version[80], dev_root[512];
    long long cuda_version, driver_loaded, switched;
    Gpu *gpus;
    size_t gpu_count;
    short *topology; /* gpu_count squared: a level, or minus the number of NVLinks; NULL = not told */
    Event *events;
    size_t event_count;
} State;

/* Parse a whole file. NULL for anything that is not exactly a state file of a known version. */
State *state_parse(const char *bytes, size_t length);
void state_free(State *state);

/* "0000:44:00.0" or "00000000:44:00.0" (function optional) into numbers; 0 when it is neither. */
int bus_id_parse(const char *text, unsigned *domain, unsigned *bus, unsigned *device);

/* Decimal digits, sign allowed; 0 when there is anything else. */
int number_parse(const char *text, long long *value);

/* The text of a detail, NULL where the state has none. */
const char *detail_text(const Gpu *gpu, const char *key);

#endif
