/* Field values about NVLinks: by a number of their own for each link, or with the link as their scope. */
#include "fields.h"
#include "now.h"
#include "nvlink.h"

enum { ALL_LINKS = 0xFFFFFFFFu, BLACKWELL_LINKS = 5, HOPPER_LINKS = 4, EARLY = 6 };

/* Fields that have a number for each of the first six links, one for all of them, and numbers of the next six. */
static const struct {
    unsigned first, later, total;
    enum { ERRORS, SPEED, GONE } kind;
} FAMILIES[] = {
    {32, 96, 38, ERRORS}, {39, 102, 45, ERRORS}, {46, 108, 52, ERRORS}, {53, 114, 59, ERRORS},
    {60, 120, 66, GONE},  {67, 126, 73, GONE},   {84, 132, 90, SPEED},  {148, 154, 160, ERRORS},
};

/* The link of a numbered field; ALL_LINKS for the total; -1 where it is none of that family. */
static long long link_of(size_t family, unsigned field) {
    unsigned first = FAMILIES[family].first, later = FAMILIES[family].later;
    if (field == FAMILIES[family].total) return ALL_LINKS;
    if (field >= first && field < first + EARLY) return field - first;
    return field >= later && field < later + EARLY ? (long long)(field - later + EARLY) : -1;
}

static Told of_link(const View *view, const Gpu *gpu, unsigned links, size_t family, unsigned link) {
    if (link != ALL_LINKS && link >= links) return told_none();
    switch (FAMILIES[family].kind) {
    case SPEED: return told_number(link == ALL_LINKS || link_active(view, gpu, link) ? link_mbps(gpu) : 0);
    case ERRORS: return link_version(gpu) < BLACKWELL_LINKS ? told_wide(0) : told_none();
    default: return told_none(); /* deprecated for the throughput of a scope */
    }
}

/* KiB of data over a link, or over all that are active. */
static Told throughput(const View *view, const Gpu *gpu, unsigned links, unsigned scope, int raw) {
    unsigned long long carried = link_kilobytes(gpu, totals_now(view, gpu).traffic) * 1000 / 1024, active = 0;
    if (scope != ALL_LINKS && scope >= links) return (Told){INVALID_ARGUMENT, 0, 0};
    for (unsigned link = 0; link < links; link++)
        active += (scope == ALL_LINKS || scope == link) && link_active(view, gpu, link);
    if (raw) carried += carried / 8; /* headers; assumed */
    return told_wide((long long)(carried * active));
}

/* Counters of NVLink 5, in packets of 128 bytes and in bytes. */
static Told counter(const View *view, const Gpu *gpu, unsigned field, unsigned link) {
    enum { PACKET = 128 };
    if (link_version(gpu) < BLACKWELL_LINKS || field == 205 || (field >= 216 && field <= 218)) return told_none();
    if (field > 204) return told_wide(0);
    unsigned long long bytes =
        link_active(view, gpu, link) ? link_kilobytes(gpu, totals_now(view, gpu).traffic) * 1000 : 0;
    return told_wide((long long)(field == 201 || field == 203 ? bytes / PACKET : bytes));
}

/* The time after which an idle link sleeps, from Hopper on. */
static Told threshold(const Gpu *gpu, unsigned field) {
    enum { MOST = 0x1FFF, LEAST = 1, UNIT_100US = 0 };
    if (link_version(gpu) < HOPPER_LINKS) return field == 225 ? told_number(0) : told_none();
    switch (field) {
    case 168: return told_number(gpu->link_threshold > 0 ? gpu->link_threshold : MOST);
    case 200: return told_number(MOST);
    case 223: return told_number(LEAST);
    case 224: return told_number(UNIT_100US);
    default: return told_number(1);
    }
}

static Told remote(const View *view, size_t place, unsigned link) {
    long number = link_at_end(view, place, link);
    return number < 0 ? told_none() : told_number(number);
}

static Told scoped(const View *view, size_t place, unsigned links, unsigned field, unsigned link) {
    const Gpu *gpu = &view->state->gpus[place];
    if (link >= links) return (Told){INVALID_ARGUMENT, 0, 0};
    switch (field) {
    case 146: return remote(view, place, link);
    case 161: case 162: case 163: return link_version(gpu) < BLACKWELL_LINKS ? told_wide(0) : told_none();
    case 164: return told_number(link_active(view, gpu, link) ? link_mbps(gpu) : 0);
    case 165: return told_number(link_active(view, gpu, link));
    case 166: return told_number(link_version(gpu));
    case 167: return link_version(gpu) >= HOPPER_LINKS ? told_number(0) : told_none();
    default: return counter(view, gpu, field, link);
    }
}

Told link_field(const View *view, const Gpu *gpu, size_t place, unsigned field, unsigned scope) {
    unsigned links = links_of(view, place);
    if (field == 91) return told_number(links);
    if (field == 147) return told_number(view->state->switched ? links : 0);
    if (links == 0) return told_none();
    for (size_t family = 0; family < sizeof FAMILIES / sizeof *FAMILIES; family++) {
        long long link = link_of(family, field);
        if (link >= 0) return of_link(view, gpu, links, family, (unsigned)link);
    }
    if (field >= 138 && field <= 141) return throughput(view, gpu, links, scope, field >= 140);
    if (field == 168 || field == 200 || (field >= 223 && field <= 225)) return threshold(gpu, field);
    if (field == 146 || (field >= 161 && field <= 167) || (field >= 201 && field <= 222) ||
        (field >= 235 && field <= 250))
        return scoped(view, place, links, field, scope);
    return told_none();
}
