/* SPDX-License-Identifier: MIT */
/*
 * dot reads the graph from a file in memory and writes the picture into a
 * pipe; no shell is between. Edges are left out before
 * (report/dot/visual.c), and dot is told not to look for the best layout
 * for long, because the time that it takes grows steeply with the edges: 80
 * nodes and 596 edges took a minute and more, and now take a second.
 */
#include "cli/report/report.h"

#include "base/buffer.h"
#include "base/status.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* Limits of dot's work: rounds of its network simplex, in nodes, and a factor
 * for its search for crossings. Smaller ones are faster and draw more crooked
 * edges. */
#define LIMITS "-Gnslimit=2", "-Gnslimit1=2", "-Gmclimit=0.5"

/* ------------------------------------------------------------- graph ---- */

static int
take(void *ctx, const void *data, size_t n)
{
    struct cpprof__buffer *text = ctx;

    cpprof__buffer_append(text, data, n);
    return text->failed ? ENOMEM : 0;
}

/* As dot is to read a text: it gives up on some bytes that are no UTF-8, and
 * draws what an entity of HTML means, which no name or label is to be. */
static void
put_for_dot(struct cpprof__buffer *out, const struct cpprof__buffer *text)
{
    struct cpprof__buffer clean = {0};
    const char *at, *next, *end;

    cpprof__put_utf8(&clean, (const char *)text->data, text->n);
    at = (const char *)clean.data;
    end = at + clean.n;
    while (clean.n && (next = memchr(at, '&', (size_t)(end - at)))) {
        cpprof__buffer_append(out, at, (size_t)(next - at));
        cpprof__buffer_append(out, "&amp;", 5);
        at = next + 1;
    }
    cpprof__buffer_append(out, at, (size_t)(end - at));
    out->failed |= clean.failed;
    cpprof__buffer_free(&clean);
}

/* Write the graph's text to a file without a name, to be read from its start.
 */
static enum cpprof_status
write_graph(struct pprof_profile *profile,
            const struct pprof_report_options *options, int *fd,
            struct cpprof_error *error)
{
    struct pprof_report_options o = *options;
    struct cpprof__buffer text = {0}, clean = {0};
    struct cpprof_writer to_text = {
        .size = sizeof to_text, .write = take, .ctx = &text};
    struct cpprof_writer writer;
    enum cpprof_status status;
    int failure = 0;

    o.flags |= PPROF_REPORT_PICTURE;
    *fd = memfd_create("graph", MFD_CLOEXEC);
    if (*fd < 0)
        return cpprof__fail(error, CPPROF_SYSTEM, errno,
                            "no memory for the graph: %s", strerror(errno));
    cpprof_writer_to_fd(*fd, &writer);
    status = pprof_report_write(profile, &to_text, PPROF_REPORT_DOT, &o, error);
    if (status == CPPROF_OK) {
        put_for_dot(&clean, &text);
        failure = clean.failed ? ENOMEM
                               : writer.write(writer.ctx, clean.data, clean.n);
    }
    if (status == CPPROF_OK && !failure && lseek(*fd, 0, SEEK_SET) != 0)
        failure = errno;
    if (status == CPPROF_OK && failure)
        status = cpprof__fail(error, CPPROF_SYSTEM, failure,
                              "the graph for dot: %s", strerror(failure));
    cpprof__buffer_free(&text);
    cpprof__buffer_free(&clean);
    return status;
}

/* --------------------------------------------------------------- dot ---- */

static enum cpprof_status
start_dot(const char *type, int graph, int picture, pid_t *pid,
          struct cpprof_error *error)
{
    char format[16];
    char *argv[] = {"dot", format, LIMITS, NULL};
    posix_spawn_file_actions_t actions;
    int failure;

    snprintf(format, sizeof format, "-T%s", type);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, graph, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, picture, STDOUT_FILENO);
    failure = posix_spawnp(pid, "dot", &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (failure == ENOENT)
        return cpprof__fail(
            error, CPPROF_SYSTEM, failure,
            "failed to execute dot. Is Graphviz installed? "
            "(Debian: apt install graphviz; -flamegraph needs none)");
    if (failure)
        return cpprof__fail(error, CPPROF_SYSTEM, failure,
                            "failed to execute dot: %s", strerror(failure));
    return CPPROF_OK;
}

static enum cpprof_status
wait_for_dot(pid_t pid, struct cpprof_error *error)
{
    int status = 0;

    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return CPPROF_OK;
    if (WIFSIGNALED(status))
        return cpprof__fail(error, CPPROF_SYSTEM, 0,
                            "dot was ended by signal %d", WTERMSIG(status));
    return cpprof__fail(error, CPPROF_SYSTEM, 0, "dot failed with status %d",
                        WEXITSTATUS(status));
}

/* If there is no memory for the picture, that is what is reported: the closed
 * pipe ends dot. */
static enum cpprof_status
run_dot(int graph, const char *type, struct cpprof__buffer *picture,
        struct cpprof_error *error)
{
    enum cpprof_status status, ended;
    pid_t pid;
    int fds[2];

    if (pipe2(fds, O_CLOEXEC) != 0)
        return cpprof__fail(error, CPPROF_SYSTEM, errno, "pipe: %s",
                            strerror(errno));
    status = start_dot(type, graph, fds[1], &pid, error);
    close(fds[1]);
    if (status != CPPROF_OK) {
        close(fds[0]);
        return status;
    }
    if (cpprof__buffer_read(picture, fds[0], SIZE_MAX))
        status = cpprof__fail_nomem(error);
    close(fds[0]);
    ended = wait_for_dot(pid, status == CPPROF_OK ? error : NULL);
    return status == CPPROF_OK ? ended : status;
}

/* ----------------------------------------------------------- picture ---- */

/* Graphviz draws an SVG of a fixed size. Its <svg> tag is replaced by one that
 * fills the window, and the drawing is put into a group that a script moves:
 * drag, wheel, + and -, 0 for all of it. */
static const char svg_begin[] =
    "<svg width=\"100%\" height=\"100%\" "
    "xmlns=\"http://www.w3.org/2000/svg\" "
    "xmlns:xlink=\"http://www.w3.org/1999/xlink\">\n"
    "<script type=\"text/ecmascript\"><![CDATA[\n"
    "addEventListener('load', function () {\n"
    "  var root = document.documentElement;\n"
    "  var view = document.getElementById('viewport');\n"
    "  var box = view.getBBox(), k, x, y, drag = null;\n"
    "  function show() {\n"
    "    view.setAttribute('transform',\n"
    "      'translate(' + x + ',' + y + ') scale(' + k + ')');\n"
    "  }\n"
    "  function whole() {\n"
    "    k = Math.min(innerWidth / box.width, innerHeight / box.height, 1);\n"
    "    x = (innerWidth - box.width * k) / 2 - box.x * k;\n"
    "    y = -box.y * k;\n"
    "    show();\n"
    "  }\n"
    "  function enlarge(factor, px, py) {\n"
    "    x = px - (px - x) * factor;\n"
    "    y = py - (py - y) * factor;\n"
    "    k *= factor;\n"
    "    show();\n"
    "  }\n"
    "  root.addEventListener('wheel', function (e) {\n"
    "    enlarge(Math.pow(1.0015, -e.deltaY), e.clientX, e.clientY);\n"
    "    e.preventDefault();\n"
    "  }, {passive: false});\n"
    "  root.addEventListener('pointerdown', function (e) {\n"
    "    drag = [e.clientX - x, e.clientY - y];\n"
    "  });\n"
    "  addEventListener('pointerup', function () { drag = null; });\n"
    "  root.addEventListener('pointermove', function (e) {\n"
    "    if (!drag) return;\n"
    "    x = e.clientX - drag[0];\n"
    "    y = e.clientY - drag[1];\n"
    "    show();\n"
    "    e.preventDefault();\n"
    "  });\n"
    "  addEventListener('keydown', function (e) {\n"
    "    var f = {'+': 1.25, '=': 1.25, '-': 0.8}[e.key];\n"
    "    if (f) enlarge(f, innerWidth / 2, innerHeight / 2);\n"
    "    else if (e.key === '0' || e.key === 'Escape') whole();\n"
    "  });\n"
    "  root.style.touchAction = 'none';\n"
    "  whole();\n"
    "});\n"
    "]]></script>\n"
    "<g id=\"viewport\">\n";
static const char svg_end[] = "</g>\n";

static int
put(const struct cpprof_writer *to, const char *text, size_t n)
{
    return to->write(to->ctx, text, n);
}

/* Write a picture; an SVG so that it fills the window and can be moved.
 * Anything else is written as it is. Returns 0 or an errno. */
static int
write_picture(const char *svg, size_t n, const struct cpprof_writer *to)
{
    const char *tag = n ? memmem(svg, n, "<svg", 4) : NULL;
    const char *end = svg + n, *body, *last;
    int failure;

    body = tag ? memchr(tag, '>', (size_t)(end - tag)) : NULL;
    last = body ? memmem(body, (size_t)(end - body), "</svg>", 6) : NULL;
    if (!last)
        return put(to, svg, n);
    body++;
    failure = put(to, svg, (size_t)(tag - svg));
    if (!failure)
        failure = put(to, svg_begin, sizeof svg_begin - 1);
    if (!failure)
        failure = put(to, body, (size_t)(last - body));
    if (!failure)
        failure = put(to, svg_end, sizeof svg_end - 1);
    return failure ? failure : put(to, last, (size_t)(end - last));
}

/* A name may have characters that XML has not, and dot writes them as they are:
 * those below a blank, U+FFFE, U+FFFF, and halves of pairs. */
static void
make_xml(struct cpprof__buffer *svg)
{
    static const uint8_t replacement[] = {0xef, 0xbf, 0xbd}; /* U+FFFD */
    uint8_t *p = svg->data, *end = p + svg->n;

    for (; p < end; p++)
        if (*p < ' ' && *p != '\t' && *p != '\n' && *p != '\r')
            *p = '?';
        else if (end - p >= 3 && ((*p == 0xef && p[1] == 0xbf && p[2] > 0xbd) ||
                                  (*p == 0xed && p[1] >= 0xa0)))
            memcpy(p, replacement, sizeof replacement);
}

enum cpprof_status
cpprof__draw(struct pprof_profile *profile,
             const struct pprof_report_options *options, const char *type,
             struct cpprof_writer writer, struct cpprof_error *error)
{
    struct cpprof__buffer picture = {0};
    int graph = -1, failure = 0, closing = 0;
    enum cpprof_status status = write_graph(profile, options, &graph, error);

    if (status == CPPROF_OK)
        status = run_dot(graph, type, &picture, error);
    if (status == CPPROF_OK && strcmp(type, "svg") == 0)
        make_xml(&picture);
    if (status == CPPROF_OK)
        failure = write_picture((char *)picture.data, picture.n, &writer);
    if (writer.close)
        closing = writer.close(writer.ctx, status != CPPROF_OK || failure);
    failure = failure ? failure : closing;
    if (status == CPPROF_OK && failure)
        status = cpprof__fail(error, CPPROF_SYSTEM, failure,
                              "writing the picture: %s", strerror(failure));
    if (graph >= 0)
        close(graph);
    cpprof__buffer_free(&picture);
    return status;
}
