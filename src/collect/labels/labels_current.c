/* SPDX-License-Identifier: MIT */
/*
 * A thread's current set: one pointer, read by the handlers of that thread.
 *
 * cpprof_labels_do() has to put the set before back also when an exception, a
 * pthread_exit() or a cancellation goes through it. What would need a table of
 * cleanups and libgcc's routine for it is one call here (arch/regs.h,
 * CPPROF__CALL_UNDER) whose frame holds the address of the scope at a known
 * place, and a personality routine that finds it there. All that it needs of
 * the unwinder that is at work is one function, which is asked for when that
 * happens.
 */
#include "collect/labels/labels.h"

#include "arch/atomic.h"
#include "collect/signal/tables/thread.h"

#include <dlfcn.h>
#include <stdlib.h>

/* A handler on this thread sees the one or the other, and nothing that comes
 * after is moved before it. */
static void
set_current(const struct cpprof_labels *set)
{
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    store_relaxed(&cpprof__self.labels, (const void *)set);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

const struct cpprof_labels *
cpprof_labels_set_current(const struct cpprof_labels *set)
{
    const struct cpprof_labels *before = cpprof__self.labels;

    set_current(set);
    return before;
}

const struct cpprof_labels *
cpprof_labels_current(void)
{
    return cpprof__self.labels;
}

/* ---- scopes ----------------------------------------------------------- */

void
cpprof_labels_scope_begin(struct cpprof_labels_scope *scope,
                          struct cpprof_labels *set)
{
    if (!scope || scope->size < sizeof *scope) {
        cpprof_labels_free(set);
        return;
    }
    scope->before = cpprof__self.labels;
    scope->set = set;
    if (set && scope->before &&
        cpprof_labels_merge(scope->before, set->labels, set->n, &scope->set,
                            NULL) == CPPROF_OK)
        cpprof_labels_free(set);
    if (scope->set)
        set_current(scope->set);
}

void
cpprof_labels_scope_end(struct cpprof_labels_scope *scope)
{
    if (!scope || scope->size < sizeof *scope)
        return;
    set_current(scope->before);
    cpprof_labels_free(scope->set);
    scope->set = NULL;
}

/* ---- calls ------------------------------------------------------------ */

/* The unwinder's interface (Itanium C++ ABI: Exception Handling, 1.3). */
#define UNWIND_CLEANUP_PHASE 2
#define UNWIND_CONTINUE      8

typedef uintptr_t
get_cfa_fn(void *context);
extern get_cfa_fn _Unwind_GetCFA __attribute__((weak));
/* Not in a program that is linked statically, unless it has it anyway. */
extern __typeof__(dlopen) dlopen __attribute__((weak));

static get_cfa_fn *
find_get_cfa(void)
{
    get_cfa_fn *found = _Unwind_GetCFA;
    void *libgcc;

    if (found)
        return found;
    found = (get_cfa_fn *)(uintptr_t)dlsym(RTLD_DEFAULT, "_Unwind_GetCFA");
    /* pthread_exit() loads libgcc_s for itself, out of sight of RTLD_DEFAULT.
     */
    libgcc = found || !dlopen
                 ? NULL
                 : dlopen("libgcc_s.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (libgcc) {
        found = (get_cfa_fn *)(uintptr_t)dlsym(libgcc, "_Unwind_GetCFA");
        dlclose(libgcc);
    }
    return found;
}

/* fn(arg), in a frame that has this routine as its personality. */
__attribute__((visibility("hidden"))) void
cpprof__call_under(struct cpprof_labels_scope *scope, void (*fn)(void *arg),
                   void *arg);

__attribute__((visibility("hidden"), used)) int
cpprof__call_under_personality(int version, int actions,
                               uint64_t exception_class, void *exception,
                               void *context);
int
cpprof__call_under_personality(int version, int actions,
                               uint64_t exception_class, void *exception,
                               void *context)
{
    get_cfa_fn *get_cfa;

    if (actions & UNWIND_CLEANUP_PHASE) {
        get_cfa = find_get_cfa();
        if (get_cfa)
            cpprof_labels_scope_end(
                *(struct cpprof_labels_scope **)(get_cfa(context) +
                                                 CPPROF__CALL_UNDER_PLACE));
    }
    return UNWIND_CONTINUE;
}

__asm__(CPPROF__CALL_UNDER);

void
cpprof_labels_do(const struct cpprof_labels *set, void (*fn)(void *arg),
                 void *arg)
{
    struct cpprof_labels_scope scope = {.size = sizeof scope};

    if (!fn)
        return;
    cpprof_labels_scope_begin(&scope, cpprof_labels_ref(set));
    cpprof__call_under(&scope, fn, arg);
    cpprof_labels_scope_end(&scope);
}
