#define _GNU_SOURCE
#include "events.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "session.h"

enum { NAP_US = 10000, US_PER_MS = 1000 };

typedef struct {
    Device device;
    unsigned long long types;
} Registration;

struct EventSet {
    struct EventSet *next;
    unsigned long long last; /* sequence of the last event looked at */
    Registration *registrations;
    size_t count;
};

struct SystemEventSet {
    struct SystemEventSet *next;
    unsigned long long last, types;
};

static struct EventSet *sets;
static struct SystemEventSet *system_sets;

static unsigned long long last_sequence(const State *state) {
    unsigned long long last = 0;
    for (size_t i = 0; i < state->event_count; i++)
        if (state->events[i].sequence > last) last = state->events[i].sequence;
    return last;
}

static long long now_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (long long)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void nap(long long left_us) {
    long long us = left_us < NAP_US ? left_us : NAP_US;
    struct timespec time = {0, (long)us * 1000};
    nanosleep(&time, NULL);
}

static struct EventSet **place_of(EventSetHandle set) {
    struct EventSet **place = &sets;
    while (*place != NULL && *place != set) place = &(*place)->next;
    return *place ? place : NULL;
}

static struct SystemEventSet **system_place_of(SystemEventSetHandle set) {
    struct SystemEventSet **place = &system_sets;
    while (*place != NULL && *place != set) place = &(*place)->next;
    return *place ? place : NULL;
}

static void unlink_set(struct EventSet **place) {
    struct EventSet *set = *place;
    *place = set->next;
    free(set->registrations);
    free(set);
}

static void unlink_system_set(struct SystemEventSet **place) {
    struct SystemEventSet *set = *place;
    *place = set->next;
    free(set);
}

void events_forget_all(void) {
    while (sets != NULL) unlink_set(&sets);
    while (system_sets != NULL) unlink_system_set(&system_sets);
}

/* ---- Of devices ---- */

EXPORT Return nvmlEventSetCreate(EventSetHandle *set) {
    View view;
    Return result = session_enter(&view);
    if (result != OK) return result;
    if (set == NULL) return session_leave(INVALID_ARGUMENT);
    struct EventSet *fresh = calloc(1, sizeof *fresh);
    if (fresh == NULL) return session_leave(OUT_OF_MEMORY);
    fresh->last = last_sequence(view.state);
    fresh->next = sets;
    *set = sets = fresh;
    return session_leave(OK);
}

EXPORT Return nvmlEventSetFree(EventSetHandle set) {
    View view;
    Return result = session_enter(&view);
    if (result == UNINITIALIZED) return result;
    if (result != OK) return OK; /* without a driver there is nothing to keep */
    struct EventSet **place = place_of(set);
    if (place != NULL) unlink_set(place);
    return session_leave(place != NULL ? OK : INVALID_ARGUMENT);
}

static int register_device(struct EventSet *set, Device device, unsigned long long types) {
    for (size_t i = 0; i < set->count; i++)
        if (set->registrations[i].device == device) {
            set->registrations[i].types |= types;
            return 1;
        }
    Registration *more = realloc(set->registrations, (set->count + 1) * sizeof *more);
    if (more == NULL) return 0;
    set->registrations = more;
    more[set->count++] = (Registration){device, types};
    return 1;
}

static unsigned long long supported_types(const Gpu *gpu) {
    unsigned long long ecc = gpu->ecc_mode < 0 ? 0 : EVENT_ECC_SINGLE | EVENT_ECC_DOUBLE;
    return ecc | EVENT_XID | EVENT_PSTATE | EVENT_CLOCK;
}

EXPORT Return nvmlDeviceGetSupportedEventTypes(Device device, unsigned long long *types) {
    View view;
    const Gpu *gpu;
    Return result = session_enter_gpu(device, &view, &gpu, NULL);
    if (result != OK) return result;
    if (types == NULL) return session_leave(INVALID_ARGUMENT);
    *types = supported_types(gpu);
    return session_leave(OK);
}

EXPORT Return nvmlDeviceRegisterEvents(Device device, unsigned long long types, EventSetHandle set) {
    View view;
    const Gpu *gpu;
    Return result = session_enter_gpu(device, &view, &gpu, NULL);
    if (result != OK) return result;
    if (place_of(set) == NULL || (types & ~(unsigned long long)EVENT_ALL) != 0) return session_leave(INVALID_ARGUMENT);
    if ((types & ~supported_types(gpu)) != 0) return session_leave(NOT_SUPPORTED);
    return session_leave(register_device(set, device, types) ? OK : OUT_OF_MEMORY);
}

/* An XID of a GPU instance is for those who see it. */
static int is_heard(const State *state, const Event *event) {
    if (event->gpu_instance == (unsigned)NO_INSTANCE) return 1;
    for (size_t i = 0; i < state->gpu_count; i++) {
        const Gpu *gpu = &state->gpus[i];
        if (gpu->domain == event->domain && gpu->bus == event->bus && gpu->device == event->device)
            return session_hears(gpu, event->gpu_instance);
    }
    return 1;
}

/* The device of the set that an event is about, or NULL. It may have gone in the meantime. */
static Device subject(const struct EventSet *set, const Event *event) {
    for (size_t i = 0; i < set->count; i++) {
        Device device = set->registrations[i].device;
        if ((set->registrations[i].types & event->device_type) != 0 && device->domain == event->domain &&
            device->bus == event->bus && device->device == event->device)
            return device;
    }
    return NULL;
}

static const Event *next_event(struct EventSet *set, const State *state, Device *device) {
    const Event *found = NULL;
    if (last_sequence(state) < set->last) set->last = 0; /* a new life of the host */
    for (size_t i = 0; i < state->event_count; i++) {
        const Event *event = &state->events[i];
        if (event->sequence <= set->last || (found != NULL && event->sequence >= found->sequence)) continue;
        Device about = event->device_type ? subject(set, event) : NULL;
        if (about == NULL || !is_heard(state, event)) continue;
        found = event;
        *device = about;
    }
    return found;
}

static Return wait_event(EventSetHandle set, EventData *data, size_t size, unsigned timeout_ms) {
    long long deadline = now_us() + (long long)timeout_ms * US_PER_MS;
    if (data == NULL) return INVALID_ARGUMENT;
    for (;;) {
        View view;
        Return result = session_enter(&view);
        if (result == UNINITIALIZED) return result;
        if (result == OK) {
            Device device = NULL;
            if (place_of(set) == NULL) return session_leave(INVALID_ARGUMENT);
            const Event *event = next_event(set, view.state, &device);
            if (event != NULL) {
                EventData told = {device, event->device_type, event->data, event->gpu_instance, event->compute_instance};
                memcpy(data, &told, size);
                set->last = event->sequence;
                return session_leave(OK);
            }
            session_leave(OK);
        }
        long long left = deadline - now_us();
        if (left <= 0) return TIMEOUT;
        nap(left);
    }
}

EXPORT Return nvmlEventSetWait_v2(EventSetHandle set, EventData *data, unsigned timeout_ms) {
    return wait_event(set, data, sizeof *data, timeout_ms);
}

EXPORT Return nvmlEventSetWait(EventSetHandle set, EventData *data, unsigned timeout_ms) {
    return wait_event(set, data, offsetof(EventData, gpu_instance), timeout_ms);
}

/* ---- Of the system: drivers bound and unbound ---- */

EXPORT Return nvmlSystemEventSetCreate(SystemEventSetRequest *request) {
    View view;
    Return result = session_enter(&view);
    if (result != OK) return result;
    if (request == NULL) return session_leave(INVALID_ARGUMENT);
    if (request->version != STRUCT_VERSION(*request, 1)) return session_leave(VERSION_MISMATCH);
    struct SystemEventSet *fresh = calloc(1, sizeof *fresh);
    if (fresh == NULL) return session_leave(OUT_OF_MEMORY);
    fresh->last = last_sequence(view.state);
    fresh->next = system_sets;
    request->set = system_sets = fresh;
    return session_leave(OK);
}

EXPORT Return nvmlSystemEventSetFree(SystemEventSetRequest *request) {
    View view;
    Return result = session_enter(&view);
    if (result == UNINITIALIZED) return result;
    if (result != OK) return OK;
    if (request == NULL) return session_leave(INVALID_ARGUMENT);
    if (request->version != STRUCT_VERSION(*request, 1)) return session_leave(VERSION_MISMATCH);
    struct SystemEventSet **place = system_place_of(request->set);
    if (place != NULL) unlink_system_set(place);
    return session_leave(place != NULL ? OK : INVALID_ARGUMENT);
}

EXPORT Return nvmlSystemRegisterEvents(SystemRegisterRequest *request) {
    View view;
    Return result = session_enter(&view);
    if (result != OK) return result;
    if (request == NULL) return session_leave(INVALID_ARGUMENT);
    if (request->version != STRUCT_VERSION(*request, 1)) return session_leave(VERSION_MISMATCH);
    unsigned long long all = SYSTEM_EVENT_BIND | SYSTEM_EVENT_UNBIND;
    if (system_place_of(request->set) == NULL || (request->types & ~all) != 0) return session_leave(INVALID_ARGUMENT);
    request->set->types |= request->types;
    return session_leave(OK);
}

static void collect(struct SystemEventSet *set, const State *state, SystemWaitRequest *request) {
    if (last_sequence(state) < set->last) set->last = 0;
    while (request->count < request->size) {
        const Event *found = NULL;
        for (size_t i = 0; i < state->event_count; i++) {
            const Event *event = &state->events[i];
            if (event->sequence <= set->last || (event->system_type & set->types) == 0) continue;
            if (found == NULL || event->sequence < found->sequence) found = event;
        }
        if (found == NULL) return;
        unsigned address = found->domain << 16 | found->bus << 8 | found->device;
        request->data[request->count++] = (SystemEventData){found->system_type, address};
        set->last = found->sequence;
    }
}

EXPORT Return nvmlSystemEventSetWait(SystemWaitRequest *request) {
    if (request == NULL) return INVALID_ARGUMENT;
    if (request->version != STRUCT_VERSION(*request, 1)) return VERSION_MISMATCH;
    if (request->data == NULL || request->size == 0) return INVALID_ARGUMENT;
    long long deadline = now_us() + (long long)request->timeout_ms * US_PER_MS;
    request->count = 0;
    for (;;) {
        View view;
        Return result = session_enter(&view);
        if (result == UNINITIALIZED) return result;
        if (result == OK) {
            if (system_place_of(request->set) == NULL) return session_leave(INVALID_ARGUMENT);
            collect(request->set, view.state, request);
            session_leave(OK);
        }
        if (request->count > 0) return OK;
        long long left = deadline - now_us();
        if (left <= 0) return TIMEOUT;
        nap(left);
    }
}
