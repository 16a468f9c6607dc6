/* SPDX-License-Identifier: MIT */
/*
 * The public calls for captures. The file of a capture is made in memory, by
 * one thread at a time, because they all ask for the same names, and then
 * handed to the writer by the caller: a slow reader is waited for by nobody
 * else.
 */
#include "collect/capture/captures.h"

#include "arch/atomic.h"
#include "base/buffer.h"
#include "base/options.h"
#include "base/status.h"
#include "collect/cpu/cpu_capture.h"
#include "collect/cpu/session.h"
#include "collect/runtime/exempt.h"
#include "collect/runtime/own_threads.h"
#include "collect/runtime/uncancelled.h"
#include "collect/wall/wall.h"
#include <cpprof/captures.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Tunable: begun and not yet written. */
#define CAPTURES_MAX 128u

struct cpprof_capture {
    int32_t pid; /* where it was begun */
    bool is_wall;
    struct cpprof_writer writer;
    union {
        struct cpprof__cpu_capture cpu;
        struct cpprof__wall_capture wall;
    };
};

static uint32_t n_captures;
static pthread_mutex_t writing = PTHREAD_MUTEX_INITIALIZER;

void
cpprof__captures_fork_child(void)
{
    store_relaxed(&n_captures, 0u);
    pthread_mutex_init(&writing, NULL);
}

/* ---- begin ------------------------------------------------------------ */

static bool
take_number(void)
{
    if (add_relaxed(&n_captures, 1u) < CAPTURES_MAX)
        return true;
    __atomic_fetch_sub(&n_captures, 1u, __ATOMIC_RELAXED);
    return false;
}

static void
give_number(void)
{
    __atomic_fetch_sub(&n_captures, 1u, __ATOMIC_RELAXED);
}

static enum cpprof_status
make(const struct cpprof_writer *writer, struct cpprof_capture **out,
     struct cpprof_error *error)
{
    struct cpprof_capture *capture;

    if (!writer->write)
        return cpprof__fail(error, CPPROF_INVALID, 0,
                            "the writer has no write function");
    if (!take_number())
        return cpprof__fail(error, CPPROF_BUSY, 0, "%u captures already run",
                            CAPTURES_MAX);
    capture = calloc(1, sizeof *capture);
    if (!capture) {
        give_number();
        return cpprof__fail_nomem(error);
    }
    capture->pid = (int32_t)getpid();
    capture->writer = *writer;
    *out = capture;
    return CPPROF_OK;
}

static void
unmake(struct cpprof_capture *capture)
{
    if (!capture)
        return;
    give_number();
    free(capture);
}

static enum cpprof_status
begun(struct cpprof_capture *capture, enum cpprof_status status,
      const struct cpprof_writer *writer, struct cpprof_capture **out)
{
    if (status == CPPROF_OK) {
        *out = capture;
        return CPPROF_OK;
    }
    unmake(capture);
    if (writer->close)
        writer->close(writer->ctx, 1);
    return status;
}

enum cpprof_status
cpprof_capture_start_cpu(struct cpprof_writer writer,
                         const struct cpprof_cpu_options *options,
                         struct cpprof_capture **out,
                         struct cpprof_error *error)
{
    struct cpprof_capture *capture = NULL;
    enum cpprof_status status;
    CPPROF__EXEMPT;
    CPPROF__UNCANCELLED;

    status = make(&writer, &capture, error);
    if (status == CPPROF_OK)
        status =
            cpprof__options(&capture->cpu.options, sizeof capture->cpu.options,
                            options, "cpprof_cpu_options", error);
    if (status == CPPROF_OK)
        status = cpprof__session_begin_capture(&capture->cpu, error);
    return begun(capture, status, &writer, out);
}

enum cpprof_status
cpprof_capture_start_wall(struct cpprof_writer writer,
                          const struct cpprof_wall_options *options,
                          struct cpprof_capture **out,
                          struct cpprof_error *error)
{
    struct cpprof_capture *capture = NULL;
    enum cpprof_status status;
    CPPROF__EXEMPT;
    CPPROF__UNCANCELLED;

    status = make(&writer, &capture, error);
    if (status == CPPROF_OK) {
        capture->is_wall = true;
        status = cpprof__wall_options(options, &capture->wall.options, error);
    }
    if (status == CPPROF_OK)
        status = cpprof__wall_begin_capture(&capture->wall, error);
    return begun(capture, status, &writer, out);
}

/* ---- end -------------------------------------------------------------- */

static int
append(void *buffer, const void *data, size_t n)
{
    cpprof__buffer_append(buffer, data, n);
    return ((struct cpprof__buffer *)buffer)->failed ? ENOMEM : 0;
}

/* What a thread of ours is to do. */
struct work {
    struct cpprof_capture *capture;
    struct cpprof__buffer *file;
    enum cpprof_status status;
    struct cpprof_error error;
};

static void
build(void *arg)
{
    struct work *work = arg;
    struct cpprof_writer writer = {append, NULL, work->file};

    if (work->capture->is_wall) {
        work->status = cpprof__wall_capture_write(&work->capture->wall, writer,
                                                  &work->error);
    } else {
        struct cpprof__cpu_output out = {.writer = writer};

        work->status = cpprof__cpu_output_write(&out, &work->capture->cpu);
        work->error = out.error;
    }
    if (work->file->failed)
        work->status = cpprof__fail_nomem(&work->error);
}

static enum cpprof_status
build_apart(struct cpprof_capture *capture, struct cpprof__buffer *file,
            struct cpprof_error *error)
{
    struct work work = {.capture = capture, .file = file};

    pthread_mutex_lock(&writing);
    cpprof__own_thread_run(build, &work);
    pthread_mutex_unlock(&writing);
    if (work.status != CPPROF_OK && error)
        *error = work.error;
    return work.status;
}

static void
leave(struct cpprof_capture *capture)
{
    if (capture->is_wall)
        cpprof__wall_end_capture(&capture->wall);
    else
        cpprof__session_end_capture(&capture->cpu);
}

static void
free_kind(struct cpprof_capture *capture)
{
    if (capture->is_wall)
        cpprof__wall_capture_free(&capture->wall);
    else
        cpprof__cpu_capture_free(&capture->cpu);
}

/* Whatever came before, the writer is closed. */
static enum cpprof_status
hand_over(const struct cpprof_writer *writer, const struct cpprof__buffer *file,
          enum cpprof_status status, struct cpprof_error *error)
{
    int sys = 0;

    if (status == CPPROF_OK)
        sys = writer->write(writer->ctx, file->data, file->n);
    if (sys)
        status =
            cpprof__fail(error, CPPROF_SYSTEM, sys, "write: %s", strerror(sys));
    sys = writer->close ? writer->close(writer->ctx, status != CPPROF_OK) : 0;
    if (sys && status == CPPROF_OK)
        status =
            cpprof__fail(error, CPPROF_SYSTEM, sys, "close: %s", strerror(sys));
    return status;
}

static enum cpprof_status
end_elsewhere(struct cpprof_capture *capture, struct cpprof_error *error)
{
    free_kind(capture);
    free(capture);
    return cpprof__fail(error, CPPROF_INVALID, 0,
                        "the capture was begun by another process");
}

enum cpprof_status
cpprof_capture_stop(struct cpprof_capture *capture, struct cpprof_error *error)
{
    struct cpprof__buffer file = {0};
    enum cpprof_status status;
    CPPROF__EXEMPT;
    CPPROF__UNCANCELLED;

    if (!capture)
        return CPPROF_OK;
    if (capture->pid != (int32_t)getpid())
        return end_elsewhere(capture, error);
    leave(capture);
    status = build_apart(capture, &file, error);
    status = hand_over(&capture->writer, &file, status, error);
    cpprof__buffer_free(&file);
    unmake(capture);
    return status;
}

void
cpprof__capture_cancel(struct cpprof_capture *capture)
{
    CPPROF__EXEMPT;
    CPPROF__UNCANCELLED;

    if (!capture)
        return;
    if (capture->pid != (int32_t)getpid()) {
        end_elsewhere(capture, NULL);
        return;
    }
    leave(capture);
    free_kind(capture);
    if (capture->writer.close)
        capture->writer.close(capture->writer.ctx, 1);
    unmake(capture);
}
