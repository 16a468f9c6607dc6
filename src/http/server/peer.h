/* SPDX-License-Identifier: MIT */
/*
 * Whose is the other end of a connection within this machine. Every user can
 * connect to a port of a loopback address; the kernel tells who did
 * (sock_diag(7)).
 */
#ifndef HTTP_SERVER_PEER_H
#define HTTP_SERVER_PEER_H

#include <stdbool.h>

/* Does the socket at the other end belong to another user of this machine? Not
 * to ours, root, or whoever used sudo ($SUDO_UID). False where the kernel does
 * not tell: the module tcp_diag is missing, netlink is forbidden, or the other
 * end is closed and nobody will read the answer. */
bool
cpprof__http_peer_is_stranger(int fd);

#endif
