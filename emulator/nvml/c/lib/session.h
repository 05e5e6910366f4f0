/* One process' use of NVML: initialisation, the devices it sees, and the state behind them. */
#ifndef MEWS_SESSION_H
#define MEWS_SESSION_H

#include "state.h"

#define EXPORT __attribute__((visibility("default")))

/* A device that this process has met. Lives as long as the process, so that a handle never dangles. */
struct Handle {
    char uuid[UUID_SIZE], bus_id[BUS_ID_SIZE];
    unsigned domain, bus, device, minor;
    int seen;    /* visible since nvmlInit: draining does not hide it from this process */
    int present; /* in the current state */
    int held;    /* its device file is kept open, and the host knows */
    int fd;      /* of /dev/nvidiaN, or -1 */
    struct Handle *parent; /* of a MIG device: its GPU's; NULL for a GPU */
};

/* What the calls see between session_enter and session_leave: the lock is held. */
typedef struct {
    const State *state;
    size_t count;
    const size_t *gpus;      /* places in state->gpus of the visible ones, in NVML's order */
    struct Handle **handles; /* beside them */
} View;

/* Take the lock and look at the state afresh. Unless it returns OK, the lock is not held. */
Return session_enter(View *view);
Return session_leave(Return result);

/* session_enter, and the GPU of a handle. ...any: also where it is lost or in an unknown error. */
Return session_enter_gpu(Device device, View *view, const Gpu **gpu, size_t *index);
Return session_enter_any(Device device, View *view, const Gpu **gpu, size_t *index);

/* Likewise of a GPU's handle or of a MIG device's, whose compute instance is `mig`, else NULL. All other calls take a
 * MIG device's handle as NOT_SUPPORTED. ...any_device: also where the GPU is lost. */
Return session_enter_device(Device device, View *view, const Gpu **gpu, size_t *index, const MigDevice **mig);
Return session_enter_any_device(Device device, View *view, const Gpu **gpu, size_t *index, const MigDevice **mig);

/* The handle of a MIG device, NULL without memory; the GPU's MIG device of that number among those that this process
 * sees, NULL where there is none; the number of one. */
struct Handle *mig_handle(struct Handle *gpu, const char *uuid);
const MigDevice *session_mig_at(const Gpu *gpu, size_t index);
unsigned session_mig_index(const Gpu *gpu, const MigDevice *device);

/* Whether this process hears of what happens to a GPU instance: not if it sees other devices of that GPU alone. */
int session_hears(const Gpu *gpu, unsigned instance);

/* The GPU of a handle inside a view; NULL when it is not there (any more). */
const Gpu *view_gpu(const View *view, Device device, size_t *index);

/* Whether this is a handle of this process, present or not. */
int handle_known(Device device);

/* The handle of a bus address, or NULL: among all that this process has met. */
struct Handle *handle_at(unsigned domain, unsigned bus, unsigned device);

/* Give out a handle: from now on the process holds the device open. */
Return session_give(const View *view, size_t index, Device *device);

/* Let go of a device's open files, and take them again: around its removal. */
void session_drop(unsigned domain, unsigned bus, unsigned device);
void session_retake(void);

/* What nvidia-smi --gpu-reset asks of the host. */
Return gpu_reset(const PciInfo *info);
Return driver_set(Device device, const char *name, const unsigned *value);

/* Root's rights, unless the program's container has none: the host of an emulated GPU belongs to whoever started it. */
int may_set(void);

/* Pages that are retired for uncorrectable errors; 0 on boards that remap rows instead. */
unsigned pages_retired(const Gpu *gpu);

/* Where the host serves requests. */
const char *session_socket(char *path, size_t size);

Return text_out(const char *text, char *out, unsigned length);

#endif
