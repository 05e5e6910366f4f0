#include "choices.h"

#include <stdlib.h>
#include <string.h>

#include "commands.h"

int number_upto(const char *text, unsigned most, unsigned *out) {
    char *end;
    if (*text < '0' || *text > '9') return 0;
    unsigned long value = strtoul(text, &end, 10);
    *out = (unsigned)value;
    return *end == 0 && value <= most;
}

/* Whether arguments[*at] is this choice. */
static int is_choice(const Choice *choice, int count, char **arguments, int *at, Asked *asked) {
    if (choice->takes == SETS) return valued(choice->name, choice->brief, count, arguments, at, &asked->value);
    size_t length = strcspn(arguments[*at], "=");
    if (choice->brief != NULL && strcmp(arguments[*at], choice->brief) == 0) return 1;
    if (choice->takes == REFUSED) return strlen(choice->name) == length && strncmp(choice->name, arguments[*at], length) == 0;
    return strcmp(arguments[*at], choice->name) == 0;
}

int asked_of(int count, char **arguments, const Choice *choices, int goes_on, Asked *asked, int *code) {
    *asked = (Asked){.chosen = NOTHING};
    *code = 0;
    for (int at = 0; at < count; at++) {
        int place = 0;
        if (valued("--id", "-i", count, arguments, &at, &asked->ids)) continue;
        if (goes_on && valued("--count", "-c", count, arguments, &at, &asked->count)) continue;
        if (goes_on && valued("--delay", "-d", count, arguments, &at, &asked->delay)) continue;
        while (choices[place].name != NULL && !is_choice(&choices[place], count, arguments, &at, asked)) place++;
        if (choices[place].name == NULL || asked->chosen != NOTHING) return 0;
        if (choices[place].takes == REFUSED) {
            *code = not_emulated(arguments[at]);
            return 0;
        }
        asked->chosen = place;
    }
    return 1;
}
