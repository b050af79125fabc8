/* The physical limit: read lines, spawn the script, write its output back.
 *
 * Not an MCP server: it believes every message, looks for "id" and "method" as text, ignores arguments, and lists no
 * tools. What it does do, it does as a server must: up to 16 scripts at a time, each in a session of its own, answers
 * properly escaped.
 *
 * usage: floor PROJECT     where PROJECT/tools holds NAME.sh
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CEILING = 16, CHUNK = 65536, ID_BYTES = 64 };

extern char **environ;

struct call {
    char id[ID_BYTES];
    pid_t pid;
    int stdout_fd, is_cancelled;
    char *output;
    size_t length, capacity;
};

static const char *project;
static struct call calls[CEILING];
static int running;

/* Answers are collected in the buffer of stdout, and leave it when everything that has come in is dealt with. */
static void answer(const char *id, const char *result)
{
    printf("{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":", id);
    fputs(result, stdout);
    fputs("}\n", stdout);
}

/* The text of a JSON value after `key`: a string with its quotes, or a number. */
static int value_of(const char *line, const char *key, char *value, size_t capacity)
{
    const char *start = strstr(line, key);
    if (!start)
        return 0;
    start += strlen(key);
    size_t length = *start == '"' ? strcspn(start + 1, "\"") + 2 : strcspn(start, ",}");
    return length < capacity && snprintf(value, capacity, "%.*s", (int)length, start) > 0;
}

static void start_call(const char *id, const char *name)
{
    char path[4096];
    int ends[2];
    snprintf(path, sizeof path, "%s/tools/%s.sh", project, name);
    if (pipe2(ends, O_CLOEXEC))
        exit(1);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
    struct call *call = &calls[running++];
    *call = (struct call){.stdout_fd = ends[0]};
    strcpy(call->id, id);
    if (posix_spawn(&call->pid, path, &actions, &attributes, (char *[]){path, NULL}, environ))
        exit(1);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    close(ends[1]);
}

static void print_escaped(const char *bytes, size_t length)
{
    static char *escaped; /* kept: pages that have been touched once cost nothing the next time */
    static size_t capacity;
    if (length * 6 + 1 > capacity)
        escaped = realloc(escaped, capacity = length * 6 + 1);
    char *out = escaped;
    for (size_t i = 0; i < length; i++) {
        unsigned char byte = bytes[i];
        if (byte == '"' || byte == '\\' || byte == '\n') {
            *out++ = '\\';
            *out++ = byte == '\n' ? 'n' : byte;
        } else if (byte < 0x20) {
            out += sprintf(out, "\\u%04x", byte);
        } else {
            *out++ = byte;
        }
    }
    fwrite(escaped, 1, out - escaped, stdout);
}

static void finish(int index)
{
    struct call *call = &calls[index];
    close(call->stdout_fd);
    waitpid(call->pid, NULL, 0);
    if (!call->is_cancelled) {
        printf("{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"", call->id);
        print_escaped(call->output, call->length);
        fputs("\"}]}}\n", stdout);
    }
    free(call->output);
    calls[index] = calls[--running];
}

static void receive(const char *line)
{
    char method[64], id[ID_BYTES], name[128];
    if (!value_of(line, "\"method\":", method, sizeof method))
        return;
    if (!strcmp(method, "\"notifications/cancelled\"") && value_of(line, "\"requestId\":", id, sizeof id))
        for (int i = 0; i < running; i++)
            if (!strcmp(calls[i].id, id)) {
                calls[i].is_cancelled = 1;
                kill(-calls[i].pid, SIGKILL);
            }
    if (!value_of(line, "\"id\":", id, sizeof id))
        return;
    if (!strcmp(method, "\"tools/call\"") && value_of(line, "\"name\":\"", name, sizeof name)) {
        name[strcspn(name, "\"")] = 0;
        start_call(id, name);
    } else if (!strcmp(method, "\"initialize\"")) {
        answer(id, "{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"tools\":{}},"
                   "\"serverInfo\":{\"name\":\"floor-c\",\"version\":\"1\"}}");
    } else {
        answer(id, "{\"tools\":[]}");
    }
}

/* Take the lines that are complete, and leave the others: while as many scripts run as may run, they have to wait. */
static size_t receive_lines(char *input, size_t length)
{
    char *line = input, *end = input + length, *newline;
    while (running < CEILING && (newline = memchr(line, '\n', end - line))) {
        *newline = 0;
        receive(line);
        line = newline + 1;
    }
    memmove(input, line, end - line);
    return end - line;
}

static void read_output(int index)
{
    struct call *call = &calls[index];
    if (call->length + CHUNK > call->capacity)
        call->output = realloc(call->output, call->capacity = (call->length + CHUNK) * 2);
    ssize_t length = read(call->stdout_fd, call->output + call->length, CHUNK);
    if (length > 0)
        call->length += length;
    else
        finish(index);
}

int main(int argc, char **argv)
{
    static char input[CHUNK];
    size_t length = 0;
    if (argc != 2)
        return 2;
    project = argv[1];
    setvbuf(stdout, NULL, _IOFBF, 16 * CHUNK);
    for (;;) {
        struct pollfd ready[CEILING + 1] = {{.fd = length < CHUNK ? 0 : -1, .events = POLLIN}};
        int polled = running;
        for (int i = 0; i < polled; i++)
            ready[i + 1] = (struct pollfd){.fd = calls[i].stdout_fd, .events = POLLIN};
        poll(ready, polled + 1, -1);
        /* From the last to the first: `finish` moves the last call into the freed place. */
        for (int i = polled - 1; i >= 0; i--)
            if (ready[i + 1].revents)
                read_output(i);
        if (ready[0].revents) {
            ssize_t more = read(0, input + length, CHUNK - length);
            if (more <= 0)
                return 0;
            length += more;
        }
        length = receive_lines(input, length);
        fflush(stdout);
    }
}
