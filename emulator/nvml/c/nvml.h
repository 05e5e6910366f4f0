/* The C ABI of NVML as far as this library speaks it: layouts, numbers and limits. Written for Mews from the public
 * API reference; names of types are our own, names of functions are the ABI's. */
#ifndef MEWS_NVML_H
#define MEWS_NVML_H

#include <stddef.h>
#include <stdint.h>

typedef enum {
    OK = 0,
    UNINITIALIZED = 1,
    INVALID_ARGUMENT = 2,
    NOT_SUPPORTED = 3,
    NO_PERMISSION = 4,
    NOT_FOUND = 6,
    INSUFFICIENT_SIZE = 7,
    DRIVER_NOT_LOADED = 9,
    TIMEOUT = 10,
    LIBRARY_NOT_FOUND = 12,
    FUNCTION_NOT_FOUND = 13,
    GPU_IS_LOST = 15,
    RESET_REQUIRED = 16,
    IN_USE = 19,
    OUT_OF_MEMORY = 20,
    NO_DATA = 21,
    INSUFFICIENT_RESOURCES = 23,
    VERSION_MISMATCH = 25,
    UNKNOWN = 999
} Return;

typedef struct Handle *Device;
typedef struct EventSet *EventSetHandle;
typedef struct SystemEventSet *SystemEventSetHandle;
typedef struct GpmSample *GpmSampleHandle;

/* The version word of a versioned structure: its size below, its version in the highest byte. */
#define STRUCT_VERSION(type, number) ((unsigned)(sizeof(type) | ((unsigned)(number) << 24)))

enum { BUS_ID_SIZE = 32, BUS_ID_LEGACY_SIZE = 16, UUID_SIZE = 80, NAME_SIZE = 96, NVLINK_MAX = 18, NO_INSTANCE = -1 };

typedef struct {
    char bus_id_legacy[BUS_ID_LEGACY_SIZE];
    unsigned domain, bus, device, device_id, subsystem_id;
    char bus_id[BUS_ID_SIZE];
} PciInfo;

typedef struct {
    char bus_id_legacy[BUS_ID_LEGACY_SIZE];
    unsigned domain, bus, device, device_id, subsystem_id, reserved[4];
} PciInfoOld;

typedef struct {
    unsigned version, domain, bus, device, device_id, subsystem_id, base_class, sub_class;
    char bus_id[BUS_ID_SIZE];
} PciInfoExt;

typedef struct {
    unsigned long long total, free, used;
} Memory;

typedef struct {
    unsigned version;
    unsigned long long total, reserved, free, used;
} Memory2;

typedef struct {
    unsigned long long total, free, used;
} Bar1Memory;

typedef struct {
    unsigned gpu, memory;
} Utilization;

typedef struct {
    unsigned pid;
    unsigned long long used_memory;
} ProcessInfo1;

typedef struct {
    unsigned pid;
    unsigned long long used_memory;
    unsigned gpu_instance, compute_instance;
} ProcessInfo;

typedef struct {
    unsigned pid;
    unsigned long long used_memory;
    unsigned gpu_instance, compute_instance;
    unsigned long long protected_memory;
} ProcessDetail;

typedef struct {
    unsigned version, mode, count;
    ProcessDetail *processes;
} ProcessDetailList;

typedef struct {
    unsigned pid;
    unsigned long long time;
    unsigned sm, memory, encoder, decoder;
} ProcessSample;

typedef struct {
    unsigned long long l1, l2, memory, registers;
} EccDetail;

typedef struct {
    unsigned long long reference_us, violation_ns;
} Violation;

typedef union {
    double number;
    int i;
    unsigned ui;
    unsigned long ul;
    unsigned long long ull;
    long long ll;
    unsigned short us;
} Value;

enum { VALUE_DOUBLE = 0, VALUE_UINT = 1, VALUE_ULL = 3, VALUE_INT = 5 };

typedef struct {
    unsigned field, scope;
    long long timestamp, latency;
    unsigned type;
    Return result;
    Value value;
} FieldValue;

typedef struct {
    unsigned version;
    unsigned sensor;
    int temperature;
} TemperatureV;

typedef struct {
    unsigned version;
    unsigned char scope;
    unsigned milliwatts;
} PowerValue;

typedef struct {
    unsigned units;
} LinkThreshold;

enum { LINK_MODES = 23 };

typedef struct {
    unsigned version;
    unsigned char modes[LINK_MODES], count;
} LinkModes;

typedef struct {
    unsigned version, best;
    unsigned char mode;
} LinkMode;

typedef struct {
    unsigned cpu, gpus;
} ConfidentialAbility;

typedef struct {
    unsigned version, environment, feature, dev_tools, multi_gpu;
} ConfidentialSettings;

enum { POWER_PROFILES = 255 };

/* A bit for each power profile. */
typedef struct {
    unsigned mask[8];
} ProfileMask;

typedef struct {
    unsigned version, id, priority;
    ProfileMask conflicting;
} PowerProfile;

typedef struct {
    unsigned version;
    ProfileMask known;
    PowerProfile profiles[POWER_PROFILES];
} PowerProfiles;

typedef struct {
    unsigned version;
    ProfileMask known, requested, enforced;
} PowerProfilesNow;

typedef struct {
    unsigned version;
    int margin;
} MarginTemperature;

typedef struct {
    unsigned count;
    struct {
        int controller, min, max, current, target;
    } sensor[3];
} ThermalSettings;

typedef struct {
    unsigned flags;
    struct {
        unsigned present, percent, rise, fall;
    } utilization[8];
} DynamicPstates;

typedef struct {
    unsigned sessions, fps, latency;
} FbcStats;

typedef struct {
    unsigned max, high, partial, low, none;
} RemapperHistogram;

typedef struct {
    unsigned version, mask;
} Capabilities;

typedef struct {
    unsigned version, type;
    union {
        char text[41];
        unsigned char bytes[16];
    } value;
} UuidV;

typedef struct {
    unsigned version;
    char branch[80];
} DriverBranch;

typedef struct {
    Device device;
    unsigned long long type, data;
    unsigned gpu_instance, compute_instance;
} EventData;

enum {
    EVENT_ECC_SINGLE = 1,
    EVENT_ECC_DOUBLE = 2,
    EVENT_PSTATE = 4,
    EVENT_XID = 8,
    EVENT_CLOCK = 16,
    EVENT_ALL = 31,
    SYSTEM_EVENT_UNBIND = 1,
    SYSTEM_EVENT_BIND = 2
};

typedef struct {
    unsigned version;
    SystemEventSetHandle set;
} SystemEventSetRequest;

typedef struct {
    unsigned version;
    unsigned long long types;
    SystemEventSetHandle set;
} SystemRegisterRequest;

typedef struct {
    unsigned long long type;
    unsigned gpu_id;
} SystemEventData;

typedef struct {
    unsigned version, timeout_ms;
    SystemEventSetHandle set;
    SystemEventData *data;
    unsigned size, count;
} SystemWaitRequest;

typedef struct {
    unsigned id;
    Return result;
    double value;
    struct {
        const char *brief, *name, *unit;
    } info;
} GpmMetric;

enum { GPM_METRICS = 210 };

typedef struct {
    unsigned version, count;
    GpmSampleHandle first, second;
    GpmMetric metrics[GPM_METRICS];
} GpmMetricsGet;

typedef struct {
    unsigned version, supported;
} GpmSupport;

typedef struct {
    unsigned long long timestamp;
    Value value;
} Sample;

typedef struct {
    unsigned long long timestamp;
    unsigned pid, sm, memory, encoder, decoder, jpeg, ofa;
} ProcessShare;

typedef struct {
    unsigned version, count;
    unsigned long long since;
    ProcessShare *processes;
} ProcessShares;

typedef struct {
    unsigned version;
    unsigned long long aggregate_parity, aggregate_secded, aggregate_corrected, volatile_parity, volatile_secded;
    unsigned long long volatile_corrected, l2, sm, pcie, mcu, other;
    unsigned threshold_exceeded;
} SramStatus;

typedef struct {
    unsigned version, count;
    void *entries;
} SramErrors;

typedef struct {
    unsigned version, channel_pending, tpc_pending;
} RepairStatus;

typedef struct {
    unsigned long long protected_kib, unprotected_kib;
} ProtectedSizes;

typedef struct {
    unsigned environment, feature, tools_mode;
} ConfidentialState;

typedef struct {
    unsigned gpu, memory;
    unsigned long long max_memory, time, start;
    unsigned running, reserved[5];
} AccountingStats;

typedef struct {
    unsigned version, mode;
} AddressingMode;

typedef struct {
    unsigned version;
    unsigned char fabric_guid[16], chassis[16], slot, tray, host, peer, module;
} PlatformInfo;

typedef struct {
    unsigned char cluster[16];
    unsigned status, clique;
    unsigned char state;
} FabricInfo;

typedef struct {
    unsigned version;
    unsigned char cluster[16];
    unsigned status, clique;
    unsigned char state;
    unsigned health;
    unsigned char summary;
} FabricInfoV;

typedef struct {
    unsigned version;
    unsigned long long value;
} Pdi;

enum { CLOCK_GRAPHICS = 0, CLOCK_SM = 1, CLOCK_MEMORY = 2, CLOCK_VIDEO = 3 };
enum {
    THRESHOLD_SHUTDOWN = 0,
    THRESHOLD_SLOWDOWN = 1,
    THRESHOLD_MEMORY_MAX = 2,
    THRESHOLD_GPU_MAX = 3,
    THRESHOLD_TARGET_MIN = 4,
    THRESHOLD_TARGET = 5,
    THRESHOLD_TARGET_MAX = 6
};
enum {
    LEVEL_INTERNAL = 0,
    LEVEL_SINGLE = 10,
    LEVEL_MULTIPLE = 20,
    LEVEL_HOST_BRIDGE = 30,
    LEVEL_NODE = 40,
    LEVEL_SYSTEM = 50
};
enum { P2P_OK = 0, P2P_CHIPSET = 1, P2P_UNSUPPORTED = 5 };
enum { REMOTE_GPU = 0, REMOTE_SWITCH = 2 };
enum { ARCH_VOLTA = 5, ARCH_TURING = 6, ARCH_AMPERE = 7, ARCH_ADA = 8, ARCH_HOPPER = 9, ARCH_BLACKWELL = 10 };

/* ---- MIG ---- */

typedef struct GpuInstanceHandle *GpuInstanceRef;
typedef struct ComputeInstanceHandle *ComputeInstanceRef;

typedef struct {
    unsigned start, size;
} MigPlacement;

typedef struct {
    unsigned id, peer_to_peer, slices, count, multiprocessors, copy, decoder, encoder, jpeg, ofa;
    unsigned long long memory_mib;
} MigProfileInfo;

/* Laid out without the first version's padding: the version stands where its first word does. */
typedef struct {
    unsigned version, id, peer_to_peer, slices, count, multiprocessors, copy, decoder, encoder, jpeg, ofa;
    unsigned long long memory_mib;
    char name[NAME_SIZE];
} MigProfileInfo2;

typedef struct {
    unsigned version, id, slices, count, multiprocessors, copy, decoder, encoder, jpeg, ofa;
    unsigned long long memory_mib;
    char name[NAME_SIZE];
    unsigned capabilities;
} MigProfileInfo3;

typedef struct {
    Device device;
    unsigned id, profile;
    MigPlacement placement;
} MigInstanceInfo;

typedef struct {
    unsigned id, slices, count, multiprocessors, copy, decoder, encoder, jpeg, ofa;
} MigComputeInfo;

typedef struct {
    unsigned version;
    MigComputeInfo info;
    char name[NAME_SIZE];
} MigComputeInfo2;

typedef struct {
    unsigned version;
    MigComputeInfo info;
    char name[NAME_SIZE];
    unsigned capabilities;
} MigComputeInfo3;

typedef struct {
    Device device;
    GpuInstanceRef instance;
    unsigned id, profile;
    MigPlacement placement;
} MigComputeInstanceInfo;

typedef struct {
    unsigned multiprocessors, copy, decoder, encoder, jpeg, ofa, gpu_slices, compute_slices;
    unsigned long long memory_mib;
} MigAttributes;

/* What nvmlInternalGetExportTable gives for this name: calls for our own nvidia-smi. */
static const char DETAIL_TABLE_ID[16] __attribute__((unused)) = "mews-details-1";

typedef struct {
    size_t size;
    Return (*detail)(Device device, const char *key, char *out, unsigned length);
    Return (*reset)(const PciInfo *info);
    /* A setting that NVML has no call for; `value` NULL: its default. */
    Return (*set)(Device device, const char *name, const unsigned *value);
    /* The PCI address of a GPU by its index, also where it has no handle. */
    Return (*bus_id)(unsigned index, char *out, unsigned length);
} DetailTable;

#endif
