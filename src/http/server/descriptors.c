/* SPDX-License-Identifier: MIT */
/*
 * The server's descriptors. They have high numbers, out of the way of a program
 * that closes all low numbers in a loop. A program that closes them
 * nevertheless (closefrom()) may have files of its own at these numbers
 * afterwards. So each descriptor is verified before use: by its inode, and
 * libmicrohttpd's epoll set by what is registered in it, because all epoll sets
 * share one inode. A forked child closes its copies.
 */
#include "http/server/server.h"

#include "base/descriptor.h"

#include <errno.h>
#include <sys/epoll.h>

#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static bool
is_same(int fd, ino_t inode)
{
    struct stat now;

    return !fstat(fd, &now) && now.st_ino == inode;
}

ino_t
cpprof__http_inode(int fd)
{
    struct stat st;

    return fstat(fd, &st) ? 0 : st.st_ino;
}

/* The write end is registered only as a mark: no event ever comes from it. */
static bool
is_set_same(const struct cpprof__http_server *s)
{
    struct epoll_event none = {0};

    if (s->epoll_fd < 0)
        return true;
    if (epoll_ctl(s->epoll_fd, EPOLL_CTL_MOD, s->waker_fd, &none))
        return false;
    if (s->itc_fd < 0)
        return true;
    if (!epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, s->itc_fd, &none))
        epoll_ctl(s->epoll_fd, EPOLL_CTL_DEL, s->itc_fd, NULL);
    else if (errno == EEXIST)
        return true;
    return false;
}

bool
cpprof__http_is_intact(const struct cpprof__http_server *s)
{
    return is_same(s->wake_fd, s->wake_inode) &&
           is_same(s->waker_fd, s->wake_inode) &&
           (s->listen_fd < 0 || is_same(s->listen_fd, s->listen_inode)) &&
           is_set_same(s);
}

bool
cpprof__http_make_wake(struct cpprof__http_server *s)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK))
        return false;
    s->wake_fd = cpprof__descriptor_high(ends[0]);
    s->waker_fd = cpprof__descriptor_high(ends[1]);
    if (s->wake_fd < 0 || s->waker_fd < 0)
        return false;
    s->wake_inode = cpprof__http_inode(s->wake_fd);
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
    s->listen_inode = cpprof__http_inode(s->listen_fd);
}

/* The other descriptor that libmicrohttpd opens and does not reveal: at this
 * point it is the only one in its epoll set. -1: unknown, and a forked child
 * keeps it open. */
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
    struct epoll_event none = {0};

    s->epoll_fd =
        MHD_get_daemon_info(s->mhd, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
    s->itc_fd = find_itc(s->epoll_fd);
    epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, s->waker_fd, &none);
}

static void
close_if_same(int fd, ino_t inode)
{
    if (inode && is_same(fd, inode))
        close(fd);
}

static in_port_t
port_of(const struct sockaddr_storage *name)
{
    if (name->ss_family == AF_INET)
        return ((const struct sockaddr_in *)name)->sin_port;
    return name->ss_family == AF_INET6
               ? ((const struct sockaddr_in6 *)name)->sin6_port
               : 0;
}

/* Is it a connection to the socket of that name? The number may have become the
 * program's. */
static bool
is_accepted(int fd, const struct sockaddr_storage *listens, socklen_t n_listens)
{
    struct sockaddr_storage name;
    socklen_t n = sizeof name;

    if (fd <= 0 || !n_listens || getsockname(fd, (struct sockaddr *)&name, &n))
        return false;
    if (port_of(listens))
        return port_of(listens) == port_of(&name);
    return n == n_listens && !memcmp(&name, listens, n);
}

void
cpprof__http_close_all(struct cpprof__http_server *s)
{
    const int own[] = {s->listen_fd, s->wake_fd, s->waker_fd, s->epoll_fd,
                       s->itc_fd};
    struct sockaddr_storage name;
    socklen_t n_name = sizeof name;
    size_t i;

    if (!cpprof__http_is_intact(s))
        return;
    if (s->listen_fd < 0 ||
        getsockname(s->listen_fd, (struct sockaddr *)&name, &n_name))
        n_name = 0;
    for (i = 0; i < sizeof own / sizeof *own; i++)
        if (own[i] >= 0)
            close(own[i]);
    for (i = 0; i < s->n_connections; i++)
        close_if_same(s->connections[i]->fd, s->connections[i]->inode);
    for (i = 0; i < CPPROF__HTTP_FORGOTTEN; i++)
        close_if_same(s->forgotten[i].fd, s->forgotten[i].inode);
    for (i = 0; i < 2; i++)
        if (is_accepted(s->accepted[i], &name, n_name))
            close(s->accepted[i]);
}

void
cpprof__http_close_own(struct cpprof__http_server *s)
{
    size_t i;

    for (i = 0; i < s->n_connections; i++)
        close_if_same(s->connections[i]->fd, s->connections[i]->inode);
    close_if_same(s->listen_fd, s->listen_inode);
    close_if_same(s->wake_fd, s->wake_inode);
    close_if_same(s->waker_fd, s->wake_inode);
    s->listen_fd = s->wake_fd = s->waker_fd = s->epoll_fd = s->itc_fd = -1;
}
