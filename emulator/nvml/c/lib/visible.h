/* What this process may see: the device nodes of its container (MEWS_NVML_DEV names their folder) or, where no runtime
 * has made one, NVIDIA_VISIBLE_DEVICES as the container toolkit reads it. */
#ifndef MEWS_VISIBLE_H
#define MEWS_VISIBLE_H

#include "state.h"

typedef struct {
    enum { SEE_ALL, SEE_NONE, SEE_NO_DRIVER, SEE_LISTED, SEE_NODES } kind;
    char *list; /* of words, or the folder of the nodes */
} Visible;

Visible visible_read(void);
void visible_free(Visible *visible);
int visible_allows(const Visible *visible, const Gpu *gpu);
/* Likewise the MIG device at that place among the GPU's. */
int visible_allows_mig(const Visible *visible, const Gpu *gpu, size_t place);

#endif
