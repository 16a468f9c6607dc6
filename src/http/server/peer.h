/* SPDX-License-Identifier: MIT */
/*
 * Whose is the other end of a connection within this machine. Every user can
 * connect to a port of a loopback address; the kernel tells who did.
 */
#ifndef HTTP_SERVER_PEER_H
#define HTTP_SERVER_PEER_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>

/*
 * The user of the socket whose own end is `other`, connected to `own`, by
 * sock_diag(7), or by the tables in /proc/net (proc(5)): not every kernel has
 * the module tcp_diag, and a sandbox may forbid netlink. False: it is not told,
 * or the socket is closed; closed ones have no user any more.
 */
bool
cpprof__http_peer_by_netlink(const struct sockaddr_storage *own,
                             const struct sockaddr_storage *other, uid_t *uid);
bool
cpprof__http_peer_by_table(const struct sockaddr_storage *own,
                           const struct sockaddr_storage *other, uid_t *uid);

/* May the socket at the other end belong to another user of this machine? Not
 * to ours, root, or whoever used sudo ($SUDO_UID). True if it is not told. */
bool
cpprof__http_peer_is_stranger(int fd);

#endif
