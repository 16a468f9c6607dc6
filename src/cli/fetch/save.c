/* SPDX-License-Identifier: MIT */
/*
 * Keeps a copy of what was fetched. A free number is taken by making the file,
 * so that two commands at once never write the same file. Source:
 * internal/driver/tempfile.go, fetch.go setTmpDir.
 */
#include "cli/fetch/origins.h"

#include "cli/messages.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ------------------------------------------------------------- where ---- */

/* mkdir -p; false with errno. */
static bool
make_folders(const char *path)
{
    char part[PATH_MAX];
    struct stat st;
    char *slash;

    if (stat(path, &st) == 0) {
        errno = ENOTDIR;
        return S_ISDIR(st.st_mode);
    }
    if (snprintf(part, sizeof part, "%s", path) >= (int)sizeof part) {
        errno = ENAMETOOLONG;
        return false;
    }
    for (slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        if (mkdir(part, 0755) != 0 && errno != EEXIST)
            return false;
        *slash = '/';
    }
    return mkdir(part, 0755) == 0 || errno == EEXIST;
}

/* Can this folder be used? Prints why not. */
static bool
usable(const char *folder)
{
    if (make_folders(folder))
        return true;
    cpprof__cli_warn("Could not use temp dir %s: %s", folder, strerror(errno));
    return false;
}

/* Put the folder for copies into text; false after printing that there is none.
 */
static bool
find_folder(char text[PATH_MAX])
{
    const char *given = getenv("PPROF_TMPDIR"), *home = getenv("HOME");
    const char *temp = getenv("TMPDIR");

    if (given && *given && snprintf(text, PATH_MAX, "%s", given) < PATH_MAX &&
        usable(text))
        return true;
    if (home && *home &&
        snprintf(text, PATH_MAX, "%s/pprof", home) < PATH_MAX && usable(text))
        return true;
    if (snprintf(text, PATH_MAX, "%s", temp && *temp ? temp : "/tmp") <
            PATH_MAX &&
        usable(text))
        return true;
    cpprof__cli_warn("failed to identify temp dir");
    return false;
}

/* -------------------------------------------------------------- name ---- */

/* The longest name without its number and ending; a longer one is cut. */
#define LONGEST_NAME 200

/* A word of the name, and a dot. What is no character of file names, or would
 * be another folder, is replaced. */
static void
add_word(char name[LONGEST_NAME + 1], const char *word)
{
    size_t n = strlen(name);

    if (!*word)
        return;
    for (; *word && n + 1 < LONGEST_NAME; word++)
        name[n++] = *word == '/' || (unsigned char)*word < ' ' ? '_' : *word;
    name[n++] = '.';
    name[n] = 0;
}

static void
make_name(char name[LONGEST_NAME + 1], const struct pprof_profile *p)
{
    const char *file = "", *slash;
    size_t i;

    name[0] = 0;
    add_word(name, "pprof");
    if (pprof_mapping_count(p))
        file = pprof_text(p, pprof_mappings(p)[0].file, NULL);
    slash = strrchr(file, '/');
    add_word(name, slash ? slash + 1 : file);
    for (i = 0; i < pprof_sample_type_count(p); i++)
        add_word(name, pprof_text(p, pprof_sample_types(p)[i].type, NULL));
}

/* The first file of that name and a number that is not there yet; its path. */
static int
open_numbered(char path[PATH_MAX], const char *folder, const char *name)
{
    int i, fd;

    for (i = 1; i < 10000; i++) {
        if (snprintf(path, PATH_MAX, "%s/%s%03d.pb.gz", folder, name, i) >=
            PATH_MAX) {
            errno = ENAMETOOLONG;
            return -1;
        }
        fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    return -1;
}

/* An interrupt waits until the file is complete or gone. */
static enum cpprof_status
write_whole(int fd, const char *path, const struct pprof_profile *p,
            struct cpprof_error *error)
{
    enum cpprof_status status;
    struct cpprof_writer writer;
    sigset_t interrupts, before;

    sigemptyset(&interrupts);
    sigaddset(&interrupts, SIGINT);
    sigaddset(&interrupts, SIGTERM);
    sigaddset(&interrupts, SIGHUP);
    sigprocmask(SIG_BLOCK, &interrupts, &before);
    cpprof_writer_to_fd(fd, &writer);
    status = pprof_write(p, &writer, PPROF_FORMAT_GZIP, NULL, error);
    if (status != CPPROF_OK)
        unlink(path);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return status;
}

void
cpprof__origins_save(const struct cpprof__origins *r,
                     const struct pprof_profile *p)
{
    char folder[PATH_MAX], path[PATH_MAX], name[LONGEST_NAME + 1];
    struct cpprof_error error = {0};
    int fd;

    if (!r->n_profiles || !find_folder(folder))
        return;
    make_name(name, p);
    fd = open_numbered(path, folder, name);
    if (fd < 0)
        cpprof__cli_warn("Could not save profile: open %s: %s", path,
                         strerror(errno));
    else if (write_whole(fd, path, p, &error) != CPPROF_OK)
        cpprof__cli_warn("Could not save profile: %s", error.text);
    else
        fprintf(stderr, "Saved profile in %s\n", path);
    if (fd >= 0)
        close(fd);
}
