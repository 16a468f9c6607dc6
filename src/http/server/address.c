/* SPDX-License-Identifier: MIT */
/*
 * Addresses of the server: from text, to text, and to a socket that listens.
 *
 * Only numeric hosts and "localhost" are understood, because looking up a name
 * may load libraries into the program. A socket of a server that is gone is
 * removed only after a connection to it was refused.
 */
#include "http/server/address.h"

#include "arch/clock.h"
#include "base/status.h"
#include "http/server/high_descriptors.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define UNIX "unix:"

/* Tunable: milliseconds for another process to begin to listen. */
#define LOCK_TRIES 100

/* ---- from text -------------------------------------------------------- */

static enum cpprof_status
parse_unix(const char *path, struct cpprof__http_address *address,
           struct cpprof_error *error)
{
    size_t n = strlen(path);

    if (!n)
        return cpprof__fail(error, CPPROF_INVALID, 0,
                            "http: unix: without a path");
    if (n >= sizeof address->local.sun_path)
        return cpprof__fail(error, CPPROF_INVALID, 0,
                            "http: the path of a socket has at most %zu bytes, "
                            "this one %zu: %.60s...",
                            sizeof address->local.sun_path - 1, n, path);
    address->local.sun_family = AF_UNIX;
    memcpy(address->local.sun_path, path, n + 1);
    address->n = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n + 1);
    return CPPROF_OK;
}

static bool
parse_port(const char *text, in_port_t *port)
{
    size_t n = strspn(text, "0123456789");
    unsigned v = 0;

    if (!n || n > 5 || text[n])
        return false;
    for (; *text; text++)
        v = 10 * v + (unsigned)(*text - '0');
    *port = htons((in_port_t)v);
    return v <= 65535;
}

static void
set_four(struct cpprof__http_address *address, struct in_addr host,
         in_port_t port)
{
    memset(&address->four, 0, sizeof address->four);
    address->four.sin_family = AF_INET;
    address->four.sin_addr = host;
    address->four.sin_port = port;
    address->n = sizeof address->four;
}

static void
set_six(struct cpprof__http_address *address, struct in6_addr host,
        in_port_t port)
{
    memset(&address->six, 0, sizeof address->six);
    address->six.sin6_family = AF_INET6;
    address->six.sin6_addr = host;
    address->six.sin6_port = port;
    address->n = sizeof address->six;
}

/* host is what is left of ":PORT". */
static bool
parse_host(const char *host, in_port_t port,
           struct cpprof__http_address *address)
{
    const struct in_addr loopback = {htonl(INADDR_LOOPBACK)};
    size_t n = strlen(host);
    char name[INET6_ADDRSTRLEN];
    struct in6_addr six;
    struct in_addr four;

    address->is_wildcard = !n;
    address->is_localhost = !strcmp(host, "localhost");
    if (!n)
        set_six(address, in6addr_any, port);
    else if (address->is_localhost)
        set_four(address, loopback, port);
    else if (inet_pton(AF_INET, host, &four) == 1)
        set_four(address, four, port);
    else if (n > 2 && n < sizeof name && *host == '[' && host[n - 1] == ']') {
        memcpy(name, host + 1, n - 2);
        name[n - 2] = 0;
        if (inet_pton(AF_INET6, name, &six) != 1)
            return false;
        set_six(address, six, port);
    } else {
        return false;
    }
    return true;
}

enum cpprof_status
cpprof__http_address_parse(const char *text,
                           struct cpprof__http_address *address,
                           struct cpprof_error *error)
{
    const char *colon = strrchr(text, ':');
    char host[INET6_ADDRSTRLEN + 3];
    in_port_t port;

    memset(address, 0, sizeof *address);
    if (!strncmp(text, UNIX, sizeof UNIX - 1))
        return parse_unix(text + sizeof UNIX - 1, address, error);
    if (colon && (size_t)(colon - text) < sizeof host &&
        parse_port(colon + 1, &port)) {
        memcpy(host, text, (size_t)(colon - text));
        host[colon - text] = 0;
        if (parse_host(host, port, address))
            return CPPROF_OK;
    }
    return cpprof__fail(error, CPPROF_INVALID, 0,
                        "http: %.80s is not an address such as "
                        "127.0.0.1:6060, [::1]:6060, localhost:6060, :6060 or "
                        "unix:/path",
                        text);
}

bool
cpprof__http_address_is_here(const struct cpprof__http_address *address)
{
    const struct in6_addr *six = &address->six.sin6_addr;

    if (address->any.sa_family == AF_UNIX)
        return true;
    if (address->any.sa_family == AF_INET)
        return ntohl(address->four.sin_addr.s_addr) >> 24 == 127;
    return IN6_IS_ADDR_LOOPBACK(six) ||
           (IN6_IS_ADDR_V4MAPPED(six) && six->s6_addr[12] == 127);
}

int
cpprof__http_address_text(const struct cpprof__http_address *address,
                          char *text, size_t n)
{
    char host[INET6_ADDRSTRLEN] = "";

    if (address->any.sa_family == AF_UNIX)
        return snprintf(text, n, UNIX "%s", address->local.sun_path);
    if (address->is_wildcard)
        return snprintf(text, n, ":%u", ntohs(address->four.sin_port));
    if (address->any.sa_family == AF_INET) {
        inet_ntop(AF_INET, &address->four.sin_addr, host, sizeof host);
        return snprintf(text, n, "%s:%u", host, ntohs(address->four.sin_port));
    }
    inet_ntop(AF_INET6, &address->six.sin6_addr, host, sizeof host);
    return snprintf(text, n, "[%s]:%u", host, ntohs(address->six.sin6_port));
}

/* ---- listening -------------------------------------------------------- */

/* Is the file a socket whose server is gone? Then nobody accepts connections.
 */
static bool
is_stale(const struct cpprof__http_address *address)
{
    struct stat st;
    bool stale;
    int fd;

    if (lstat(address->local.sun_path, &st) || !S_ISSOCK(st.st_mode))
        return false;
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return false;
    stale = connect(fd, &address->any, address->n) && errno == ECONNREFUSED;
    close(fd);
    return stale;
}

/* bind() takes the mode of the socket's inode, less the umask. So the program's
 * umask stays untouched, and nobody can connect before the mode is right. */
static int
bind_unix(int fd, const struct cpprof__http_address *address)
{
    if (fchmod(fd, 0600))
        return errno;
    if (!bind(fd, &address->any, address->n))
        return 0;
    if (errno != EADDRINUSE || !is_stale(address))
        return errno;
    if (unlink(address->local.sun_path) && errno != ENOENT)
        return errno;
    return bind(fd, &address->any, address->n) ? errno : 0;
}

static int
bind_inet(int fd, struct cpprof__http_address *address)
{
    int on = 1, off = 0;

    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (address->any.sa_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY,
                   address->is_wildcard ? &off : &on, sizeof on);
    if (bind(fd, &address->any, address->n))
        return errno;
    return 0;
}

/* Of two processes that start on one path at the same time, the second must not
 * take the socket of the first for a stale one before that listens: so each has
 * a lock on the folder meanwhile. -1: it cannot be had, and chance decides. */
static int
lock_folder(const struct cpprof__http_address *address)
{
    char path[sizeof address->local.sun_path];
    unsigned tries;
    char *slash;
    int fd;

    snprintf(path, sizeof path, "%s", address->local.sun_path);
    slash = strrchr(path, '/');
    if (slash)
        slash[slash == path] = 0;
    fd = open(slash ? path : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (tries = 0; fd >= 0 && flock(fd, LOCK_EX | LOCK_NB); tries++) {
        if (tries == LOCK_TRIES) {
            close(fd);
            return -1;
        }
        cpprof__sleep_ns(1000000);
    }
    return fd;
}

static int
try_listen(struct cpprof__http_address *address, int *out)
{
    int type = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;
    int fd = socket(address->any.sa_family, type, 0), failed, folder = -1;

    if (fd >= 0)
        fd = cpprof__descriptor_high(fd);
    if (fd < 0)
        return errno;
    if (address->any.sa_family == AF_UNIX)
        folder = lock_folder(address);
    failed = address->any.sa_family == AF_UNIX ? bind_unix(fd, address)
                                               : bind_inet(fd, address);
    if (!failed && listen(fd, SOMAXCONN)) {
        failed = errno;
        if (address->any.sa_family == AF_UNIX)
            unlink(address->local.sun_path);
    }
    if (folder >= 0)
        close(folder);
    if (failed) {
        close(fd);
        return failed;
    }
    if (address->any.sa_family != AF_UNIX) {
        socklen_t n = sizeof address->six;

        getsockname(fd, &address->any, &n);
        address->n = n;
    }
    *out = fd;
    return 0;
}

/* If the system lacks one of the two families, use the other. */
static bool
take_other_family(struct cpprof__http_address *address, int failed)
{
    const struct in_addr any = {htonl(INADDR_ANY)};
    in_port_t port = address->four.sin_port;

    if (failed != EAFNOSUPPORT && failed != EADDRNOTAVAIL)
        return false;
    if (address->is_wildcard)
        set_four(address, any, port);
    else if (address->is_localhost)
        set_six(address, in6addr_loopback, port);
    else
        return false;
    return true;
}

enum cpprof_status
cpprof__http_address_listen(struct cpprof__http_address *address,
                            const char *text, int *fd,
                            struct cpprof_error *error)
{
    int failed = try_listen(address, fd);

    if (failed && take_other_family(address, failed))
        failed = try_listen(address, fd);
    if (failed)
        return cpprof__fail(error, CPPROF_SYSTEM, failed,
                            "http: cannot listen at %.120s: %s", text,
                            strerror(failed));
    return CPPROF_OK;
}
