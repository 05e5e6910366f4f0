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

/* How the head of a metric's column is called, and its unit. */
void metric_head(unsigned id, char *name, size_t size, const char **unit);

/* Since the last call about this GPU; of GPM, of the time before that, so that nothing is measured in the first two. */
Between between_turns(Device device, const Metrics *metrics);

/* The same of a GPU instance: metrics alone. */
Between between_instance_turns(Device device, unsigned instance, const Metrics *metrics);

void between_forget(void);

#endif
