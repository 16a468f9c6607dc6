/* SPDX-License-Identifier: MIT */
/*
 * Keeps a copy of what was fetched. A free number is taken by making the file,
 * so that two commands at once never write the same file. Source:
 * internal/driver/tempfile.go, fetch.go setTmpDir.
 */
#include "cli/fetch/fetch.h"

#include "cli/messages.h"
#include "cli/output_file.h"

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

/* Can this folder be used? Makes it. Prints why not. */
static bool
usable(const char *folder)
{
    struct stat st;

    if (stat(folder, &st) == 0)
        errno = S_ISDIR(st.st_mode) ? 0 : ENOTDIR;
    else if (cpprof__make_folders_above(folder, 0755) &&
             (mkdir(folder, 0755) == 0 || errno == EEXIST))
        errno = 0;
    if (!errno)
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
    const char *file = "";
    size_t i;

    name[0] = 0;
    add_word(name, "pprof");
    if (pprof_mapping_count(p))
        file = pprof_text(p, pprof_mappings(p)[0].file, NULL);
    add_word(name, basename(file));
    for (i = 0; i < pprof_sample_type_count(p); i++)
        add_word(name, pprof_text(p, pprof_sample_types(p)[i].type, NULL));
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
    char folder[PATH_MAX + LONGEST_NAME + 2], path[PATH_MAX];
    char name[LONGEST_NAME + 1];
    struct cpprof_error error = {0};
    int fd;

    if (!r->n_profiles || !find_folder(folder))
        return;
    make_name(name, p);
    strcat(folder, "/");
    strcat(folder, name);
    fd = cpprof__numbered_file(path, folder, ".pb.gz");
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
