/* --dtd: the document type of -q -x, made of the rows of layout.c that there are with this driver. A model may lack some
 * of them, and -d leaves out whole sections: those are optional. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "layout.h"

/* An element at its place: below the last one before it that is less deep. */
typedef struct {
    int depth;
    const char *tag;
    char mark; /* '?' or '*', 0 for exactly one */
    int text;  /* holds words where it has no elements in it */
} Part;

typedef struct {
    Part *all;
    size_t count;
} Parts;

enum { MOST_INSIDE = 32, LOG = 0, BELOW_LOG = 1, BELOW_GPU = 2 };

/* What stands inside the rows that details.c writes by code, less deep by the row's own depth and one. */
static const Part MIG_DEVICES[] = {
    {0, "mig_device", '*', 0},
    {1, "index", 0, 1}, {1, "gpu_instance_id", 0, 1}, {1, "compute_instance_id", 0, 1},
    {1, "device_attributes", 0, 0}, {2, "shared", 0, 0},
    {3, "multiprocessor_count", 0, 1}, {3, "copy_engine_count", 0, 1}, {3, "encoder_count", 0, 1},
    {3, "decoder_count", 0, 1}, {3, "ofa_count", 0, 1}, {3, "jpg_count", 0, 1},
    {1, "ecc_error_count", 0, 0}, {2, "volatile_count", 0, 0}, {3, "sram_uncorrectable", 0, 1},
    {1, "fb_memory_usage", 0, 0}, {2, "total", 0, 1}, {2, "reserved", 0, 1}, {2, "used", 0, 1}, {2, "free", 0, 1},
    {1, "bar1_memory_usage", 0, 0}, {2, "total", 0, 1}, {2, "used", 0, 1}, {2, "free", 0, 1},
    {0, NULL, 0, 0},
};
static const Part PROCESSES[] = {
    {0, "process_info", '*', 0}, {1, "gpu_instance_id", 0, 1}, {1, "compute_instance_id", 0, 1}, {1, "pid", 0, 1},
    {1, "type", 0, 1}, {1, "process_name", 0, 1}, {1, "used_memory", 0, 1}, {0, NULL, 0, 0},
};
static const Part CLOCKS[] = {
    {0, "supported_mem_clock", '*', 0}, {1, "value", 0, 1}, {1, "supported_graphics_clock", '*', 1}, {0, NULL, 0, 0},
};
static const struct {
    const char *source;
    const Part *inside;
} WRITTEN[] = {{"*mig", MIG_DEVICES}, {"*processes", PROCESSES}, {"*clocks", CLOCKS}};

/* ---- The parts ---- */

static void add(Parts *parts, int depth, const char *tag, char mark, int text) {
    parts->all[parts->count++] = (Part){depth, tag, mark, text};
}

static void head(Parts *parts, const char *attached) {
    const char *const tags[] = {"timestamp", "driver_version", "cuda_version", attached};
    add(parts, LOG, "nvidia_smi_log", 0, 0);
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++) add(parts, BELOW_LOG, tags[i], 0, 1);
}

static void inside(Parts *parts, const Row *row) {
    for (size_t i = 0; i < sizeof WRITTEN / sizeof *WRITTEN; i++)
        for (const Part *one = WRITTEN[i].inside; strcmp(WRITTEN[i].source, row->source) == 0 && one->tag; one++)
            add(parts, BELOW_GPU + row->depth + 1 + one->depth, one->tag, one->mark, one->text);
}

static void gpu(Parts *parts) {
    add(parts, BELOW_LOG, "gpu", '*', 0);
    for (size_t i = 0; i < ROW_COUNT; i++) {
        const Row *row = &ROWS[i];
        int varies = row->depth == 0 || (row->when != NULL && strpbrk(row->when, "?!") != NULL);
        if (row_in_xml(row)) {
            int worded = row->source != NULL && strcmp(row->source, "*processes") && strcmp(row->source, "*clocks");
            add(parts, BELOW_GPU + row->depth, row->tag, varies ? '?' : 0, worded);
            if (row->source != NULL) inside(parts, row);
        } else {
            while (row->source == NULL && i + 1 < ROW_COUNT && ROWS[i + 1].depth > row->depth) i++;
        }
    }
}

/* ---- Declarations ---- */

/* The next element directly in `parent` after `after`; parts->count when there is none. */
static size_t next_inside(const Parts *parts, size_t parent, size_t after) {
    for (size_t at = after + 1; at < parts->count && parts->all[at].depth > parts->all[parent].depth; at++)
        if (parts->all[at].depth == parts->all[parent].depth + 1) return at;
    return parts->count;
}

static int same_inside(const Parts *parts, size_t one, size_t two) {
    size_t first = one, second = two;
    for (;;) {
        first = next_inside(parts, one, first);
        second = next_inside(parts, two, second);
        if (first == parts->count || second == parts->count) return first == second;
        if (strcmp(parts->all[first].tag, parts->all[second].tag) != 0) return 0;
        if (parts->all[first].mark != parts->all[second].mark) return 0;
    }
}

static size_t first_of(const Parts *parts, const char *tag) {
    for (size_t at = 0; at < parts->count; at++)
        if (strcmp(parts->all[at].tag, tag) == 0) return at;
    return parts->count;
}

/* Whether an earlier element of that name, or this one before, had such an element in it. */
static int was_named(const Parts *parts, const char *tag, size_t until) {
    for (size_t at = 0; at < until; at++)
        if (strcmp(parts->all[at].tag, tag) == 0) {
            int depth = parts->all[at].depth;
            size_t parent = at;
            while (parts->all[parent].depth >= depth) parent--;
            size_t wanted = until;
            while (parts->all[wanted].depth >= parts->all[until].depth) wanted--;
            if (strcmp(parts->all[parent].tag, parts->all[wanted].tag) == 0) return 1;
        }
    return 0;
}

static void in_order(const Parts *parts, size_t element) {
    const char *between = "";
    for (size_t at = next_inside(parts, element, element); at < parts->count; at = next_inside(parts, element, at)) {
        if (was_named(parts, parts->all[at].tag, at)) continue; /* words on some models, elements on others */
        const char mark[] = {parts->all[at].mark, 0};
        printf("%s%s%s", between, parts->all[at].tag, mark);
        between = ", ";
    }
}

/* Any of all that stands in elements of this name, in any order, and words. */
static void in_any_order(const Parts *parts, const char *tag, int text) {
    const char *between = text ? " | " : "";
    fputs(text ? "#PCDATA" : "", stdout);
    for (size_t one = 0; one < parts->count; one++) {
        if (strcmp(parts->all[one].tag, tag) != 0) continue;
        for (size_t at = next_inside(parts, one, one); at < parts->count; at = next_inside(parts, one, at)) {
            if (was_named(parts, parts->all[at].tag, at)) continue;
            printf("%s%s", between, parts->all[at].tag);
            between = " | ";
        }
    }
}

static void declare(const Parts *parts, size_t first) {
    const char *tag = parts->all[first].tag;
    int text = 0, nodes = 0, alike = 1;
    for (size_t at = first; at < parts->count; at++) {
        if (strcmp(parts->all[at].tag, tag) != 0) continue;
        text |= parts->all[at].text;
        nodes |= next_inside(parts, at, at) < parts->count;
        alike &= same_inside(parts, first, at);
    }
    printf("<!ELEMENT %s (", tag);
    if (!nodes) fputs("#PCDATA", stdout);
    else if (alike && !text) in_order(parts, first);
    else in_any_order(parts, tag, text);
    puts(nodes && (text || !alike) ? ")*>" : ")>");
    if (strcmp(tag, "gpu") == 0) puts("<!ATTLIST gpu id CDATA #REQUIRED>");
}

int show_dtd(int units) {
    Parts parts = {calloc((ROW_COUNT + 1) * MOST_INSIDE, sizeof(Part)), 0};
    if (parts.all == NULL) return 1;
    head(&parts, units ? "attached_units" : "attached_gpus");
    if (!units) gpu(&parts);
    for (size_t at = 0; at < parts.count; at++)
        if (first_of(&parts, parts.all[at].tag) == at) declare(&parts, at);
    free(parts.all);
    return 0;
}
