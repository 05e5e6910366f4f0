#define _GNU_SOURCE
#include "visible.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* A node stays in its container when the GPU goes: a link counts, wherever it leads. */
static int has_node(const char *folder, const char *name) {
    char path[4096], target[8];
    int length = snprintf(path, sizeof path, "%s/%s", folder, name);
    if (length < 0 || (size_t)length >= sizeof path) return 0;
    return access(path, F_OK) == 0 || readlink(path, target, sizeof target) > 0;
}

/* Unset or "all": everything. "none": the driver without devices. "" or "void": not even the driver. */
Visible visible_read(void) {
    Visible visible = {SEE_ALL, NULL};
    const char *nodes = getenv("MEWS_NVML_DEV");
    const char *told = getenv("NVIDIA_VISIBLE_DEVICES");
    if (nodes != NULL && *nodes) {
        visible.list = strdup(nodes);
        visible.kind = visible.list == NULL ? SEE_NONE : has_node(nodes, "nvidiactl") ? SEE_NODES : SEE_NO_DRIVER;
        return visible;
    }
    if (told == NULL || strcmp(told, "all") == 0) return visible;
    if (*told == 0 || strcmp(told, "void") == 0) {
        visible.kind = SEE_NO_DRIVER;
    } else if (strcmp(told, "none") == 0) {
        visible.kind = SEE_NONE;
    } else {
        visible.list = strdup(told);
        visible.kind = visible.list ? SEE_LISTED : SEE_NONE;
    }
    return visible;
}

void visible_free(Visible *visible) {
    free(visible->list);
    visible->list = NULL;
}

static int same(const char *word, size_t length, const char *text) {
    return strlen(text) == length && strncasecmp(word, text, length) == 0;
}

static int word_allows(const char *word, size_t length, const Gpu *gpu) {
    char copy[64];
    long long index;
    unsigned domain, bus, device;
    if (length == 0 || length >= sizeof copy) return length != 0 && same(word, length, gpu->uuid);
    memcpy(copy, word, length);
    copy[length] = 0;
    if (number_parse(copy, &index)) return index == gpu->index;
    if (bus_id_parse(copy, &domain, &bus, &device))
        return domain == gpu->domain && bus == gpu->bus && device == gpu->device;
    return same(word, length, gpu->uuid) || same(word, length, "all");
}

/* "MIG-…", or the numbers of a GPU and of its MIG device as "0:1". */
static int word_names_mig(const char *word, size_t length, const Gpu *gpu, size_t place) {
    const MigDevice *device = &gpu->mig.devices[place];
    char text[160];
    if (same(word, length, device->uuid)) return 1;
    snprintf(text, sizeof text, "%lld:%zu", gpu->index, place);
    if (same(word, length, text)) return 1;
    /* As drivers before 470 name them. */
    snprintf(text, sizeof text, "MIG-%s/%lld/%lld", gpu->uuid, device->instance, device->id);
    return same(word, length, text);
}

static int word_names_part(const char *word, size_t length, const Gpu *gpu) {
    for (size_t i = 0; i < gpu->mig.device_count; i++)
        if (word_names_mig(word, length, gpu, i)) return 1;
    return 0;
}

/* The nodes of /dev/nvidia-caps have numbers of their own: nine for each of fifteen GPU instances of a GPU
 * (/proc/driver/nvidia-caps/mig-minors). */
static int has_capability(const char *folder, const Gpu *gpu, long long instance, long long compute) {
    enum { FIRST = 3, PER_GPU = 135, PER_INSTANCE = 9 };
    char name[64];
    long long minor = FIRST + gpu->minor * PER_GPU + instance * PER_INSTANCE + compute + 1;
    snprintf(name, sizeof name, "nvidia-caps/nvidia-cap%lld", minor);
    return has_node(folder, name);
}

int visible_allows_mig(const Visible *visible, const Gpu *gpu, size_t place) {
    const MigDevice *device = &gpu->mig.devices[place];
    if (visible->kind == SEE_NODES)
        return has_capability(visible->list, gpu, device->instance, -1) &&
               has_capability(visible->list, gpu, device->instance, device->id);
    if (visible->kind != SEE_LISTED) return visible->kind == SEE_ALL;
    for (const char *word = visible->list;; word++) {
        size_t length = strcspn(word, ",");
        if (word_allows(word, length, gpu) || word_names_mig(word, length, gpu, place)) return 1;
        word += length;
        if (*word == 0) return 0;
    }
}

int visible_allows(const Visible *visible, const Gpu *gpu) {
    if (visible->kind == SEE_NODES) {
        char name[32];
        snprintf(name, sizeof name, "nvidia%lld", gpu->minor);
        return has_node(visible->list, name);
    }
    if (visible->kind != SEE_LISTED) return visible->kind == SEE_ALL;
    for (const char *word = visible->list;; word++) {
        size_t length = strcspn(word, ",");
        if (word_allows(word, length, gpu) || word_names_part(word, length, gpu)) return 1;
        word += length;
        if (*word == 0) return 0;
    }
}
