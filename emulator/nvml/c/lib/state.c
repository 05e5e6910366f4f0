#include "state.h"

#include <stdlib.h>
#include <string.h>

#include "words.h"

enum { GPU_LIMIT = 4096, PROCESS_LIMIT = 65536, SPAN_LIMIT = 65536, DETAIL_LIMIT = 1024 };

static const long long BYTES_LIMIT = 1LL << 56;

typedef struct {
    const char *key;
    size_t offset, size; /* size 0: a number */
} Field;

#define NUMBER(of, name) {#name, offsetof(of, name), 0}
#define TEXT(of, name) {#name, offsetof(of, name), sizeof(((of *)0)->name)}

static const Field HOST_FIELDS[] = {
    TEXT(State, driver_version), TEXT(State, nvml_version), TEXT(State, dev_root),
    NUMBER(State, cuda_version), NUMBER(State, driver_loaded), NUMBER(State, switched),
    NUMBER(State, clock_monotonic), NUMBER(State, clock_emulated), NUMBER(State, clock_speed), NUMBER(State, lag),
};

static const Field GPU_FIELDS[] = {
    TEXT(Gpu, bus_id), TEXT(Gpu, uuid), TEXT(Gpu, serial), TEXT(Gpu, vbios), TEXT(Gpu, name), TEXT(Gpu, part_number),
    TEXT(Gpu, cpus), NUMBER(Gpu, index), NUMBER(Gpu, minor), NUMBER(Gpu, numa_node), NUMBER(Gpu, brand),
    NUMBER(Gpu, architecture), NUMBER(Gpu, cc_major), NUMBER(Gpu, cc_minor), NUMBER(Gpu, cores),
    NUMBER(Gpu, bus_width), NUMBER(Gpu, device_id), NUMBER(Gpu, subsystem_id), NUMBER(Gpu, memory_total),
    NUMBER(Gpu, memory_reserved), NUMBER(Gpu, memory_used), NUMBER(Gpu, bar1_total), NUMBER(Gpu, bar1_used),
    NUMBER(Gpu, max_sm_clock), NUMBER(Gpu, max_memory_clock), NUMBER(Gpu, max_video_clock), NUMBER(Gpu, power_limit),
    NUMBER(Gpu, power_default), NUMBER(Gpu, power_min), NUMBER(Gpu, power_max), NUMBER(Gpu, memory_warmer),
    NUMBER(Gpu, slowdown_temperature), NUMBER(Gpu, shutdown_temperature), NUMBER(Gpu, max_temperature),
    NUMBER(Gpu, memory_max_temperature), NUMBER(Gpu, fan_low), NUMBER(Gpu, fan_high), NUMBER(Gpu, fan_cold),
    NUMBER(Gpu, fan_hot), NUMBER(Gpu, fan_fixed), NUMBER(Gpu, application_memory_clock),
    NUMBER(Gpu, application_sm_clock), NUMBER(Gpu, pcie_gen), NUMBER(Gpu, pcie_width), NUMBER(Gpu, ecc_pending),
    NUMBER(Gpu, max_pcie_gen), NUMBER(Gpu, max_pcie_width), NUMBER(Gpu, ecc_mode),
    NUMBER(Gpu, ecc_volatile_corrected), NUMBER(Gpu, ecc_volatile_uncorrected),
    NUMBER(Gpu, ecc_aggregate_corrected), NUMBER(Gpu, ecc_aggregate_uncorrected), NUMBER(Gpu, persistence),
    NUMBER(Gpu, compute_mode), NUMBER(Gpu, accounting), NUMBER(Gpu, draining), NUMBER(Gpu, lost),
    NUMBER(Gpu, unknown_error),
    NUMBER(Gpu, mig_capable), NUMBER(Gpu, remapped_rows), NUMBER(Gpu, remap_pending), NUMBER(Gpu, remap_failed),
    NUMBER(Gpu, pcie_replays), NUMBER(Gpu, nvlinks), NUMBER(Gpu, mig_mode), NUMBER(Gpu, mig_pending),
    NUMBER(Gpu, mig_model), NUMBER(Gpu, link_threshold), NUMBER(Gpu, link_bandwidth),
};

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

static unsigned crc32_of(const unsigned char *bytes, size_t length) {
    unsigned crc = 0xFFFFFFFFu;
    for (size_t i = 0; i < length; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++) crc = (crc >> 1) ^ (0xEDB88320u & (0u - (crc & 1u)));
    }
    return ~crc;
}

/* Set a field by its key. Unknown keys are later versions' business; a bad number is an error. */
static int set_field(const Field *fields, size_t count, void *target, const char *key, const char *value) {
    for (size_t i = 0; i < count; i++) {
        if (strcmp(fields[i].key, key) != 0) continue;
        char *at = (char *)target + fields[i].offset;
        if (fields[i].size == 0) return number_parse(value, (long long *)(void *)at);
        text_parse(value, at, fields[i].size);
        return 1;
    }
    return 1;
}

static int add_gpu(State *state) {
    if (state->gpu_count >= GPU_LIMIT) return 0;
    Gpu *gpus = state_grown(state->gpus, state->gpu_count, sizeof *gpus);
    if (gpus == NULL) return 0;
    state->gpus = gpus;
    Gpu *gpu = &gpus[state->gpu_count++];
    memset(gpu, 0, sizeof *gpu);
    gpu->numa_node = gpu->fan_low = gpu->fan_fixed = gpu->memory_warmer = gpu->ecc_mode = gpu->ecc_pending = -1;
    gpu->mig_model = -1;
    return 1;
}

static int add_process(Gpu *gpu, char *rest) {
    char *pid = state_word(&rest), *kind = state_word(&rest), *used = state_word(&rest), *name = state_word(&rest);
    char *instance = state_word(&rest), *compute = state_word(&rest);
    long long pid_number, used_number, instance_number = NO_INSTANCE, compute_number = NO_INSTANCE;
    if (used == NULL || !number_parse(pid, &pid_number) || !number_parse(used, &used_number)) return 0;
    if (compute && (!number_parse(instance, &instance_number) || !number_parse(compute, &compute_number))) return 0;
    if (pid_number < 0 || used_number < 0 || gpu->process_count >= PROCESS_LIMIT) return 0;
    Process *processes = state_grown(gpu->processes, gpu->process_count, sizeof *processes);
    if (processes == NULL) return 0;
    gpu->processes = processes;
    Process *process = &processes[gpu->process_count++];
    memset(process, 0, sizeof *process);
    process->pid = (unsigned)pid_number;
    process->kind = kind[0];
    process->used = (unsigned long long)used_number;
    process->gpu_instance = (unsigned)instance_number;
    process->compute_instance = (unsigned)compute_number;
    text_parse(name ? name : "", process->name, sizeof process->name);
    return 1;
}

static int add_account(Gpu *gpu, char *rest) {
    Account account;
    long long *const numbers[] = {&account.pid,        &account.utilization, &account.memory_utilization,
                                  &account.max_memory, &account.began,       &account.ended};
    for (size_t i = 0; i < COUNT(numbers); i++) {
        char *word = state_word(&rest);
        if (word == NULL || !number_parse(word, numbers[i])) return 0;
    }
    if (gpu->account_count >= PROCESS_LIMIT) return 0;
    Account *accounts = state_grown(gpu->accounts, gpu->account_count, sizeof *accounts);
    if (accounts == NULL) return 0;
    gpu->accounts = accounts;
    accounts[gpu->account_count++] = account;
    return 1;
}

static int add_totals(Gpu *gpu, char *rest) {
    Totals *totals = &gpu->totals;
    long long *const numbers[] = {&totals->work, &totals->traffic, &totals->capped,
                                  &totals->hot,  &totals->locked,  &totals->cooled};
    for (size_t i = 0; i < COUNT(numbers); i++) {
        char *word = state_word(&rest);
        if (word == NULL || !number_parse(word, numbers[i])) return 0;
    }
    return 1;
}

/* Whatever a broken file says: numbers wrap around instead of being undefined. */
static long long grown_by(long long start, long long rate, long long passed) {
    return (long long)((unsigned long long)start + (unsigned long long)rate * (unsigned long long)passed);
}

Totals totals_after(const Span *span, long long passed) {
    enum { NS_PER_S = 1000000000 };
    Totals totals = span->totals;
    totals.work = grown_by(totals.work, span->utilization, passed);
    totals.traffic = grown_by(totals.traffic, span->pcie, passed / NS_PER_S);
    totals.traffic = grown_by(totals.traffic, span->pcie / 1000, passed % NS_PER_S / 1000000);
    totals.capped = grown_by(totals.capped, (span->reasons & REASON_POWER_CAP) != 0, passed);
    totals.hot = grown_by(totals.hot, (span->reasons & REASON_HW_THERMAL) != 0, passed);
    totals.cooled = grown_by(totals.cooled, (span->reasons & REASON_SW_THERMAL) != 0, passed);
    totals.locked = grown_by(totals.locked, (span->reasons & REASON_LOCKED) != 0, passed);
    return totals;
}

/* The numbers of a span in their order, then a share per process. */
static int add_span(Gpu *gpu, char *rest) {
    if (gpu->span_count >= SPAN_LIMIT) return 0;
    Span *spans = state_grown(gpu->spans, gpu->span_count, sizeof *spans);
    if (spans == NULL) return 0;
    gpu->spans = spans;
    Span span = {.shares = gpu->share_count};
    long long *const numbers[] = {
        &span.at,           &span.until,       &span.utilization, &span.memory_utilization, &span.power, &span.sm_clock,
        &span.memory_clock, &span.video_clock, &span.pstate,      &span.reasons,            &span.pcie,  &span.energy,
        &span.energy_rest,  &span.temperature, &span.target,
    };
    for (size_t i = 0; i < COUNT(numbers); i++) {
        char *word = state_word(&rest);
        if (word == NULL || !number_parse(word, numbers[i])) return 0;
    }
    for (char *word; (word = state_word(&rest)) != NULL;) {
        long long share;
        if (!number_parse(word, &share) || share < 0 || share > 100) return 0;
        unsigned char *shares = state_grown(gpu->shares, gpu->share_count, sizeof *shares);
        if (shares == NULL) return 0;
        gpu->shares = shares;
        shares[gpu->share_count++] = (unsigned char)share;
    }
    span.share_count = gpu->share_count - span.shares;
    const Span *last = gpu->span_count > 0 ? &spans[gpu->span_count - 1] : NULL;
    if (last != NULL && last->at > span.at) return 0;
    span.totals = last == NULL ? gpu->totals : totals_after(last, (long long)((unsigned long long)span.at - (unsigned long long)last->at));
    spans[gpu->span_count++] = span;
    return 1;
}

static int add_detail(Gpu *gpu, char *rest) {
    char *key = state_word(&rest);
    if (key == NULL || strlen(key) >= sizeof gpu->details->key || gpu->detail_count >= DETAIL_LIMIT) return 0;
    Detail *details = state_grown(gpu->details, gpu->detail_count, sizeof *details);
    if (details == NULL) return 0;
    gpu->details = details;
    Detail *detail = &details[gpu->detail_count++];
    strcpy(detail->key, key);
    text_parse(rest ? rest : "", detail->text, sizeof detail->text);
    return 1;
}

const char *detail_text(const Gpu *gpu, const char *key) {
    for (size_t i = 0; i < gpu->detail_count; i++)
        if (strcmp(gpu->details[i].key, key) == 0) return gpu->details[i].text;
    return NULL;
}

static const struct {
    const char *name;
    unsigned device_type, system_type;
} EVENT_KINDS[] = {
    {"xid", EVENT_XID, 0},       {"ecc-single", EVENT_ECC_SINGLE, 0}, {"ecc-double", EVENT_ECC_DOUBLE, 0},
    {"pstate", EVENT_PSTATE, 0}, {"clock", EVENT_CLOCK, 0},           {"bind", 0, SYSTEM_EVENT_BIND},
    {"unbind", 0, SYSTEM_EVENT_UNBIND},
};

static int add_event(State *state, char *rest) {
    char *sequence = state_word(&rest), *kind = state_word(&rest), *bus_id = state_word(&rest), *data = state_word(&rest);
    char *instance = state_word(&rest), *compute = state_word(&rest);
    long long number, value, instance_number = NO_INSTANCE, compute_number = NO_INSTANCE;
    Event event = {0};
    if (data == NULL || state->event_count >= EVENT_MAX) return 0;
    if (!number_parse(sequence, &number) || !number_parse(data, &value) || number < 1) return 0;
    if (compute && (!number_parse(instance, &instance_number) || !number_parse(compute, &compute_number))) return 0;
    event.gpu_instance = (unsigned)instance_number;
    event.compute_instance = (unsigned)compute_number;
    if (!bus_id_parse(bus_id, &event.domain, &event.bus, &event.device)) return 0;
    for (size_t i = 0; i < COUNT(EVENT_KINDS); i++)
        if (strcmp(EVENT_KINDS[i].name, kind) == 0) {
            event.device_type = EVENT_KINDS[i].device_type;
            event.system_type = EVENT_KINDS[i].system_type;
        }
    event.sequence = (unsigned long long)number;
    event.data = (unsigned long long)value;
    text_parse(bus_id, event.bus_id, sizeof event.bus_id);
    Event *events = state_grown(state->events, state->event_count, sizeof *events);
    if (events == NULL) return 0;
    state->events = events;
    events[state->event_count++] = event;
    return 1;
}

static int level_parse(const char *word, short *level) {
    static const struct {
        const char *word;
        short level;
    } LEVELS[] = {{"X", LEVEL_INTERNAL},        {"PIX", LEVEL_SINGLE}, {"PXB", LEVEL_MULTIPLE},
                  {"PHB", LEVEL_HOST_BRIDGE},   {"NODE", LEVEL_NODE},  {"SYS", LEVEL_SYSTEM}};
    long long links;
    for (size_t i = 0; i < COUNT(LEVELS); i++)
        if (strcmp(word, LEVELS[i].word) == 0) {
            *level = LEVELS[i].level;
            return 1;
        }
    if (strncmp(word, "NV", 2) != 0 || !number_parse(word + 2, &links) || links < 1 || links > NVLINK_MAX) return 0;
    *level = (short)-links;
    return 1;
}

static int add_link_end(Gpu *gpu, const char *rest) {
    LinkEnd end;
    if (rest == NULL || gpu->link_end_count >= NVLINK_MAX) return 0;
    if (!bus_id_parse(rest, &end.domain, &end.bus, &end.device)) return 0;
    LinkEnd *ends = state_grown(gpu->link_ends, gpu->link_end_count, sizeof *ends);
    if (ends == NULL) return 0;
    gpu->link_ends = ends;
    ends[gpu->link_end_count++] = end;
    return 1;
}

/* How many rows of each of the two matrices were read; they come after all GPUs, one per GPU. */
typedef struct {
    size_t topology, levels;
} Rows;

static int add_row(short **matrix, size_t count, char *rest, size_t *rows) {
    if (*rows >= count) return 0;
    if (*matrix == NULL) *matrix = calloc(count * count, sizeof **matrix);
    if (*matrix == NULL) return 0;
    for (size_t column = 0; column < count; column++) {
        char *word = state_word(&rest);
        if (word == NULL || !level_parse(word, &(*matrix)[*rows * count + column])) return 0;
    }
    (*rows)++;
    return rest == NULL;
}

static int parse_line(State *state, char *line, Rows *rows) {
    char *rest = line;
    char *key = state_word(&rest);
    if (strcmp(key, "gpu") == 0) return rows->topology == 0 && rows->levels == 0 && add_gpu(state);
    if (strcmp(key, "topology") == 0)
        return rest != NULL && add_row(&state->topology, state->gpu_count, rest, &rows->topology);
    if (strcmp(key, "level") == 0) return rest != NULL && add_row(&state->levels, state->gpu_count, rest, &rows->levels);
    if (strcmp(key, "event") == 0) return add_event(state, rest);
    Gpu *gpu = state->gpu_count ? &state->gpus[state->gpu_count - 1] : NULL;
    if (strcmp(key, "process") == 0) return gpu != NULL && add_process(gpu, rest);
    if (strcmp(key, "accounted") == 0) return gpu != NULL && add_account(gpu, rest);
    if (strcmp(key, "totals") == 0) return gpu != NULL && add_totals(gpu, rest);
    if (strcmp(key, "span") == 0) return gpu != NULL && add_span(gpu, rest);
    if (strcmp(key, "link_end") == 0) return gpu != NULL && add_link_end(gpu, rest);
    if (strcmp(key, "detail") == 0) return gpu != NULL && add_detail(gpu, rest);
    int mig = mig_line(&state->mig, gpu ? &gpu->mig : NULL, key, rest);
    if (mig >= 0) return mig;
    const char *value = rest ? rest : "";
    if (gpu != NULL) return set_field(GPU_FIELDS, COUNT(GPU_FIELDS), gpu, key, value);
    return set_field(HOST_FIELDS, COUNT(HOST_FIELDS), state, key, value);
}

static int plausible(const State *state, const Rows *rows) {
    if (state->topology != NULL && rows->topology != state->gpu_count) return 0;
    if (state->levels != NULL && (rows->levels != state->gpu_count || state->topology == NULL)) return 0;
    for (size_t i = 0; state->levels != NULL && i < state->gpu_count * state->gpu_count; i++)
        if (state->levels[i] < 0) return 0;
    if (!mig_models_whole(&state->mig)) return 0;
    for (size_t i = 0; i < state->gpu_count; i++) {
        Gpu *gpu = &state->gpus[i];
        if (!mig_of_gpu_whole(&gpu->mig)) return 0;
        if (gpu->uuid[0] == 0 || !bus_id_parse(gpu->bus_id, &gpu->domain, &gpu->bus, &gpu->device)) return 0;
        if (gpu->index < 0 || gpu->minor < 0 || gpu->minor > 0xFFFFF) return 0;
        if (gpu->memory_total < 0 || gpu->memory_total > BYTES_LIMIT) return 0;
        if (gpu->memory_reserved < 0 || gpu->memory_reserved > gpu->memory_total) gpu->memory_reserved = 0;
        if (gpu->span_count == 0) return 0;
        if (gpu->memory_used < 0) gpu->memory_used = 0;
        if (gpu->memory_used > gpu->memory_total - gpu->memory_reserved)
            gpu->memory_used = gpu->memory_total - gpu->memory_reserved;
    }
    return 1;
}

static int by_index(const void *a, const void *b) {
    const Gpu *left = a, *right = b;
    if (left->index != right->index) return left->index < right->index ? -1 : 1;
    return strcmp(left->bus_id, right->bus_id);
}

static int in_order(const State *state) {
    for (size_t i = 1; i < state->gpu_count; i++)
        if (by_index(&state->gpus[i - 1], &state->gpus[i]) > 0) return 0;
    return 1;
}

/* The head line: "mews-nvml 1 <length> <crc32>". Returns the body, or NULL. */
static const char *checked_body(const char *bytes, size_t length, size_t *body_length) {
    static const char MAGIC[] = "mews-nvml 1 ";
    const char *newline = length ? memchr(bytes, '\n', length) : NULL;
    if (newline == NULL || newline - bytes > 64 || strncmp(bytes, MAGIC, sizeof MAGIC - 1) != 0) return NULL;
    char head[72] = {0};
    memcpy(head, bytes, (size_t)(newline - bytes));
    char *rest = head + sizeof MAGIC - 1;
    char *told = state_word(&rest);
    unsigned crc;
    long long number;
    if (rest == NULL || !number_parse(told, &number)) return NULL;
    const char *end = hex_parse(rest, 8, 8, &crc);
    *body_length = length - (size_t)(newline - bytes) - 1;
    if (end == NULL || *end != 0 || number < 0 || (size_t)number != *body_length) return NULL;
    if (crc32_of((const unsigned char *)newline + 1, *body_length) != crc) return NULL;
    return newline + 1;
}

static int parse_body(State *state, char *body) {
    Rows rows = {0, 0};
    while (*body) {
        char *newline = strchr(body, '\n');
        if (newline == NULL) return 0;
        *newline = 0;
        if (*body && !parse_line(state, body, &rows)) return 0;
        body = newline + 1;
    }
    /* Topology rows follow the order of the GPUs, so GPUs out of order cannot have any. */
    if (!in_order(state)) {
        if (state->topology != NULL || state->levels != NULL) return 0;
        qsort(state->gpus, state->gpu_count, sizeof *state->gpus, by_index);
    }
    return plausible(state, &rows);
}

State *state_parse(const char *bytes, size_t length) {
    size_t body_length;
    const char *body = checked_body(bytes, length, &body_length);
    if (body == NULL || memchr(body, 0, body_length) != NULL) return NULL;
    State *state = calloc(1, sizeof *state);
    char *copy = malloc(body_length + 1);
    int good = state != NULL && copy != NULL;
    if (good) {
        memcpy(copy, body, body_length);
        copy[body_length] = 0;
        state->driver_loaded = 1;
        state->clock_speed = CLOCK_SPEED;
        good = parse_body(state, copy);
    }
    free(copy);
    if (good) return state;
    state_free(state);
    return NULL;
}

void state_free(State *state) {
    if (state == NULL) return;
    for (size_t i = 0; i < state->gpu_count; i++) {
        free(state->gpus[i].processes);
        free(state->gpus[i].accounts);
        free(state->gpus[i].spans);
        free(state->gpus[i].shares);
        free(state->gpus[i].details);
        free(state->gpus[i].link_ends);
        mig_of_gpu_free(&state->gpus[i].mig);
    }
    free(state->gpus);
    mig_models_free(&state->mig);
    free(state->topology);
    free(state->levels);
    free(state->events);
    free(state);
}
