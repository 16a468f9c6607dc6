/* SPDX-License-Identifier: MIT */
/*
 * A program that goes on with a writer that could not be made: every call that
 * takes a writer refuses it, and nothing runs afterwards. And what a program
 * can ask: whether a profile runs, which version the library is.
 */
#include "tap.h"

#include <cpprof/cpprof.h>
#include <cpprof/pprof.h>
#include <cpprof/recording.h>
#include <cpprof/vm.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct cpprof_error error;
static struct cpprof_writer none;

/* What the program sees: the status, and words that say why. */
static void
refused(enum cpprof_status status, const char *name)
{
    check_equal(status, CPPROF_INVALID, name);
    check_has(error.text, "could not be made", "and says why");
    memset(&error, 0, sizeof error);
}

static void
test_profiles_of_this_process(void)
{
    struct cpprof_snapshot *snapshot = NULL;
    struct cpprof_capture *capture = NULL;
    struct cpprof_profile *heap = cpprof_profile_lookup("heap");

    refused(cpprof_cpu_start(&none, NULL, &error), "cpprof_cpu_start");
    check_equal(cpprof_cpu_stop(&error), CPPROF_OK, "nothing runs");
    refused(cpprof_wall_start(&none, NULL, &error), "cpprof_wall_start");
    check_equal(cpprof_wall_stop(&error), CPPROF_OK, "nothing runs");
    refused(cpprof_vm_start(&none, NULL, &error), "cpprof_vm_start");
    check_equal(cpprof_vm_stop(&error), CPPROF_OK, "nothing runs");
    refused(cpprof_capture_start_cpu(&none, NULL, &capture, &error),
            "cpprof_capture_start_cpu");
    refused(cpprof_capture_start_wall(&none, NULL, &capture, &error),
            "cpprof_capture_start_wall");
    check(!capture, "no capture");
    refused(cpprof_heap_write(&none, NULL, &error), "cpprof_heap_write");
    refused(cpprof_profile_write(heap, &none, NULL, &error),
            "cpprof_profile_write");
    refused(cpprof_profile_write(heap, NULL, NULL, &error), "a NULL writer");
    if (cpprof_snapshot_new(heap, NULL, &snapshot, &error) != CPPROF_OK)
        bail("%s", error.text);
    refused(cpprof_snapshot_write_delta(snapshot, &none, NULL, &error),
            "cpprof_snapshot_write_delta");
    cpprof_snapshot_free(snapshot);
}

static void
test_recordings(void)
{
    char folder[] = "/tmp/cpprof-no-writer-XXXXXX";
    struct cpprof_recording *recording;

    if (!mkdtemp(folder) ||
        cpprof_recording_read(folder, &recording, &error) != CPPROF_OK)
        bail("%s", error.text);
    refused(cpprof_recording_write_cpu(recording, 0, &none, NULL, &error),
            "cpprof_recording_write_cpu");
    refused(cpprof_recording_write_heap(recording, 0, &none, NULL, &error),
            "cpprof_recording_write_heap");
    refused(cpprof_recording_write_waits(recording, 0, "block", &none, NULL,
                                         &error),
            "cpprof_recording_write_waits");
    cpprof_recording_free(recording);
    rmdir(folder);
}

static void
test_profiles_as_data(void)
{
    static const char stacks[] = "main;work 1\n";
    struct pprof_profile *p;

    if (pprof_read_data(stacks, sizeof stacks - 1, NULL, &p, &error))
        bail("%s", error.text);
    refused(pprof_write(p, &none, PPROF_FORMAT_GZIP, NULL, &error),
            "pprof_write");
    refused(pprof_report_write(p, &none, PPROF_REPORT_TOP, NULL, &error),
            "pprof_report_write");
    pprof_free(p);
}

#define NOWHERE "/no/such/folder/x.pb.gz"

/* The same in one call, which fails with why; and a path that can be written.
 */
static void
test_paths(void)
{
    static const char stacks[] = "main;work 1\n";
    struct cpprof_profile *heap = cpprof_profile_lookup("heap");
    char folder[] = "/tmp/cpprof-no-writer-XXXXXX", path[64];
    struct pprof_profile *p, *again;

    if (!mkdtemp(folder) ||
        pprof_read_data(stacks, sizeof stacks - 1, NULL, &p, &error))
        bail("%s", error.text);
    check_equal(cpprof_cpu_start_to_path(NOWHERE, NULL, &error), CPPROF_SYSTEM,
                "cpprof_cpu_start_to_path");
    check_text(error.text, NOWHERE ": No such file or directory", "says why");
    check_equal(cpprof_wall_start_to_path(NOWHERE, NULL, &error), CPPROF_SYSTEM,
                "cpprof_wall_start_to_path");
    check_equal(cpprof_heap_write_to_path(NOWHERE, NULL, &error), CPPROF_SYSTEM,
                "cpprof_heap_write_to_path");
    check_equal(cpprof_profile_write_to_path(heap, NOWHERE, NULL, &error),
                CPPROF_SYSTEM, "cpprof_profile_write_to_path");
    check_equal(
        pprof_write_to_path(p, NOWHERE, PPROF_FORMAT_GZIP, NULL, &error),
        CPPROF_SYSTEM, "pprof_write_to_path");
    check(!cpprof_cpu_is_running() && !cpprof_wall_is_running(),
          "nothing runs");
    snprintf(path, sizeof path, "%s/p.pb.gz", folder);
    check_equal(pprof_write_to_path(p, path, PPROF_FORMAT_GZIP, NULL, &error),
                CPPROF_OK, "a path that can be written");
    check_equal(pprof_read_path(path, NULL, &again, &error), CPPROF_OK,
                "is a profile");
    pprof_free(again);
    check_equal(cpprof_cpu_start_to_path(path, NULL, &error), CPPROF_OK,
                "and of this process");
    check_equal(cpprof_cpu_stop(&error), CPPROF_OK, "is one when it stops");
    check_equal(pprof_read_path(path, NULL, &again, &error), CPPROF_OK,
                "that is read");
    pprof_free(again);
    pprof_free(p);
    unlink(path);
    rmdir(folder);
}

static int
drop(void *ctx, const void *data, size_t n)
{
    (void)ctx, (void)data, (void)n;
    return 0;
}

/* Before a start, between start and stop, and after it. */
static void
test_is_running(void)
{
    const struct cpprof_writer writer = {sizeof writer, drop, NULL, NULL};
    struct cpprof_capture *capture;

    check(!cpprof_cpu_is_running() && !cpprof_wall_is_running() &&
              !cpprof_vm_is_running(),
          "none runs at first");
    if (cpprof_capture_start_wall(&writer, NULL, &capture, &error))
        bail("%s", error.text);
    check(!cpprof_wall_is_running(), "a capture is not the profile");
    cpprof_capture_stop(capture, NULL);
    if (cpprof_cpu_start(&writer, NULL, &error) ||
        cpprof_wall_start(&writer, NULL, &error) ||
        cpprof_vm_start(&writer, NULL, &error))
        bail("%s", error.text);
    check(cpprof_cpu_is_running() && cpprof_wall_is_running() &&
              cpprof_vm_is_running(),
          "each says that it runs");
    cpprof_cpu_stop(NULL);
    check(!cpprof_cpu_is_running() && cpprof_wall_is_running(),
          "each for itself");
    cpprof_wall_stop(NULL);
    cpprof_vm_stop(NULL);
    check(!cpprof_cpu_is_running() && !cpprof_wall_is_running() &&
              !cpprof_vm_is_running(),
          "none runs after its stop");
}

int
main(void)
{
    check_equal(
        cpprof_writer_to_path("/no/such/folder/cpu.pb.gz", &none, &error),
        CPPROF_SYSTEM, "a path that cannot be written");
    check_equal((int64_t)none.size, 0, "leaves a zeroed writer");
    test_profiles_of_this_process();
    test_recordings();
    test_profiles_as_data();
    test_paths();
    test_is_running();
    check_equal(cpprof_version(), CPPROF_VERSION_NUMBER,
                "the library is of these headers");
    return check_done();
}
