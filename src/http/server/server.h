/* SPDX-License-Identifier: MIT */
/*
 * The server's inside.
 *
 * HTTP is libmicrohttpd's. It has no thread of its own here: ours accepts,
 * waits, and runs it (serve.c), so that all it does is done on a thread of the
 * profiler's, and under the lock. A request that is whole (request.c) is handed
 * to a worker, and its connection suspended. What the worker writes (answer.c)
 * is copied straight from its memory into the buffer that is sent, and the
 * worker waits until that is done. So nothing is queued but what the kernel
 * keeps for a socket, and a slow reader holds up its own worker only. The
 * thread that waits notices when a client leaves.
 *
 * A connection that is not yet served can be closed at any time. When all slots
 * are taken and another client connects, the connection that has been without a
 * request for longest is closed. So whoever sends a request is served, however
 * many clients send none.
 *
 * Invariants, under the lock: a descriptor is in the table (or is one of the
 * server's) from its making to its closing, so that a forked child knows them
 * all; only libmicrohttpd closes that of a connection, and others shut it. A
 * request that a worker has is freed by the worker, or by who sees it end
 * later.
 */
#ifndef HTTP_SERVER_SERVER_H
#define HTTP_SERVER_SERVER_H

#include "arch/clock.h"
#include "http/plugin.h"
#include "http/server/address.h"
#include "http/server/guard.h"

#include <limits.h>
#include <microhttpd.h>
#include <poll.h>
#include <pthread.h>
#include <sys/types.h>

/* Descriptors that are waited for beside those of connections. */
enum {
    CPPROF__HTTP_LISTEN,
    CPPROF__HTTP_WAKE,
    CPPROF__HTTP_EPOLL,
    CPPROF__HTTP_OWN
};

/* Tunables. Memory is at most a pool for each connection, and CPPROF__BODIES
 * bodies for all; a worker has a stack of its own. A head, request line and
 * headers, may have a third of the pool (431): a redirection repeats what was
 * asked for, and libmicrohttpd keeps cookies twice. */
#define CPPROF__POOL      24576  /* in a program; and what is sent at once */
#define CPPROF__PAGE_POOL 262144 /* of browsers: cookies of all localhost */
#define CPPROF__BODIES    16     /* times max_body, of all connections */
#define CPPROF__WORKERS   192    /* the most that there may be */
#define CPPROF__OTHERS    16     /* workers beside those of captures */
#define CPPROF__CONNECTED 4096   /* the most that may be asked for */

/* libmicrohttpd asks for another round at once even if a connection waits with
 * a full buffer. After CPPROF__ROUNDS rounds in which nothing happened, more
 * than it ever needs, it gets only one round in some milliseconds. */
#define CPPROF__ROUNDS  16
#define CPPROF__LULL_MS 10

/* How long a connection may do nothing between two requests, a client may take
 * to fetch what is in the buffer, at which pace it has to fetch an answer, and
 * how long it may take to hear that its request was refused. */
#define CPPROF__IDLE_NS   60000000000u
#define CPPROF__STALL_NS  30000000000u
#define CPPROF__PACE      16384 /* bytes a second */
#define CPPROF__LINGER_NS 1000000000u

enum cpprof__http_state {
    CPPROF__HTTP_HEAD,    /* waits for a request, or for the rest of it */
    CPPROF__HTTP_IDLE,    /* the same, between two requests */
    CPPROF__HTTP_SERVED,  /* by a worker, or waits for one */
    CPPROF__HTTP_SENDING, /* its reader has to take what there is */
    CPPROF__HTTP_LINGER,  /* refused; what still comes is dropped */
};

struct cpprof__http_server;

struct cpprof__http_connection {
    int fd;
    ino_t inode;
    enum cpprof__http_state state;
    uint64_t since_ns;    /* it is in this state */
    uint64_t deadline_ns; /* until when it may, unless it is SERVED */
    bool is_shut;
    bool is_strange;            /* it is of another user, and to be refused */
    struct MHD_Connection *mhd; /* NULL until libmicrohttpd begins with it */
    struct cpprof__http_request *request; /* or NULL */
    struct cpprof__http_server *server;
};

struct cpprof__http_request {
    struct cpprof__http_server *server;
    struct cpprof__http_connection *connection; /* NULL: gone */
    struct cpprof__http_request *next;          /* in the queue for a worker */

    /* What the client sent. */
    char *text; /* of the target */
    struct cpprof__http_target target;
    char *method;
    char *content_type; /* or NULL */
    bool has_version_0; /* HTTP/1.0 */
    bool takes_gzip, is_from_others;
    char *body;
    size_t n_body, body_room;
    bool is_checked; /* its head was */
    bool is_served;  /* a worker has it, or had */
    bool is_refused; /* in the middle: what still comes is dropped */

    /* The answer. */
    pthread_cond_t changed;        /* for its worker */
    struct MHD_Response *response; /* made, not yet handed over */
    unsigned status;
    bool has_begun;
    bool has_body;    /* may send one: not to HEAD, nor with 204 and 304 */
    int64_t left;     /* of a length that was told; -1: none was */
    const char *data; /* the worker waits until it is taken */
    size_t n_data;
    uint64_t n_sent, stalled_ns; /* in all */
    bool is_suspended;
    bool has_worker; /* or waits for one */
    bool is_cut;     /* when that has ended: not whole */
    bool has_left;   /* the client */
};

struct cpprof__http_server {
    pthread_mutex_t lock;
    pthread_cond_t work;  /* for workers: the queue, or the end */
    pthread_cond_t ended; /* a thread ended */

    struct MHD_Daemon *mhd;
    struct cpprof__http_connection **connections; /* max_connections */
    size_t n_connections;
    /* The numbers that connections had so far, as they came and after they were
     * moved to high ones. A fork copies descriptors before memory, so that the
     * child may have some that the table has no more, or not yet. */
    struct cpprof__http_numbers {
        int first, last;
    } came, moved;
    struct pollfd *fds;                        /* for them and ours */
    struct cpprof__http_request *first, *last; /* wait for a worker */
    size_t n_queued, n_bodies;
    uint32_t n_workers, n_idle_workers, n_threads;
    uint32_t n_answers; /* that workers are making */
    int listen_fd, wake_fd, waker_fd, epoll_fd, itc_fd;
    ino_t listen_inode, wake_inode;
    uint64_t accept_ns; /* not before: out of descriptors */
    unsigned n_rounds;  /* without a call or an event */
    bool stops;

    /* Fixed at the start. */
    pid_t pid;
    const struct cpprof__http_host *host;
    struct cpprof_http_options options;
    char *token;
    uint32_t max_workers;
    size_t pool; /* of each connection */
    struct cpprof__http_address address;
    char address_text[160];
    char path[PATH_MAX]; /* of a unix socket: absolute; "" */
    dev_t path_device;   /* what is there, if it is ours */
    ino_t path_inode;
    bool guards_names; /* cpprof__http_host_is_here() */
    bool guards_users; /* cpprof__http_peer_is_stranger() */
};

/* ---- descriptors.c ------------------------------------------------------- */

/* Are the server's descriptors its own? A program may have closed them, and
 * have files of its own at their numbers. */
bool
cpprof__http_is_intact(const struct cpprof__http_server *s);

/* Make the pipe that wakes the server's thread; false and errno. */
bool
cpprof__http_make_wake(struct cpprof__http_server *s);

/* Wake the server's thread. Safety: MT. */
void
cpprof__http_wake(struct cpprof__http_server *s);

/* Note the descriptors that were opened: the listening socket, or those of
 * libmicrohttpd. */
void
cpprof__http_note_listen(struct cpprof__http_server *s);
void
cpprof__http_note_mhd(struct cpprof__http_server *s);

/* A connection has this number; -1: none. */
void
cpprof__http_note_number(struct cpprof__http_numbers *numbers, int fd);

/* The inode behind fd; 0: not known. */
ino_t
cpprof__http_inode(int fd);

/* In a forked child: close its copies of all. */
void
cpprof__http_close_all(struct cpprof__http_server *s);

/* The program has closed some: close those that are still ours, also those of
 * clients, which learn of the end that way. */
void
cpprof__http_close_own(struct cpprof__http_server *s);

/* ---- serve.c: libmicrohttpd, and the thread that waits ------------------- */

/* Start libmicrohttpd; NULL and errno. */
struct MHD_Daemon *
cpprof__http_daemon(struct cpprof__http_server *s);

/* The thread. True: it is to be started again after a pause. */
bool
cpprof__http_serve(void *server);

/* ---- connections.c; under the lock -------------------------------------- */

/* Serve a client. fd is closed with the connection, or here. */
void
cpprof__http_open(struct cpprof__http_server *s, int fd,
                  const struct sockaddr *peer, socklen_t n_peer);

/* Shut the socket down. libmicrohttpd closes it when it sees that. */
void
cpprof__http_shut(struct cpprof__http_connection *c, int how);
void
cpprof__http_forget(struct cpprof__http_connection *c);

/* The one of that socket, or NULL. */
struct cpprof__http_connection *
cpprof__http_connection_of(const struct cpprof__http_server *s, int fd);

/* libmicrohttpd, from 1.0 on, begins with a connection in the round after it
 * was added: called after a round, forget those that it has closed instead. */
void
cpprof__http_forget_refused(struct cpprof__http_server *s);
void
cpprof__http_set_state(struct cpprof__http_connection *c,
                       enum cpprof__http_state state, uint64_t ns);

/* Shut the connections that are being served and whose reader takes nothing. */
void
cpprof__http_drop_stalled(struct cpprof__http_server *s);

/* Close a connection to make room for a new one. False: all are being served.
 */
bool
cpprof__http_evict(struct cpprof__http_server *s);

/* ---- request.c; under the lock ------------------------------------------ */

struct cpprof__http_request *
cpprof__http_request(struct cpprof__http_connection *c, const char *target);

/* The connection has no more use for the request, which is freed here or by its
 * worker. */
void
cpprof__http_request_done(struct cpprof__http_request *r);
void
cpprof__http_request_free(struct cpprof__http_request *r);

/* libmicrohttpd calls it with the head, with pieces of the body, at its end,
 * and whenever the connection was resumed. */
enum MHD_Result
cpprof__http_take(struct cpprof__http_request *r, const char *method,
                  const char *version, const char *data, size_t *n);

/* ---- answer.c: workers; under the lock ----------------------------------- */

/* Have a worker answer the request. 0 or an errno: there is no thread for it.
 */
int
cpprof__http_queue(struct cpprof__http_request *r);

/* Has its connection something to do for it? */
bool
cpprof__http_answer_has_news(const struct cpprof__http_request *r);

/* ---- plugin.c ------------------------------------------------------------ */

/* Make a condition that waits by CLOCK_MONOTONIC. */
void
cpprof__http_condition(pthread_cond_t *condition);

#endif
