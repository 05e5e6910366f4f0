/* Calls that tell one thing of a GPU, in one line each. */
#ifndef MEWS_GETTER_H
#define MEWS_GETTER_H

#include "session.h"

/* One value, where `condition` holds; NOT_SUPPORTED and nothing written elsewhere. */
#define GETTER_IF(name, type, condition, expression)                        \
    EXPORT Return name(Device device, type *out) {                          \
        View view;                                                          \
        const Gpu *gpu;                                                     \
        size_t index;                                                       \
        Return result = session_enter_gpu(device, &view, &gpu, &index);     \
        if (result != OK) return result;                                    \
        if (out == NULL) return session_leave(INVALID_ARGUMENT);            \
        if (!(condition)) return session_leave(NOT_SUPPORTED);              \
        *out = (type)(expression);                                          \
        return session_leave(OK);                                           \
    }

/* Begins a call about a GPU or a MIG device of it: `view`, `gpu`, and `mig`, which is NULL for a GPU. */
#define ENTER_DEVICE(device, index)                                          \
    View view;                                                               \
    const Gpu *gpu;                                                          \
    const MigDevice *mig;                                                    \
    Return result = session_enter_device(device, &view, &gpu, index, &mig);  \
    if (result != OK) return result

#define GETTER(name, type, expression) GETTER_IF(name, type, 1, expression)

/* A struct, which the statement fills. */
#define FILLED_IF(name, type, known, condition, ...)                        \
    EXPORT Return name(Device device, type *out) {                          \
        View view;                                                          \
        const Gpu *gpu;                                                     \
        Return result = session_enter_gpu(device, &view, &gpu, NULL);       \
        if (result != OK) return result;                                    \
        if (out == NULL) return session_leave(INVALID_ARGUMENT);            \
        if (!(known)) return session_leave(VERSION_MISMATCH);               \
        if (!(condition)) return session_leave(NOT_SUPPORTED);              \
        __VA_ARGS__;                                                        \
        return session_leave(OK);                                           \
    }

#define STRUCT_IF(name, type, condition, ...) FILLED_IF(name, type, 1, condition, __VA_ARGS__)

/* One that says its version, which must be the first. */
#define VERSIONED_IF(name, type, condition, ...) \
    FILLED_IF(name, type, out->version == STRUCT_VERSION(*out, 1), condition, __VA_ARGS__)

/* Two values. */
#define PAIR_IF(name, type, condition, first, second)                                  \
    EXPORT Return name(Device device, type *one, type *two) {                          \
        View view;                                                                     \
        const Gpu *gpu;                                                                \
        Return result = session_enter_gpu(device, &view, &gpu, NULL);                  \
        if (result != OK) return result;                                               \
        if (one == NULL || two == NULL) return session_leave(INVALID_ARGUMENT);        \
        if (!(condition)) return session_leave(NOT_SUPPORTED);                         \
        *one = (type)(first);                                                          \
        *two = (type)(second);                                                         \
        return session_leave(OK);                                                      \
    }

/* A string. `enter` decides whether a lost device still tells it. */
#define STRING_IF(name, enter, condition, expression)                     \
    EXPORT Return name(Device device, char *out, unsigned length) {       \
        View view;                                                        \
        const Gpu *gpu;                                                   \
        Return result = enter(device, &view, &gpu, NULL);                 \
        if (result != OK) return result;                                  \
        if (!(condition)) return session_leave(NOT_SUPPORTED);            \
        return session_leave(text_out((expression), out, length));        \
    }

#endif
