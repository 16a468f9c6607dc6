/* SPDX-License-Identifier: MIT */
/*
 * Colours and the width of a terminal. Lines of -top are cut to the width, or
 * to two rows if little of a name would be left. What is cut off is at the end
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

/* Where the names of -top begin, and how much of them is always shown. */
#define NAME_COLUMN  50
#define NAME_COLUMNS 40
/* What the title of a table begins with. */
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
    if (format == PPROF_REPORT_TOP)
        terminal.columns =
            columns >= NAME_COLUMN + NAME_COLUMNS ? columns : 2 * columns;
    terminal.color = table && has_colors(STDOUT_FILENO);
    if (terminal.columns || terminal.color)
        writer.write = write_lines;
    return cpprof__clean_writer(writer, STDOUT_FILENO);
}
