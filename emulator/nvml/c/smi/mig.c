/* nvidia-smi mig: profiles, GPU instances and compute instances listed, created and destroyed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "commands.h"
#include "mig_devices.h"

enum { GPU_PROFILES = 18, COMPUTE_PROFILES = 9, INSTANCES = 16, PLACES = 16 };

typedef struct {
    const char *gpus, *instances, *computes, *profiles;
    int act, with_default;
} Asked;

enum { NOTHING, LIST_PROFILES, LIST_PLACEMENTS, CREATE, DESTROY, LIST, COMPUTE_PROFILE_LIST, COMPUTE_PLACEMENT_LIST,
       COMPUTE_CREATE, COMPUTE_DESTROY, COMPUTE_LIST };

static const struct {
    const char *brief, *name;
    int act, takes; /* takes: 1 a value, 2 a value that may be missing */
} ACTS[] = {
    {"-lgip", "--list-gpu-instance-profiles", LIST_PROFILES, 0},
    {"-lgipp", "--list-gpu-instance-possible-placements", LIST_PLACEMENTS, 0},
    {"-cgi", "--create-gpu-instance", CREATE, 1},
    {"-dgi", "--destroy-gpu-instance", DESTROY, 0},
    {"-lgi", "--list-gpu-instances", LIST, 0},
    {"-lcip", "--list-compute-instance-profiles", COMPUTE_PROFILE_LIST, 0},
    {"-lcipp", "--list-compute-instance-possible-placements", COMPUTE_PLACEMENT_LIST, 0},
    {"-cci", "--create-compute-instance", COMPUTE_CREATE, 2},
    {"-dci", "--destroy-compute-instance", COMPUTE_DESTROY, 0},
    {"-lci", "--list-compute-instances", COMPUTE_LIST, 0},
};

static const char HELP[] =
    "nvidia-smi mig -lgip [-i ID]                 list the profiles of GPU instances\n"
    "nvidia-smi mig -lgipp [-i ID]                list where instances of each profile can be placed\n"
    "nvidia-smi mig -cgi PROFILE[:START],… [-C] [-i ID]\n"
    "                                             create GPU instances; -C: and in each a compute instance\n"
    "nvidia-smi mig -lgi | -dgi [-gi ID,…] [-i ID]   list | destroy GPU instances\n"
    "nvidia-smi mig -lcip | -lcipp [-gi ID,…] [-i ID]   list the profiles of compute instances | their placements\n"
    "nvidia-smi mig -cci [PROFILE[:START],…] [-gi ID,…] [-i ID]   create compute instances\n"
    "nvidia-smi mig -lci | -dci [-ci ID,…] [-gi ID,…] [-i ID]   list | destroy compute instances\n"
    "PROFILE: its ID or its name.\n";

/* ---- What there is ---- */

static int by_size(const void *a, const void *b) {
    const MigProfileInfo3 *one = a, *other = b;
    if (one->slices != other->slices) return one->slices < other->slices ? -1 : 1;
    if (one->memory_mib != other->memory_mib) return one->memory_mib < other->memory_mib ? -1 : 1;
    return (int)one->id - (int)other->id;
}

/* The GPU's profiles, smallest first. */
static unsigned profiles_of(Device device, MigProfileInfo3 *out) {
    unsigned count = 0;
    for (unsigned number = 0; number < GPU_PROFILES; number++) {
        MigProfileInfo3 info = {.version = STRUCT_VERSION(info, 3)};
        if (api.nvmlDeviceGetGpuInstanceProfileInfoV(device, number, &info) == OK) out[count++] = info;
    }
    for (unsigned i = 1; i < count; i++) /* stable, unlike qsort */
        for (unsigned j = i; j > 0 && by_size(&out[j - 1], &out[j]) > 0; j--) {
            MigProfileInfo3 kept = out[j];
            out[j] = out[j - 1];
            out[j - 1] = kept;
        }
    return count;
}

static unsigned compute_profiles_of(GpuInstanceRef instance, MigComputeInfo3 *out) {
    unsigned count = 0;
    for (unsigned number = 0; number < COMPUTE_PROFILES; number++) {
        MigComputeInfo3 info = {.version = STRUCT_VERSION(info, 3)};
        if (api.nvmlGpuInstanceGetComputeInstanceProfileInfoV(instance, number, 0, &info) == OK) out[count++] = info;
    }
    return count;
}

/* The GPU instances of a GPU that are asked for, profile by profile. */
typedef struct {
    GpuInstanceRef ref;
    MigInstanceInfo info;
    MigProfileInfo3 profile;
} Instance;

static unsigned instances_of(Device device, const Asked *asked, Instance *out) {
    MigProfileInfo3 profiles[GPU_PROFILES];
    unsigned count = 0, known = profiles_of(device, profiles);
    for (unsigned i = 0; i < known; i++) {
        GpuInstanceRef refs[INSTANCES];
        unsigned there = 0;
        if (api.nvmlDeviceGetGpuInstances(device, profiles[i].id, refs, &there) != OK) continue;
        for (unsigned j = 0; j < there; j++) {
            Instance one = {refs[j], {0}, profiles[i]};
            if (api.nvmlGpuInstanceGetInfo(refs[j], &one.info) != OK || !in_list(asked->instances, one.info.id)) continue;
            if (count < INSTANCES) out[count++] = one;
        }
    }
    return count;
}

static unsigned index_of(Device device) {
    unsigned index = 0;
    api.nvmlDeviceGetIndex(device, &index);
    return index;
}

/* ---- Words ---- */

/* The next of "PROFILE[:START],…" into a profile's name or number; start -1 where none is given. 0 at the end. */
static int next_profile(const char **list, char *name, size_t size, long *start) {
    size_t length;
    const char *word = next_word(list, &length), *text = word;
    if (word == NULL) return 0;
    size_t own = strcspn(word, ":,");
    if (strncasecmp(text, "MIG ", 4) == 0) text += 4, own -= own >= 4 ? 4 : own;
    snprintf(name, size, "%.*s", (int)own, text);
    *start = word[strcspn(word, ":,")] == ':' ? strtol(word + strcspn(word, ":,") + 1, NULL, 10) : -1;
    return 1;
}

static int failed(const char *what, Return result) {
    printf("Failed to %s: %s\n", what, api.nvmlErrorString(result));
    return exit_code_of(result);
}

static int none(const char *what) {
    printf("No %s found: Not Found\n", what);
    return NOT_FOUND;
}

/* ---- Lists of profiles ---- */

static void list_profiles(Device device, int with_head) {
    static const char EDGE[] = "+-------------------------------------------------------------------------------+";
    MigProfileInfo3 profiles[GPU_PROFILES];
    unsigned count = profiles_of(device, profiles);
    if (with_head) {
        puts(EDGE);
        puts("| GPU instance profiles:                                                        |");
        puts("| GPU   Name               ID    Instances   Memory     P2P    SM    DEC   ENC  |");
        puts("|                                Free/Total   GiB              CE    JPEG  OFA  |");
        puts("|===============================================================================|");
    }
    for (unsigned i = 0; i < count; i++) {
        const MigProfileInfo3 *p = &profiles[i];
        unsigned left = 0;
        char memory[16];
        if (api.nvmlDeviceGetGpuInstanceRemainingCapacity(device, p->id, &left) != OK) left = 0;
        snprintf(memory, sizeof memory, "%.2f", (double)p->memory_mib / 1024);
        printf("|%4u  MIG %-16s%2u     %u/%u        %-11s%-7s%-7u%-6u%-4u|\n", index_of(device), p->name, p->id, left,
               p->count, memory, "No", p->multiprocessors, p->decoder, p->encoder);
        printf("|%63s%-6u%-6u%-4u|\n%s\n", "", p->copy, p->jpeg, p->ofa, EDGE);
    }
}

static void print_starts(const MigPlacement *places, unsigned count) {
    for (unsigned i = 0; i < count; i++) printf("%s%u", i ? "," : "{", places[i].start);
    printf("}:%u\n", places[0].size);
}

static void list_placements(Device device) {
    MigProfileInfo3 profiles[GPU_PROFILES];
    MigPlacement places[PLACES];
    unsigned count = profiles_of(device, profiles), there = 0;
    for (unsigned i = 0; i < count; i++) {
        if (api.nvmlDeviceGetGpuInstancePossiblePlacements_v2(device, profiles[i].id, places, &there) != OK || !there)
            continue;
        printf("GPU %2u Profile ID %2u Placement%s: ", index_of(device), profiles[i].id, there > 1 ? "s" : " ");
        print_starts(places, there);
    }
}

static void list_compute_profiles(Device device, const Instance *one, int with_head) {
    static const char EDGE[] =
        "+--------------------------------------------------------------------------------------+";
    MigComputeInfo3 profiles[COMPUTE_PROFILES];
    unsigned count = compute_profiles_of(one->ref, profiles);
    if (with_head) {
        puts(EDGE);
        puts("| Compute instance profiles:                                                           |");
        puts("| GPU     GPU       Name             Profile  Instances   Exclusive       Shared       |");
        puts("|       Instance                       ID     Free/Total     SM       DEC   ENC   OFA  |");
        puts("|         ID                                                          CE    JPEG       |");
        puts("|======================================================================================|");
    }
    for (unsigned i = 0; i < count; i++) {
        const MigComputeInfo *p = &profiles[i].info;
        unsigned left = 0;
        api.nvmlGpuInstanceGetComputeInstanceRemainingCapacity(one->ref, p->id, &left);
        printf("|%4u%7u       MIG %-17s%u%c     %u/%u           %-10u%-6u%-6u%-4u|\n", index_of(device), one->info.id,
               profiles[i].name, p->id, p->slices == one->profile.slices ? '*' : ' ', left, p->count,
               p->multiprocessors, p->decoder, p->encoder, p->ofa);
        printf("|%70s%-6u%-10u|\n%s\n", "", p->copy, p->jpeg, EDGE);
    }
}

static void list_compute_placements(Device device, const Instance *one) {
    MigComputeInfo3 profiles[COMPUTE_PROFILES];
    MigPlacement places[PLACES];
    unsigned count = compute_profiles_of(one->ref, profiles), there = 0;
    for (unsigned i = 0; i < count; i++) {
        unsigned id = profiles[i].info.id;
        if (api.nvmlGpuInstanceGetComputeInstancePossiblePlacements(one->ref, id, places, &there) != OK || !there)
            continue;
        printf("GPU %2u GI %2u Profile ID %2u Placement%s: ", index_of(device), one->info.id, id, there > 1 ? "s" : " ");
        print_starts(places, there);
    }
}

/* ---- GPU instances ---- */

static int create_default(Device device, GpuInstanceRef ref, unsigned slices);

static Return create_one(Device device, const char *name, long start, const Asked *asked) {
    MigProfileInfo3 profiles[GPU_PROFILES];
    unsigned count = profiles_of(device, profiles), gpu = index_of(device);
    const MigProfileInfo3 *found = NULL;
    char id[16];
    for (unsigned i = 0; i < count && found == NULL; i++) {
        snprintf(id, sizeof id, "%u", profiles[i].id);
        if (strcmp(id, name) == 0 || strcasecmp(profiles[i].name, name) == 0) found = &profiles[i];
    }
    GpuInstanceRef made = NULL;
    Return result = INVALID_ARGUMENT;
    if (found != NULL && start >= 0) {
        MigPlacement places[PLACES], wanted = {(unsigned)start, 0};
        unsigned there = 0;
        api.nvmlDeviceGetGpuInstancePossiblePlacements_v2(device, found->id, places, &there);
        wanted.size = there ? places[0].size : 0;
        result = api.nvmlDeviceCreateGpuInstanceWithPlacement(device, found->id, &wanted, &made);
    } else if (found != NULL) {
        result = api.nvmlDeviceCreateGpuInstance(device, found->id, &made);
    }
    if (result != OK) {
        printf("Unable to create a GPU instance on GPU %2u using profile %s: %s\n", gpu, found ? id : name,
               api.nvmlErrorString(result));
        return result;
    }
    MigInstanceInfo info = {0};
    api.nvmlGpuInstanceGetInfo(made, &info);
    printf("Successfully created GPU instance ID %2u on GPU %2u using profile MIG %s (ID %2u)\n", info.id, gpu,
           found->name, found->id);
    return asked->with_default ? (Return)create_default(device, made, found->slices) : OK;
}

static int create(Device device, const Asked *asked) {
    char name[64];
    long start;
    for (const char *rest = asked->profiles; next_profile(&rest, name, sizeof name, &start);) {
        Return result = create_one(device, name, start, asked);
        if (result != OK) return failed("create GPU instances", result);
    }
    return 0;
}

static int destroy(Device device, const Instance *one) {
    unsigned gpu = index_of(device);
    Return result = api.nvmlGpuInstanceDestroy(one->ref);
    if (result == OK) {
        printf("Successfully destroyed GPU instance ID %2u from GPU %2u\n", one->info.id, gpu);
        return 0;
    }
    printf("Unable to destroy GPU instance ID %2u from GPU %2u: %s\n", one->info.id, gpu, api.nvmlErrorString(result));
    return failed("destroy GPU instances", result);
}

static void list_instance(Device device, const Instance *one, int with_head) {
    static const char EDGE[] = "+---------------------------------------------------------+";
    if (with_head) {
        puts(EDGE);
        puts("| GPU instances:                                          |");
        puts("| GPU   Name               Profile  Instance   Placement  |");
        puts("|                            ID       ID       Start:Size |");
        puts("|=========================================================|");
    }
    printf("|%4u  MIG %-18s%2u%9u%11u:%-6u|\n%s\n", index_of(device), one->profile.name, one->info.profile, one->info.id,
           one->info.placement.start, one->info.placement.size, EDGE);
}

/* ---- Compute instances ---- */

static Return create_compute(Device device, GpuInstanceRef ref, const MigComputeInfo3 *profile, const char *given,
                             long start) {
    unsigned gpu = index_of(device);
    MigInstanceInfo parent = {0};
    MigComputeInstanceInfo info = {0};
    ComputeInstanceRef made = NULL;
    Return result = INVALID_ARGUMENT;
    api.nvmlGpuInstanceGetInfo(ref, &parent);
    MigPlacement wanted = {(unsigned)start, profile ? profile->info.slices : 0};
    if (profile != NULL && start >= 0)
        result = api.nvmlGpuInstanceCreateComputeInstanceWithPlacement(ref, profile->info.id, &wanted, &made);
    else if (profile != NULL)
        result = api.nvmlGpuInstanceCreateComputeInstance(ref, profile->info.id, &made);
    if (result != OK) {
        printf("Unable to create a compute instance on GPU %2u GPU instance ID %2u using profile %s: %s\n", gpu,
               parent.id, given, api.nvmlErrorString(result));
        return result;
    }
    api.nvmlComputeInstanceGetInfo_v2(made, &info);
    printf("Successfully created compute instance ID %2u on GPU %2u GPU instance ID %2u using profile MIG %s (ID %2u)\n",
           info.id, gpu, parent.id, profile->name, profile->info.id);
    return OK;
}

static int create_default(Device device, GpuInstanceRef ref, unsigned slices) {
    MigComputeInfo3 profiles[COMPUTE_PROFILES];
    unsigned count = compute_profiles_of(ref, profiles);
    for (unsigned i = 0; i < count; i++)
        if (profiles[i].info.slices == slices) return create_compute(device, ref, &profiles[i], "default", -1);
    return create_compute(device, ref, NULL, "default", -1);
}

static int create_computes(Device device, const Instance *one, const Asked *asked) {
    MigComputeInfo3 profiles[COMPUTE_PROFILES];
    unsigned count = compute_profiles_of(one->ref, profiles);
    Return result = OK;
    char name[64], id[16];
    long start;
    if (asked->profiles == NULL) result = create_default(device, one->ref, one->profile.slices);
    for (const char *rest = asked->profiles; result == OK && next_profile(&rest, name, sizeof name, &start);) {
        const MigComputeInfo3 *found = NULL;
        for (unsigned i = 0; i < count && found == NULL; i++) {
            snprintf(id, sizeof id, "%u", profiles[i].info.id);
            if (strcmp(id, name) == 0 || strcasecmp(profiles[i].name, name) == 0) found = &profiles[i];
        }
        result = create_compute(device, one->ref, found, name, start);
    }
    return result == OK ? 0 : failed("create compute instances", result);
}

/* Those of one GPU instance: listed, or destroyed. */
static int computes(Device device, const Instance *one, const Asked *asked, unsigned *seen) {
    static const char EDGE[] = "+--------------------------------------------------------------------+";
    MigComputeInfo3 profiles[COMPUTE_PROFILES];
    unsigned count = compute_profiles_of(one->ref, profiles), gpu = index_of(device);
    for (unsigned i = 0; i < count; i++) {
        ComputeInstanceRef refs[INSTANCES];
        unsigned there = 0;
        if (api.nvmlGpuInstanceGetComputeInstances(one->ref, profiles[i].info.id, refs, &there) != OK) continue;
        for (unsigned j = 0; j < there; j++) {
            MigComputeInstanceInfo info = {0};
            if (api.nvmlComputeInstanceGetInfo_v2(refs[j], &info) != OK || !in_list(asked->computes, info.id)) continue;
            if ((*seen)++ == 0 && asked->act == COMPUTE_LIST) {
                puts(EDGE);
                puts("| Compute instances:                                                 |");
                puts("| GPU     GPU       Name             Profile   Instance   Placement  |");
                puts("|       Instance                       ID        ID       Start:Size |");
                puts("|         ID                                                         |");
                puts("|====================================================================|");
            }
            if (asked->act == COMPUTE_LIST) {
                printf("|%4u%7u       MIG %-17s%u%10u%11u:%-6u|\n%s\n", gpu, one->info.id, profiles[i].name, info.profile,
                       info.id, info.placement.start, info.placement.size, EDGE);
                continue;
            }
            Return result = api.nvmlComputeInstanceDestroy(refs[j]);
            if (result != OK) {
                printf("Unable to destroy compute instance ID %2u from GPU %2u GPU instance ID %2u: %s\n", info.id, gpu,
                       one->info.id, api.nvmlErrorString(result));
                return failed("destroy compute instances", result);
            }
            printf("Successfully destroyed compute instance ID %2u from GPU %2u GPU instance ID %2u\n", info.id, gpu,
                   one->info.id);
        }
    }
    return 0;
}

/* ---- The command ---- */

static int of_instances(Device device, const Asked *asked, unsigned *seen, unsigned *inside) {
    Instance all[INSTANCES];
    unsigned count = instances_of(device, asked, all);
    int code = 0;
    for (unsigned i = 0; i < count && code == 0; i++) {
        int first = (*seen)++ == 0;
        switch (asked->act) {
        case LIST: list_instance(device, &all[i], first); break;
        case DESTROY: code = destroy(device, &all[i]); break;
        case COMPUTE_PROFILE_LIST: list_compute_profiles(device, &all[i], first); break;
        case COMPUTE_PLACEMENT_LIST: list_compute_placements(device, &all[i]); break;
        case COMPUTE_CREATE: code = create_computes(device, &all[i], asked); break;
        default: code = computes(device, &all[i], asked, inside);
        }
    }
    return code;
}

static int of_all(const Asked *asked) {
    Selection selection = select_gpus(asked->gpus, "No devices were found");
    unsigned capable = 0, on = 0, seen = 0, inside = 0;
    int code = 0;
    for (unsigned i = 0; i < selection.count && code == 0; i++) {
        Device device = selection.devices[i];
        unsigned current, pending;
        capable += api.nvmlDeviceGetMigMode(device, &current, &pending) == OK;
        if (!mig_is_on(device)) continue;
        on++;
        if (asked->act == LIST_PROFILES) list_profiles(device, on == 1);
        else if (asked->act == LIST_PLACEMENTS) list_placements(device);
        else if (asked->act == CREATE) code = create(device, asked);
        else code = of_instances(device, asked, &seen, &inside);
    }
    free(selection.devices);
    if (on == 0) {
        printf("No MIG-%s devices found.\n", capable ? "enabled" : "supported");
        return NOT_FOUND;
    }
    if (asked->act == LIST_PROFILES || asked->act == LIST_PLACEMENTS || asked->act == CREATE) return code;
    if (seen == 0) return none("GPU instances");
    int of_computes = asked->act == COMPUTE_LIST || asked->act == COMPUTE_DESTROY;
    return of_computes && inside == 0 && code == 0 ? none("compute instances") : code;
}

static int act_of(int count, char **arguments, int *at, Asked *asked) {
    for (size_t i = 0; i < sizeof ACTS / sizeof *ACTS; i++) {
        const char *value = NULL;
        int plain = strcmp(arguments[*at], ACTS[i].brief) == 0 || strcmp(arguments[*at], ACTS[i].name) == 0;
        int missing = *at + 1 >= count || arguments[*at + 1][0] == '-';
        if (ACTS[i].takes && !(plain && missing)) {
            if (!valued(ACTS[i].name, ACTS[i].brief, count, arguments, at, &value)) continue;
        } else if (!plain || ACTS[i].takes == 1) {
            continue;
        }
        if (asked->act != NOTHING) return 0;
        asked->act = ACTS[i].act;
        asked->profiles = value;
        return 1;
    }
    return 0;
}

int mig(int count, char **arguments) {
    Asked asked = {0};
    for (int at = 0; at < count; at++) {
        if (help_asked(1, arguments + at)) return help(HELP);
        if (valued("--id", "-i", count, arguments, &at, &asked.gpus)) continue;
        if (valued("--gpu-instance-id", "-gi", count, arguments, &at, &asked.instances)) continue;
        if (valued("--compute-instance-id", "-ci", count, arguments, &at, &asked.computes)) continue;
        if (strcmp(arguments[at], "-C") == 0 || strcmp(arguments[at], "--default-compute-instance") == 0)
            asked.with_default = 1;
        else if (!act_of(count, arguments, &at, &asked))
            return misused("\"mig\" takes one of -lgip, -lgipp, -cgi, -dgi, -lgi, -lcip, -lcipp, -cci, -dci and -lci.");
    }
    if (asked.act == NOTHING) return misused("\"mig\" takes one action.");
    if (asked.with_default && asked.act != CREATE) return misused("\"-C\" needs \"-cgi\".");
    api_open(0);
    return of_all(&asked);
}
