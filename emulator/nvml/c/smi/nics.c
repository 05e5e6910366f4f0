/* The PCIe level of a pair from the paths that sysfs' links lead to, as the driver's own tool works it out. */
#include "nics.h"

#include <ctype.h>
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The folder above sys: of the host that this shell belongs to, else this machine's own. */
static const char *host_root(void) {
    const char *root = getenv("MEWS_HOST_ROOT");
    return root ? root : "";
}

static int find(const char *link, Place *place) {
    char real[PATH_MAX], file[PATH_MAX + 16], text[32] = "";
    if (realpath(link, real) == NULL) return 0;
    const char *below = strstr(real, "/sys/devices/");
    if (below == NULL || strlen(below) >= sizeof place->path) return 0;
    strcpy(place->path, below + strlen("/sys/devices/"));
    snprintf(file, sizeof file, "%s/numa_node", real);
    FILE *numa = fopen(file, "r");
    place->numa_node = numa != NULL && fgets(text, sizeof text, numa) != NULL ? strtol(text, NULL, 10) : -1;
    if (numa != NULL) fclose(numa);
    return 1;
}

static int find_gpu(Device device, Place *place) {
    PciInfo info;
    char link[PATH_MAX];
    if (api.nvmlDeviceGetPciInfo_v3(device, &info) != OK || strlen(info.bus_id) < 5) return 0;
    for (char *letter = info.bus_id; *letter; letter++) *letter = (char)tolower((unsigned char)*letter);
    snprintf(link, sizeof link, "%s/sys/bus/pci/devices/%s", host_root(), info.bus_id + 4);
    return find(link, place);
}

/* mlx5_2 before mlx5_10. */
static int by_name(const void *one, const void *other) {
    const char *a = ((const Place *)one)->name, *b = ((const Place *)other)->name;
    if (strlen(a) != strlen(b)) return strlen(a) < strlen(b) ? -1 : 1;
    return strcmp(a, b);
}

static void find_nics(Places *places) {
    char folder[PATH_MAX], link[PATH_MAX + 320];
    snprintf(folder, sizeof folder, "%s/sys/class/infiniband", host_root());
    DIR *opened = opendir(folder);
    if (opened == NULL) return;
    struct dirent *entry;
    while (places->nic_count < NIC_LIMIT && (entry = readdir(opened)) != NULL) {
        Place *place = &places->nics[places->nic_count];
        if (entry->d_name[0] == '.' || strlen(entry->d_name) >= sizeof place->name) continue;
        strcpy(place->name, entry->d_name);
        snprintf(link, sizeof link, "%s/%s/device", folder, entry->d_name);
        places->nic_count += (unsigned)find(link, place);
    }
    closedir(opened);
    qsort(places->nics, places->nic_count, sizeof *places->nics, by_name);
}

Places places_of(const Selection *selection) {
    Places places = {NULL, NULL, 0};
    places.gpus = calloc(selection->count ? selection->count : 1, sizeof *places.gpus);
    places.nics = calloc(NIC_LIMIT, sizeof *places.nics);
    if (places.gpus == NULL || places.nics == NULL) return places;
    int all = selection->count > 0;
    for (unsigned i = 0; i < selection->count; i++) all = find_gpu(selection->devices[i], &places.gpus[i]) && all;
    if (all) find_nics(&places);
    return places;
}

void places_free(Places *places) {
    free(places->gpus);
    free(places->nics);
}

static size_t part(const char *path) {
    return strcspn(path, "/");
}

/* How many folders a path has. */
static unsigned parts(const char *path) {
    unsigned count = 1;
    for (; *path; path++) count += *path == '/';
    return count;
}

const char *nearness(const Place *one, const Place *other) {
    const char *a = one->path, *b = other->path;
    unsigned shared = 0;
    while (part(a) == part(b) && strncmp(a, b, part(a)) == 0 && a[part(a)] == '/' && b[part(b)] == '/') {
        a += part(a) + 1;
        b += part(b) + 1;
        shared++;
    }
    if (shared == 0) return one->numa_node == other->numa_node ? "NODE" : "SYS";
    if (shared == 1) return "PHB";
    /* Each still has its own folder last; over one switch there is a port above it at most. */
    return parts(a) <= 2 && parts(b) <= 2 ? "PIX" : "PXB";
}
