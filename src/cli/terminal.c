/* SPDX-License-Identifier: MIT */
/*
 * Colours and the width of a terminal. Lines of -top are cut to the width, or
 * to as many rows as a name needs. What is cut off is at the end
 * of a line, and `| cat` brings it back. Trees have lines of many kinds and are
 * not cut.
 */
#include "cli/terminal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

bool
cpprof__terminal_is_dumb(void)
{
    const char *term = getenv("TERM");

    return !term || !*term || strcmp(term, "dumb") == 0;
}

static bool
has_colors(int fd)
{
    const char *no = getenv("NO_COLOR");

    return isatty(fd) && !(no && *no) && !cpprof__terminal_is_dumb();
}

const char *
cpprof__color(int fd, const char *code)
{
    static char sequences[2][16];
    char *sequence = sequences[*code ? 0 : 1];

    if (!has_colors(fd))
        return "";
    snprintf(sequence, sizeof sequences[0], "\033[%sm", *code ? code : "0");
    return sequence;
}

unsigned
cpprof__terminal_columns(int fd)
{
    struct winsize size;

    return isatty(fd) && ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

/* ------------------------------------------------------------ writer ---- */

/* The state of standard output, line by line; there is only one. */
static struct {
    struct cpprof_writer to;
    unsigned columns; /* 0: do not cut */
    unsigned column;  /* of the next byte */
    bool color;
    bool in_title;
    int error;
} terminal;

static void
put(const char *text, size_t n)
{
    if (n && !terminal.error)
        terminal.error = terminal.to.write(terminal.to.ctx, text, n);
}

/* How many bytes of text fit into the rest of the line, with one column for
 * each character of UTF-8. */
static size_t
fitting(const char *text, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++) {
        bool continues = ((unsigned char)text[i] & 0xc0) == 0x80;

        if (!continues && terminal.column == terminal.columns)
            break;
        terminal.column += !continues;
    }
    return i;
}

/* The column at which the names of -top begin, and how many columns of them are
 * always shown. */
#define NAME_COLUMN  50
#define NAME_COLUMNS 40
/* The title of a table begins with this. */
#define TABLE_TITLE "      flat  flat%"

static int
write_lines(void *ctx, const void *data, size_t n_bytes)
{
    const char *text = data;

    (void)ctx;
    cpprof__progress_end();
    while (n_bytes && !terminal.error) {
        const char *end = memchr(text, '\n', n_bytes);
        size_t n = end ? (size_t)(end - text) : n_bytes;

        if (terminal.color && !terminal.column && n >= sizeof TABLE_TITLE - 1 &&
            memcmp(text, TABLE_TITLE, sizeof TABLE_TITLE - 1) == 0) {
            terminal.in_title = true;
            put("\033[1m", 4);
        }
        put(text, terminal.columns ? fitting(text, n) : n);
        if (end && terminal.in_title)
            put("\033[0m", 4);
        if (end) {
            put("\n", 1);
            terminal.column = 0;
            terminal.in_title = false;
            n++;
        }
        text += n;
        n_bytes -= n;
    }
    return terminal.error;
}

/* The first byte ends the progress line, also in a pipe: its reader may be a
 * pager on the same terminal. */
static int
write_plain(void *ctx, const void *data, size_t n_bytes)
{
    (void)ctx;
    cpprof__progress_end();
    return terminal.to.write(terminal.to.ctx, data, n_bytes);
}

static int
close_terminal(void *ctx, int failed)
{
    (void)ctx;
    cpprof__progress_end();
    return terminal.to.close ? terminal.to.close(terminal.to.ctx, failed) : 0;
}

struct cpprof_writer
cpprof__terminal_writer(enum pprof_report_format format)
{
    bool table = format == PPROF_REPORT_TOP || format == PPROF_REPORT_TREE ||
                 format == PPROF_REPORT_PEEK;
    struct cpprof_writer writer = {sizeof writer, write_plain, close_terminal,
                                   NULL};
    unsigned columns = cpprof__terminal_columns(STDOUT_FILENO);

    memset(&terminal, 0, sizeof terminal);
    cpprof_writer_to_fd(STDOUT_FILENO, &terminal.to);
    while (format == PPROF_REPORT_TOP && columns &&
           terminal.columns < NAME_COLUMN + NAME_COLUMNS)
        terminal.columns += columns;
    terminal.color = table && has_colors(STDOUT_FILENO);
    if (terminal.columns || terminal.color)
        writer.write = write_lines;
    return cpprof__clean_writer(writer, STDOUT_FILENO);
}

/* ------------------------------------------------- control characters ---- */

/*
 * Control characters are those of ASCII and of Latin-1, the latter also as
 * UTF-8 writes them (c2 80 to c2 9f): terminals obey "\x9b" as they do "\x1b[".
 * A byte that continues another character of UTF-8 is not one. A text may come
 * in pieces, so the first of two bytes waits for the second.
 */

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
put_byte(unsigned char byte)
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
        put_byte((unsigned char)*c);
}

static bool
is_control(unsigned char byte)
{
    return (byte < ' ' && byte != '\n' && byte != '\t') ||
           (byte >= 0x7f && byte < 0xa0);
}

static void
clean_byte(unsigned char byte)
{
    bool waited = clean.waiting;

    clean.waiting = false;
    if (waited && is_control(byte) && byte >= 0x80) {
        put_shown(byte);
        return;
    }
    if (waited) {
        put_byte(C1_LEAD);
        clean.n_left = 1;
    }
    if (clean.n_left && (byte & 0xc0) == 0x80) {
        clean.n_left--;
        put_byte(byte);
        return;
    }
    /* So many bytes follow the first one of a character. */
    clean.n_left = byte < 0xc0 ? 0 : byte < 0xe0 ? 1 : byte < 0xf0 ? 2 : 3;
    if (byte == C1_LEAD)
        clean.waiting = true;
    else if (is_control(byte))
        put_shown(byte);
    else
        put_byte(byte);
}

static int
write_clean(void *ctx, const void *data, size_t n_bytes)
{
    const unsigned char *bytes = data;
    size_t i;

    (void)ctx;
    for (i = 0; i < n_bytes && !clean.error; i++)
        clean_byte(bytes[i]);
    flush();
    return clean.error;
}

static int
close_clean(void *ctx, int failed)
{
    (void)ctx;
    if (clean.waiting)
        put_byte(C1_LEAD);
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
