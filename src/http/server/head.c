/* SPDX-License-Identifier: MIT */
#include "http/server/head.h"

#include <string.h>
#include <strings.h>

static size_t
n_empty_lines(const char *data, size_t n)
{
    size_t i = 0;

    while (i < n && (data[i] == '\r' || data[i] == '\n'))
        i++;
    return i;
}

size_t
cpprof__http_head_length(const char *data, size_t n, size_t *seen)
{
    size_t first = n_empty_lines(data, n);
    size_t i = *seen > first ? *seen : first;

    *seen = n;
    for (; i < n; i++) {
        size_t end = i;

        if (data[i] != '\n')
            continue;
        if (end > first && data[end - 1] == '\r')
            end--;
        if (end > first && data[end - 1] == '\n')
            return i + 1;
    }
    return 0;
}

/* The next line without its end, terminated; NULL after the last. */
static char *
next_line(char **at, char *end)
{
    char *line = *at, *stop = memchr(line, '\n', (size_t)(end - line));

    if (!stop)
        return NULL;
    *at = stop + 1;
    if (stop > line && stop[-1] == '\r')
        stop--;
    *stop = 0;
    return line;
}

/* RFC 9110, 5.6.2 */
static bool
is_token(const char *text)
{
    static const char marks[] = "!#$%&'*+-.^_`|~";
    const char *p = text;

    for (; *p; p++)
        if (!((*p >= '0' && *p <= '9') ||
              ((*p | 32) >= 'a' && (*p | 32) <= 'z') || strchr(marks, *p)))
            return false;
    return p > text;
}

static int
hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 32;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* In place. A NUL would end the text for us and not for others. */
static bool
decode_path(char *path)
{
    char *to = path;

    for (; *path; path++, to++) {
        int high, low;

        *to = *path;
        if (*path != '%')
            continue;
        high = hex_digit(path[1]);
        low = high < 0 ? -1 : hex_digit(path[2]);
        if (low < 0 || !(high | low))
            return false;
        *to = (char)(high << 4 | low);
        path += 2;
    }
    *to = 0;
    return true;
}

/* "http://host/path" names the host itself, and wins over the header. */
static char *
skip_authority(char *target, struct cpprof__http_head *head)
{
    char *path;

    if (strncasecmp(target, "http://", 7))
        return target;
    path = target + 7 + strcspn(target + 7, "/?");
    /* Room for a terminator: the text moves over the slashes. */
    memmove(target, target + 7, (size_t)(path - target - 7));
    path[-7] = 0;
    head->host = target;
    return path;
}

static int
parse_target(char *target, struct cpprof__http_head *head, const char **why)
{
    char *query;

    *why = "malformed target";
    target = skip_authority(target, head);
    query = strchr(target, '?');
    if (query) {
        *query = 0;
        head->query = query + 1;
    }
    head->path = target;
    if (head->host && !*target)
        head->path = "/";
    else if (*target != '/' && strcmp(target, "*"))
        return 400;
    return decode_path(target) ? 0 : 400;
}

static int
parse_version(const char *version, struct cpprof__http_head *head,
              const char **why)
{
    *why = "malformed HTTP version";
    if (strncmp(version, "HTTP/", 5) || version[5] < '0' || version[5] > '9' ||
        version[6] != '.' || version[7] < '0' || version[7] > '9' || version[8])
        return 400;
    *why = "unsupported protocol version";
    if (version[5] != '1')
        return 505;
    head->has_version_0 = version[7] == '0';
    head->keeps_alive = !head->has_version_0;
    return 0;
}

static int
parse_request_line(char *line, struct cpprof__http_head *head, const char **why)
{
    char *target = strchr(line, ' '), *version = strrchr(line, ' ');
    const unsigned char *p;
    int status;

    *why = "malformed request line";
    if (!target || target == version)
        return 400;
    *target++ = *version++ = 0;
    head->method = line;
    for (p = (const unsigned char *)target; *p; p++)
        if (*p <= ' ' || *p == 127)
            return 400;
    if (!is_token(line))
        return 400;
    status = parse_version(version, head, why);
    return status ? status : parse_target(target, head, why);
}

/* Is word one of a list's, "keep-alive, Upgrade"? */
static bool
list_has(const char *list, const char *word)
{
    size_t n = strlen(word);

    while (*list) {
        size_t n_word;

        list += strspn(list, " \t,");
        n_word = strcspn(list, " \t,");
        if (n_word == n && !strncasecmp(list, word, n))
            return true;
        list += n_word;
    }
    return false;
}

static int
note_header(struct cpprof__http_head *head, const char *name, const char *value,
            const char **why)
{
    const struct {
        const char *name;
        const char **value;
    } once[] = {
        {"Host", &head->host},
        {"Authorization", &head->authorization},
        {"Content-Type", &head->content_type},
        {"Content-Length", &head->content_length},
        {"Transfer-Encoding", &head->transfer_encoding},
    };
    size_t i;

    for (i = 0; i < sizeof once / sizeof *once; i++) {
        if (strcasecmp(name, once[i].name))
            continue;
        if (*once[i].value && strcmp(*once[i].value, value)) {
            *why = "a header that is there twice";
            return 400;
        }
        *once[i].value = value;
        return 0;
    }
    if (!strcasecmp(name, "Connection")) {
        if (list_has(value, "close"))
            head->keeps_alive = false;
        else if (list_has(value, "keep-alive") && head->has_version_0)
            head->keeps_alive = true;
    } else if (!strcasecmp(name, "Expect") && !head->has_version_0) {
        *why = "unknown expectation";
        if (strcasecmp(value, "100-continue"))
            return 417;
        head->wants_continue = true;
    }
    return 0;
}

/* A value that goes on in the next line begins with a blank there, which is no
 * name: 400 (RFC 9112, 5.2). */
static int
parse_header(char *line, struct cpprof__http_head *head, const char **why)
{
    char *colon = strchr(line, ':'), *value, *end;
    const unsigned char *p;

    *why = "malformed header";
    if (!colon)
        return 400;
    *colon = 0;
    value = colon + 1 + strspn(colon + 1, " \t");
    end = value + strlen(value);
    while (end > value && (end[-1] == ' ' || end[-1] == '\t'))
        *--end = 0;
    for (p = (const unsigned char *)value; *p; p++)
        if ((*p < ' ' && *p != '\t') || *p == 127)
            return 400;
    return is_token(line) ? note_header(head, line, value, why) : 400;
}

static int
parse_lengths(struct cpprof__http_head *head, const char **why)
{
    const char *p = head->content_length;

    *why = "malformed length of the body";
    if (head->transfer_encoding) {
        if (p || head->has_version_0)
            return 400;
        if (strcasecmp(head->transfer_encoding, "chunked")) {
            *why = "unsupported transfer encoding";
            return 501;
        }
        head->is_chunked = true;
        return 0;
    }
    if (!p)
        return 0;
    if (!*p || p[strspn(p, "0123456789")])
        return 400;
    for (; *p; p++) {
        if (head->n_body > UINT64_MAX / 10 - 1)
            return 413;
        head->n_body = head->n_body * 10 + (uint64_t)(*p - '0');
    }
    return 0;
}

int
cpprof__http_head_parse(char *data, size_t n, struct cpprof__http_head *head,
                        const char **why)
{
    char *end = data + n, *line = NULL;
    const char *host;
    int status;

    memset(head, 0, sizeof *head);
    *why = "a NUL";
    if (memchr(data, 0, n))
        return 400;
    while (data < end && (*data == '\r' || *data == '\n'))
        data++;
    line = next_line(&data, end);
    *why = "malformed request line";
    status = line ? parse_request_line(line, head, why) : 400;
    host = head->host;
    head->host = NULL;
    while (!status && (line = next_line(&data, end)) && *line)
        status = parse_header(line, head, why);
    if (!status && !head->host && !head->has_version_0) {
        *why = "missing required Host header";
        status = 400;
    }
    if (host)
        head->host = host;
    return status ? status : parse_lengths(head, why);
}
