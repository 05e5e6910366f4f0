#define _GNU_SOURCE
#include "session.h"

#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "events.h"
#include "gpm.h"
#include "holding.h"
#include "visible.h"

enum { STATE_LIMIT = 64 << 20, NO_ATTACH = 2 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int users; /* nvmlInit minus nvmlShutdown */
static int attach;
static Visible visible = {SEE_NONE, NULL};

static char path[4096];
static State *state;
static Return trouble = DRIVER_NOT_LOADED; /* why there is no state */
static struct stat identity;
static int file = -1; /* kept open, so that its inode cannot be another file's */

static struct Handle **handles;
static size_t handle_count;

static struct Handle **mig_handles;
static size_t mig_handle_count;

static size_t *seen_gpus;
static struct Handle **seen_handles;
static size_t seen_count;

/* ---- Where the state is ---- */

static int folder_of_this_library(struct dl_phdr_info *info, size_t size, void *out) {
    for (int i = 0; i < info->dlpi_phnum; i++) {
        uintptr_t begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr, here = (uintptr_t)&folder_of_this_library;
        if (info->dlpi_phdr[i].p_type != PT_LOAD || here < begin || here >= begin + info->dlpi_phdr[i].p_memsz) continue;
        const char *slash = strrchr(info->dlpi_name, '/');
        int length = slash ? (int)(slash - info->dlpi_name) : 1;
        snprintf(out, sizeof path, "%.*s/nvml.state", length, slash ? info->dlpi_name : ".");
        return 1;
    }
    return 0;
}

/* A container has a link to the library and no state beside it: then the state lies beside the library itself. */
static void beside_the_file(void) {
    static const char NAME[] = "nvml.state", LIBRARY[] = "libnvidia-ml.so.1";
    char link[4096], real[4096];
    char *slash = strrchr(path, '/');
    if (slash == NULL || access(path, F_OK) == 0 || (size_t)(slash - path) + sizeof LIBRARY + 1 > sizeof link) return;
    snprintf(link, sizeof link, "%.*s/%s", (int)(slash - path), path, LIBRARY);
    if (realpath(link, real) == NULL || (slash = strrchr(real, '/')) == NULL) return;
    size_t length = (size_t)(slash - real) + 1;
    if (length + sizeof NAME > sizeof real) return;
    memcpy(real + length, NAME, sizeof NAME);
    if (access(real, F_OK) == 0) memcpy(path, real, length + sizeof NAME);
}

static void find_path(void) {
    const char *told = getenv("MEWS_NVML_STATE");
    path[0] = 0;
    if (told != NULL && *told)
        snprintf(path, sizeof path, "%s", told);
    else {
        dl_iterate_phdr(folder_of_this_library, path);
        beside_the_file();
    }
}

const char *session_socket(char *out, size_t size) {
    int length = snprintf(out, size, "%s.sock", path);
    return length > 0 && (size_t)length < size && path[0] ? out : NULL;
}

/* ---- Reading it ---- */

/* System calls by number: the C library's own names of them are too new for old systems. */
static int stat_path(struct stat *told) { return (int)syscall(SYS_newfstatat, AT_FDCWD, path, told, 0); }
static int stat_file(int fd, struct stat *told) { return (int)syscall(SYS_fstat, fd, told); }

static int same_file(const struct stat *a, const struct stat *b) {
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static void forget_state(Return why) {
    state_free(state);
    state = NULL;
    trouble = why;
    if (file >= 0) close(file);
    file = -1;
}

static char *read_file(int fd, size_t size) {
    char *bytes = malloc(size + 1);
    size_t length = 0;
    while (bytes != NULL && length < size) {
        ssize_t got = read(fd, bytes + length, size - length);
        if (got <= 0) break;
        length += (size_t)got;
    }
    if (bytes != NULL && length == size) return bytes;
    free(bytes);
    return NULL;
}

static void load(void) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat told;
    if (fd < 0 || stat_file(fd, &told) != 0 || !S_ISREG(told.st_mode)) {
        if (fd >= 0) close(fd);
        forget_state(DRIVER_NOT_LOADED);
        return;
    }
    forget_state(UNKNOWN);
    identity = told;
    file = fd;
    if (told.st_size > STATE_LIMIT) return;
    char *bytes = read_file(fd, (size_t)told.st_size);
    if (bytes != NULL) state = state_parse(bytes, (size_t)told.st_size);
    free(bytes);
}

/* ---- What this process sees of it ---- */

static struct Handle *intern(const Gpu *gpu) {
    for (size_t i = 0; i < handle_count; i++)
        if (strcmp(handles[i]->uuid, gpu->uuid) == 0 && strcmp(handles[i]->bus_id, gpu->bus_id) == 0) return handles[i];
    struct Handle **more = realloc(handles, (handle_count + 1) * sizeof *more);
    if (more == NULL) return NULL;
    handles = more;
    struct Handle *handle = calloc(1, sizeof *handle);
    if (handle == NULL) return NULL;
    memcpy(handle->uuid, gpu->uuid, sizeof handle->uuid);
    memcpy(handle->bus_id, gpu->bus_id, sizeof handle->bus_id);
    handle->domain = gpu->domain;
    handle->bus = gpu->bus;
    handle->device = gpu->device;
    handle->fd = -1;
    handles[handle_count++] = handle;
    return handle;
}

static int room_for(size_t count) {
    size_t *places = realloc(seen_gpus, (count + 1) * sizeof *places);
    if (places != NULL) seen_gpus = places;
    struct Handle **beside = realloc(seen_handles, (count + 1) * sizeof *beside);
    if (beside != NULL) seen_handles = beside;
    return places != NULL && beside != NULL;
}

static void look(void) {
    for (size_t i = 0; i < handle_count; i++) handles[i]->present = 0;
    seen_count = 0;
    if (state != NULL && room_for(state->gpu_count))
        for (size_t i = 0; i < state->gpu_count; i++) {
            const Gpu *gpu = &state->gpus[i];
            struct Handle *handle = visible_allows(&visible, gpu) ? intern(gpu) : NULL;
            if (handle == NULL || (gpu->draining && !handle->seen)) continue;
            handle->seen = handle->present = 1;
            handle->minor = (unsigned)gpu->minor;
            seen_gpus[seen_count] = i;
            seen_handles[seen_count++] = handle;
        }
    for (size_t i = 0; i < handle_count; i++)
        if (!handles[i]->present) handles[i]->seen = handles[i]->held = 0;
}

static const char *dev_root(void) { return state ? state->dev_root : ""; }

static void refresh(int initialising) {
    struct stat told;
    if (stat_path(&told) != 0) {
        if (state == NULL && !initialising) return;
        forget_state(DRIVER_NOT_LOADED);
    } else if (file < 0 || !same_file(&told, &identity)) {
        load();
    } else if (!initialising) {
        return;
    }
    look();
    if (!initialising) holding_update(dev_root(), handles, handle_count);
}

/* ---- The lock ---- */

static void before_fork(void) { pthread_mutex_lock(&lock); }
static void after_fork(void) { pthread_mutex_unlock(&lock); }

__attribute__((constructor)) static void prepare(void) { pthread_atfork(before_fork, after_fork, after_fork); }

Return session_leave(Return result) {
    pthread_mutex_unlock(&lock);
    return result;
}

Return session_enter(View *view) {
    pthread_mutex_lock(&lock);
    if (users == 0) return session_leave(UNINITIALIZED);
    refresh(0);
    if (state == NULL) return session_leave(trouble);
    if (!state->driver_loaded) return session_leave(DRIVER_NOT_LOADED);
    *view = (View){state, seen_count, seen_gpus, seen_handles};
    return OK;
}

/* ---- Handles ---- */

int handle_known(Device device) {
    for (size_t i = 0; i < handle_count; i++)
        if (handles[i] == device) return 1;
    return 0;
}

struct Handle *handle_at(unsigned domain, unsigned bus, unsigned device) {
    for (size_t i = handle_count; i-- > 0;)
        if (handles[i]->domain == domain && handles[i]->bus == bus && handles[i]->device == device) return handles[i];
    return NULL;
}

const Gpu *view_gpu(const View *view, Device device, size_t *index) {
    for (size_t i = 0; i < view->count; i++) {
        if (view->handles[i] != device) continue;
        if (index != NULL) *index = i;
        return &view->state->gpus[view->gpus[i]];
    }
    return NULL;
}

/* ---- MIG devices ---- */

struct Handle *mig_handle(struct Handle *gpu, const char *uuid) {
    for (size_t i = 0; i < mig_handle_count; i++)
        if (mig_handles[i]->parent == gpu && strcmp(mig_handles[i]->uuid, uuid) == 0) return mig_handles[i];
    struct Handle **more = state_grown(mig_handles, mig_handle_count, sizeof *more);
    if (more != NULL) mig_handles = more;
    struct Handle *handle = more ? calloc(1, sizeof *handle) : NULL;
    if (handle == NULL) return NULL;
    snprintf(handle->uuid, sizeof handle->uuid, "%s", uuid);
    handle->parent = gpu;
    handle->fd = -1;
    return mig_handles[mig_handle_count++] = handle;
}

static int is_mig_handle(Device device) {
    for (size_t i = 0; i < mig_handle_count; i++)
        if (mig_handles[i] == device) return 1;
    return 0;
}

const MigDevice *session_mig_at(const Gpu *gpu, size_t index) {
    for (size_t i = 0; i < gpu->mig.device_count; i++)
        if (visible_allows_mig(&visible, gpu, i) && index-- == 0) return &gpu->mig.devices[i];
    return NULL;
}

int session_hears(const Gpu *gpu, unsigned instance) {
    int hidden = 0;
    for (size_t i = 0; i < gpu->mig.device_count; i++) {
        int is_seen = visible_allows_mig(&visible, gpu, i);
        if (is_seen && gpu->mig.devices[i].instance == (long long)instance) return 1;
        hidden |= !is_seen;
    }
    return !hidden;
}

unsigned session_mig_index(const Gpu *gpu, const MigDevice *device) {
    unsigned index = 0;
    for (const MigDevice *one; (one = session_mig_at(gpu, index)) != NULL && one != device;) index++;
    return index;
}

Return session_enter_any_device(Device device, View *view, const Gpu **gpu, size_t *index, const MigDevice **mig) {
    Return result = session_enter(view);
    if (result != OK) return result;
    int part = is_mig_handle(device);
    *mig = NULL;
    *gpu = view_gpu(view, part ? device->parent : device, index);
    if (*gpu == NULL) return session_leave(part || handle_known(device) ? GPU_IS_LOST : INVALID_ARGUMENT);
    for (size_t i = 0; part && (*mig = session_mig_at(*gpu, i)) != NULL; i++)
        if (strcmp((*mig)->uuid, device->uuid) == 0) return OK;
    return part ? session_leave(INVALID_ARGUMENT) : OK;
}

Return session_enter_device(Device device, View *view, const Gpu **gpu, size_t *index, const MigDevice **mig) {
    Return result = session_enter_any_device(device, view, gpu, index, mig);
    if (result != OK) return result;
    if ((*gpu)->lost) return session_leave(GPU_IS_LOST);
    if ((*gpu)->unknown_error) return session_leave(UNKNOWN);
    return OK;
}

Return session_enter_any(Device device, View *view, const Gpu **gpu, size_t *index) {
    const MigDevice *mig;
    Return result = session_enter_any_device(device, view, gpu, index, &mig);
    return result == OK && mig != NULL ? session_leave(NOT_SUPPORTED) : result;
}

Return session_enter_gpu(Device device, View *view, const Gpu **gpu, size_t *index) {
    Return result = session_enter_any(device, view, gpu, index);
    if (result != OK) return result;
    if ((*gpu)->lost) return session_leave(GPU_IS_LOST);
    if ((*gpu)->unknown_error) return session_leave(UNKNOWN);
    return OK;
}

Return session_give(const View *view, size_t index, Device *device) {
    const Gpu *gpu = &view->state->gpus[view->gpus[index]];
    if (gpu->lost) return GPU_IS_LOST;
    if (gpu->unknown_error) return UNKNOWN;
    *device = view->handles[index];
    if (attach && !view->handles[index]->held) {
        view->handles[index]->held = 1;
        holding_update(dev_root(), handles, handle_count);
    }
    return OK;
}

void session_drop(unsigned domain, unsigned bus, unsigned device) {
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < handle_count; i++)
        if (handles[i]->domain == domain && handles[i]->bus == bus && handles[i]->device == device)
            handles[i]->held = 0;
    if (users > 0) holding_update(dev_root(), handles, handle_count);
    pthread_mutex_unlock(&lock);
}

void session_retake(void) {
    pthread_mutex_lock(&lock);
    if (users > 0) {
        refresh(0);
        for (size_t i = 0; i < seen_count; i++) seen_handles[i]->held |= attach;
        holding_update(dev_root(), handles, handle_count);
    }
    pthread_mutex_unlock(&lock);
}

/* ---- Init and Shutdown ---- */

static Return first_use(unsigned flags) {
    find_path();
    visible_free(&visible);
    visible = visible_read();
    for (size_t i = 0; i < handle_count; i++) handles[i]->seen = handles[i]->held = 0;
    refresh(1);
    if (visible.kind == SEE_NO_DRIVER) return DRIVER_NOT_LOADED;
    if (state == NULL) return trouble;
    if (!state->driver_loaded) return DRIVER_NOT_LOADED;
    attach = (flags & NO_ATTACH) == 0;
    for (size_t i = 0; i < seen_count; i++) seen_handles[i]->held = attach;
    holding_begin(dev_root());
    holding_update(dev_root(), handles, handle_count);
    return OK;
}

EXPORT Return nvmlInitWithFlags(unsigned flags) {
    pthread_mutex_lock(&lock);
    Return result = users > 0 ? OK : first_use(flags);
    if (result == OK)
        users++;
    else if (users == 0)
        forget_state(DRIVER_NOT_LOADED);
    return session_leave(result);
}

EXPORT Return nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
EXPORT Return nvmlInit(void) { return nvmlInitWithFlags(0); }

EXPORT Return nvmlShutdown(void) {
    pthread_mutex_lock(&lock);
    if (users == 0) return session_leave(UNINITIALIZED);
    if (--users == 0) {
        for (size_t i = 0; i < handle_count; i++) handles[i]->seen = handles[i]->held = 0;
        holding_end(handles, handle_count);
        events_forget_all();
        gpm_forget_all();
        forget_state(DRIVER_NOT_LOADED);
        visible_free(&visible);
    }
    return session_leave(OK);
}

Return text_out(const char *text, char *out, unsigned length) {
    if (out == NULL) return INVALID_ARGUMENT;
    if (strlen(text) + 1 > length) return INSUFFICIENT_SIZE;
    strcpy(out, text);
    return OK;
}
