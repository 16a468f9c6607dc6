/* SPDX-License-Identifier: MIT */
/*
 * The public calls for captures. The file of a capture is made in memory, by
 * one thread at a time, because all captures ask for the same names. The caller
 * then hands the file to the writer, so nobody else waits for a slow reader.
 */
#include "collect/capture/captures.h"

#include "arch/atomic.h"
#include "arch/place.h"
#include "base/buffer.h"
#include "base/options.h"
#include "base/status.h"
#include "base/writer.h"
#include "collect/cpu/cpu_capture.h"
#include "collect/cpu/session.h"
#include "collect/runtime/exempt.h"
#include "collect/runtime/uncancelled.h"
#include "collect/wall/wall.h"
#include <cpprof/captures.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Tunable: captures that were begun and not yet written. */
#define CAPTURES_MAX 128u

static uint32_t n_captures CPPROF__AT_START;
static struct cpprof__own_lock writing CPPROF__AT_START;

CPPROF__FIRST_STEP void
cpprof__captures_in_child(void)
{
    store_relaxed(&n_captures, 0u);
    cpprof__own_lock_in_child(&writing);
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

/* Takes the capture over. */
static enum cpprof_status
begin(struct cpprof_capture *c, struct cpprof_capture **out,
      struct cpprof_error *error)
{
    enum cpprof_status status;

    if (!take_number()) {
        cpprof__capture_drop(c);
        return cpprof__fail(error, CPPROF_BUSY, 0, "%u captures already run",
                            CAPTURES_MAX);
    }
    status = cpprof__capture_begin(c, error);
    if (status == CPPROF_OK)
        *out = c;
    else
        give_number();
    return status;
}

enum cpprof_status
cpprof_capture_start_cpu(const struct cpprof_writer *writer,
                         const struct cpprof_cpu_options *options,
                         struct cpprof_capture **out,
                         struct cpprof_error *error)
{
    struct cpprof_capture *c;
    enum cpprof_status status;
    CPPROF__EXEMPT;
    CPPROF__UNCANCELLED;

    CPPROF__NEED_BESIDES(writer, error, out);
    *out = NULL;
    status = cpprof__cpu_capture_new(options, writer, &c, error);
    return status == CPPROF_OK ? begin(c, out, error) : status;
}

enum cpprof_status
cpprof_capture_start_cpu_to_path(const char *path,
                                 const struct cpprof_cpu_options *options,
                                 struct cpprof_capture **capture,
                                 struct cpprof_error *error)
{
    if (capture)
        *capture = NULL;
    return CPPROF__TO_PATH(
        path, error,
        cpprof_capture_start_cpu(&writer, options, capture, error));
}

enum cpprof_status
cpprof_capture_start_wall(const struct cpprof_writer *writer,
                          const struct cpprof_wall_options *options,
                          struct cpprof_capture **out,
                          struct cpprof_error *error)
{
    struct cpprof_capture *c;
    enum cpprof_status status;
    CPPROF__EXEMPT;
    CPPROF__UNCANCELLED;

    CPPROF__NEED_BESIDES(writer, error, out);
    *out = NULL;
    status = cpprof__wall_capture_new(options, writer, &c, error);
    return status == CPPROF_OK ? begin(c, out, error) : status;
}

enum cpprof_status
cpprof_capture_start_wall_to_path(const char *path,
                                  const struct cpprof_wall_options *options,
                                  struct cpprof_capture **capture,
                                  struct cpprof_error *error)
{
    if (capture)
        *capture = NULL;
    return CPPROF__TO_PATH(
        path, error,
        cpprof_capture_start_wall(&writer, options, capture, error));
}

/* ---- end -------------------------------------------------------------- */

static int
append(void *buffer, const void *data, size_t n)
{
    cpprof__buffer_append(buffer, data, n);
    return ((struct cpprof__buffer *)buffer)->failed ? ENOMEM : 0;
}

static enum cpprof_status
write_in_memory(struct cpprof_capture *c, struct cpprof__buffer *file,
                struct cpprof_error *error)
{
    enum cpprof_status status;

    c->writer = (struct cpprof_writer){sizeof c->writer, append, NULL, file};
    cpprof__own_lock_take(&writing);
    status = cpprof__capture_write(c, error);
    cpprof__own_lock_give(&writing);
    return file->failed ? cpprof__fail_nomem(error) : status;
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

static bool
is_of_this_process(const struct cpprof_capture *c)
{
    return c->pid == (int32_t)getpid();
}

/* The parent has the same writer, and keeps it. */
static enum cpprof_status
end_elsewhere(struct cpprof_capture *c, struct cpprof_error *error)
{
    c->writer = (struct cpprof_writer){0};
    cpprof__capture_drop(c);
    return cpprof__fail(error, CPPROF_INVALID, 0,
                        "the capture was begun by another process");
}

enum cpprof_status
cpprof_capture_stop(struct cpprof_capture *c, struct cpprof_error *error)
{
    struct cpprof__buffer file = {0};
    struct cpprof_writer writer;
    enum cpprof_status status;
    CPPROF__EXEMPT;
    CPPROF__UNCANCELLED;

    if (!c)
        return CPPROF_OK;
    if (!is_of_this_process(c))
        return end_elsewhere(c, error);
    writer = c->writer;
    cpprof__capture_end(c);
    status = write_in_memory(c, &file, error);
    status = hand_over(&writer, &file, status, error);
    cpprof__buffer_free(&file);
    give_number();
    return status;
}

void
cpprof__capture_cancel(struct cpprof_capture *c)
{
    CPPROF__EXEMPT;
    CPPROF__UNCANCELLED;

    if (!c)
        return;
    if (!is_of_this_process(c)) {
        end_elsewhere(c, NULL);
        return;
    }
    cpprof__capture_end(c);
    cpprof__capture_drop(c);
    give_number();
}
