/* SPDX-License-Identifier: MIT */
/* One call that writes to a path: the file is a profile; a path that cannot be
 * written is an error, and nothing runs. */
#include "profile.h"
#include "session.h"
#include "tap.h"
#include <cpprof/cpprof.h>
#include <cpprof/vm.h>

#include <unistd.h>

static struct cpprof_error error;
static struct cpprof_snapshot *snapshot;

static enum cpprof_status
cpu(const char *path)
{
    enum cpprof_status status = cpprof_cpu_start_to_path(path, NULL, &error);

    return status ? status : cpprof_cpu_stop(&error);
}

static enum cpprof_status
wall(const char *path)
{
    enum cpprof_status status = cpprof_wall_start_to_path(path, NULL, &error);

    return status ? status : cpprof_wall_stop(&error);
}

static enum cpprof_status
vm(const char *path)
{
    enum cpprof_status status = cpprof_vm_start_to_path(path, NULL, &error);

    return status ? status : cpprof_vm_stop(&error);
}

static enum cpprof_status
heap(const char *path)
{
    return cpprof_heap_write_to_path(path, NULL, &error);
}

static enum cpprof_status
threads(const char *path)
{
    return cpprof_profile_write_to_path(cpprof_profile_lookup("threads"), path,
                                        NULL, &error);
}

static enum cpprof_status
cpu_capture(const char *path)
{
    struct cpprof_capture *capture = NULL;
    enum cpprof_status status =
        cpprof_capture_start_cpu_to_path(path, NULL, &capture, &error);

    return status ? status : cpprof_capture_stop(capture, &error);
}

static enum cpprof_status
wall_capture(const char *path)
{
    struct cpprof_capture *capture = NULL;
    enum cpprof_status status =
        cpprof_capture_start_wall_to_path(path, NULL, &capture, &error);

    return status ? status : cpprof_capture_stop(capture, &error);
}

static enum cpprof_status
delta(const char *path)
{
    return cpprof_snapshot_write_delta_to_path(snapshot, path, NULL, &error);
}

static const struct {
    const char *name;
    enum cpprof_status (*write)(const char *path);
} calls[] = {
    {"cpu", cpu},
    {"wall", wall},
    {"vm", vm},
    {"heap", heap},
    {"threads", threads},
    {"a capture of CPU time", cpu_capture},
    {"a capture of wall time", wall_capture},
    {"a difference", delta},
};

int
main(void)
{
    const char *path = scratch_path("to_path.pb.gz");
    char name[100];
    size_t i;

    if (cpprof_snapshot_new(cpprof_profile_lookup("threads"), NULL, &snapshot,
                            &error))
        bail("%s", error.text);
    for (i = 0; i < sizeof calls / sizeof *calls; i++) {
        snprintf(name, sizeof name, "%s: a path that cannot be written",
                 calls[i].name);
        check(calls[i].write("/nowhere/at/all") == CPPROF_SYSTEM, name);
        snprintf(name, sizeof name, "%s: nothing runs then", calls[i].name);
        check(!cpprof_cpu_is_running() && !cpprof_wall_is_running() &&
                  !cpprof_vm_is_running(),
              name);
        snprintf(name, sizeof name, "%s: is written", calls[i].name);
        check(calls[i].write(path) == CPPROF_OK, name);
        profile_free(profile_load(path));
        unlink(path);
    }
    cpprof_snapshot_free(snapshot);
    return check_done();
}
