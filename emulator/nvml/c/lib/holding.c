#include "holding.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { ANSWER_WAIT_MS = 2000, FOR_EVER = -1 };

static int control_fd = -1, host_fd = -1;
static char *announced; /* the last hold line, so that it is said once */

static int open_device(const char *dev_root, const char *name) {
    char path[640];
    if (*dev_root == 0) return -1;
    int length = snprintf(path, sizeof path, "%s/%s", dev_root, name);
    if (length < 0 || (size_t)length >= sizeof path) return -1;
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    return fd >= 0 ? fd : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

static void handle_open(const char *dev_root, struct Handle *handle) {
    char name[32];
    if (handle->fd >= 0) return;
    snprintf(name, sizeof name, "nvidia%u", handle->minor);
    handle->fd = open_device(dev_root, name);
}

static void handle_close(struct Handle *handle) {
    if (handle->fd >= 0) close(handle->fd);
    handle->fd = -1;
}

/* Socket addresses are short; a long path is reached through its folder's descriptor. */
static int connect_host(void) {
    char path[4096];
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int folder = -1;
    if (session_socket(path, sizeof path) == NULL) return -1;
    if (strlen(path) < sizeof address.sun_path) {
        strcpy(address.sun_path, path);
    } else {
        char *slash = strrchr(path, '/');
        *slash = 0;
        folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (folder < 0) return -1;
        int length =
            snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%.64s", folder, slash + 1);
        if (length < 0) address.sun_path[0] = 0;
    }
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
        close(fd);
        fd = -1;
    }
    if (folder >= 0) close(folder);
    return fd;
}

static int send_all(int fd, const char *bytes, size_t length) {
    while (length > 0) {
        ssize_t sent = send(fd, bytes, length, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent <= 0) return 0;
        bytes += sent;
        length -= (size_t)sent;
    }
    return 1;
}

/* One answer line, byte for byte; its code, or -1. `text`, where it is not NULL, gets what follows. */
static long read_answer(int fd, int wait_ms, char *text, size_t size) {
    char line[1024];
    size_t length = 0;
    while (length + 1 < sizeof line) {
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        int count = poll(&ready, 1, wait_ms);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0 || recv(fd, line + length, 1, 0) != 1) return -1;
        if (line[length++] == '\n') break;
    }
    line[length] = 0;
    line[strcspn(line, "\n")] = 0;
    char *space = strchr(line, ' ');
    if (space != NULL) *space++ = 0;
    if (text != NULL) snprintf(text, size, "%s", space ? space : "");
    long long code;
    return number_parse(line, &code) ? (long)code : -1;
}

Return host_request(const char *words) { return host_question(words, NULL, 0); }

Return host_question(const char *words, char *answer, size_t size) {
    char line[256];
    int fd = connect_host();
    if (fd < 0) return NOT_SUPPORTED; /* nobody plays the driver here */
    int length = snprintf(line, sizeof line, "mews-nvml 1 %s\n", words);
    long code = send_all(fd, line, (size_t)length) ? read_answer(fd, FOR_EVER, answer, size) : -1;
    close(fd);
    return code < 0 ? UNKNOWN : (Return)code;
}

static char *hold_line(struct Handle **handles, size_t count) {
    char *line = malloc(64 + count * (BUS_ID_SIZE + 1));
    if (line == NULL) return NULL;
    int length = sprintf(line, "mews-nvml 1 hold %u", (unsigned)getpid());
    for (size_t i = 0; i < count; i++)
        if (handles[i]->held) length += sprintf(line + length, " %s", handles[i]->bus_id);
    strcpy(line + length, "\n");
    return line;
}

/* Whether the host has closed the connection: it never sends unasked. */
static int host_gone(void) {
    char byte;
    ssize_t got = recv(host_fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
}

static void announce(struct Handle **handles, size_t count) {
    char *line = hold_line(handles, count);
    if (line == NULL) return;
    if (host_fd >= 0 && host_gone()) {
        close(host_fd);
        host_fd = -1;
    }
    if (announced != NULL && host_fd >= 0 && strcmp(line, announced) == 0) {
        free(line);
        return;
    }
    if (host_fd < 0) host_fd = connect_host();
    if (host_fd >= 0 && (!send_all(host_fd, line, strlen(line)) || read_answer(host_fd, ANSWER_WAIT_MS, NULL, 0) < 0)) {
        close(host_fd); /* the host is gone, or not one that answers */
        host_fd = -1;
    }
    free(announced);
    announced = line;
}

void holding_begin(const char *dev_root) {
    if (control_fd < 0) control_fd = open_device(dev_root, "nvidiactl");
}

void holding_update(const char *dev_root, struct Handle **handles, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (handles[i]->held)
            handle_open(dev_root, handles[i]);
        else
            handle_close(handles[i]);
    }
    announce(handles, count);
}

void holding_end(struct Handle **handles, size_t count) {
    static const char RELEASE[] = "mews-nvml 1 release\n";
    for (size_t i = 0; i < count; i++) handle_close(handles[i]);
    if (control_fd >= 0) close(control_fd);
    if (host_fd >= 0) {
        if (send_all(host_fd, RELEASE, sizeof RELEASE - 1)) read_answer(host_fd, ANSWER_WAIT_MS, NULL, 0);
        close(host_fd);
    }
    control_fd = host_fd = -1;
    free(announced);
    announced = NULL;
}
