/* SPDX-License-Identifier: MIT */
/*
 * `-p PID threads`: where each thread of a process is at one moment, as the
 * library in it has written it to a file, in the shape of
 * /debug/pprof/goroutine?debug=2. The process does not look names up, because
 * what reads them would stay in it: its addresses become names here, and all
 * other text is passed on as it is. And `cpprof threads`, which takes a server,
 * too, that names them itself.
 */
#include "cli/record/outside.h"

#include "base/status.h"
#include "cli/attach/attach.h"
#include "cli/commands.h"
#include "cli/fetch/request.h"
#include "cli/messages.h"
#include "collect/store/spool.h"
#include "object/frame_text.h"

#include <cpprof/object.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAMELESS   CPPROF__NAMELESS
#define CREATED_BY CPPROF__CREATED_BY "0x"

/* Of one address; what has more inlined functions is cut. */
#define FRAMES_MAX 256

/* A dump of so many threads is no dump any more. */
#define DUMP_BYTES_MAX (1u << 30)

struct range {
    uint64_t start, limit;
    size_t number; /* the symbolizer's */
};

struct names {
    const struct cpprof__symbolizer_ops *ops;
    struct cpprof__symbolizer *symbolizer; /* NULL: there are no names */
    struct range *ranges;
    size_t n_ranges;
};

/* -------------------------------------------------------------- names ---- */

static bool
add_range(struct names *names, pid_t pid, const struct cpprof_map *map)
{
    char path[PATH_MAX], build_id[CPPROF_BUILD_ID_MAX];
    struct cpprof__symbolizer_mapping mapping = {.start = map->start,
                                                 .limit = map->limit,
                                                 .offset = map->offset,
                                                 .path = path,
                                                 .build_id = build_id,
                                                 .inode = map->inode};
    struct range *at =
        reallocarray(names->ranges, names->n_ranges + 1, sizeof *at);

    if (!at)
        return false;
    names->ranges = at;
    cpprof__mapped_build_id(pid, map, build_id);
    if (map->deleted && !*build_id)
        return true;
    snprintf(path, sizeof path, "%.*s", (int)map->n_path, map->path);
    at[names->n_ranges++] =
        (struct range){map->start, map->limit,
                       names->ops->add_mapping(names->symbolizer, &mapping)};
    return true;
}

/* What the process has mapped. A file that was replaced meanwhile is known by
 * its build id, and read where the kernel keeps it. */
static void
take_names(struct names *names, pid_t pid, pid_t inside)
{
    const struct cpprof__symbolizer_options options = {
        .fetcher = cpprof__fetcher, .pid = inside};
    struct cpprof_map map = {.size = sizeof map};
    struct cpprof__buffer maps = {0};
    const char *at, *end;

    *names = (struct names){.ops = cpprof__symbolizer_load()};
    if (names->ops)
        names->symbolizer = names->ops->make(&options);
    cpprof__read_proc(&maps, "/proc/%d/maps", (int)pid);
    at = (char *)maps.data;
    end = at + (maps.n ? maps.n - 1 : 0);
    while (names->symbolizer && at && cpprof_maps_next(&at, end, &map))
        if (cpprof_map_is_listed(&map) && !add_range(names, pid, &map))
            break;
    cpprof__buffer_free(&maps);
}

static void
free_names(struct names *names)
{
    if (names->symbolizer)
        names->ops->free(names->symbolizer);
    free(names->ranges);
}

static size_t
mapping_of(const struct names *names, uint64_t pc)
{
    size_t i;

    for (i = 0; i < names->n_ranges; i++)
        if (pc - names->ranges[i].start <
            names->ranges[i].limit - names->ranges[i].start)
            return names->ranges[i].number;
    return SIZE_MAX;
}

/* --------------------------------------------------------------- text ---- */

/* The address in a line that begins so, or 0. */
static uint64_t
address_after(const char *line, const char *begin)
{
    size_t n = strlen(begin);

    return strncmp(line, begin, n) ? 0 : strtoull(line + n, NULL, 16);
}

static const char *
line_after(const char *line)
{
    line += strcspn(line, "\n");
    return line + (*line == '\n');
}

/* Whoever says so of all addresses first saves the symbolizer much reading. */
static void
expect_all(struct names *names, const char *text)
{
    const char *line = text;
    uint64_t pc;

    for (; names->symbolizer && *line; line = line_after(line)) {
        pc = address_after(line, NAMELESS);
        if (!pc)
            pc = address_after(line, CREATED_BY);
        if (pc)
            names->ops->expect(names->symbolizer, mapping_of(names, pc), pc);
    }
}

static size_t
resolve(struct names *names, uint64_t pc, struct cpprof__frame *frames)
{
    return pc && names->symbolizer
               ? names->ops->resolve(names->symbolizer, mapping_of(names, pc),
                                     pc, frames, FRAMES_MAX)
               : 0;
}

/* A frame's two lines give way to those of all functions that are there. */
static void
print_named(struct names *names, const char *text, struct cpprof__buffer *out)
{
    static struct cpprof__frame frames[FRAMES_MAX];
    const char *line = text, *next;

    for (; *line; line = next) {
        uint64_t pc = address_after(line, NAMELESS);
        uint64_t creator = address_after(line, CREATED_BY);
        size_t i, n = resolve(names, pc ? pc : creator, frames);

        next = line_after(line);
        if (!n) {
            cpprof__buffer_append(out, line, (size_t)(next - line));
            continue;
        }
        next = line_after(next);
        for (i = 0; i < n && pc; i++)
            cpprof__frame_print(out, &frames[i], pc);
        if (creator)
            cpprof__frame_print_creator(out, &frames[0], creator);
    }
}

/* ---------------------------------------------------------------- file ---- */

bool
cpprof__record_threads_config(bool is_stuck,
                              const struct cpprof__record_folder *folder,
                              struct cpprof__buffer *text)
{
    cpprof__buffer_printf(text, "%s,debug=2,symbolize=none,out=%s/%%p.threads",
                          is_stuck ? "threadleak" : "threads", folder->seen);
    cpprof__buffer_append(text, "", 1);
    if (text->failed)
        cpprof__cli_fail("out of memory");
    return !text->failed;
}

/* It is for a terminal, and may be of somebody who wants to do harm to it. */
static void
keep_text(struct cpprof__buffer *text)
{
    size_t i;

    for (i = 0; i < text->n; i++)
        if ((text->data[i] < ' ' && text->data[i] != '\n' &&
             text->data[i] != '\t') ||
            text->data[i] == 0x7f)
            text->data[i] = '?';
}

static int
read_dump(const struct cpprof__record_folder *folder, pid_t inside,
          struct cpprof__buffer *text)
{
    char path[PATH_MAX + 32];
    int failed, fd;

    snprintf(path, sizeof path, "%s/%d.threads", folder->path, (int)inside);
    errno = EPERM; /* it is there, and no plain file */
    fd = cpprof__spool_open(path);
    if (fd < 0)
        return errno;
    failed = cpprof__buffer_read(text, fd, DUMP_BYTES_MAX);
    close(fd);
    keep_text(text);
    cpprof__buffer_append(text, "", 1);
    return failed ? failed : text->failed ? ENOMEM : 0;
}

bool
cpprof__record_threads_print(const struct cpprof__record_folder *folder,
                             pid_t pid, pid_t inside)
{
    struct cpprof__buffer text = {0}, out = {0};
    struct names names;
    int failed = read_dump(folder, inside, &text);

    if (failed) {
        cpprof__cli_fail("%d: no dump of its threads: %s", (int)pid,
                         strerror(failed));
    } else {
        take_names(&names, pid, inside);
        expect_all(&names, (char *)text.data);
        print_named(&names, (char *)text.data, &out);
        free_names(&names);
        failed = out.failed || fwrite(out.data, 1, out.n, stdout) != out.n ||
                 fflush(stdout);
        if (failed)
            cpprof__cli_fail("cannot write the dump: %s",
                             out.failed ? "out of memory" : strerror(errno));
    }
    cpprof__buffer_free(&text);
    cpprof__buffer_free(&out);
    return !failed;
}

/* ------------------------------------------------------------- server ---- */

/* Where a server has the dump: below the folder that the source names, or
 * Go's. */
static void
make_source(const char *source, bool is_stuck, struct cpprof__buffer *out)
{
    static const char folder[] = "/debug/pprof";
    const char *there = strstr(source, folder);
    size_t n = there ? (size_t)(there - source) : strlen(source);

    while (n && source[n - 1] == '/')
        n--;
    cpprof__buffer_append(out, source, n);
    cpprof__buffer_printf(out, "%s/%s?debug=2", folder,
                          is_stuck ? "threadleak" : "goroutine");
    cpprof__buffer_append(out, "", 1);
}

static enum cpprof_status
ask(const struct cpprof__url *url, struct cpprof__request *r,
    struct cpprof_error *error)
{
    const struct cpprof__fetch_options options = {.timeout = 60};
    const struct cpprof__curl *curl;
    enum cpprof_status status;
    const char *why;

    curl = cpprof__curl_load(&why);
    if (!curl)
        return cpprof__fail(error, CPPROF_UNSUPPORTED, 0, "%s", why);
    status = cpprof__request_begin(r, curl, url, &options, NULL, error);
    return status == CPPROF_OK ? cpprof__request_result(
                                     r, curl->easy_perform(r->easy), url, error)
                               : status;
}

static int
print_served(const char *source, bool is_stuck)
{
    const struct cpprof__fetch_options options = {.timeout = 60};
    struct cpprof__buffer text = {0};
    struct cpprof__request r = {0};
    struct cpprof_error error = {.text = "out of memory"};
    struct cpprof__url url = {0};
    enum cpprof_status status = CPPROF_NOMEM;

    make_source(source, is_stuck, &text);
    if (!text.failed && cpprof__source_url((char *)text.data, &options, &url) ==
                            CPPROF__SOURCE_URL)
        status = ask(&url, &r, &error);
    else if (!text.failed)
        cpprof__fail(&error, CPPROF_INVALID, 0, "\"%s\" is no URL", source);
    text.n = 0;
    if (status == CPPROF_OK) {
        cpprof__buffer_append(&text, r.body, r.n);
        keep_text(&text);
        if (text.failed || fwrite(text.data, 1, text.n, stdout) != text.n ||
            fflush(stdout))
            status = cpprof__fail(&error, CPPROF_SYSTEM, errno,
                                  "cannot write the dump");
    }
    cpprof__request_free(&r);
    cpprof__url_free(&url);
    cpprof__buffer_free(&text);
    return status == CPPROF_OK ? CPPROF__EXIT_OK
                               : cpprof__cli_fail("%s", error.text);
}

struct words {
    const char *pids;
    bool is_stuck;
};

const struct cpprof__flag cpprof__threads_flag_table[] = {
    CPPROF__FLAG(STRING, "p", struct words, pids, "=PID", NULL,
                 "of a process that runs already"),
    CPPROF__FLAG(BOOL, "stuck", struct words, is_stuck, NULL, NULL,
                 "only those that can never go on"),
    {0},
};

int
cpprof__cli_threads(int argc, char **argv)
{
    struct words w = {NULL, false};
    struct cpprof__flags flags = {.table = cpprof__threads_flag_table,
                                  .into = &w};
    int n_used;

    if (!cpprof__cli_flags(argc, argv, &flags, &n_used))
        return CPPROF__EXIT_ERROR;
    if (flags.help) {
        puts("usage: cpprof threads [-stuck] -p PID\n"
             "       cpprof threads [-stuck] URL\n");
        cpprof__print_flags(cpprof__threads_flag_table, true);
        return CPPROF__EXIT_OK;
    }
    if (argc - n_used != !w.pids)
        return cpprof__cli_fail("threads takes -p PID or the URL of a server");
    return w.pids ? cpprof__record_print_threads(w.pids, w.is_stuck)
                  : print_served(argv[n_used], w.is_stuck);
}
