/* SPDX-License-Identifier: MIT */
/*
 * The server's descriptors. A program may close them with all that it does not
 * know (closefrom(), a loop), and then has files of its own at their numbers:
 * the two that can be told apart, by their inodes, are looked at before any is
 * used. In a forked child they are closed.
 */
#include "http/server/server.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static bool
is_same(int fd, ino_t inode)
{
    struct stat now;

    return !fstat(fd, &now) && now.st_ino == inode;
}

bool
cpprof__http_is_intact(const struct cpprof__http_server *s)
{
    return is_same(s->wake_fd, s->wake_inode) &&
           (s->listen_fd < 0 || is_same(s->listen_fd, s->listen_inode));
}

bool
cpprof__http_make_wake(struct cpprof__http_server *s)
{
    struct stat made;
    int ends[2];

    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK))
        return false;
    s->wake_fd = ends[0];
    s->waker_fd = ends[1];
    s->wake_inode = fstat(s->wake_fd, &made) ? 0 : made.st_ino;
    return true;
}

void
cpprof__http_wake(struct cpprof__http_server *s)
{
    /* Full: it is awake. */
    if (is_same(s->waker_fd, s->wake_inode) && write(s->waker_fd, "", 1) < 0)
        return;
}

void
cpprof__http_note_listen(struct cpprof__http_server *s)
{
    struct stat made;

    s->listen_inode = fstat(s->listen_fd, &made) ? 0 : made.st_ino;
}

/* The other descriptor that libmicrohttpd makes, which it tells nobody of: all
 * that is in its epoll set yet. -1: not known, and a forked child keeps it. */
static int
find_itc(int epoll_fd)
{
    char path[64], line[128];
    FILE *file;
    int fd = -1;

    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", epoll_fd);
    file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file) &&
           sscanf(line, "tfd: %d", &fd) != 1) {
    }
    if (file)
        fclose(file);
    return fd;
}

void
cpprof__http_note_mhd(struct cpprof__http_server *s)
{
    s->epoll_fd =
        MHD_get_daemon_info(s->mhd, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
    s->itc_fd = find_itc(s->epoll_fd);
}

void
cpprof__http_close_all(struct cpprof__http_server *s)
{
    const int own[] = {s->listen_fd, s->wake_fd, s->waker_fd, s->epoll_fd,
                       s->itc_fd};
    size_t i;

    if (!cpprof__http_is_intact(s))
        return;
    for (i = 0; i < sizeof own / sizeof *own; i++)
        if (own[i] >= 0)
            close(own[i]);
    for (i = 0; i < s->n_connections; i++)
        close(s->connections[i]->fd);
}
