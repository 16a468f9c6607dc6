/* SPDX-License-Identifier: MIT */
/*
 * Paths as Go's path and filepath packages treat them (Base, Clean), and which
 * part of a source path reports leave out.
 *
 * Nothing here looks at the file system. A trimmed path is told as a number of
 * bytes to skip, so that no copy is made.
 *
 * Source: Go path/filepath (Clean, Base); internal/report/source.go trimPath.
 */
#include "profile/model/path.h"

#include <string.h>

const char *
cpprof__path_base(const char *path, size_t n, size_t *n_base)
{
    size_t begin;

    if (n == 0) {
        *n_base = 1;
        return ".";
    }
    while (n && path[n - 1] == '/')
        n--;
    if (n == 0) {
        *n_base = 1;
        return "/";
    }
    for (begin = n; begin && path[begin - 1] != '/'; begin--)
        ;
    *n_base = n - begin;
    return path + begin;
}

/* Take the last element off the buffer, down to what `root` bytes hold. */
static void
drop_last(struct cpprof__buffer *out, size_t root)
{
    while (out->n > root && out->data[out->n - 1] != '/')
        out->n--;
    if (out->n > root)
        out->n--;
}

static void
add_element(struct cpprof__buffer *out, size_t root, const char *element,
            size_t n)
{
    if (out->n > root)
        cpprof__buffer_append(out, "/", 1);
    cpprof__buffer_append(out, element, n);
}

/* Is the last element "..", which only another ".." may follow? */
static bool
ends_in_parent(const struct cpprof__buffer *out, size_t root)
{
    size_t n = out->n - root;

    return n >= 2 && memcmp(out->data + out->n - 2, "..", 2) == 0 &&
           (n == 2 || out->data[out->n - 3] == '/');
}

void
cpprof__path_clean(const char *path, size_t n, struct cpprof__buffer *out)
{
    const char *end = path + n;
    bool rooted = n && *path == '/';
    size_t begin = out->n, root;

    if (rooted)
        cpprof__buffer_append(out, "/", 1);
    root = out->n;
    while (path < end) {
        const char *slash = memchr(path, '/', (size_t)(end - path));
        size_t k = (size_t)((slash ? slash : end) - path);
        bool parent = k == 2 && memcmp(path, "..", 2) == 0;

        if (parent && out->n > root && !ends_in_parent(out, root))
            drop_last(out, root);
        else if (k && !(k == 1 && *path == '.') && !(parent && rooted))
            add_element(out, root, path, k);
        path += k + (slash != NULL);
    }
    if (out->n == begin)
        cpprof__buffer_append(out, ".", 1);
}

/* Behind "/BASE/", where BASE is the last element of an entry of source_path
 * that occurs in the path; 0 if none does. */
static size_t
behind_source(const char *path, size_t n, const char *source_path)
{
    while (source_path && *source_path) {
        size_t k = strcspn(source_path, ":"), n_base, i;
        const char *base = cpprof__path_base(source_path, k, &n_base);

        for (i = 0; i + n_base + 2 <= n; i++)
            if (path[i] == '/' && path[i + 1 + n_base] == '/' &&
                memcmp(path + i + 1, base, n_base) == 0)
                return i + n_base + 2;
        source_path += k + (source_path[k] == ':');
    }
    return 0;
}

/* The length of a prefix of k bytes, "/" at its end or not, if path has it. */
static size_t
prefix_length(const char *path, size_t n, const char *prefix, size_t k)
{
    if (k && prefix[k - 1] == '/')
        k--;
    return k < n && memcmp(path, prefix, k) == 0 && path[k] == '/' ? k + 1 : 0;
}

size_t
cpprof__path_trim(const char *path, size_t n, const char *trim_path,
                  const char *source_path)
{
    static const char *const always[] = {"/proc/self/cwd/./",
                                         "/proc/self/cwd/"};
    size_t cut = 0, i;

    if (!trim_path || !*trim_path)
        cut = behind_source(path, n, source_path);
    while (!cut && trim_path && *trim_path) {
        size_t k = strcspn(trim_path, ":");

        cut = prefix_length(path, n, trim_path, k);
        trim_path += k + (trim_path[k] == ':');
    }
    for (i = 0; !cut && i < 2; i++)
        cut = prefix_length(path, n, always[i], strlen(always[i]));
    return cut;
}
