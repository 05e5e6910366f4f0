/* The options of a command of which one is given, with the GPUs that it is about. */
#ifndef MEWS_SMI_CHOICES_H
#define MEWS_SMI_CHOICES_H

typedef struct {
    const char *brief, *name;
    int takes; /* a value; 2: and nothing is done with it here */
} Choice;

enum { NOTHING = -1, SETS = 1, REFUSED = 2 };

typedef struct {
    const char *ids, *value;
    const char *count, *delay; /* -c and -d, of commands that go on until they are ended */
    int chosen;                /* the place of the choice, or NOTHING */
} Asked;

/* One choice at most of those before the one without a name, -i beside it, and with `goes_on` -c and -d. 0 for anything
 * else, and the code of a refusal, after its words, in *code. */
int asked_of(int count, char **arguments, const Choice *choices, int goes_on, Asked *asked, int *code);

/* Digits alone, up to so much. */
int number_upto(const char *text, unsigned most, unsigned *out);

#endif
