/* SPDX-License-Identifier: MIT */
/*
 * Reads source files. Each file is looked for once and then held: its text and
 * where its lines begin. When the files take too much memory, all of them are
 * dropped and read again on demand.
 */
#include "report/code/source.h"

#include "base/status.h"
#include "own/memory.h"
#include "profile/model/path.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* No source is larger; it bounds what one name in a profile can cost. */
#define MOST_FILE_BYTES ((size_t)64 << 20)
/* With more than this held, make room before reading the next. */
#define MOST_HELD_BYTES ((size_t)128 << 20)
/* In so many bytes at the front of a text there is no NUL. */
#define BINARY_BYTES 8192

struct cpprof__source_file {
    bool held;
    struct cpprof__buffer text;
    CPPROF__ARRAY(size_t) lines; /* where each begins, and one for the end */
    char *error;
};

/* ------------------------------------------------------------- guard ---- */

static enum cpprof__source_guard guard = CPPROF__SOURCE_ANY;

void
cpprof__source_set_guard(enum cpprof__source_guard which)
{
    guard = which;
}

/* Is the file below a folder? Both are without links. */
static bool
is_below(const char *path, const char *folder, size_t n)
{
    while (n > 1 && folder[n - 1] == '/')
        n--;
    return n && strncmp(path, folder, n) == 0 &&
           (path[n] == '/' || folder[n - 1] == '/');
}

static bool
is_in_search_path(const struct cpprof__source *s, const char *path)
{
    const char *dir;
    size_t n;

    if (s->own_path) /* nobody named one */
        return false;
    for (dir = s->search_path; *dir; dir += n + (dir[n] == ':')) {
        char name[PATH_MAX], real[PATH_MAX];

        n = strcspn(dir, ":");
        snprintf(name, sizeof name, "%.*s", (int)n, dir);
        if (n && n < sizeof name && realpath(name, real) &&
            is_below(path, real, strlen(real)))
            return true;
    }
    return false;
}

/* Is a dot at the front of a folder's name below HOME? */
static bool
is_private(const char *path)
{
    const char *home = getenv("HOME");
    char real[PATH_MAX];

    return home && realpath(home, real) && is_below(path, real, strlen(real)) &&
           strstr(path + strlen(real), "/.");
}

static bool
has_suffix_of_code(const char *path)
{
    static const char suffixes[] =
        " c h cc hh cpp hpp cxx hxx c++ h++ inc inl ipp tcc m mm s S asm go rs "
        "py pyx pxd lua js ts java kt scala rb pl php swift zig d ml hs f f90 "
        "y l sql sh cs erl ex nim v cu proto ";
    const char *dot = strrchr(path, '.');
    char word[16];

    if (!dot || strchr(dot, '/') ||
        (size_t)snprintf(word, sizeof word, " %s ", dot + 1) >= sizeof word)
        return false;
    return strstr(suffixes, word);
}

/* May an open file be shown? Its true name counts, behind all links. */
static bool
may_show(const struct cpprof__source *s, int fd)
{
    static const char *const closed[] = {"/proc", "/sys", "/dev", NULL};
    char link[64], path[PATH_MAX];
    ssize_t n;
    size_t i;

    if (guard == CPPROF__SOURCE_ANY)
        return true;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    n = readlink(link, path, sizeof path - 1);
    if (n <= 0 || *path != '/')
        return false;
    path[n] = 0;
    for (i = 0; closed[i]; i++)
        if (is_below(path, closed[i], strlen(closed[i])))
            return false;
    return has_suffix_of_code(path) && !is_private(path) &&
           (guard == CPPROF__SOURCE_CODE || is_in_search_path(s, path));
}

/* A NUL at its front: it is no text, whatever its suffix says. */
static bool
is_binary(const struct cpprof__buffer *text)
{
    return text->n && memchr(text->data, 0,
                             text->n < BINARY_BYTES ? text->n : BINARY_BYTES);
}

/* ------------------------------------------------------------- files ---- */

static void
drop(struct cpprof__source_file *f)
{
    cpprof__buffer_free(&f->text);
    CPPROF__ARRAY_FREE(&f->lines);
    cpprof__free(f->error);
    f->error = NULL;
    f->held = false;
}

static void
drop_all(struct cpprof__source *s)
{
    size_t i;

    for (i = 0; i < s->files.n; i++)
        drop(&s->files.at[i]);
    s->n_bytes = 0;
}

static bool
split_lines(struct cpprof__source_file *f)
{
    const char *text = (const char *)f->text.data;
    size_t at = 0;

    while (at < f->text.n) {
        const char *end = memchr(text + at, '\n', f->text.n - at);
        size_t *line = CPPROF__ARRAY_ADD(&f->lines);

        if (!line)
            return false;
        *line = at;
        at = end ? (size_t)(end - text) + 1 : f->text.n;
    }
    return true;
}

/* Read the file if it can be opened; 0 or what failed. A pipe or a device is
 * not waited for. */
static int
read_file(const struct cpprof__source *s, const char *path,
          struct cpprof__source_file *f)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    int failed = fd < 0 ? errno : 0;
    struct stat st;

    if (fd < 0)
        return failed;
    if (fstat(fd, &st) != 0)
        failed = errno;
    else if (!S_ISREG(st.st_mode))
        failed = S_ISDIR(st.st_mode) ? EISDIR : EINVAL;
    else if (!may_show(s, fd))
        failed = EACCES;
    else
        failed = cpprof__buffer_read(&f->text, fd, MOST_FILE_BYTES);
    close(fd);
    if (!failed && guard != CPPROF__SOURCE_ANY && is_binary(&f->text))
        failed = EACCES;
    if (!failed && !split_lines(f))
        failed = ENOMEM;
    if (failed)
        drop(f);
    return failed;
}

/* As Go writes it: "open PATH: no such file or directory". */
static void
set_error(struct cpprof__source_file *f, const char *path, int failed)
{
    const char *why = strerror(failed);
    struct cpprof__buffer text = {0};

    cpprof__buffer_printf(&text, "open %s: %c%s", path,
                          tolower((unsigned char)*why), *why ? why + 1 : "");
    f->error = (char *)text.data;
}

/* ------------------------------------------------------------ search ---- */

/* dir/path without detours, terminated. */
static const char *
join(struct cpprof__buffer *name, const char *dir, size_t n_dir,
     const char *path)
{
    struct cpprof__buffer long_name = {0};

    if (n_dir)
        cpprof__buffer_printf(&long_name, "%.*s/", (int)n_dir, dir);
    cpprof__buffer_append(&long_name, path, strlen(path));
    name->n = 0;
    cpprof__path_clean((char *)long_name.data, long_name.n, name);
    cpprof__buffer_append(name, "", 1);
    name->failed |= long_name.failed;
    cpprof__buffer_free(&long_name);
    return name->failed ? NULL : (char *)name->data;
}

/* The length of the name of a folder's parent at the front of its own; n for a
 * folder without one: "/", ".", "". */
static size_t
parent(const char *dir, size_t n)
{
    size_t k = n;

    while (k && dir[k - 1] != '/')
        k--;
    while (k > 1 && dir[k - 1] == '/')
        k--;
    return k;
}

/* Try a path in each folder of the search path, and in all above it if `above`;
 * 0 when the file was read. */
static int
try_folders(const struct cpprof__source *s, const char *path, bool above,
            struct cpprof__source_file *f)
{
    struct cpprof__buffer name = {0};
    const char *dir = s->search_path, *joined;
    int failed = ENOENT;
    size_t n, k, up;

    for (; *dir && failed && failed != ENOMEM; dir += n + (dir[n] == ':')) {
        n = strcspn(dir, ":");
        if (!n && !above)
            continue;
        for (k = n;; k = up) {
            joined = join(&name, dir, k, path);
            failed = joined ? read_file(s, joined, f) : ENOMEM;
            up = above ? parent(dir, k) : k;
            if (!failed || failed == ENOMEM || up == k)
                break;
        }
    }
    cpprof__buffer_free(&name);
    return failed;
}

/* Look for a file that was not found as it is named: its path may be that of
 * another machine. Its tails are looked for, the longest first, in the folders
 * that the user names. */
static int
search_tails(const struct cpprof__source *s, const char *path,
             struct cpprof__source_file *f)
{
    struct cpprof__buffer whole = {0};
    char *why = f->error;
    const char *tail = path;
    int failed = ENOENT;

    if (s->own_path)
        return ENOENT;
    f->error = NULL;
    while (failed && failed != ENOMEM && (tail = strchr(tail, '/')))
        failed = try_folders(s, ++tail, false, f);
    if (failed && failed != ENOMEM && *path == '/' && why)
        cpprof__buffer_printf(&whole, "%s; nor found in %s", why,
                              s->search_path);
    if (whole.failed)
        failed = ENOMEM;
    f->error = !failed ? NULL : *path == '/' ? (char *)whole.data : why;
    if (f->error != why)
        cpprof__free(why);
    return failed;
}

static bool
load(struct cpprof__source *s, const char *path, size_t n,
     struct cpprof__source_file *f)
{
    size_t cut = cpprof__path_trim(path, n, s->trim_path, s->search_path);
    int failed;

    if (s->n_bytes > MOST_HELD_BYTES)
        drop_all(s);
    if (memchr(path, 0, n)) {
        failed = EINVAL;
        set_error(f, path, failed);
    } else if (path[cut] == '/') {
        failed = read_file(s, path + cut, f);
        if (failed)
            set_error(f, path + cut, failed);
    } else {
        failed = try_folders(s, path + cut, true, f);
        if (failed && failed != ENOMEM) {
            struct cpprof__buffer text = {0};

            cpprof__buffer_printf(&text, "could not find file %s on path %s",
                                  path + cut, s->search_path);
            f->error = (char *)text.data;
        }
    }
    if (failed && failed != ENOMEM && failed != EINVAL)
        failed = search_tails(s, path + cut, f);
    f->held = true;
    s->n_bytes += f->text.n;
    return failed != ENOMEM && (!failed || f->error);
}

/* The file of a name, read; NULL when out of memory. */
static struct cpprof__source_file *
file_of(struct cpprof__source *s, const char *path, size_t n)
{
    uint32_t at = cpprof__strings_add(&s->names, path, n);
    struct cpprof__source_file *f;

    if (at == CPPROF__NO_STRING || !CPPROF__ARRAY_ROOM(&s->files, 1)) {
        s->failed = true;
        return NULL;
    }
    if (at == s->files.n)
        memset(&s->files.at[s->files.n++], 0, sizeof *f);
    f = &s->files.at[at];
    if (!f->held && !load(s, cpprof__strings_text(&s->names, at), n, f))
        s->failed = true;
    return s->failed ? NULL : f;
}

/* ----------------------------------------------------------- for use ---- */

enum cpprof_status
cpprof__source_begin(struct cpprof__source *s, const char *source_path,
                     const char *trim_path, struct cpprof_error *error)
{
    s->trim_path = trim_path;
    s->search_path = source_path;
    if (source_path && *source_path)
        return CPPROF_OK;
    s->own_path = getcwd(NULL, 0);
    s->search_path = s->own_path;
    if (s->own_path)
        return CPPROF_OK;
    if (errno == ENOMEM)
        return cpprof__fail_nomem(error);
    return cpprof__fail(error, CPPROF_SYSTEM, errno,
                        "could not stat current dir: %s", strerror(errno));
}

void
cpprof__source_free(struct cpprof__source *s)
{
    drop_all(s);
    CPPROF__ARRAY_FREE(&s->files);
    cpprof__strings_free(&s->names);
    cpprof__free(s->own_path);
    s->own_path = NULL;
}

const char *
cpprof__source_line(struct cpprof__source *s, const char *path, size_t n_path,
                    int64_t line, size_t *n)
{
    const struct cpprof__source_file *f = file_of(s, path, n_path);
    const char *text;
    size_t begin, end;

    if (!f || line < 1 || (uint64_t)line > f->lines.n)
        return NULL;
    text = (const char *)f->text.data;
    begin = f->lines.at[line - 1];
    end = (size_t)line < f->lines.n ? f->lines.at[line] : f->text.n;
    if (end > begin && text[end - 1] == '\n')
        end--;
    if (end > begin && text[end - 1] == '\r')
        end--;
    *n = end - begin;
    return text + begin;
}

const char *
cpprof__source_error(struct cpprof__source *s, const char *path, size_t n_path)
{
    const struct cpprof__source_file *f = file_of(s, path, n_path);

    return f ? f->error : NULL;
}
