/* SPDX-License-Identifier: MIT */
/*
 * The table of connections: adds and forgets them, and chooses which one has to
 * go when a new one finds no room.
 *
 * A connection that lingers after its last answer goes first, then an idle one,
 * then one that has sent a part of a request. A connection that is being served
 * stays. All of this runs under the server's lock.
 */
#include "arch/clock.h"
#include "http/server/peer.h"
#include "http/server/server.h"

#include "arch/atomic.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* A reader that has taken nothing for so long may be disconnected. */
#define STALLED_NS 1000000000u

void
cpprof__http_set_state(struct cpprof__http_connection *c,
                       enum cpprof__http_state state, uint64_t ns)
{
    c->state = state;
    c->since_ns = cpprof__now_ns(CLOCK_MONOTONIC);
    c->deadline_ns = c->since_ns + ns;
}

void
cpprof__http_open(struct cpprof__http_server *s, int fd,
                  const struct sockaddr *peer, socklen_t n_peer)
{
    struct cpprof__http_connection *c = calloc(1, sizeof *c);

    if (!c) {
        close(fd);
        return;
    }
    c->fd = fd;
    c->inode = cpprof__http_inode(fd);
    c->server = s;
    c->is_strange = s->guards_users && cpprof__http_peer_is_stranger(fd);
    cpprof__http_set_state(c, CPPROF__HTTP_HEAD,
                           s->options.header_seconds * UINT64_C(1000000000));
    s->connections[s->n_connections] = c;
    store_release(&s->n_connections, s->n_connections + 1);
    /* On failure it closes fd, and has told of the end if of the begin. */
    if (MHD_add_connection(s->mhd, fd, peer, n_peer) == MHD_NO &&
        (c = cpprof__http_connection_of(s, fd)))
        cpprof__http_forget(c);
}

struct cpprof__http_connection *
cpprof__http_connection_of(const struct cpprof__http_server *s, int fd)
{
    size_t i;

    for (i = 0; i < s->n_connections; i++)
        if (s->connections[i]->fd == fd)
            return s->connections[i];
    return NULL;
}

void
cpprof__http_forget_refused(struct cpprof__http_server *s)
{
    size_t i = 0;

    while (i < s->n_connections)
        if (s->connections[i]->mhd)
            i++;
        else
            cpprof__http_forget(s->connections[i]);
}

void
cpprof__http_forget(struct cpprof__http_connection *c)
{
    struct cpprof__http_server *s = c->server;
    size_t i = 0;

    while (s->connections[i] != c)
        i++;
    s->connections[i] = s->connections[--s->n_connections];
    free(c);
}

void
cpprof__http_shut(struct cpprof__http_connection *c, int how)
{
    if (how == SHUT_RDWR)
        c->is_shut = true;
    shutdown(c->fd, how);
}

/* The connection with the highest rank goes first; 0 stays. */
static int
rank(const struct cpprof__http_connection *c)
{
    static const int ranks[] = {
        [CPPROF__HTTP_HEAD] = 1,
        [CPPROF__HTTP_IDLE] = 2,
        [CPPROF__HTTP_LINGER] = 3,
    };

    return c->is_shut || c->state >= sizeof ranks / sizeof *ranks
               ? 0
               : ranks[c->state];
}

/* The workers see it by a failed write. */
void
cpprof__http_drop_stalled(struct cpprof__http_server *s)
{
    uint64_t now = cpprof__now_ns(CLOCK_MONOTONIC);
    size_t i;

    for (i = 0; i < s->n_connections; i++) {
        struct cpprof__http_connection *c = s->connections[i];

        if (c->state == CPPROF__HTTP_SENDING && now > c->since_ns + STALLED_NS)
            cpprof__http_shut(c, SHUT_RDWR);
    }
}

bool
cpprof__http_evict(struct cpprof__http_server *s)
{
    struct cpprof__http_connection *worst = NULL;
    size_t i, n = s->n_connections;

    for (i = 0; i < s->n_connections; i++) {
        struct cpprof__http_connection *c = s->connections[i];
        int worse = rank(c) - (worst ? rank(worst) : 0);

        if (worse > 0 || (!worse && worst && c->since_ns < worst->since_ns))
            worst = c;
    }
    if (worst)
        cpprof__http_shut(worst, SHUT_RDWR);
    else
        cpprof__http_drop_stalled(s);
    MHD_run(s->mhd); /* closes what was shut */
    return s->n_connections < n;
}
