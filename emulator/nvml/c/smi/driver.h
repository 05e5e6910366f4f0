/* What a driver's release decides. */
#ifndef MEWS_SMI_DRIVER_H
#define MEWS_SMI_DRIVER_H

#include <stddef.h>

/* What stands for values that were given up. */
#define GONE "Requested functionality has been deprecated"
#define DEPRECATED "590=" GONE "|595.91=N/A"

/* Releases that have what the last ones of 580 brought (captures of 580.105, 580.173, 590.48 and 595.80). */
#define LATE_RELEASES "580.126,590.200,595"

/* The driver's branch: 580 of 580.105.08. */
unsigned driver_branch(void);

/* The same before the library is opened, without opening a GPU; 0 without a driver. */
unsigned driver_peeked(void);

/* "580.126,590": whether the driver is one of those or of a later branch. */
int driver_reached(const char *releases, size_t length);

/* "535 -580": whether the driver is of branch 535 or later and before 580; NULL: any driver. */
int driver_has(const char *when);

/* "590=words|595=words": what stands for a deprecated value with this driver; 0 where the value itself does. */
int driver_replaces(const char *instead, char *value);

#endif
