/* What NVML tells of the whole machine. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "session.h"

EXPORT const char *nvmlErrorString(Return result) {
    static const char *const NAMES[] = {
        "Success", "Uninitialized", "Invalid Argument", "Not Supported", "Insufficient Permissions",
        "Already Initialized", "Not Found", "Insufficient Size", "Insufficient External Power", "Driver Not Loaded",
        "Timeout", "Interrupt Request Issue", "NVML Shared Library Not Found", "Function Not Found",
        "Corrupted infoROM", "GPU is lost", "GPU requires reset", "The operating system has blocked the request.",
        "RM has detected an NVML/RM version mismatch.", "In use by another client", "Insufficient Memory", "No data",
        "vGPU host ECC not supported", "Insufficient Resources", "Requested frequency not supported",
        "Argument version mismatch", "Deprecated", "Not Ready", "GPU not found", "Invalid state",
        "Reset type not supported",
    };
    size_t place = (size_t)result;
    return place < sizeof NAMES / sizeof *NAMES ? NAMES[place] : "Unknown Error";
}

static Return version_out(size_t offset, char *out, unsigned length) {
    View view;
    Return result = session_enter(&view);
    if (result != OK) return result;
    return session_leave(text_out((const char *)view.state + offset, out, length));
}

EXPORT Return nvmlSystemGetDriverVersion(char *out, unsigned length) {
    return version_out(offsetof(State, driver_version), out, length);
}

EXPORT Return nvmlSystemGetNVMLVersion(char *out, unsigned length) {
    return version_out(offsetof(State, nvml_version), out, length);
}

EXPORT Return nvmlSystemGetCudaDriverVersion(int *version) {
    View view;
    if (version == NULL) return INVALID_ARGUMENT;
    Return result = session_enter(&view);
    if (result != OK) return result;
    *version = (int)view.state->cuda_version;
    return session_leave(OK);
}

EXPORT Return nvmlSystemGetCudaDriverVersion_v2(int *version) { return nvmlSystemGetCudaDriverVersion(version); }

/* "570.86.15" is of the branch "r570_86". */
EXPORT Return nvmlSystemGetDriverBranch(DriverBranch *info, unsigned length) {
    View view;
    Return result = session_enter(&view);
    if (result != OK) return result;
    if (info == NULL) return session_leave(INVALID_ARGUMENT);
    if (info->version != STRUCT_VERSION(*info, 1)) return session_leave(VERSION_MISMATCH);
    char branch[84];
    snprintf(branch, sizeof branch, "r%s", view.state->driver_version);
    char *dot = strchr(branch, '.');
    if (dot != NULL) {
        *dot = '_';
        branch[strcspn(branch, ".")] = 0;
    }
    return session_leave(text_out(branch, info->branch, length < sizeof info->branch ? length : sizeof info->branch));
}

static Return name_from_proc(unsigned pid, char *out, unsigned length) {
    char path[64], name[1024];
    snprintf(path, sizeof path, "/proc/%u/cmdline", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, name, sizeof name - 1);
    if (fd >= 0) close(fd);
    if (got <= 0) return NOT_FOUND;
    name[got] = 0; /* the first argument ends at its own zero byte */
    return text_out(name, out, length);
}

EXPORT Return nvmlSystemGetProcessName(unsigned pid, char *out, unsigned length) {
    View view;
    Return result = session_enter(&view);
    if (result != OK) return result;
    for (size_t i = 0; i < view.count; i++) {
        const Gpu *gpu = &view.state->gpus[view.gpus[i]];
        for (size_t j = 0; j < gpu->process_count; j++)
            if (gpu->processes[j].pid == pid && gpu->processes[j].name[0])
                return session_leave(text_out(gpu->processes[j].name, out, length));
    }
    return session_leave(out == NULL ? INVALID_ARGUMENT : name_from_proc(pid, out, length));
}

static Return count_out(unsigned *out, unsigned value) {
    View view;
    Return result = session_enter(&view);
    if (result != OK) return result;
    if (out == NULL) return session_leave(INVALID_ARGUMENT);
    *out = value;
    return session_leave(OK);
}

EXPORT Return nvmlUnitGetCount(unsigned *count) { return count_out(count, 0); }
EXPORT Return nvmlGetExcludedDeviceCount(unsigned *count) { return count_out(count, 0); }
/* None is excluded, so that every index is too high. */
EXPORT Return nvmlGetExcludedDeviceInfoByIndex(unsigned index, void *info) {
    View view;
    Return result = session_enter(&view);
    return result != OK ? result : session_leave(INVALID_ARGUMENT);
}

EXPORT Return nvmlSystemGetHicVersion(unsigned *count, void *entries) { return count_out(count, 0); }
