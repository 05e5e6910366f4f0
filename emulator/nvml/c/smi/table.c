/* The table that nvidia-smi prints without arguments, and -L. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "commands.h"
#include "driver.h"
#include "gpus.h"
#include "mig_devices.h"

static const char EDGE[] = "+-----------------------------------------------------------------------------------------+";
static const char COLUMNS[] = "+-----------------------------------------+------------------------+----------------------+";

/* The branch from which on the frame has no bar below the versions, and nothing in the empty line (captures of 550, 580). */
enum { NEW_FRAME = 580 };

static void head(void) {
    char driver[VALUE_SIZE] = "N/A", now[64];
    int cuda = 0;
    time_t seconds = time(NULL);
    struct tm parts;
    localtime_r(&seconds, &parts);
    strftime(now, sizeof now, "%a %b %e %H:%M:%S %Y", &parts);
    api.nvmlSystemGetDriverVersion(driver, sizeof driver);
    api.nvmlSystemGetCudaDriverVersion_v2(&cuda);
    char version[32];
    snprintf(version, sizeof version, "%d.%d", cuda / 1000, cuda % 1000 / 10);
    printf("%s       \n%s\n", now, EDGE);
    printf("| NVIDIA-SMI %-22.22s Driver Version: %-14.14s CUDA Version: %-8.8s |\n", driver, driver, version);
    puts(driver_branch() >= NEW_FRAME ? COLUMNS : "|-----------------------------------------+------------------------+----------------------+");
    puts("| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |");
    puts("| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |");
    puts("|                                         |                        |               MIG M. |");
    puts("|=========================================+========================+======================|");
}

static const char *on_off(const char *word) {
    if (strcmp(word, "Enabled") == 0) return "On";
    return strcmp(word, "Disabled") == 0 ? "Off" : word;
}

/* A value that ends in a unit without a space between, as the table has it. */
static void tight(Device device, const char *field, const char *unit, char *out) {
    value_of(device, field, out, 0);
    char *point = strchr(out, '.');
    if (point && unit[0] == 'W') *point = 0; /* whole watts */
    if (strcmp(out, "N/A") != 0) strncat(out, unit, VALUE_SIZE - strlen(out) - 1);
}

static void rows(Device device) {
    char v[12][VALUE_SIZE];
    value_of(device, "index", v[0], 0);
    value_of(device, "name", v[1], 0);
    value_of(device, "persistence_mode", v[2], 0);
    value_of(device, "pci.bus_id", v[3], 0);
    value_of(device, "display_active", v[4], 0);
    value_of(device, "ecc.errors.uncorrected.volatile.total", v[5], 0);
    if (strcmp(v[5], "N/A") == 0) {
        value_of(device, "ecc.mode.current", v[6], 0);
        if (strcmp(v[6], "Disabled") == 0) strcpy(v[5], "Off");
    }
    /* With MIG, errors are counted of each device. */
    if (mig_is_on(device) && strcmp(v[5], "N/A") != 0 && strcmp(v[5], "Off") != 0) strcpy(v[5], "On");
    printf("| %3.3s  %-28.28s %5.5s | %18.18s %3.3s | %20.20s |\n", v[0], v[1], on_off(v[2]), v[3], on_off(v[4]), v[5]);
    tight(device, "fan.speed", "%", v[0]);
    tight(device, "temperature.gpu", "C", v[1]);
    value_of(device, "pstate", v[2], 0);
    tight(device, "power.draw", "W", v[3]);
    tight(device, "enforced.power.limit", "W", v[4]);
    tight(device, "memory.used", "MiB", v[5]);
    tight(device, "memory.total", "MiB", v[6]);
    tight(device, "utilization.gpu", "%", v[7]);
    value_of(device, "compute_mode", v[8], 0);
    value_of(device, "mig.mode.current", v[9], 0);
    printf("| %3.3s  %4.4s    %-4.4s       %6.6s / %6.6s |  %9.9s / %9.9s | %7.7s  %11.11s |\n", v[0], v[1], v[2], v[3],
           v[4], v[5], v[6], v[7], v[8]);
    printf("|                                         |                        | %20.20s |\n%s\n", v[9], COLUMNS);
}

static void process_rows(const Selection *selection) {
    unsigned shown = 0;
    for (unsigned i = 0; i < selection->count; i++) {
        unsigned count, index = 0;
        SmiProcess *processes = processes_of(selection->devices[i], &count);
        api.nvmlDeviceGetIndex(selection->devices[i], &index);
        for (unsigned j = 0; j < count; j++) {
            char used[32];
            snprintf(used, sizeof used, "%lluMiB", processes[j].info.used_memory >> 20);
            char where[32] = "   N/A  N/A ";
            const ProcessInfo *info = &processes[j].info;
            if (info->gpu_instance != (unsigned)NO_INSTANCE)
                snprintf(where, sizeof where, "%5u%5u  ", info->gpu_instance, info->compute_instance);
            printf("| %4u%s%16u %6c   %-35.35s %9.9s |\n", index, where, info->pid, processes[j].kind,
                   processes[j].name, used);
        }
        shown += count;
        free(processes);
    }
    if (shown == 0) printf("|  %-87s|\n", "No running processes found");
}

int show_table(const char *ids) {
    Selection selection = select_gpus(ids, "No devices were found");
    head();
    for (unsigned i = 0; i < selection.count; i++) rows(selection.devices[i]);
    mig_table(&selection);
    printf("%*s\n%s\n", driver_branch() >= NEW_FRAME ? 0 : 89, "", EDGE);
    puts("| Processes:                                                                              |");
    puts("|  GPU   GI   CI              PID   Type   Process name                        GPU Memory |");
    puts("|        ID   ID                                                               Usage      |");
    puts("|=========================================================================================|");
    process_rows(&selection);
    puts(EDGE);
    free(selection.devices);
    return 0;
}

static void list_line(Device device) {
    name_gpu(device);
    mig_list(device);
}

int show_list(const char *ids) { return list_gpus(ids, list_line); }
