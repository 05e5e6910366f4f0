/* Samples of GPU performance monitoring. */
#ifndef MEWS_GPM_H
#define MEWS_GPM_H

/* The last nvmlShutdown ends all samples. Called with the session's lock held. */
void gpm_forget_all(void);

#endif
