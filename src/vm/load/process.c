/* SPDX-License-Identifier: MIT */
/*
 * CPPROF=scripts and CPPROF=vm. Both have interpreters load our modules, by
 * variables that interpreters read at their start; no other word does, because
 * a changed variable shows until the module has given it back.
 *
 * The profile of CPPROF=vm starts with the first thread of an interpreter, so
 * that a program without one is left alone and writes no file. It is written by
 * the process itself, even under a recorder, because only the interpreter in
 * that process can name its frames. A forked child has no such profile.
 */
#include "vm/load/process.h"

#include "arch/atomic.h"
#include "arch/place.h"
#include "collect/process/environment.h"
#include "vm/profile/session.h"
#include <cpprof/vm.h>

/* NULL: not asked for */
static const struct cpprof__environment *environment CPPROF__AT_START;
static bool is_descendant CPPROF__AT_START;
static uint32_t is_started CPPROF__AT_START; /* or has failed to */

CPPROF__FIRST_STEP void
cpprof__vm_begin(void)
{
    environment = cpprof__environment_vm(&is_descendant);
    if (cpprof__environment_asks_for_scripts())
        cpprof__vm_set_variables();
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
        status = cpprof_vm_start(&writer, &environment->vm, &error);
    if (status != CPPROF_OK)
        cpprof__environment_complain(&error);
}

CPPROF__FIRST_STEP bool
cpprof__vm_has_to_write(bool in_haste)
{
    (void)in_haste;
    if (!cpprof__default_runs(&cpprof__vm_life))
        return false;
    cpprof__vm_charge_caller();
    return true;
}

void
cpprof__vm_write(uint64_t until_ns)
{
    struct cpprof_error error;

    if (cpprof__default_exit(&cpprof__vm_life, until_ns, &error) != CPPROF_OK)
        cpprof__environment_complain(&error);
}
