#include "driver.h"

#include <stdio.h>
#include <string.h>

#include "gpus.h"

static unsigned branch, release; /* 580 and 105 */

static void read_once(void) {
    char version[VALUE_SIZE];
    if (branch == 0 && api.nvmlSystemGetDriverVersion != NULL &&
        api.nvmlSystemGetDriverVersion(version, sizeof version) == OK)
        sscanf(version, "%u.%u", &branch, &release);
}

unsigned driver_peeked(void) {
    char version[VALUE_SIZE];
    if (branch == 0 && api_peek(version, sizeof version)) sscanf(version, "%u.%u", &branch, &release);
    return branch;
}

unsigned driver_branch(void) {
    read_once();
    return branch;
}

int driver_reached(const char *releases, size_t length) {
    unsigned best = 0, least = 0;
    read_once();
    for (const char *at = releases; at < releases + length;) {
        unsigned of = 0, from = 0;
        sscanf(at, "%u.%u", &of, &from);
        if (of <= branch && of >= best) {
            best = of;
            least = from;
        }
        at += strcspn(at, ", ");
        if (at < releases + length) at++;
    }
    return best != 0 && (best < branch || release >= least);
}

int driver_has(const char *when) {
    if (driver_branch() == 0) return 1; /* without a driver nothing is left out */
    for (const char *word = when; word != NULL && *word;) {
        size_t length = strcspn(word, " ");
        if (*word == '-' && driver_reached(word + 1, length - 1)) return 0;
        if (*word >= '0' && *word <= '9' && !driver_reached(word, length)) return 0;
        word += length;
        if (*word) word++;
    }
    return 1;
}

int driver_replaces(const char *instead, char *value) {
    int found = 0;
    for (const char *at = instead; at != NULL && *at;) {
        size_t length = strcspn(at, "|"), key = strcspn(at, "=");
        if (driver_reached(at, key)) {
            snprintf(value, VALUE_SIZE, "%.*s", (int)(length - key - 1), at + key + 1);
            found = 1;
        }
        at += length;
        if (*at) at++;
    }
    return found;
}
