/* Calls the library's functions with arguments by chance: handles that are good, stale, of another kind or none, null
 * pointers, buffers that are too small, structs of other versions. Every buffer is exactly as long as the call may
 * expect, so that the address sanitizer sees one byte more. table.h is made from the facts of NVML's header. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ARGUMENTS = 8, VERSIONS = 6, POINTERS = 4, ROOM = 65536, OUT_ROOM = 64, KEPT = 64, HANDLE = 16384 };

typedef struct {
    char kind; /* h: handle, n: number, t: time, c: count, C: pointer to a count, a: array, p: struct, s: string */
    char family;       /* of handles: what they are handles of */
    unsigned size;     /* of a number, a struct or an element */
    signed char count; /* of an array: the argument with its count; -1: as many as anyone may write */
    unsigned versions[VERSIONS];
    short pointers[POINTERS]; /* offsets of pointers in a struct, of handles plus HANDLE, -1 = no more */
} Argument;

typedef struct {
    const char *name;
    int lacking; /* the library has its name alone */
    unsigned count;
    Argument arguments[ARGUMENTS];
} Function;

#include "table.h"

enum { FUNCTIONS = sizeof TABLE / sizeof *TABLE };

static uint64_t seed;

static uint64_t chance(uint64_t below) {
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (seed >> 11) % below;
}

/* Handles that were given out, by family; they stay when they are stale. */
static void *kept[128][KEPT];
static unsigned kept_count[128], last[128];
static char room[ROOM];

static void keep(char family, void *handle) {
    unsigned place = (unsigned char)family;
    for (last[place] = 0; last[place] < kept_count[place]; last[place]++)
        if (kept[place][last[place]] == handle) return;
    if (kept_count[place] < KEPT) kept_count[place]++;
    else last[place] = (unsigned)chance(KEPT);
    kept[place][last[place]] = handle;
}

static uint64_t handle_of(char family) {
    unsigned turn = (unsigned)chance(16);
    if (turn == 0) return 0;
    if (turn == 1) return (uint64_t)(uintptr_t)room;
    if (turn == 2) return chance(1u << 20);
    if (turn == 3) family = "DESGI"[chance(5)];
    unsigned place = (unsigned char)family;
    if (kept_count[place] == 0) return 0;
    return (uint64_t)(uintptr_t)kept[place][chance(2) ? last[place] : chance(kept_count[place])];
}

static uint64_t number_of(unsigned size) {
    switch (chance(8)) {
    case 0: return chance(1u << 16);
    case 1: return size == 8 ? seed * 0x9E3779B97F4A7C15u : (uint32_t)(seed * 0x9E3779B9u);
    case 2: return size == 8 ? UINT64_MAX : UINT32_MAX;
    case 3: return chance(32);
    default: return chance(4);
    }
}

static const uint64_t COUNTS[] = {0, 1, 2, 3, 8, 64, 200};

/* A struct of one of its versions, and exactly as long as that is; one of no version has its whole length. */
static void *struct_of(const Argument *argument) {
    unsigned count = 0, size = argument->size;
    while (count < VERSIONS && argument->versions[count]) count++;
    unsigned word = count ? argument->versions[chance(count)] : (unsigned)chance(4);
    if (count && chance(8) == 0) word = (unsigned)number_of(4);
    for (unsigned i = 0; i < count; i++)
        if (word == argument->versions[i]) size = word & 0xFFFFFF;
    unsigned char *bytes = malloc(size);
    if (chance(2)) memset(bytes, 0, size);
    else for (unsigned i = 0; i < size; i++) bytes[i] = (unsigned char)(i % 4 ? 0 : chance(4));
    memcpy(bytes, &word, size < sizeof word ? size : sizeof word);
    for (unsigned i = 0; i < POINTERS && argument->pointers[i] >= 0; i++) {
        int handle = argument->pointers[i] >= HANDLE, offset = argument->pointers[i] % HANDLE;
        void *to = handle ? (void *)(uintptr_t)handle_of("SPEDP"[chance(5)]) : chance(4) ? room : NULL;
        if ((unsigned)offset + sizeof to <= size) memcpy(bytes + offset, &to, sizeof to);
    }
    return bytes;
}

static const char *const TEXTS[] = {"", "GPU-", "0000:10:00.0", "0:1:x", "1320100000000", "00000000:11:00.0", "MIG-",
                                    "GPU-00000001-1111-4222-8333-444444444444", "GPU-%s%n", "ffffffff:ff:ff.f"};

typedef unsigned Result;
typedef Result (*Call)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);

static unsigned succeeded[FUNCTIONS];
static Call calls[FUNCTIONS];

static void prepare(const Function *function, uint64_t *given, void **owned, uint64_t *counts) {
    for (unsigned i = 0; i < function->count; i++) {
        const Argument *argument = &function->arguments[i];
        counts[i] = 0;
        if (argument->kind == 'c' || argument->kind == 'C') counts[i] = COUNTS[chance(sizeof COUNTS / sizeof *COUNTS)];
    }
    for (unsigned i = 0; i < function->count; i++) {
        const Argument *argument = &function->arguments[i];
        owned[i] = NULL;
        int null = chance(6) == 0;
        switch (argument->kind) {
        case 'h': given[i] = handle_of(argument->family); continue;
        case 'n': given[i] = number_of(argument->size); continue;
        case 't': given[i] = chance(2); continue;
        case 'c': given[i] = counts[i]; continue;
        case 's': owned[i] = strdup(TEXTS[chance(sizeof TEXTS / sizeof *TEXTS)]); break;
        case 'p': owned[i] = null ? NULL : struct_of(argument); break;
        case 'C':
            owned[i] = null ? NULL : calloc(1, sizeof(unsigned));
            if (owned[i] != NULL) memcpy(owned[i], &counts[i], sizeof(unsigned));
            break;
        default: {
            uint64_t many = argument->count < 0 ? OUT_ROOM : counts[(unsigned)argument->count];
            owned[i] = null ? NULL : malloc(many * argument->size + (many == 0));
            if (owned[i] != NULL) memset(owned[i], 0, many * argument->size);
        }
        }
        given[i] = (uint64_t)(uintptr_t)owned[i];
    }
}

static void finish(const Function *function, Result result, void **owned) {
    for (unsigned i = 0; i < function->count; i++) {
        const Argument *argument = &function->arguments[i];
        void *handle;
        if (result == 0 && argument->family && argument->kind == 'p' && owned[i] != NULL) {
            memcpy(&handle, (char *)owned[i] + (argument->pointers[0] > 0 ? argument->pointers[0] % HANDLE : 0),
                   sizeof handle);
            keep(argument->family, handle);
        }
        free(owned[i]);
    }
}

static void one(unsigned place) {
    const Function *function = &TABLE[place];
    uint64_t given[ARGUMENTS] = {0}, counts[ARGUMENTS] = {0};
    void *owned[ARGUMENTS] = {0};
    prepare(function, given, owned, counts);
    Result result = calls[place](given[0], given[1], given[2], given[3], given[4], given[5], given[6], given[7]);
    if (result > 30 && result != 999) {
        printf("%s returned %u, which is no code of NVML\n", function->name, result);
        exit(4);
    }
    succeeded[place] += result == 0;
    finish(function, result, owned);
}

/* One of the states that stand beside the one that is read. */
static void change(const char *state, unsigned states) {
    char from[4096], link[4096];
    snprintf(from, sizeof from, "%s.%u", state, (unsigned)chance(states));
    snprintf(link, sizeof link, "%s.next", state);
    unlink(link);
    if (symlink(from, link) != 0 || rename(link, state) != 0) exit(5);
}

static Call named(void *library, const char *name) {
    Call call;
    void *symbol = dlsym(library, name);
    if (symbol == NULL) {
        printf("%s is missing\n", name);
        exit(3);
    }
    memcpy(&call, &symbol, sizeof call);
    return call;
}

int main(int count, char **words) {
    if (count != 4) return 2;
    unsigned turns = (unsigned)atoi(words[1]), states = (unsigned)atoi(words[3]);
    seed = strtoull(words[2], NULL, 10) * 0x9E3779B97F4A7C15u + 1;
    const char *state = getenv("MEWS_NVML_STATE");
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    if (library == NULL || state == NULL) return 6;
    for (unsigned i = 0; i < FUNCTIONS; i++) calls[i] = named(library, TABLE[i].name);
    Call start = named(library, "nvmlInit_v2"), stop = named(library, "nvmlShutdown");
    Call by_index = named(library, "nvmlDeviceGetHandleByIndex_v2");
    for (unsigned turn = 0; turn < turns; turn++) {
        if (turn % 200 == 0) change(state, states);
        if (turn % 1000 == 900) /* some calls without a library that is initialised */
            while (stop(0, 0, 0, 0, 0, 0, 0, 0) == 0) continue;
        if (turn % 1000 == 0) {
            start(0, 0, 0, 0, 0, 0, 0, 0);
            for (uint64_t i = 0; i < 8; i++) {
                void *device = NULL;
                if (by_index(i, (uint64_t)(uintptr_t)&device, 0, 0, 0, 0, 0, 0) == 0) keep('D', device);
            }
        }
        unsigned place = (unsigned)chance(FUNCTIONS);
        if (TABLE[place].lacking && chance(4)) place = (unsigned)chance(FUNCTIONS);
        one(place);
    }
    while (stop(0, 0, 0, 0, 0, 0, 0, 0) == 0) continue;
    unsigned reached = 0;
    for (unsigned i = 0; i < FUNCTIONS; i++) reached += succeeded[i] > 0;
    printf("%u of %u functions succeeded\n", reached, (unsigned)FUNCTIONS);
    for (unsigned i = 0; i < FUNCTIONS && getenv("CALL_FUZZ_SHOW"); i++)
        if (!succeeded[i]) puts(TABLE[i].name);
    return 0;
}
