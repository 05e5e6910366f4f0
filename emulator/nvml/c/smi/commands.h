/* What nvidia-smi can be told to do. Each returns the exit code. */
#ifndef MEWS_SMI_COMMANDS_H
#define MEWS_SMI_COMMANDS_H

int show_table(const char *ids);
int show_list(const char *ids);
/* `sections`: of -d, NULL = all. `embedded`: XML holds its document type. */
int show_details(const char *ids, int xml, const char *sections, int embedded);

/* --dtd: the document type of GPUs, or of units. */
int show_dtd(int units);

/* Whether -d knows them all. */
int sections_known(const char *sections);
int topology(int count, char **arguments);
int show_topology(int with_links); /* NVLinks count before PCIe, or PCIe alone does */
int show_p2p(unsigned capability);
int show_units(int xml, int embedded);
int query_gpus(const char *ids, const char *fields, const char *format);

/* --query-WHAT, and --help-query-WHAT: compute-apps, accounted-apps, retired-pages, remapped-rows, supported-clocks;
 * the list also knows gpu. */
int query_records(const char *what, const char *ids, const char *fields, const char *format);
int list_fields(const char *what);
int reset_gpus(const char *ids);
int set_persistence(const char *ids, const char *mode);

/* Options that set something of GPUs. */
enum { SETTING_COUNT = 22 };
typedef struct {
    const char *given[SETTING_COUNT]; /* the option's value, "" where it takes none; NULL: not asked for */
    const char *scope;                /* of the power limit */
    const char *lock_mode;            /* of locked clocks: how near they are kept, which changes nothing here */
    int strict;                       /* what a GPU does not support is an error */
} Settings;

/* Whether arguments[*at] is one of them: noted, with *at on its last word. */
int setting_option(int count, char **arguments, int *at, Settings *settings);
/* Whether it takes a value; then it stands last, without one. */
int is_setting(const char *argument);
int any_setting(const Settings *settings);
int apply_settings(const char *ids, const Settings *settings);
int locks_clocks(const Settings *settings);
int show_hostnames(const char *ids);

/* "--name=value", "--name value" or "-n value" into *out; 1 when it was this option. */
int valued(const char *name, const char *brief, int count, char **arguments, int *at, const char **out);
/* The command `mig`, and -mig. */
int mig(int count, char **arguments);
int set_mig_mode(const char *ids, const char *mode);

int drain(int count, char **arguments);
int monitor(int count, char **arguments, int devices); /* dmon, or pmon */
int nvlink(int count, char **arguments);
int c2c(int count, char **arguments);
int compute_policy(int count, char **arguments);
int boost_slider(int count, char **arguments);
int gpm(int count, char **arguments);
int conf_compute(int count, char **arguments);
int pci(int count, char **arguments);
int power_profiles(int count, char **arguments);
int vgpu(int count, char **arguments);
int encoder_sessions(int count, char **arguments);
int capture_sessions(int count, char **arguments);

/* A command of its own; run NULL: it is refused. `since`: the first branch that has it, 0 for all. */
typedef struct {
    const char *title, *name, *words;
    int (*run)(int count, char **arguments);
    unsigned since;
} Command;
extern const Command COMMANDS[]; /* the last has no name */
int show_main_help(void);

/* All that is printed from now on goes to that file; 0, after words, when it cannot be written. NULL: nothing to do. */
int write_to(const char *path);

void pause_for(double seconds);

/* Words and code for what was asked wrongly. */
int misused(const char *message);

/* Options of a real one that do nothing here; the last has no name. The first of them that was given, NULL for none. */
typedef struct {
    const char *brief, *name;
} Option;
const char *refused_of(const Option *options, int count, char **arguments);

/* They are refused, so that nobody takes them for done. */
int not_emulated(const char *what);

/* Whether -h is among the arguments, and what it prints. */
int help_asked(int count, char **arguments);
int help(const char *text);

#endif
