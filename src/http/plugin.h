/* SPDX-License-Identifier: MIT */
/*
 * The interface between libcpprof and libcpprof-http.so, which is the server.
 * The plug-in is loaded when a program first listens, is found by the one
 * symbol below, and stays loaded. It calls nothing of libcpprof by name,
 * because a program may contain the static library; it gets what it needs in a
 * struct.
 */
#ifndef HTTP_PLUGIN_H
#define HTTP_PLUGIN_H

#include <cpprof/http.h>

#define CPPROF__HTTP_ABI    3
#define CPPROF__HTTP_SYMBOL "cpprof__http_server"

/* What a program may ask for of a request. */
#define CPPROF__HTTP_FLAGS (CPPROF_HTTP_ONE_CPU_CAPTURE | CPPROF_HTTP_NO_NAMES)

/* In the flags of a request from this server: its client reads gzip. */
#define CPPROF__HTTP_TAKES_GZIP 0x80000000u
/* Another site asks, or another port of this machine; its browser says so. */
#define CPPROF__HTTP_FROM_OTHERS 0x40000000u

/* What the server needs of the library; lives for ever. */
struct cpprof__http_host {
    uint32_t abi; /* CPPROF__HTTP_ABI */

    /* cpprof_http_handle() */
    enum cpprof_status (*handle)(const struct cpprof_http_request *request,
                                 const struct cpprof_http_response *response,
                                 struct cpprof_error *error);

    /* Run it on a thread of the profiler's own: no signals, in no profile.
     * Nobody waits for it. 0 or an errno. run() returns true to be called again
     * after a pause, on another thread. */
    int (*start_thread)(bool (*run)(void *arg), void *arg);

    /* Are only the profiler's threads left? Then the server must end. */
    bool (*is_alone)(void);

    /* Is there a pause now, for which all threads have to return? */
    bool (*pauses)(void);

    /* It is a person's page: at an address of this machine alone other users of
     * it are refused, and whatever is neither GET nor HEAD has to come from a
     * page of the same origin. */
    bool is_private;
};

/* One server for each process. The caller makes sure that calls do not overlap.
 */
struct cpprof__http_server_ops {
    uint32_t abi; /* CPPROF__HTTP_ABI */

    /* As cpprof_http_listen(); options are whole, 0 is a default. */
    enum cpprof_status (*start)(const char *address,
                                const struct cpprof_http_options *options,
                                const struct cpprof__http_host *host,
                                struct cpprof_error *error);

    /* As cpprof_http_address(). */
    size_t (*address)(char *address, size_t n);

    /* As cpprof_http_close(). */
    void (*stop)(void);

    /* Whoever waits is to look whether to pause; captures end. */
    void (*wake_up)(void);

    /* The process ends: remove what it made in the file system. Safety: AS. */
    void (*end)(void);

    /* Around a fork: descriptors do not come and go, and a child closes its
     * copies. */
    void (*in_child)(void);
};

#endif
