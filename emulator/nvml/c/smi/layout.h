/* What -q and -q -x show: one row per element, as data. Which rows there are and what they hold depends on the driver and
 * on the model; both stand in the row. */
#ifndef MEWS_SMI_LAYOUT_H
#define MEWS_SMI_LAYOUT_H

#include <stddef.h>

typedef struct {
    int depth; /* 0: directly below the GPU; a row without a source is a node with the deeper rows that follow */
    const char *label, *tag;
    /* A field of --query-gpu; "@key": a detail of the state; "%field|unit": a field with a unit of its own;
     * "~field": hexadecimal, without 0x in XML; "*word": processes, clocks or MIG devices; NULL: a node. */
    const char *source;
    /* Words, all of which must hold; NULL: always. "580.126,595": since 580.126 in branch 580, and since 595;
     * "-580": before 580; "?key", "!key": the state has such a detail, or has not; "xml", "text": only there;
     * "asked": in text only where -d names its section. */
    const char *when;
    const char *instead; /* "590=words|595=words": what stands there from a driver on, where the value was deprecated */
    const char *section; /* of -d, for rows of depth 0; NULL: only without -d */
} Row;

extern const Row ROWS[];
extern const size_t ROW_COUNT;

/* Whether XML has the row with this driver, on any model. */
int row_in_xml(const Row *row);

/* The names that -d knows, NULL at the end. */
extern const char *const SECTIONS[];

#endif
