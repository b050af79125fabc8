/* The physical limit: read lines, spawn the script, write its output back.
 *
 * Not an MCP server: it believes every message, looks for "id" and "method" as text, and ignores arguments. What it does
 * do, it does as a server must: up to 16 scripts at a time, each in a session of its own, answers properly escaped.
 *
 * usage: floor PROJECT     where PROJECT/tools holds NAME.sh and maybe NAME.meta.json, one line without newline
 */
#define _GNU_SOURCE
#include <dirent.h>
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

struct text {
    char *bytes;
    size_t length, capacity;
};

struct call {
    char id[ID_BYTES];
    pid_t pid;
    int stdout_fd, is_cancelled;
    struct text output;
};

struct waiting {
    char id[ID_BYTES], name[128];
    struct waiting *next;
};

static const char *project;
static struct text answers, tools;
static struct call calls[CEILING];
static int running;
static struct waiting *first_waiting, **last_waiting = &first_waiting;

static void reserve(struct text *text, size_t more)
{
    if (text->length + more <= text->capacity)
        return;
    text->capacity = (text->length + more) * 2;
    text->bytes = realloc(text->bytes, text->capacity);
    if (!text->bytes)
        exit(1);
}

static void append(struct text *text, const char *bytes, size_t length)
{
    reserve(text, length);
    memcpy(text->bytes + text->length, bytes, length);
    text->length += length;
}

static void add(struct text *text, const char *string)
{
    append(text, string, strlen(string));
}

static void append_escaped(struct text *text, const unsigned char *bytes, size_t length)
{
    reserve(text, length * 6);
    char *out = text->bytes + text->length;
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
    text->length = out - text->bytes;
}

static void flush(void)
{
    size_t done = 0;
    while (done < answers.length) {
        ssize_t written = write(1, answers.bytes + done, answers.length - done);
        if (written <= 0)
            exit(1);
        done += written;
    }
    answers.length = 0;
}

static void answer(const char *id, const char *result)
{
    add(&answers, "{\"jsonrpc\":\"2.0\",\"id\":");
    add(&answers, id);
    add(&answers, ",\"result\":");
    add(&answers, result);
    add(&answers, "}\n");
}

/* The text of a JSON value after `key`: up to the closing quote of a string, or to the end of a number. */
static int value_of(const char *line, const char *key, char *value, size_t capacity)
{
    const char *start = strstr(line, key);
    if (!start)
        return 0;
    start += strlen(key);
    size_t length = *start == '"' ? strcspn(start + 1, "\"") + 2 : strcspn(start, ",}");
    if (length >= capacity)
        return 0;
    memcpy(value, start, length);
    value[length] = 0;
    return 1;
}

static void read_tools(void)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/tools", project);
    DIR *folder = opendir(path);
    if (!folder)
        exit(1);
    add(&tools, "{\"tools\":[");
    size_t start = tools.length;
    for (struct dirent *entry; (entry = readdir(folder));) {
        char *dot = strstr(entry->d_name, ".sh");
        if (!dot)
            continue;
        if (tools.length > start)
            add(&tools, ",");
        snprintf(path, sizeof path, "%s/tools/%.*s.meta.json", project, (int)(dot - entry->d_name), entry->d_name);
        int file = open(path, O_RDONLY);
        if (file < 0) {
            add(&tools, "{\"name\":\"");
            append(&tools, entry->d_name, dot - entry->d_name);
            add(&tools, "\",\"inputSchema\":{\"type\":\"object\"}}");
            continue;
        }
        reserve(&tools, CHUNK);
        ssize_t length = read(file, tools.bytes + tools.length, CHUNK);
        close(file);
        tools.length += length > 0 ? length : 0;
    }
    closedir(folder);
    add(&tools, "]}");
    append(&tools, "", 1);
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
    struct call *call = &calls[running];
    int failure = posix_spawn(&call->pid, path, &actions, &attributes, (char *[]){path, NULL}, environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    close(ends[1]);
    if (failure) {
        close(ends[0]);
        answer(id, "{\"content\":[],\"isError\":true}");
        return;
    }
    *call = (struct call){.pid = call->pid, .stdout_fd = ends[0]};
    strcpy(call->id, id);
    running++;
}

static void start_waiting(void)
{
    while (first_waiting && running < CEILING) {
        struct waiting *next = first_waiting;
        first_waiting = next->next;
        if (!first_waiting)
            last_waiting = &first_waiting;
        start_call(next->id, next->name);
        free(next);
    }
}

static void finish(int index)
{
    struct call *call = &calls[index];
    close(call->stdout_fd);
    waitpid(call->pid, NULL, 0);
    if (!call->is_cancelled) {
        add(&answers, "{\"jsonrpc\":\"2.0\",\"id\":");
        add(&answers, call->id);
        add(&answers, ",\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"");
        append_escaped(&answers, (unsigned char *)call->output.bytes, call->output.length);
        add(&answers, "\"}]}}\n");
    }
    free(call->output.bytes);
    calls[index] = calls[--running];
}

static void receive(const char *line)
{
    char method[64], id[ID_BYTES];
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
    if (!strcmp(method, "\"tools/call\"")) {
        struct waiting *call = calloc(1, sizeof *call);
        char name[128] = "";
        value_of(line, "\"name\":", name, sizeof name);
        strcpy(call->id, id);
        snprintf(call->name, sizeof call->name, "%.*s", (int)strcspn(name + 1, "\""), name + 1);
        *last_waiting = call;
        last_waiting = &call->next;
        start_waiting();
    } else if (!strcmp(method, "\"tools/list\"")) {
        if (!tools.length)
            read_tools();
        answer(id, tools.bytes);
    } else if (!strcmp(method, "\"initialize\"")) {
        answer(id, "{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"tools\":{}},"
                   "\"serverInfo\":{\"name\":\"floor-c\",\"version\":\"1\"}}");
    } else if (!strcmp(method, "\"server/discover\"")) {
        answer(id, "{\"resultType\":\"complete\",\"supportedVersions\":[\"2026-07-28\",\"2025-11-25\"],"
                   "\"capabilities\":{\"tools\":{}},\"ttlMs\":0,\"cacheScope\":\"private\"}");
    } else {
        answer(id, "{}");
    }
}

static void read_requests(struct text *input)
{
    reserve(input, CHUNK);
    ssize_t length = read(0, input->bytes + input->length, CHUNK - 1);
    if (length <= 0)
        exit(0);
    input->length += length;
    char *line = input->bytes, *end = input->bytes + input->length, *newline;
    while ((newline = memchr(line, '\n', end - line))) {
        *newline = 0;
        receive(line);
        line = newline + 1;
    }
    input->length = end - line;
    memmove(input->bytes, line, input->length);
}

static void read_output(int index)
{
    struct text *output = &calls[index].output;
    reserve(output, CHUNK);
    ssize_t length = read(calls[index].stdout_fd, output->bytes + output->length, CHUNK);
    if (length > 0)
        output->length += length;
    else
        finish(index);
}

int main(int argc, char **argv)
{
    struct text input = {0};
    if (argc != 2)
        return 2;
    project = argv[1];
    for (;;) {
        struct pollfd ready[CEILING + 1] = {{.fd = 0, .events = POLLIN}};
        int polled = running;
        for (int i = 0; i < polled; i++)
            ready[i + 1] = (struct pollfd){.fd = calls[i].stdout_fd, .events = POLLIN};
        poll(ready, polled + 1, -1);
        /* From the last to the first: `finish` moves the last call into the freed place. */
        for (int i = polled - 1; i >= 0; i--)
            if (ready[i + 1].revents)
                read_output(i);
        start_waiting();
        if (ready[0].revents)
            read_requests(&input);
        flush();
    }
}
