/* Values of nvmlDeviceGetFieldValues. */
#ifndef MEWS_FIELDS_H
#define MEWS_FIELDS_H

#include "session.h"

typedef struct {
    Return result;
    unsigned type; /* VALUE_UINT, VALUE_ULL or VALUE_INT */
    long long value;
} Told;

Told told_number(long long value);
Told told_wide(long long value);
Told told_signed(long long value);
Told told_none(void);

/* The fields about NVLinks; none for all others. */
Told link_field(const View *view, const Gpu *gpu, size_t place, unsigned field, unsigned scope);

#endif
