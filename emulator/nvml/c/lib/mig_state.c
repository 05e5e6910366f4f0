#include "mig_state.h"

#include <stdlib.h>
#include <string.h>

#include "state.h"

/* The next `count` words as numbers. */
static int numbers(char **rest, long long **out, size_t count) {
    for (size_t i = 0; i < count; i++) {
        char *word = state_word(rest);
        if (word == NULL || !number_parse(word, out[i])) return 0;
    }
    return 1;
}

static int starts_parse(char *word, unsigned *starts, size_t *count) {
    for (char *next; word != NULL && *word; word = next) {
        long long start;
        next = strchr(word, ',');
        if (next != NULL) *next++ = 0;
        if (*count >= MIG_STARTS || !number_parse(word, &start) || start < 0 || start > 255) return 0;
        starts[(*count)++] = (unsigned)start;
    }
    return *count > 0;
}

static int name_parse(char **rest, char *out, size_t size) {
    char *word = state_word(rest);
    if (word == NULL || strlen(word) >= size) return 0;
    strcpy(out, word);
    return 1;
}

/* Room for one more at the end of an array, emptied; NULL without memory or beyond the limit. */
static void *one_more(void **array, size_t *count, size_t size) {
    if (*count >= MIG_LIMIT) return NULL;
    void *more = state_grown(*array, *count, size);
    if (more == NULL) return NULL;
    *array = more;
    void *fresh = (char *)more + (*count)++ * size;
    memset(fresh, 0, size);
    return fresh;
}

static int add_table(MigModels *models, char *rest) {
    MigTable *table = one_more((void **)&models->tables, &models->table_count, sizeof *table);
    return table != NULL && numbers(&rest, (long long *[]){&table->table, &table->most}, 2);
}

static int add_profile(MigModels *models, char *rest) {
    MigProfile *p = one_more((void **)&models->profiles, &models->profile_count, sizeof *p);
    if (p == NULL) return 0;
    long long *const fields[] = {&p->table, &p->number, &p->id, &p->slices, &p->count, &p->multiprocessors,
                                 &p->memory_mib, &p->copy, &p->decoder, &p->encoder, &p->jpeg, &p->ofa, &p->size,
                                 &p->graphics};
    return numbers(&rest, (long long **)fields, sizeof fields / sizeof *fields) &&
           starts_parse(state_word(&rest), p->starts, &p->start_count) && name_parse(&rest, p->name, sizeof p->name);
}

static int add_compute(MigModels *models, char *rest) {
    MigComputeProfile *p = one_more((void **)&models->compute, &models->compute_count, sizeof *p);
    if (p == NULL) return 0;
    long long *const fields[] = {&p->table, &p->parent, &p->id, &p->slices, &p->count, &p->multiprocessors};
    return numbers(&rest, (long long **)fields, sizeof fields / sizeof *fields) &&
           starts_parse(state_word(&rest), p->starts, &p->start_count) && name_parse(&rest, p->name, sizeof p->name);
}

static int add_instance(MigOfGpu *gpu, char *rest) {
    MigInstance *one = one_more((void **)&gpu->instances, &gpu->instance_count, sizeof *one);
    if (one == NULL) return 0;
    long long *const fields[] = {&one->id, &one->profile, &one->start, &one->size, &one->serial, &one->idle};
    return numbers(&rest, (long long **)fields, sizeof fields / sizeof *fields);
}

static int add_device(MigOfGpu *gpu, char *rest) {
    MigDevice *one = one_more((void **)&gpu->devices, &gpu->device_count, sizeof *one);
    if (one == NULL) return 0;
    long long *const fields[] = {&one->instance, &one->id, &one->profile, &one->start, &one->serial};
    return numbers(&rest, (long long **)fields, sizeof fields / sizeof *fields) &&
           name_parse(&rest, one->uuid, sizeof one->uuid);
}

static int add_free(MigOfGpu *gpu, char *rest, int inside) {
    MigFree *one = one_more((void **)&gpu->free, &gpu->free_count, sizeof *one);
    if (one == NULL) return 0;
    one->instance = -1;
    if (inside && !numbers(&rest, (long long *[]){&one->instance}, 1)) return 0;
    return numbers(&rest, (long long *[]){&one->profile, &one->count}, 2);
}

int mig_line(MigModels *models, MigOfGpu *gpu, const char *key, char *rest) {
    if (strncmp(key, "mig_", 4) != 0) return -1;
    if (gpu == NULL) {
        if (strcmp(key, "mig_table") == 0) return add_table(models, rest);
        if (strcmp(key, "mig_profile") == 0) return add_profile(models, rest);
        return strcmp(key, "mig_compute") == 0 ? add_compute(models, rest) : -1;
    }
    if (strcmp(key, "mig_gi") == 0) return add_instance(gpu, rest);
    if (strcmp(key, "mig_ci") == 0) return add_device(gpu, rest);
    if (strcmp(key, "mig_free") == 0) return add_free(gpu, rest, 0);
    return strcmp(key, "mig_compute_free") == 0 ? add_free(gpu, rest, 1) : -1;
}

int mig_models_whole(const MigModels *models) {
    for (size_t i = 0; i < models->compute_count; i++) {
        const MigComputeProfile *one = &models->compute[i];
        size_t at = 0;
        while (at < models->profile_count &&
               (models->profiles[at].table != one->table || models->profiles[at].id != one->parent))
            at++;
        if (at == models->profile_count) return 0;
    }
    return 1;
}

int mig_of_gpu_whole(const MigOfGpu *gpu) {
    for (size_t i = 0; i < gpu->device_count; i++) {
        size_t at = 0;
        while (at < gpu->instance_count && gpu->instances[at].id != gpu->devices[i].instance) at++;
        if (at == gpu->instance_count) return 0;
    }
    return 1;
}

void mig_models_free(MigModels *models) {
    free(models->tables);
    free(models->profiles);
    free(models->compute);
}

void mig_of_gpu_free(MigOfGpu *gpu) {
    free(gpu->instances);
    free(gpu->devices);
    free(gpu->free);
}
