/* Being a process that has NVML open: open device files, and a connection that tells the host. */
#ifndef MEWS_HOLDING_H
#define MEWS_HOLDING_H

#include "session.h"

/* Open nvidiactl; bring open files and announcement in line with what the handles hold; let all of it go. */
void holding_begin(const char *dev_root);
void holding_update(const char *dev_root, struct Handle **handles, size_t count);
void holding_end(struct Handle **handles, size_t count);

/* Ask the host over a connection of its own; returns what NVML shall return. */
Return host_request(const char *words);
/* The same, with the text of the answer. */
Return host_question(const char *words, char *answer, size_t size);

/* Whether this program's container has root's rights: who started an emulated host may do all to it. */
int may_set(void);

#endif
