/* SPDX-License-Identifier: MIT */
/*
 * Open file descriptors as a profile: which code opened those that are open
 * now. A server that runs out of them asks this profile instead of guessing.
 *
 *     cc open_files.c -lcpprof && ./a.out
 *     cpprof top open_files.pb.gz
 *
 * A descriptor goes into the profile where it is opened and out of it where it
 * is closed; the number is the value, unique as long as it is open. All of it
 * is in the two functions that this program opens and closes files with.
 */
#include <cpprof/profiles.h>

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

static struct cpprof_profile *open_files;

static const void *
value_of(int fd)
{
    return (const void *)(intptr_t)fd;
}

/* skip 1: the stack begins at who wanted the file, not here. What is skipped
 * has to be a frame, so the compiler must not put it into its caller. */
__attribute__((noinline)) static int
open_file(const char *path, int flags)
{
    int fd = open(path, flags | O_CLOEXEC);

    if (fd >= 0)
        cpprof_profile_add(open_files, value_of(fd), 1, NULL);
    return fd;
}

/* Out of the profile first: once it is closed, another thread may be given
 * the same number. */
static int
close_file(int fd)
{
    cpprof_profile_remove(open_files, value_of(fd));
    return close(fd);
}

/* ---- a program that uses them ------------------------------------------ */

static void
read_settings(void)
{
    char text[64];
    int fd = open_file("/etc/hostname", O_RDONLY);

    if (fd < 0)
        return;
    if (read(fd, text, sizeof text) < 0)
        perror("read");
    close_file(fd);
}

static void
open_logs(void)
{
    int i;

    for (i = 0; i < 3; i++)
        open_file("/dev/null", O_WRONLY); /* kept open */
}

/* The bug that the profile shows. */
static void
handle_request(void)
{
    int fd = open_file("/dev/zero", O_RDONLY);
    char byte;

    if (fd >= 0 && read(fd, &byte, 1) == 1)
        return; /* without close_file() */
    close_file(fd);
}

static int
write_profile(const struct cpprof_writer *writer, int debug)
{
    const struct cpprof_profile_options options = {.size = sizeof options,
                                                   .debug = debug};
    struct cpprof_error error;

    if (cpprof_profile_write(open_files, writer, &options, &error)) {
        fprintf(stderr, "open_files: %s\n", error.text);
        return 1;
    }
    return 0;
}

int
main(void)
{
    struct cpprof_writer writer, text;
    struct cpprof_error error;
    int i;

    if (cpprof_profile_new("open_files", &open_files, &error) ||
        cpprof_writer_to_path("open_files.pb.gz", &writer, &error)) {
        fprintf(stderr, "open_files: %s\n", error.text);
        return 1;
    }
    open_logs();
    for (i = 0; i < 100; i++) {
        read_settings();
        handle_request();
    }
    printf("%zu files are open\n\n", cpprof_profile_count(open_files));
    fflush(stdout);
    cpprof_writer_to_fd(1, &text);
    return write_profile(&writer, 0) | write_profile(&text, 1);
}
