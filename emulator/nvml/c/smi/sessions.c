/* encodersessions and fbcsessions: a line for each session of each GPU, again every second. Forms: outputs of driver 530 on a
 * T4. No emulated program encodes or captures frames. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "choices.h"
#include "commands.h"
#include "gpus.h"

static const Choice NO_CHOICE[] = {{NULL, NULL, 0}};

typedef struct {
    const char *head, *nothing; /* of a GPU without sessions, behind its index */
    int captures;
} Kind;

static const Kind ENCODER = {
    "# GPU Session    Process   Codec       H       V Average     Average\n"
    "# Idx      Id         Id    Type     Res     Res     FPS Latency(us)",
    "       -          -       -       -       -       -           -", 0};
static const Kind CAPTURE = {
    "# GPU   Session   Process   Display   Session Diff. Map  Class. Map       Capture   Max H   Max V     H     V"
    "   Average       Average\n"
    "# Idx        Id        Id   Ordinal      Type     State       State          Mode     Res     Res   Res   Res"
    "       FPS   Latency(us)",
    "         -         -         -         -         -           -             -       -       -     -     -"
    "         -             -", 1};

static void lines(const Kind *kind, const Selection *selection) {
    for (unsigned i = 0; i < selection->count; i++) {
        unsigned count = 0, index = 0;
        api.nvmlDeviceGetIndex(selection->devices[i], &index);
        Return result = kind->captures ? api.nvmlDeviceGetFBCSessions(selection->devices[i], &count, NULL)
                                       : api.nvmlDeviceGetEncoderSessions(selection->devices[i], &count, NULL);
        if (result == OK && count == 0) printf("%5u%s\n", index, kind->nothing);
    }
}

static int run(const Kind *kind, const char *name, int count, char **arguments) {
    Asked asked;
    int code;
    unsigned turns = 0, seconds = 1;
    char usage[96];
    snprintf(usage, sizeof usage, "Usage: %s [-i ID] [-d SECONDS] [-c COUNT].", name);
    if (help_asked(count, arguments)) {
        printf("nvidia-smi %s [-i ID] [-d SECONDS] [-c COUNT]   show its sessions every second\n", name);
        return 0;
    }
    if (!asked_of(count, arguments, NO_CHOICE, 1, &asked, &code)) return misused(usage);
    if (asked.count && (!number_upto(asked.count, 1000000, &turns) || turns == 0)) return misused(usage);
    if (asked.delay && (!number_upto(asked.delay, 1000000, &seconds) || seconds == 0)) return misused(usage);
    api_open(0);
    puts(kind->head);
    for (unsigned turn = 0; asked.count == NULL || turn < turns; turn++) {
        if (turn) pause_for(seconds);
        Selection selection = select_gpus(asked.ids, "No devices were found");
        lines(kind, &selection);
        fflush(stdout);
        free(selection.devices);
    }
    return 0;
}

int encoder_sessions(int count, char **arguments) { return run(&ENCODER, "encodersessions", count, arguments); }
int capture_sessions(int count, char **arguments) { return run(&CAPTURE, "fbcsessions", count, arguments); }
