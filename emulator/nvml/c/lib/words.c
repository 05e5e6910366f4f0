#include "words.h"

#include <stdlib.h>
#include <string.h>

#include "state.h"

static int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

int number_parse(const char *text, long long *value) {
    int negative = *text == '-';
    if (negative) text++;
    if (*text == 0) return 0;
    long long result = 0;
    for (; *text; text++) {
        if (*text < '0' || *text > '9' || result > (INT64_MAX - 9) / 10) return 0;
        result = result * 10 + (*text - '0');
    }
    *value = negative ? -result : result;
    return 1;
}

const char *hex_parse(const char *text, int least, int most, unsigned *value) {
    unsigned result = 0;
    int digits = 0;
    for (; hex_digit(*text) >= 0 && digits < most; text++, digits++) result = result * 16 + (unsigned)hex_digit(*text);
    *value = result;
    return digits >= least ? text : NULL;
}

int bus_id_parse(const char *text, unsigned *domain, unsigned *bus, unsigned *device) {
    unsigned function = 0;
    const char *rest = hex_parse(text, 1, 8, domain);
    if (rest == NULL || *rest != ':') return 0;
    rest = hex_parse(rest + 1, 2, 2, bus);
    if (rest == NULL || *rest != ':') return 0;
    rest = hex_parse(rest + 1, 2, 2, device);
    if (rest == NULL) return 0;
    if (*rest == 0) return 1;
    if (*rest != '.') return 0;
    rest = hex_parse(rest + 1, 1, 1, &function);
    return rest != NULL && *rest == 0;
}

void text_parse(const char *text, char *out, size_t size) {
    size_t length = 0;
    for (; *text && length + 1 < size; text++) {
        int high, low;
        if (*text == '%' && (high = hex_digit(text[1])) >= 0 && (low = hex_digit(text[2])) >= 0) {
            out[length++] = (char)(high * 16 + low);
            text += 2;
        } else {
            out[length++] = *text;
        }
    }
    out[length] = 0;
}

void *state_grown(void *array, size_t count, size_t size) {
    if (count != 0 && (count & (count - 1)) != 0) return array; /* room doubles at powers of two */
    return realloc(array, (count == 0 ? 1 : count * 2) * size);
}

char *state_word(char **rest) {
    char *word = *rest;
    if (word == NULL) return NULL;
    char *space = strchr(word, ' ');
    if (space) *space++ = 0;
    *rest = space;
    return word;
}
