/* Send POST requests over kept-open connections, each as soon as the answer before it is complete, and take the time.
 *
 * Not an HTTP client: it sends the bytes it is given, and knows of answers only what it takes to find their end: a
 * Content-Length, chunks, or the end of the connection. Every answer is checked: status 200, the id that was sent, the
 * text that was asked for, and no error. It shares the processors with the server, so it does no more than that.
 *
 * usage: load PORT CONNECTIONS SECS WANTED <REQUESTS
 *
 * REQUESTS is one or more requests, each followed by a zero byte; connection n sends the nth of them, and begins anew
 * when there are fewer. The digits behind "id": are replaced by those of a number that is never used twice. WANTED is
 * text that each answer has to contain.
 *
 * As many answers as there are connections are not counted, nor those of the first second of a slow server. SECS later no
 * more requests are sent, and once the last is answered, one line of JSON is printed. Nothing is left for the server to
 * do then, which would slow down who is measured next. If something is wrong, it is said on stderr, and the status is 1.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { CHUNK = 65536, ID_DIGITS = 10, MAX_LATENCIES = 1 << 22, PATIENCE_MS = 20000, LONGEST_SECS = 60 };

#define ID_MARK "\"id\":"
#define FIRST_ID 1000000000u
#define WARM_UP_NS 1000000000ull

struct text {
    char *bytes;
    size_t length, capacity;
};

enum framing { BY_LENGTH, BY_CHUNKS, BY_CLOSE };

struct connection {
    int socket, is_closing;
    char *request, *id;
    size_t request_length;
    struct text raw, body;   /* what was read; what is left of it without the framing of chunks */
    size_t head, next_chunk; /* where the body begins, 0 before it is known; where the next chunk begins */
    size_t body_length;
    enum framing framing;
    uint64_t sent_at_ns;
};

static uint16_t port;
static unsigned next_id = FIRST_ID;
static const char *wanted;
static int poll_fd;
static uint64_t *latencies_ns;
static size_t answered, counted, outstanding, warm_up, reconnects;
static uint64_t started_at_ns, counting_since_ns, load_ns, received_bytes;

static void __attribute__((noreturn, format(printf, 1, 2))) fail(const char *format, ...)
{
    va_list values;
    va_start(values, format);
    vfprintf(stderr, format, values);
    va_end(values);
    fputc('\n', stderr);
    exit(1);
}

static uint64_t now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + time.tv_nsec;
}

static void reserve(struct text *text, size_t more)
{
    if (text->length + more <= text->capacity)
        return;
    text->capacity = (text->length + more) * 2;
    text->bytes = realloc(text->bytes, text->capacity);
    if (!text->bytes)
        fail("no memory");
}

static void append(struct text *text, const char *bytes, size_t length)
{
    reserve(text, length);
    memcpy(text->bytes + text->length, bytes, length);
    text->length += length;
}

static void open_socket(struct connection *connection)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int one = 1;
    connection->socket = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connection->socket < 0 || connect(connection->socket, (struct sockaddr *)&address, sizeof address))
        fail("cannot connect: %s", strerror(errno));
    setsockopt(connection->socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};
    if (epoll_ctl(poll_fd, EPOLL_CTL_ADD, connection->socket, &event))
        fail("cannot poll: %s", strerror(errno));
}

static void send_request(struct connection *connection)
{
    char digits[ID_DIGITS + 1];
    snprintf(digits, sizeof digits, "%010u", next_id++);
    memcpy(connection->id, digits, ID_DIGITS);
    connection->raw.length = connection->body.length = connection->head = 0;
    outstanding++;
    connection->sent_at_ns = now_ns();
    /* One small request on an empty connection: the kernel takes it at once and whole. */
    ssize_t sent = send(connection->socket, connection->request, connection->request_length, MSG_NOSIGNAL);
    if (sent != (ssize_t)connection->request_length)
        fail("the server does not take a request: %s", sent < 0 ? strerror(errno) : "only a part of it");
}

/* The value of a header, or NULL. The head ends with a zero byte. */
static const char *header(const char *head, const char *name)
{
    size_t length = strlen(name);
    for (const char *line = strstr(head, "\r\n"); line; line = strstr(line, "\r\n")) {
        line += 2;
        if (!strncasecmp(line, name, length) && line[length] == ':')
            return line + length + 1 + strspn(line + length + 1, " \t");
    }
    return NULL;
}

static void read_head(struct connection *connection)
{
    struct text *raw = &connection->raw;
    char *end = memmem(raw->bytes, raw->length, "\r\n\r\n", 4);
    if (!end)
        return;
    end[2] = 0;
    connection->head = connection->next_chunk = end + 4 - raw->bytes;
    if (strncmp(raw->bytes, "HTTP/1.1 200", 12))
        fail("status of an answer: %.40s; body: %.300s", raw->bytes, end + 4);
    const char *length = header(raw->bytes, "Content-Length"), *coding = header(raw->bytes, "Transfer-Encoding");
    const char *persistence = header(raw->bytes, "Connection");
    connection->framing = coding && !strncasecmp(coding, "chunked", 7) ? BY_CHUNKS : length ? BY_LENGTH : BY_CLOSE;
    connection->body_length = connection->framing == BY_LENGTH ? strtoull(length, NULL, 10) : 0;
    connection->is_closing = connection->framing == BY_CLOSE || (persistence && !strncasecmp(persistence, "close", 5));
}

/* Take the chunks that are complete; 1 when the last of them was among these. */
static int read_chunks(struct connection *connection)
{
    struct text *raw = &connection->raw;
    for (;;) {
        char *start = raw->bytes + connection->next_chunk, *end = raw->bytes + raw->length;
        char *line_end = memmem(start, end - start, "\r\n", 2);
        if (!line_end)
            return 0;
        size_t size = strtoull(start, NULL, 16);
        if ((size_t)(end - line_end) < 2 + size + 2)
            return 0;
        append(&connection->body, line_end + 2, size);
        connection->next_chunk = line_end + 2 + size + 2 - raw->bytes;
        if (!size)
            return 1;
    }
}

static int is_complete(struct connection *connection, int is_at_end)
{
    struct text *raw = &connection->raw;
    if (!connection->head)
        read_head(connection);
    if (!connection->head)
        return 0;
    if (connection->framing == BY_CHUNKS)
        return read_chunks(connection);
    int has_all = connection->framing == BY_CLOSE ? is_at_end : raw->length - connection->head >= connection->body_length;
    if (has_all)
        append(&connection->body, raw->bytes + connection->head, raw->length - connection->head);
    return has_all;
}

static void check(struct connection *connection)
{
    const char *body = connection->body.bytes;
    size_t length = connection->body.length;
    const char *problem = !memmem(body, length, connection->id, ID_DIGITS)   ? "not the id of the request"
                          : !memmem(body, length, wanted, strlen(wanted))    ? "not what was asked for"
                          : memmem(body, length, "\"error\":", 8)            ? "an error"
                          : memmem(body, length, "\"isError\":true", 14)     ? "a failed call"
                                                                             : NULL;
    if (problem)
        fail("%s: %.*s", problem, (int)(length < 300 ? length : 300), body);
}

static void count(struct connection *connection, uint64_t now)
{
    received_bytes += connection->body.length;
    if (answered++ < warm_up && now - started_at_ns < WARM_UP_NS) {
        counting_since_ns = now;
        return;
    }
    if (counted < MAX_LATENCIES)
        latencies_ns[counted++] = now - connection->sent_at_ns;
}

static void receive(struct connection *connection)
{
    struct text *raw = &connection->raw;
    reserve(raw, CHUNK);
    ssize_t length = recv(connection->socket, raw->bytes + raw->length, CHUNK, 0);
    if (length < 0)
        fail("the connection broke: %s", strerror(errno));
    raw->length += length;
    if (!is_complete(connection, !length)) {
        if (!length)
            fail("the server closed the connection within an answer, after %zu bytes", raw->length);
        return;
    }
    uint64_t now = now_ns();
    check(connection);
    count(connection, now);
    outstanding--;
    int is_over = counted && now - counting_since_ns >= load_ns;
    if (is_over || connection->is_closing)
        close(connection->socket);
    if (is_over)
        return;
    if (connection->is_closing) {
        reconnects++;
        open_socket(connection);
    }
    send_request(connection);
}

static int by_size(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

static double quantile_ms(double share)
{
    size_t place = share * counted;
    return latencies_ns[place < counted ? place : counted - 1] / 1e6;
}

static void report(double secs)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    double cpu_secs = usage.ru_utime.tv_sec + usage.ru_stime.tv_sec;
    cpu_secs += (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
    qsort(latencies_ns, counted, sizeof *latencies_ns, by_size);
    printf("{\"answered\":%zu,\"counted\":%zu,\"secs\":%.6f,\"p50_ms\":%.4f,\"p99_ms\":%.4f,\"cpu_secs\":%.4f,\"reconnects\":%zu,"
           "\"bytes\":%llu}\n",
           answered, counted, secs, quantile_ms(0.5), quantile_ms(0.99), cpu_secs, reconnects,
           (unsigned long long)(received_bytes / answered));
}

static void read_requests(struct connection *connections, int connection_count)
{
    struct text input = {0};
    for (ssize_t length = 1; length > 0; input.length += length) {
        reserve(&input, CHUNK);
        length = read(0, input.bytes + input.length, CHUNK);
        if (length < 0)
            fail("cannot read the requests: %s", strerror(errno));
    }
    char *request = input.bytes, *end = input.bytes + input.length;
    for (int i = 0; i < connection_count; i++) {
        if (request == end)
            request = input.bytes;
        size_t length = strnlen(request, end - request);
        if (request + length == end)
            fail("no request, or one that does not end with a zero byte");
        connections[i].request = strdup(request);
        connections[i].request_length = length;
        connections[i].id = strstr(connections[i].request, ID_MARK);
        if (!connections[i].id || strspn(connections[i].id + strlen(ID_MARK), "0123456789") != ID_DIGITS)
            fail("a request without an id of %d digits", ID_DIGITS);
        connections[i].id += strlen(ID_MARK);
        request += length + 1;
    }
    free(input.bytes);
}

int main(int argc, char **argv)
{
    if (argc != 5)
        fail("usage: load PORT CONNECTIONS SECS WANTED <REQUESTS");
    int connection_count = atoi(argv[2]);
    double secs = atof(argv[3]);
    port = atoi(argv[1]);
    wanted = argv[4];
    if (connection_count < 1 || secs <= 0 || secs > LONGEST_SECS)
        fail("at least one connection, and at most %d seconds", LONGEST_SECS);
    warm_up = connection_count;
    load_ns = secs * 1e9;
    latencies_ns = malloc(MAX_LATENCIES * sizeof *latencies_ns);
    struct connection *connections = calloc(connection_count, sizeof *connections);
    poll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (!latencies_ns || !connections || poll_fd < 0)
        fail("no memory");
    read_requests(connections, connection_count);
    for (int i = 0; i < connection_count; i++)
        open_socket(&connections[i]);
    started_at_ns = counting_since_ns = now_ns();
    for (int i = 0; i < connection_count; i++)
        send_request(&connections[i]);
    struct epoll_event events[64];
    while (outstanding) {
        int ready = epoll_wait(poll_fd, events, 64, PATIENCE_MS);
        if (ready < 0 && errno != EINTR)
            fail("cannot wait: %s", strerror(errno));
        if (ready == 0)
            fail("no answer within %d s", PATIENCE_MS / 1000);
        for (int i = 0; i < ready; i++)
            receive(events[i].data.ptr);
        if (now_ns() - started_at_ns > LONGEST_SECS * 1000000000ull)
            fail("only %zu answers within %d s", answered, LONGEST_SECS);
    }
    report((now_ns() - counting_since_ns) / 1e9);
    return 0;
}
