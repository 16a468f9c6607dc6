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

#include "arch/atomic.h"
#include "http/server/high_descriptors.h"

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

void
cpprof__http_note_number(struct cpprof__http_numbers *numbers, int fd)
{
    if (fd < 0)
        return;
    if (!numbers->last || fd < numbers->first)
        store_release(&numbers->first, fd);
    if (fd > numbers->last)
        store_release(&numbers->last, fd);
}

/* The name of a socket; how long it is, or 0. */
static socklen_t
name_of(int fd, struct sockaddr_storage *name)
{
    socklen_t n = sizeof *name;

    memset(name, 0, sizeof *name);
    return fd < 0 || getsockname(fd, (struct sockaddr *)name, &n) ? 0 : n;
}

/* The port of a socket that takes connections to all addresses; else 0. */
static in_port_t
port_of_all(const struct sockaddr_storage *name)
{
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)name;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)name;

    if (name->ss_family == AF_INET && v4->sin_addr.s_addr == INADDR_ANY)
        return v4->sin_port;
    if (name->ss_family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&v6->sin6_addr))
        return v6->sin6_port;
    return 0;
}

/* Is it a connection to the socket of that name? The program may have others
 * at these numbers. */
static bool
is_accepted(int fd, const struct sockaddr_storage *listens, socklen_t n_listens)
{
    struct sockaddr_storage name;
    socklen_t n = name_of(fd, &name);
    in_port_t port = port_of_all(listens);

    if (n && port && (name.ss_family == AF_INET || name.ss_family == AF_INET6))
        return port == (name.ss_family == AF_INET
                            ? ((struct sockaddr_in *)&name)->sin_port
                            : ((struct sockaddr_in6 *)&name)->sin6_port);
    return n && n == n_listens && !memcmp(&name, listens, n);
}

/* The number behind the last may have been given, and not noted yet. */
static void
close_accepted(const struct cpprof__http_numbers *numbers, int first,
               const struct sockaddr_storage *listens, socklen_t n_listens)
{
    int fd;

    for (fd = first; numbers->last && fd <= numbers->last + 1; fd++)
        if (is_accepted(fd, listens, n_listens))
            close(fd);
}

void
cpprof__http_close_all(struct cpprof__http_server *s)
{
    const int own[] = {s->listen_fd, s->wake_fd, s->waker_fd, s->epoll_fd,
                       s->itc_fd};
    struct sockaddr_storage listens;
    socklen_t n_listens;
    size_t i;

    if (!cpprof__http_is_intact(s))
        return;
    n_listens = name_of(s->listen_fd, &listens);
    for (i = 0; i < sizeof own / sizeof *own; i++)
        if (own[i] >= 0)
            close(own[i]);
    if (n_listens) {
        close_accepted(&s->came, STDERR_FILENO + 1, &listens, n_listens);
        close_accepted(&s->moved, s->moved.first, &listens, n_listens);
    }
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
