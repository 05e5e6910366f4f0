/* What dmon measures between two of its lines of a GPU. */
#ifndef MEWS_SMI_BETWEEN_H
#define MEWS_SMI_BETWEEN_H

#include "api.h"

typedef struct {
    unsigned count, ids[GPM_METRICS]; /* of GPM */
} Metrics;

typedef struct {
    int capped, hot; /* percent of the time with the power limit in the way; whether the temperature was */
    unsigned char measured[GPM_METRICS];
    double values[GPM_METRICS];
} Between;

/* "1,20" into numbers of metrics; 0 for anything else. */
int metrics_of(const char *text, Metrics *metrics);

/* Since the last call about this GPU; nothing is measured in the first one. */
Between between_turns(Device device, const Metrics *metrics);

void between_forget(void);

#endif
