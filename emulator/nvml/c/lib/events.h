/* Sets of device events and of system events. */
#ifndef MEWS_EVENTS_H
#define MEWS_EVENTS_H

/* The last nvmlShutdown ends all sets. Called with the session's lock held. */
void events_forget_all(void);

#endif
