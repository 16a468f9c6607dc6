/* SPDX-License-Identifier: MIT */
#include "http/server/peer.h"

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

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

/* Ask for the socket whose own end is `own`, and whose other is `other`. The
 * kernel answers before send() returns. */
static bool
ask_kernel(const struct sockaddr_storage *own,
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
    copy_end(own, &id->idiag_sport, id->idiag_src);
    copy_end(other, &id->idiag_dport, id->idiag_dst);
    if (send(fd, &question, sizeof question, 0) == sizeof question)
        n = recv(fd, &answer, sizeof answer, MSG_DONTWAIT);
    close(fd);
    /* Without such a socket it may be one that listens at that port. */
    if (n < (ssize_t)(sizeof answer.head + sizeof answer.socket) ||
        answer.head.nlmsg_type != SOCK_DIAG_BY_FAMILY ||
        answer.socket.id.idiag_sport != id->idiag_sport ||
        answer.socket.id.idiag_dport != id->idiag_dport)
        return false;
    *uid = answer.socket.idiag_uid;
    return true;
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
        !ask_kernel(&other, &own, &uid))
        return false;
    return uid != 0 && uid != getuid() && uid != geteuid() &&
           !(sudo && *sudo && uid == strtoul(sudo, NULL, 10));
}
