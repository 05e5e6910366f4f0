/* A GPU's telemetry at this moment, evaluated from the spans of the state file. */
#ifndef MEWS_NOW_H
#define MEWS_NOW_H

#include "session.h"

/* What holds now. */
const Span *span_now(const View *view, const Gpu *gpu);

/* What held so many real nanoseconds ago, as far back as the state tells. */
const Span *span_before(const View *view, const Gpu *gpu, long long ago);

/* Emulated nanoseconds. */
long long emulated_now(const View *view);

/* What changes within a span. */
unsigned long long energy_now(const View *view, const Gpu *gpu);  /* millijoules */
Totals totals_now(const View *view, const Gpu *gpu);
long long temperature_now(const View *view, const Gpu *gpu);       /* degrees */
long long memory_temperature_now(const View *view, const Gpu *gpu); /* degrees, -1 without a sensor */
long long fan_now(const View *view, const Gpu *gpu);               /* percent, -1 without a fan */

/* Percent of a process by its place among the GPU's. */
unsigned share_now(const View *view, const Gpu *gpu, size_t process);

#endif
