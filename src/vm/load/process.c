/* SPDX-License-Identifier: MIT */
/*
 * CPPROF=scripts and CPPROF=vm. Both have interpreters load our modules, by
 * variables that interpreters read at their start; no other word does, because a
 * changed variable shows until the module has given it back.
 *
 * The profile of CPPROF=vm starts with the first thread of an interpreter, so
 * that a program without one is left alone and writes no file. It is written by
 * the process itself, even under a recorder, because only the interpreter in
 * that process can name its frames. A forked child has no such profile.
 */
#include "vm/load/process.h"

#include "arch/atomic.h"
#include "collect/process/environment.h"
#include <cpprof/vm.h>

#include <unistd.h>

static const struct cpprof__environment *environment; /* NULL: not asked for */
static bool is_descendant;
static uint32_t is_started; /* or has failed to */
static int32_t started_pid;

void
cpprof__vm_begin(void)
{
    environment = cpprof__environment_vm(&is_descendant);
    if (!cpprof__environment_asks_for_scripts())
        return;
    cpprof__vm_set_lua_init();
    cpprof__vm_set_python_path();
}

void
cpprof__vm_thread_made(void)
{
    enum cpprof_status status;
    struct cpprof_writer writer;
    struct cpprof_error error;

    if (!environment || swap_acq_rel(&is_started, 1u))
        return;
    status = cpprof__environment_open(environment, "vm", NULL, is_descendant,
                                      &writer, &error);
    if (status == CPPROF_OK)
        status = cpprof_vm_start(writer, &environment->vm, &error);
    if (status != CPPROF_OK)
        cpprof__environment_complain(&error);
    else
        store_relaxed(&started_pid, (int32_t)getpid());
}

void
cpprof__vm_end(void)
{
    struct cpprof_error error;

    if (load_relaxed(&started_pid) != (int32_t)getpid())
        return;
    store_relaxed(&started_pid, 0);
    if (cpprof_vm_stop(&error) != CPPROF_OK)
        cpprof__environment_complain(&error);
}
