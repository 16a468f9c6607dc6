/* SPDX-License-Identifier: MIT */
/*
 * The server's inside.
 *
 * One thread accepts connections and reads requests, never waiting for one of
 * them. A request that is whole is handed to a worker, with its connection: the
 * worker sends the answer itself, waits for a slow reader itself, and sees by
 * the socket that the client left. Nothing is queued but what the kernel keeps
 * for a socket. Then the connection goes back to be read again or closed.
 *
 * A connection that is not yet served can be closed at any time. When all are
 * taken and one comes, that one is closed that has kept us longest without a
 * request: so whoever sends one is served, however many others send none.
 *
 * Invariants, under the lock: a descriptor is in the table (or is listen_fd or
 * wake_fd) from its making to its closing, so that a forked child knows them
 * all; between SERVED and DONE only a worker touches a connection, but for
 * shutdown() of its socket.
 */
#ifndef HTTP_SERVER_SERVER_H
#define HTTP_SERVER_SERVER_H

#include "http/plugin.h"
#include "http/server/address.h"
#include "http/server/chunks.h"
#include "http/server/head.h"

#include <limits.h>
#include <pthread.h>

/* Tunables. Memory is at most CPPROF__INPUT for each connection, and
 * CPPROF__BODIES bodies for all; a worker has a stack of its own. */
#define CPPROF__HEAD_MAX  8192 /* bytes of a request line and headers: 431 */
#define CPPROF__INPUT     16384
#define CPPROF__BODIES    16   /* times max_body, of all connections */
#define CPPROF__WORKERS   192  /* the most that there may be */
#define CPPROF__OTHERS    16   /* workers beside those of captures */
#define CPPROF__CONNECTED 4096 /* the most that may be asked for */

/* How long a connection may do nothing between two requests, a client may take
 * to fetch an answer without taking any of it, at which pace it has to, and
 * to hear that the connection is closed. */
#define CPPROF__IDLE_NS   60000000000u
#define CPPROF__STALL_NS  30000000000u
#define CPPROF__PACE      16384 /* bytes a second */
#define CPPROF__LINGER_NS 1000000000u

enum cpprof__http_state {
    CPPROF__HTTP_HEAD,   /* waits for a request, or for the rest of it */
    CPPROF__HTTP_BODY,   /* for the rest of its body */
    CPPROF__HTTP_SERVED, /* by a worker, or waits for one */
    CPPROF__HTTP_DONE,   /* back from it */
    CPPROF__HTTP_LINGER, /* answered and shut; what still comes is dropped */
};

struct cpprof__http_server;

struct cpprof__http_connection {
    int fd;
    enum cpprof__http_state state;
    uint64_t since_ns;    /* it waits for a request */
    uint64_t deadline_ns; /* until when it may */
    bool is_idle;         /* between two requests */

    /* What was read: first the head, when there is one. */
    char *input;
    size_t n_input;
    size_t seen;   /* cpprof__http_head_length() */
    size_t n_head; /* 0: not yet whole */

    struct cpprof__http_head head;
    struct cpprof__http_chunks chunks;
    char *body;
    size_t n_body;
    size_t body_room;

    /* Set by the worker. */
    bool keeps; /* goes on after the answer */
    bool is_cut;
    uint64_t stalled_ns; /* atomic: since when it waits for a reader; 0 */

    struct cpprof__http_server *server;
    struct cpprof__http_connection *next; /* in the queue for a worker */
};

struct cpprof__http_server {
    pthread_mutex_t lock;
    pthread_cond_t work;  /* for workers: the queue, or the end */
    pthread_cond_t ended; /* a thread ended */

    struct cpprof__http_connection **connections; /* max_connections */
    size_t n_connections;
    struct cpprof__http_connection *first, *last; /* wait for a worker */
    size_t n_queued, n_bodies;
    uint32_t n_workers, n_idle_workers, n_threads;
    int listen_fd, wake_fd;
    uint64_t accept_ns; /* not before: out of descriptors */
    bool stops;         /* atomic */
    bool is_over;       /* the thread that reads has ended */

    /* Fixed at the start. */
    pid_t pid;
    const struct cpprof__http_host *host;
    struct cpprof_http_options options;
    char *token;
    uint32_t max_workers;
    struct cpprof__http_address address;
    char address_text[160];
    char path[PATH_MAX]; /* of a unix socket: absolute; "" */
    bool guards_names;   /* cpprof__http_host_is_here() */
};

uint64_t
cpprof__http_now(void);

/* ---- read.c: what a connection sends; under the lock -------------------- */

/* It can be read. */
void
cpprof__http_readable(struct cpprof__http_connection *c);

/* A worker has done with it. */
void
cpprof__http_served(struct cpprof__http_connection *c);

/* What was read may hold a whole request. */
void
cpprof__http_proceed(struct cpprof__http_connection *c);

/* ---- connections.c; under the lock -------------------------------------- */

/* Takes fd. */
void
cpprof__http_open(struct cpprof__http_server *s, int fd);
void
cpprof__http_close_one(struct cpprof__http_connection *c);

/* Of those that are being served, those whose reader takes nothing. */
void
cpprof__http_leave_stalled(struct cpprof__http_server *s);

/* Make room for a new one. False: all are being served. */
bool
cpprof__http_evict(struct cpprof__http_server *s);

/* ---- reply.c ------------------------------------------------------------ */

/* A whole answer, in so few bytes that the socket takes them at once: text of
 * an error and "Connection: close". Then it lingers. */
void
cpprof__http_refuse(struct cpprof__http_connection *c, int status,
                    const char *text);

/* "Not Found" */
const char *
cpprof__http_status_text(int status);

/* "Date: Mon, 02 Jan 2006 15:04:05 GMT\r\n" */
size_t
cpprof__http_date(char *text, size_t n);

/* ---- answer.c: on a worker ---------------------------------------------- */

/* Answer the request of c; sets keeps and is_cut. */
void
cpprof__http_answer(struct cpprof__http_connection *c);

/* ---- workers.c ----------------------------------------------------------- */

/* Under the lock. 0 or an errno: there is no thread for it. */
int
cpprof__http_queue(struct cpprof__http_connection *c);

/* From any thread: have the reading thread look. */
void
cpprof__http_wake(struct cpprof__http_server *s);

#endif
