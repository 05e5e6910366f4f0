/* -h: the options in the order and the sections of real ones, in our words. Sources of what a branch has: -h of drivers 530,
 * 550, 580 and 595 as public captures quote it; where an option appears between two of them, the later one counts. */
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "driver.h"

enum { NEWEST = 9999, NAME_WIDTH = 22, PLAIN = 0, NO_COMMA = 1 };

/* A row without a name is a line of its own. `since`: the first branch that has it, 0 for all; `until`: the last. */
typedef struct {
    const char *brief, *name, *words;
    unsigned since, until;
    int form;
} Row;

#define LINE(words) {NULL, NULL, words, 0, 0, PLAIN}
#define OPTION(brief, name, words) {brief, name, words, 0, 0, PLAIN}
#define BARE(brief, name, words) {brief, name, words, 0, 0, NO_COMMA}

static const Row OPTIONS[] = {
    OPTION("-h", "--help", "Show this text."),
    {NULL, "--version", "Show the versions of program, library, driver and CUDA.", 535, 0, PLAIN},
    LINE("\n  LIST OPTIONS:\n"),
    OPTION("-L", "--list-gpus", "List the GPUs."),
    OPTION("-B", "--list-excluded-gpus", "List the GPUs that the driver leaves out."),
    LINE("\n  SUMMARY OPTIONS:\n"),
    LINE("    <no arguments>              Show a table of GPUs and processes."),
    {"-col", "--columns", "Show the table in columns. Not emulated.", 580, 0, PLAIN},
    LINE("\n    [plus any of]\n"),
    OPTION("-i", "--id=", "Of these GPUs: index, UUID, serial or PCI bus id, several with commas."),
    OPTION("-f", "--filename=", "Write to this file."),
    OPTION("-l", "--loop=", "Again and again, after so many seconds."),
    LINE("\n  QUERY OPTIONS:\n"),
    OPTION("-q", "--query", "Show all of the GPUs, or of units."),
    LINE("\n    [plus any of]\n"),
    OPTION("-u", "--unit", "Of units, of which there are none."),
    OPTION("-i", "--id=", "Of these GPUs."),
    OPTION("-f", "--filename=", "Write to this file."),
    OPTION("-x", "--xml-format", "As XML."),
    OPTION(NULL, "--dtd", "With the document type in the XML."),
    OPTION("-d", "--display=", "Show these parts alone, several with commas: MEMORY, UTILIZATION,\n"
           "                                ECC, TEMPERATURE, POWER, CLOCK, COMPUTE, PIDS, PERFORMANCE,\n"
           "                                SUPPORTED_CLOCKS, PAGE_RETIREMENT, ACCOUNTING, ENCODER_STATS,\n"
           "                                SUPPORTED_GPU_TARGET_TEMP, VOLTAGE, FBC_STATS, ROW_REMAPPER, …"),
    OPTION("-l", "--loop=", "Again and again, after so many seconds."),
    OPTION("-lms", "--loop-ms=", "After so many milliseconds."),
    LINE("\n  SELECTIVE QUERY OPTIONS:\n"),
    LINE("    [one of]\n"),
    OPTION("", "--query-gpu", "Fields of GPUs. --help-query-gpu lists them."),
    OPTION("", "--query-supported-clocks", "Clocks that can be set. --help-query-supported-clocks"),
    OPTION("", "--query-compute-apps", "Processes that compute. --help-query-compute-apps"),
    OPTION("", "--query-accounted-apps", "Processes that were accounted. --help-query-accounted-apps"),
    OPTION("", "--query-retired-pages", "Pages of memory that are given up. --help-query-retired-pages"),
    OPTION("", "--query-remapped-rows", "Rows of memory that are remapped. --help-query-remapped-rows"),
    LINE("\n    [mandatory]\n"),
    OPTION("", "--format=", "csv; after commas noheader, nounits."),
    LINE("\n    [plus any of]\n"),
    OPTION("-i", "--id=", "Of these GPUs."),
    OPTION("-f", "--filename=", "Write to this file."),
    OPTION("-l", "--loop=", "Again and again, after so many seconds."),
    OPTION("-lms", "--loop-ms=", "After so many milliseconds."),
    LINE("\n  DEVICE MODIFICATION OPTIONS:\n"),
    LINE("    [any one of]\n"),
    OPTION("-pm", "--persistence-mode=", "Set persistence mode: 0/DISABLED, 1/ENABLED"),
    OPTION("-e", "--ecc-config=", "Set ECC from the next reset or reboot on: 0/DISABLED, 1/ENABLED"),
    OPTION("-p", "--reset-ecc-errors=", "Clear ECC errors: 0/VOLATILE of this driver, 1/AGGREGATE of the board's life"),
    OPTION("-c", "--compute-mode=", "Set the compute mode: 0/DEFAULT, 2/PROHIBITED, 3/EXCLUSIVE_PROCESS"),
    OPTION(NULL, "--gom=", "Set the operation mode, which no emulated GPU has: 0/ALL_ON, 1/COMPUTE, 2/LOW_DP"),
    BARE("-r", "--gpu-reset", "Reset GPUs that nobody has open."),
    BARE("-vm", "--virt-mode=", "Set the virtualization mode, which no emulated GPU has: 3/VGPU, 4/VSGA"),
    BARE("-lgc", "--lock-gpu-clocks=", "Lock the clocks of the multiprocessors: MHz as MIN,MAX or one number"),
    BARE("-m", "--mode=", "How near locked clocks are kept, which changes nothing here: 0, 1"),
    BARE("-rgc", "--reset-gpu-clocks", "Unlock them."),
    BARE("-lmc", "--lock-memory-clocks=", "Lock the memory's clocks: MHz as MIN,MAX or one number"),
    BARE("-rmc", "--reset-memory-clocks", "Unlock them."),
    BARE("-lmcd", "--lock-memory-clocks-deferred=", "Lock them from the next load of the driver on; Hopper alone."),
    BARE("-rmcd", "--reset-memory-clocks-deferred", "Do not."),
    BARE("-ac", "--applications-clocks=", "Set the clocks of applications: MHz as MEMORY,GRAPHICS"),
    BARE("-rac", "--reset-applications-clocks", "Set their default."),
    BARE("-pl", "--power-limit=", "Set the power limit in watts."),
    {"-sc", "--scope=", "Of what: 0/GPU, 1/TOTAL_MODULE", 545, 0, NO_COMMA},
    BARE("-cc", "--cuda-clocks=", "Set CUDA's clocks, which no emulated GPU has: 0/RESTORE_DEFAULT, 1/OVERRIDE"),
    BARE("-am", "--accounting-mode=", "Keep accounts of processes: 0/DISABLED, 1/ENABLED"),
    BARE("-caa", "--clear-accounted-apps", "Forget those kept."),
    OPTION(NULL, "--auto-boost-default=", "A setting that no emulated GPU has: 0/DISABLED, 1/ENABLED"),
    OPTION(NULL, "--auto-boost-permission=", "Likewise: 0/UNRESTRICTED, 1/RESTRICTED"),
    BARE("-mig", "--multi-instance-gpu=", "Set MIG mode: 0/DISABLED, 1/ENABLED"),
    BARE("-gtt", "--gpu-target-temp=", "Set the target temperature in degrees Celsius."),
    {"-den", "--dram-encryption=", "Encrypt memory, which no emulated GPU can: 0/DISABLED, 1/ENABLED", 570, 0, PLAIN},
    {NULL, "--set-hostname=", "Give a GPU a host name, which no emulated GPU has.", 580, 0, PLAIN},
    {NULL, "--get-hostname", "Show it.", 580, 0, PLAIN},
    LINE("\n   [plus optional]\n"),
    OPTION("-i", "--id=", "Of these GPUs."),
    OPTION("-eow", "--error-on-warning", "Fail if a GPU does not support what is set."),
    LINE("\n  UNIT MODIFICATION OPTIONS:\n"),
    OPTION("-t", "--toggle-led=", "Set the light of a unit, of which there are none: 0/GREEN, 1/AMBER"),
    LINE("\n   [plus optional]\n"),
    OPTION("-i", "--id=", "Of this unit."),
    LINE("\n  SHOW DTD OPTIONS:\n"),
    OPTION(NULL, "--dtd", "Show the document type of the XML."),
    LINE("\n     [plus optional]\n"),
    OPTION("-f", "--filename=", "Write to this file."),
    OPTION("-u", "--unit", "That of units."),
    LINE(""),
    OPTION("", "--debug=", "Write what NVIDIA's support reads. Not emulated."),
};

static int is_there(unsigned since, unsigned until, unsigned branch) {
    return since <= branch && (until == 0 || branch <= until);
}

static void show_row(const Row *row) {
    char brief[16] = "";
    if (row->name == NULL) {
        puts(row->words);
        return;
    }
    if (row->brief != NULL && *row->brief) snprintf(brief, sizeof brief, "%s%s", row->brief, row->form == PLAIN ? "," : "");
    int without = row->brief != NULL && *row->brief == 0;
    if (without) printf("    %-*s", NAME_WIDTH + 6, row->name);
    else printf("    %-6s%-*s", brief, NAME_WIDTH, row->name);
    if (strlen(row->name) >= (size_t)(without ? NAME_WIDTH + 6 : NAME_WIDTH)) printf("\n%*s", 4 + 6 + NAME_WIDTH, "");
    puts(row->words);
}

int show_main_help(void) {
    unsigned branch = driver_peeked();
    if (branch == 0) branch = NEWEST;
    puts("NVIDIA System Management Interface, emulated by Mews\n");
    puts("nvidia-smi [OPTION1 [ARG1]] [OPTION2 [ARG2]] ...\n");
    for (size_t i = 0; i < sizeof OPTIONS / sizeof *OPTIONS; i++)
        if (is_there(OPTIONS[i].since, OPTIONS[i].until, branch)) show_row(&OPTIONS[i]);
    for (size_t i = 0; COMMANDS[i].name; i++) {
        if (!is_there(COMMANDS[i].since, 0, branch)) continue;
        if (COMMANDS[i].title) printf("\n %s:\n", COMMANDS[i].title);
        printf("    %-27s %s%s\n", COMMANDS[i].name, COMMANDS[i].words, COMMANDS[i].run ? "" : " Not emulated.");
        if (COMMANDS[i].run) printf("%32s\"nvidia-smi %s -h\" says more.\n", "", COMMANDS[i].name);
    }
    puts("\nOptions and commands that are not emulated change nothing, and exit with code 3.");
    return 0;
}
