/* The GPUs that a command is about, and all that can be asked of one by name. */
#ifndef MEWS_SMI_GPUS_H
#define MEWS_SMI_GPUS_H

#include "api.h"

enum { VALUE_SIZE = 256 };

typedef struct {
    Device *devices;
    unsigned count;
} Selection;

/* Those of a list of indexes, UUIDs, serials and bus ids (NULL = all). Ends the program where one cannot be had. */
Selection select_gpus(const char *list, const char *none_found);

/* Shows each of them; of one that cannot be had, why, and goes on. Returns the exit code. Source: `-L` of a host with
 * H100s of which some had no handle. */
int list_gpus(const char *list, void (*show)(Device device));

/* The next word of a list with commas, and its length; NULL behind the last. Moves the list on. */
const char *next_word(const char **list, size_t *length);

/* Whether a list has that word, in either case; no list has none. */
int has_word(const char *list, const char *word);

/* Whether a list of numbers with commas has that one; without a list, all are asked for. */
int in_list(const char *list, unsigned number);

typedef Return (*Getter)(Device device, char *out);

typedef struct {
    const char *name, *alias, *unit;
    Getter get;         /* NULL: its value is a detail of the state, without that unit */
    const char *detail;
    const char *instead; /* as in layout.h */
} Field;

/* A field, by its name or its alias; NULL for any other word. */
const Field *field_named(const char *name, size_t length);

/* The fields by number; NULL behind the last. */
const Field *field_at(size_t place);

/* Those that --query-gpu has with this driver, by number and by name; NULL for no such field. */
const Field *query_field_at(size_t place);
const Field *query_field(const char *name, size_t length);

/* What is shown elsewhere and no field of --query-gpu, and those whose value is a detail of the state; by number. */
const Field *inner_field_at(size_t place);
const Field *detail_field_at(size_t place);

/* The value as it stands in the table, or why there is none. */
Return field_value(Device device, const Field *field, char *out);

/* A detail of the state; NOT_FOUND where it has none. */
Return detail_of(Device device, const char *key, char *out);

/* The value of a field with its unit, or the word for why there is none. */
void value_of(Device device, const char *name, char *out, int with_unit);

/* The GPU's PCI address as nvidia-smi writes it. */
const char *bus_id_of(Device device, char *out);

/* The line above what is told of a GPU: its number, name and UUID. */
void name_gpu(Device device);

/* The memory nodes near a GPU, and the node that its own memory is; "N/A" for none. */
enum { NODE_LIST = 64 };
void memory_nodes(Device device, char *out);
void own_node(Device device, char *out);

typedef struct {
    ProcessInfo info;
    char kind, name[VALUE_SIZE];
} SmiProcess;

/* Of both kinds; the caller frees. */
SmiProcess *processes_of(Device device, unsigned *count);

/* MHz: the memory's clocks, or the graphics clocks that go with one of them; the caller frees. */
unsigned *clock_list(Device device, unsigned memory, int graphics, unsigned *count);

#endif
