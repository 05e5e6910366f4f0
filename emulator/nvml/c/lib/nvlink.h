/* How GPUs are joined, as far as several calls tell of it. `place` is a GPU's place in the state. */
#ifndef MEWS_NVLINK_H
#define MEWS_NVLINK_H

#include "session.h"

/* Negative: that many NVLinks. Otherwise the PCIe level. */
int joint(const View *view, size_t a, size_t b);

unsigned links_of(const View *view, size_t place);

/* A link whose other GPU is away is inactive. */
int link_active(const View *view, const Gpu *gpu, unsigned link);

/* The number of a link at its other end; -1 where no GPU is there. A switch's ports have the links' numbers. */
long link_at_end(const View *view, size_t place, unsigned link);

/* NVLink's generation, and MB/s of one of its links, in one direction. */
unsigned link_version(const Gpu *gpu);
unsigned link_mbps(const Gpu *gpu);

/* What one link carries where so much went over PCIe: kilobytes, or kilobytes per second. */
unsigned long long link_kilobytes(const Gpu *gpu, long long traffic);

#endif
