/* The library's calls, found at run time: nvidia-smi is a client like any other. */
#ifndef MEWS_SMI_API_H
#define MEWS_SMI_API_H

#include "nvml.h"

#define CALLS(call)                                                                                      \
    call(nvmlInitWithFlags, (unsigned))                                                                  \
    call(nvmlShutdown, (void))                                                                           \
    call(nvmlSystemGetDriverVersion, (char *, unsigned))                                                 \
    call(nvmlSystemGetCudaDriverVersion_v2, (int *))                                                     \
    call(nvmlSystemGetNVMLVersion, (char *, unsigned))                                                   \
    call(nvmlSystemGetProcessName, (unsigned, char *, unsigned))                                         \
    call(nvmlDeviceGetCount_v2, (unsigned *))                                                            \
    call(nvmlDeviceGetHandleByIndex_v2, (unsigned, Device *))                                            \
    call(nvmlDeviceGetIndex, (Device, unsigned *))                                                       \
    call(nvmlDeviceGetName, (Device, char *, unsigned))                                                  \
    call(nvmlDeviceGetUUID, (Device, char *, unsigned))                                                  \
    call(nvmlDeviceGetSerial, (Device, char *, unsigned))                                                \
    call(nvmlDeviceGetVbiosVersion, (Device, char *, unsigned))                                          \
    call(nvmlDeviceGetBoardPartNumber, (Device, char *, unsigned))                                       \
    call(nvmlDeviceGetGspFirmwareVersion, (Device, char *))                                              \
    call(nvmlDeviceGetMinorNumber, (Device, unsigned *))                                                 \
    call(nvmlDeviceGetBoardId, (Device, unsigned *))                                                     \
    call(nvmlDeviceGetBrand, (Device, unsigned *))                                                       \
    call(nvmlDeviceGetArchitecture, (Device, unsigned *))                                                \
    call(nvmlDeviceGetPciInfo_v3, (Device, PciInfo *))                                                   \
    call(nvmlDeviceGetMaxPcieLinkGeneration, (Device, unsigned *))                                       \
    call(nvmlDeviceGetMaxPcieLinkWidth, (Device, unsigned *))                                            \
    call(nvmlDeviceGetCurrPcieLinkGeneration, (Device, unsigned *))                                      \
    call(nvmlDeviceGetCurrPcieLinkWidth, (Device, unsigned *))                                           \
    call(nvmlDeviceGetPcieReplayCounter, (Device, unsigned *))                                           \
    call(nvmlDeviceGetPcieThroughput, (Device, unsigned, unsigned *))                                    \
    call(nvmlDeviceGetDisplayMode, (Device, unsigned *))                                                 \
    call(nvmlDeviceGetDisplayActive, (Device, unsigned *))                                               \
    call(nvmlDeviceGetPersistenceMode, (Device, unsigned *))                                             \
    call(nvmlDeviceSetPersistenceMode, (Device, unsigned))                                               \
    call(nvmlDeviceSetPowerManagementLimit, (Device, unsigned))                                          \
    call(nvmlDeviceSetGpuLockedClocks, (Device, unsigned, unsigned))                                     \
    call(nvmlDeviceResetGpuLockedClocks, (Device))                                                       \
    call(nvmlDeviceSetMemoryLockedClocks, (Device, unsigned, unsigned))                                  \
    call(nvmlDeviceResetMemoryLockedClocks, (Device))                                                    \
    call(nvmlDeviceSetApplicationsClocks, (Device, unsigned, unsigned))                                  \
    call(nvmlDeviceResetApplicationsClocks, (Device))                                                    \
    call(nvmlDeviceSetComputeMode, (Device, unsigned))                                                   \
    call(nvmlDeviceSetEccMode, (Device, unsigned))                                                       \
    call(nvmlDeviceClearEccErrorCounts, (Device, unsigned))                                              \
    call(nvmlDeviceSetTemperatureThreshold, (Device, unsigned, int *))                                   \
    call(nvmlDeviceSetGpuOperationMode, (Device, unsigned))                                              \
    call(nvmlDeviceSetDefaultAutoBoostedClocksEnabled, (Device, unsigned, unsigned))                     \
    call(nvmlDeviceSetAPIRestriction, (Device, unsigned, unsigned))                                      \
    call(nvmlDeviceSetPowerManagementLimit_v2, (Device, const PowerValue *))                             \
    call(nvmlDeviceGetAccountingMode, (Device, unsigned *))                                              \
    call(nvmlDeviceGetAccountingBufferSize, (Device, unsigned *))                                        \
    call(nvmlDeviceGetAccountingPids, (Device, unsigned *, unsigned *))                                  \
    call(nvmlDeviceGetAccountingStats, (Device, unsigned, AccountingStats *))                            \
    call(nvmlDeviceSetAccountingMode, (Device, unsigned))                                                \
    call(nvmlDeviceClearAccountingPids, (Device))                                                        \
    call(nvmlDeviceGetMultiGpuBoard, (Device, unsigned *))                                               \
    call(nvmlDeviceGetVirtualizationMode, (Device, unsigned *))                                          \
    call(nvmlDeviceGetNumaNodeId, (Device, unsigned *))                                                  \
    call(nvmlDeviceGetCpuAffinity, (Device, unsigned, unsigned long *))                                  \
    call(nvmlDeviceGetMemoryAffinity, (Device, unsigned, unsigned long *, unsigned))                     \
    call(nvmlDeviceGetMigMode, (Device, unsigned *, unsigned *))                                         \
    call(nvmlDeviceSetMigMode, (Device, unsigned, Return *))                                             \
    call(nvmlDeviceGetMaxMigDeviceCount, (Device, unsigned *))                                           \
    call(nvmlDeviceGetMigDeviceHandleByIndex, (Device, unsigned, Device *))                              \
    call(nvmlDeviceGetGpuInstanceId, (Device, unsigned *))                                               \
    call(nvmlDeviceGetComputeInstanceId, (Device, unsigned *))                                           \
    call(nvmlDeviceGetAttributes_v2, (Device, MigAttributes *))                                          \
    call(nvmlDeviceGetGpuInstanceProfileInfoV, (Device, unsigned, void *))                               \
    call(nvmlDeviceGetGpuInstancePossiblePlacements_v2, (Device, unsigned, MigPlacement *, unsigned *))  \
    call(nvmlDeviceGetGpuInstanceRemainingCapacity, (Device, unsigned, unsigned *))                      \
    call(nvmlDeviceCreateGpuInstance, (Device, unsigned, GpuInstanceRef *))                              \
    call(nvmlDeviceCreateGpuInstanceWithPlacement,                                                       \
         (Device, unsigned, const MigPlacement *, GpuInstanceRef *))                                     \
    call(nvmlGpuInstanceDestroy, (GpuInstanceRef))                                                       \
    call(nvmlDeviceGetGpuInstances, (Device, unsigned, GpuInstanceRef *, unsigned *))                    \
    call(nvmlGpuInstanceGetInfo, (GpuInstanceRef, MigInstanceInfo *))                                    \
    call(nvmlGpuInstanceGetComputeInstanceProfileInfoV, (GpuInstanceRef, unsigned, unsigned, void *))    \
    call(nvmlGpuInstanceGetComputeInstancePossiblePlacements,                                            \
         (GpuInstanceRef, unsigned, MigPlacement *, unsigned *))                                         \
    call(nvmlGpuInstanceGetComputeInstanceRemainingCapacity, (GpuInstanceRef, unsigned, unsigned *))     \
    call(nvmlGpuInstanceCreateComputeInstance, (GpuInstanceRef, unsigned, ComputeInstanceRef *))         \
    call(nvmlGpuInstanceCreateComputeInstanceWithPlacement,                                              \
         (GpuInstanceRef, unsigned, const MigPlacement *, ComputeInstanceRef *))                         \
    call(nvmlComputeInstanceDestroy, (ComputeInstanceRef))                                               \
    call(nvmlGpuInstanceGetComputeInstances,                                                             \
         (GpuInstanceRef, unsigned, ComputeInstanceRef *, unsigned *))                                   \
    call(nvmlComputeInstanceGetInfo_v2, (ComputeInstanceRef, MigComputeInstanceInfo *))                  \
    call(nvmlDeviceGetFanSpeed, (Device, unsigned *))                                                    \
    call(nvmlDeviceGetPerformanceState, (Device, unsigned *))                                            \
    call(nvmlDeviceGetCurrentClocksEventReasons, (Device, unsigned long long *))                         \
    call(nvmlDeviceGetSupportedClocksEventReasons, (Device, unsigned long long *))                       \
    call(nvmlDeviceGetMemoryInfo_v2, (Device, Memory2 *))                                                \
    call(nvmlDeviceGetBAR1MemoryInfo, (Device, Bar1Memory *))                                            \
    call(nvmlDeviceGetComputeMode, (Device, unsigned *))                                                 \
    call(nvmlDeviceGetCudaComputeCapability, (Device, int *, int *))                                     \
    call(nvmlDeviceGetUtilizationRates, (Device, Utilization *))                                         \
    call(nvmlDeviceGetEncoderUtilization, (Device, unsigned *, unsigned *))                              \
    call(nvmlDeviceGetDecoderUtilization, (Device, unsigned *, unsigned *))                              \
    call(nvmlDeviceGetJpgUtilization, (Device, unsigned *, unsigned *))                                  \
    call(nvmlDeviceGetOfaUtilization, (Device, unsigned *, unsigned *))                                  \
    call(nvmlDeviceGetEncoderStats, (Device, unsigned *, unsigned *, unsigned *))                        \
    call(nvmlDeviceGetEccMode, (Device, unsigned *, unsigned *))                                         \
    call(nvmlDeviceGetMemoryErrorCounter, (Device, unsigned, unsigned, unsigned, unsigned long long *))  \
    call(nvmlDeviceGetTotalEccErrors, (Device, unsigned, unsigned, unsigned long long *))                \
    call(nvmlDeviceGetRetiredPages, (Device, unsigned, unsigned *, unsigned long long *))                \
    call(nvmlDeviceGetRetiredPages_v2,                                                                   \
         (Device, unsigned, unsigned *, unsigned long long *, unsigned long long *))                     \
    call(nvmlDeviceGetRetiredPagesPendingStatus, (Device, unsigned *))                                   \
    call(nvmlDeviceGetRemappedRows, (Device, unsigned *, unsigned *, unsigned *, unsigned *))            \
    call(nvmlDeviceGetTemperature, (Device, unsigned, unsigned *))                                       \
    call(nvmlDeviceGetTemperatureThreshold, (Device, unsigned, unsigned *))                              \
    call(nvmlDeviceGetFieldValues, (Device, int, FieldValue *))                                          \
    call(nvmlDeviceGetPowerUsage, (Device, unsigned *))                                                  \
    call(nvmlDeviceGetPowerManagementMode, (Device, unsigned *))                                         \
    call(nvmlDeviceGetPowerManagementLimit, (Device, unsigned *))                                        \
    call(nvmlDeviceGetEnforcedPowerLimit, (Device, unsigned *))                                          \
    call(nvmlDeviceGetPowerManagementDefaultLimit, (Device, unsigned *))                                 \
    call(nvmlDeviceGetPowerManagementLimitConstraints, (Device, unsigned *, unsigned *))                 \
    call(nvmlDeviceGetClockInfo, (Device, unsigned, unsigned *))                                         \
    call(nvmlDeviceGetMaxClockInfo, (Device, unsigned, unsigned *))                                      \
    call(nvmlDeviceGetApplicationsClock, (Device, unsigned, unsigned *))                                 \
    call(nvmlDeviceGetDefaultApplicationsClock, (Device, unsigned, unsigned *))                          \
    call(nvmlDeviceGetMaxCustomerBoostClock, (Device, unsigned, unsigned *))                             \
    call(nvmlDeviceGetSupportedMemoryClocks, (Device, unsigned *, unsigned *))                           \
    call(nvmlDeviceGetSupportedGraphicsClocks, (Device, unsigned, unsigned *, unsigned *))               \
    call(nvmlInternalGetExportTable, (const void **, const void *))                                      \
    call(nvmlDeviceGetComputeRunningProcesses_v3, (Device, unsigned *, ProcessInfo *))                   \
    call(nvmlDeviceGetGraphicsRunningProcesses_v3, (Device, unsigned *, ProcessInfo *))                  \
    call(nvmlDeviceGetTopologyCommonAncestor, (Device, Device, unsigned *))                              \
    call(nvmlDeviceGetTopologyNearestGpus, (Device, unsigned, unsigned *, Device *))                     \
    call(nvmlDeviceGetNvLinkState, (Device, unsigned, unsigned *))                                       \
    call(nvmlDeviceGetNvLinkVersion, (Device, unsigned, unsigned *))                                     \
    call(nvmlDeviceGetNvLinkRemoteDeviceType, (Device, unsigned, unsigned *))                            \
    call(nvmlDeviceGetNvLinkRemotePciInfo_v2, (Device, unsigned, PciInfo *))                             \
    call(nvmlDeviceGetNvLinkCapability, (Device, unsigned, unsigned, unsigned *))                        \
    call(nvmlDeviceGetNvLinkErrorCounter, (Device, unsigned, unsigned, unsigned long long *))            \
    call(nvmlDeviceResetNvLinkErrorCounters, (Device, unsigned))                                         \
    call(nvmlSystemGetNvlinkBwMode, (unsigned *))                                                        \
    call(nvmlSystemSetNvlinkBwMode, (unsigned))                                                          \
    call(nvmlDeviceGetNvlinkSupportedBwModes, (Device, LinkModes *))                                     \
    call(nvmlDeviceGetNvlinkBwMode, (Device, LinkMode *))                                                \
    call(nvmlDeviceSetNvlinkBwMode, (Device, LinkMode *))                                                \
    call(nvmlDeviceSetNvLinkDeviceLowPowerThreshold, (Device, const LinkThreshold *))                    \
    call(nvmlDeviceGetP2PStatus, (Device, Device, unsigned, unsigned *))                                 \
    call(nvmlSystemGetTopologyGpuSet, (unsigned, unsigned *, Device *))                                  \
    call(nvmlDeviceGetProcessUtilization, (Device, ProcessSample *, unsigned *, unsigned long long))     \
    call(nvmlDeviceGetViolationStatus, (Device, unsigned, Violation *))                                  \
    call(nvmlGpmSampleAlloc, (GpmSampleHandle *))                                                        \
    call(nvmlGpmSampleFree, (GpmSampleHandle))                                                           \
    call(nvmlGpmSampleGet, (Device, GpmSampleHandle))                                                    \
    call(nvmlGpmMetricsGet, (GpmMetricsGet *))                                                           \
    call(nvmlUnitGetCount, (unsigned *))                                                                 \
    call(nvmlDeviceSetVirtualizationMode, (Device, unsigned))                                            \
    call(nvmlDeviceSetDramEncryptionMode, (Device, const void *))                                        \
    call(nvmlDeviceSetHostname_v1, (Device, const void *))                                               \
    call(nvmlDeviceGetHostname_v1, (Device, void *))                                                     \
    call(nvmlDeviceClearFieldValues, (Device, int, FieldValue *))                                        \
    call(nvmlDeviceGetEncoderSessions, (Device, unsigned *, void *))                                     \
    call(nvmlDeviceGetFBCSessions, (Device, unsigned *, void *))                                         \
    call(nvmlDeviceGetHostVgpuMode, (Device, unsigned *))                                                \
    call(nvmlGpmQueryIfStreamingEnabled, (Device, unsigned *))                                           \
    call(nvmlGpmSetStreamingEnabled, (Device, unsigned))                                                 \
    call(nvmlGpmMigSampleGet, (Device, unsigned, GpmSampleHandle))                                       \
    call(nvmlSystemGetConfComputeState, (ConfidentialState *))                                           \
    call(nvmlSystemGetConfComputeCapabilities, (ConfidentialAbility *))                                  \
    call(nvmlSystemGetConfComputeGpusReadyState, (unsigned *))                                           \
    call(nvmlSystemSetConfComputeGpusReadyState, (unsigned))                                             \
    call(nvmlDeviceWorkloadPowerProfileGetProfilesInfo, (Device, PowerProfiles *))                       \
    call(nvmlDeviceWorkloadPowerProfileGetCurrentProfiles, (Device, PowerProfilesNow *))                 \
    call(nvmlDeviceModifyDrainState, (const PciInfo *, unsigned))                                        \
    call(nvmlDeviceQueryDrainState, (const PciInfo *, unsigned *))                                       \
    call(nvmlDeviceRemoveGpu_v2, (const PciInfo *, unsigned, unsigned))

#define MEMBER(name, arguments) Return(*name) arguments;

typedef struct {
    CALLS(MEMBER)
    const char *(*nvmlErrorString)(Return);
} Api;

extern Api api;

/* The library's own calls, beside the API. */
extern const DetailTable *detail_table;

/* Find the library (beside the program first) and initialise it. Ends the program with the fitting words and code. */
void api_open(unsigned flags);

/* Finds the library and asks it for the driver's version, without keeping a GPU open; 0, silently, where it cannot. */
int api_peek(char *version, unsigned length);

/* nvidia-smi's exit code for what a call returned. */
int exit_code_of(Return result);

#endif
