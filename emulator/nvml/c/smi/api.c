#define _GNU_SOURCE
#include "api.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#define LIBRARY "libnvidia-ml.so.1"
#ifdef __aarch64__
#define MACHINE "aarch64"
#else
#define MACHINE "x86_64"
#endif

Api api;
const DetailTable *detail_table;

int exit_code_of(Return result) {
    switch (result) {
    case OK: case INVALID_ARGUMENT: case NOT_SUPPORTED: case NO_PERMISSION: case NOT_FOUND: case DRIVER_NOT_LOADED:
    case LIBRARY_NOT_FOUND: case FUNCTION_NOT_FOUND: case GPU_IS_LOST:
        return (int)result;
    default:
        return 255;
    }
}

static void *open_in(const char *program, const char *folder) {
    char path[4096];
    const char *slash = strrchr(program, '/');
    if (slash == NULL) return NULL;
    int length = snprintf(path, sizeof path, "%.*s/%s" LIBRARY, (int)(slash - program), program, folder);
    return length > 0 && (size_t)length < sizeof path ? dlopen(path, RTLD_NOW) : NULL;
}

/* Beside the name by which the program was called (a link in a host's folder), then where the loader looks, then
 * beside the program itself. */
static void *find_library(void) {
    char self[4096] = {0};
    const char *called = (const char *)getauxval(AT_EXECFN);
    void *library = called ? open_in(called, "") : NULL;
    if (library == NULL && called) library = open_in(called, "../lib/");
    if (library == NULL && called) library = open_in(called, "../lib/" MACHINE "-linux-gnu/");
    if (library == NULL) library = dlopen(LIBRARY, RTLD_NOW);
    if (library == NULL && readlink("/proc/self/exe", self, sizeof self - 1) > 0) library = open_in(self, "");
    return library;
}

static void fail(int code, const char *message) {
    puts(message);
    exit(code);
}

/* POSIX says that a symbol of a function fits a function's pointer. */
static void take(void *library, const char *name, void *member) {
    void *symbol = dlsym(library, name);
    if (symbol == NULL) {
        printf("Failed to find %s in " LIBRARY ": Function Not Found\n", name);
        exit(FUNCTION_NOT_FOUND);
    }
    memcpy(member, &symbol, sizeof symbol);
}

void api_open(unsigned flags) {
    void *library = find_library();
    if (library == NULL)
        fail(LIBRARY_NOT_FOUND,
             "NVIDIA-SMI couldn't find the " LIBRARY " library in your system: it is neither beside this program "
             "nor in LD_LIBRARY_PATH.");
#define TAKE(name, arguments) take(library, #name, &api.name);
    CALLS(TAKE)
    take(library, "nvmlErrorString", &api.nvmlErrorString);
    const void *table = NULL;
    if (api.nvmlInternalGetExportTable(&table, DETAIL_TABLE_ID) == OK) detail_table = table;
    Return result = api.nvmlInitWithFlags(flags);
    if (result == DRIVER_NOT_LOADED)
        fail(DRIVER_NOT_LOADED,
             "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the host's "
             "state file is there (nvml.state beside the library, or MEWS_NVML_STATE).\n");
    if (result != OK) {
        printf("Failed to initialize NVML: %s\n", api.nvmlErrorString(result));
        exit(exit_code_of(result));
    }
}

static int symbol(void *library, const char *name, void *member) {
    void *found = dlsym(library, name);
    memcpy(member, &found, sizeof found);
    return found != NULL;
}

int api_peek(char *version, unsigned length) {
    enum { NO_ATTACH = 2 };
    Return (*begin)(unsigned), (*tell)(char *, unsigned), (*end)(void);
    void *library = find_library();
    if (library == NULL || !symbol(library, "nvmlInitWithFlags", &begin) || !symbol(library, "nvmlShutdown", &end)) return 0;
    if (!symbol(library, "nvmlSystemGetDriverVersion", &tell) || begin(NO_ATTACH) != OK) return 0;
    int told = tell(version, length) == OK;
    end();
    return told;
}
