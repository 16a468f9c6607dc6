/* SPDX-License-Identifier: MIT */
/*
 * Control characters are those of ASCII and of Latin-1, the latter also as
 * UTF-8 writes them (c2 80 to c2 9f): terminals obey "\x9b" as they do "\x1b[".
 * A byte that continues another character of UTF-8 is not one. A text may come
 * in pieces, so the first of two bytes waits for the second.
 */
#include "cli/terminal.h"

#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

/* The first byte of the controls of Latin-1 in UTF-8. */
#define C1_LEAD 0xc2

static struct {
    struct cpprof_writer to;
    bool waiting;    /* a C1_LEAD that is not written yet */
    unsigned n_left; /* bytes that the last character still lacks */
    char bytes[65536];
    size_t n;
    int error;
} clean;

static void
flush(void)
{
    if (clean.n && !clean.error)
        clean.error = clean.to.write(clean.to.ctx, clean.bytes, clean.n);
    clean.n = 0;
}

static void
put(unsigned char byte)
{
    if (clean.n == sizeof clean.bytes)
        flush();
    clean.bytes[clean.n++] = (char)byte;
}

static void
put_shown(unsigned char byte)
{
    char text[8], *c;

    snprintf(text, sizeof text, "\\x%02x", byte);
    for (c = text; *c; c++)
        put((unsigned char)*c);
}

static bool
is_control(unsigned char byte)
{
    return (byte < ' ' && byte != '\n' && byte != '\t') ||
           (byte >= 0x7f && byte < 0xa0);
}

static void
take(unsigned char byte)
{
    bool waited = clean.waiting;

    clean.waiting = false;
    if (waited && is_control(byte) && byte >= 0x80) {
        put_shown(byte);
        return;
    }
    if (waited) {
        put(C1_LEAD);
        clean.n_left = 1;
    }
    if (clean.n_left && (byte & 0xc0) == 0x80) {
        clean.n_left--;
        put(byte);
        return;
    }
    /* How many bytes follow the first one of a character. */
    clean.n_left = byte < 0xc0 ? 0 : byte < 0xe0 ? 1 : byte < 0xf0 ? 2 : 3;
    if (byte == C1_LEAD)
        clean.waiting = true;
    else if (is_control(byte))
        put_shown(byte);
    else
        put(byte);
}

static int
write_clean(void *ctx, const void *data, size_t n_bytes)
{
    const unsigned char *bytes = data;
    size_t i;

    (void)ctx;
    for (i = 0; i < n_bytes && !clean.error; i++)
        take(bytes[i]);
    flush();
    return clean.error;
}

static int
close_clean(void *ctx, int failed)
{
    (void)ctx;
    if (clean.waiting)
        put(C1_LEAD);
    flush();
    return clean.to.close ? clean.to.close(clean.to.ctx, failed) : 0;
}

struct cpprof_writer
cpprof__clean_writer(struct cpprof_writer to, int fd)
{
    if (!isatty(fd))
        return to;
    clean.to = to;
    clean.waiting = false;
    clean.n_left = 0;
    clean.n = 0;
    clean.error = 0;
    return (struct cpprof_writer){sizeof(struct cpprof_writer), write_clean,
                                  close_clean, NULL};
}
