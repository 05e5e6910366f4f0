/* Words of a state file. */
#ifndef MEWS_WORDS_H
#define MEWS_WORDS_H

#include <stddef.h>

/* Undo the percent-encoding; what does not fit is cut off. */
void text_parse(const char *text, char *out, size_t size);

/* From `least` to `most` digits; behind them, or NULL. */
const char *hex_parse(const char *text, int least, int most, unsigned *value);

#endif
