/* SPDX-License-Identifier: MIT */
/*
 * The kernel is asked for one socket by netlink; where it does not answer, its
 * tables of all sockets are read line by line.
 */
#include "http/server/peer.h"

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* A connection that neither end has closed, in what the kernel tells. */
#define ESTABLISHED 1

/* ------------------------------------------------------------- netlink ---- */

/* The address of one end, as the kernel wants it in a question. */
static void
copy_end(const struct sockaddr_storage *end, __be16 *port, __be32 host[4])
{
    const struct sockaddr_in *four = (const struct sockaddr_in *)end;
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)end;

    if (end->ss_family == AF_INET) {
        *port = four->sin_port;
        memcpy(host, &four->sin_addr, sizeof four->sin_addr);
    } else {
        *port = six->sin6_port;
        memcpy(host, &six->sin6_addr, sizeof six->sin6_addr);
    }
}

/* The kernel answers before send() returns. */
bool
cpprof__http_peer_by_netlink(const struct sockaddr_storage *own,
                             const struct sockaddr_storage *other, uid_t *uid)
{
    struct {
        struct nlmsghdr head;
        struct inet_diag_req_v2 ask;
    } question = {
        {sizeof question, SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST, 0, 0},
        {.sdiag_family = (__u8)own->ss_family,
         .sdiag_protocol = IPPROTO_TCP,
         .idiag_states = UINT32_MAX,
         .id.idiag_cookie = {INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE}}};
    struct {
        struct nlmsghdr head;
        struct inet_diag_msg socket;
        char more[512];
    } answer;
    struct inet_diag_sockid *id = &question.ask.id;
    ssize_t n = 0;
    int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);

    if (fd < 0)
        return false;
    copy_end(other, &id->idiag_sport, id->idiag_src);
    copy_end(own, &id->idiag_dport, id->idiag_dst);
    if (send(fd, &question, sizeof question, 0) == sizeof question)
        n = recv(fd, &answer, sizeof answer, MSG_DONTWAIT);
    close(fd);
    /* Without such a socket it may be one that listens at that port. */
    if (n < (ssize_t)(sizeof answer.head + sizeof answer.socket) ||
        answer.head.nlmsg_type != SOCK_DIAG_BY_FAMILY ||
        answer.socket.idiag_state != ESTABLISHED ||
        answer.socket.id.idiag_sport != id->idiag_sport ||
        answer.socket.id.idiag_dport != id->idiag_dport)
        return false;
    *uid = answer.socket.idiag_uid;
    return true;
}

/* -------------------------------------------------------------- tables ---- */

/* An end as the tables print it: 32 bits at a time, as the machine reads them.
 */
#define END_TEXT 48

static void
print_end(const struct in6_addr *host, unsigned n_words, in_port_t port,
          char text[END_TEXT])
{
    uint32_t words[4];
    unsigned i;
    int n = 0;

    memcpy(words, host, sizeof words);
    for (i = 4 - n_words; i < 4; i++)
        n += snprintf(text + n, (size_t)(END_TEXT - n), "%08X", words[i]);
    snprintf(text + n, (size_t)(END_TEXT - n), ":%04X", ntohs(port));
}

/* Every end has an address of IPv6: one of IPv4 is mapped. */
static in_port_t
map_end(const struct sockaddr_storage *end, struct in6_addr *host)
{
    const struct sockaddr_in *four = (const struct sockaddr_in *)end;
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)end;

    if (end->ss_family == AF_INET6) {
        *host = six->sin6_addr;
        return six->sin6_port;
    }
    memset(host, 0, sizeof *host);
    host->s6_addr[10] = host->s6_addr[11] = 0xff;
    memcpy(host->s6_addr + 12, &four->sin_addr, sizeof four->sin_addr);
    return four->sin_port;
}

/* A table of sockets whose addresses have so many words. */
static bool
find_in(const char *path, unsigned n_words, const struct sockaddr_storage *own,
        const struct sockaddr_storage *other, uid_t *uid)
{
    char here[END_TEXT], there[END_TEXT], line[512], from[END_TEXT],
        to[END_TEXT];
    FILE *table = fopen(path, "re");
    struct in6_addr host;
    in_port_t port;
    bool found = false;
    unsigned state, user;

    port = map_end(own, &host);
    print_end(&host, n_words, port, here);
    port = map_end(other, &host);
    print_end(&host, n_words, port, there);
    while (table && !found && fgets(line, sizeof line, table))
        found = sscanf(line, " %*u: %47s %47s %x %*s %*s %*s %u", from, to,
                       &state, &user) == 4 &&
                state == ESTABLISHED && strcmp(from, there) == 0 &&
                strcmp(to, here) == 0;
    if (table)
        fclose(table);
    if (found)
        *uid = user;
    return found;
}

bool
cpprof__http_peer_by_table(const struct sockaddr_storage *own,
                           const struct sockaddr_storage *other, uid_t *uid)
{
    struct in6_addr host;

    /* A socket of IPv6 can be connected to an address of IPv4. */
    map_end(own, &host);
    return (IN6_IS_ADDR_V4MAPPED(&host) &&
            find_in("/proc/net/tcp", 1, own, other, uid)) ||
           find_in("/proc/net/tcp6", 4, own, other, uid);
}

bool
cpprof__http_peer_is_stranger(int fd)
{
    struct sockaddr_storage own = {0}, other = {0};
    socklen_t n_own = sizeof own, n_other = sizeof other;
    const char *sudo = getenv("SUDO_UID");
    uid_t uid;

    if (getsockname(fd, (struct sockaddr *)&own, &n_own) ||
        getpeername(fd, (struct sockaddr *)&other, &n_other) ||
        (own.ss_family != AF_INET && own.ss_family != AF_INET6) ||
        (!cpprof__http_peer_by_netlink(&own, &other, &uid) &&
         !cpprof__http_peer_by_table(&own, &other, &uid)))
        return true;
    return uid != 0 && uid != getuid() && uid != geteuid() &&
           !(sudo && *sudo && uid == strtoul(sudo, NULL, 10));
}
