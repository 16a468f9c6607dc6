/* SPDX-License-Identifier: MIT */
/*
 * Threads walk their stacks while rows are forgotten and the table of modules
 * is replaced, and each walk is right. Under ThreadSanitizer this is also the
 * proof that the unwinder's shared state is free of data races.
 */
#include "unwind_fixture.h"

#include <dlfcn.h>

#define N_THREADS 3
#define DEPTH     12
#define N_TURNS   3000

struct worker {
    pthread_t thread;
    uintptr_t stack_hi;
    uintptr_t truth[DEPTH + 2];
    size_t n_truth;
    struct walk walk;
    size_t n_walks;
    size_t n_wrong;
};

static bool
is_right(const struct worker *w)
{
    size_t i;

    for (i = 0; i < w->n_truth; i++) {
        if (w->walk.pcs[1 + i] != w->truth[w->n_truth - 1 - i])
            return false;
    }
    return w->walk.end == CPPROF__UNWIND_ROOT && w->walk.n > w->n_truth;
}

static NOINLINE void
descend(struct worker *w, int more)
{
    struct cpprof__stack_view view;
    struct cpprof__regs regs;

    w->truth[w->n_truth++] = RETURNS_TO();
    if (more > 0) {
        descend(w, more - 1);
    } else {
        cpprof__regs_here(&regs);
        view = view_from(regs.sp, w->n_walks % 4 == 0 ? 0 : w->stack_hi);
        walk_regs(&w->walk, &regs, &view, MAX_FRAMES);
    }
    NOT_A_TAIL_CALL();
}

static void *
work(void *arg)
{
    struct worker *w = arg;
    uintptr_t lo;

    own_stack(&lo, &w->stack_hi);
    while (w->n_walks < N_TURNS) {
        w->n_truth = 0;
        descend(w, (int)(w->n_walks % DEPTH));
        w->n_wrong += !is_right(w);
        w->n_walks++;
    }
    return NULL;
}

/* Modules come and go, and rows are forgotten, as long as walks are made. */
static void
disturb(void)
{
    void *handle = dlopen("libresolv.so.2", RTLD_NOW);

    cpprof__unwind_refresh_modules();
    if (handle != NULL)
        dlclose(handle);
    cpprof__unwind_refresh_modules();
    cpprof__unwind_forget();
}

static void
walk_in_threads(void)
{
    static struct worker workers[N_THREADS];
    size_t n_walks = 0;
    size_t i;

    memset(workers, 0, sizeof workers);
    for (i = 0; i < N_THREADS; i++)
        assert_int_equal(
            pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    for (i = 0; i < 300; i++)
        disturb();
    for (i = 0; i < N_THREADS; i++) {
        assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
        assert_int_equal(workers[i].n_wrong, 0);
        n_walks += workers[i].n_walks;
    }
    assert_int_equal(n_walks, N_THREADS * N_TURNS);
}

static void
walks_are_right_while_modules_come_and_go(void **state)
{
    (void)state;
    walk_in_threads();
}

static void
walks_are_right_while_the_table_is_replaced(void **state)
{
    (void)state;
    cpprof__module_use_table(true);
    cpprof__unwind_refresh_modules();
    walk_in_threads();
    cpprof__module_use_table(false);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(walks_are_right_while_modules_come_and_go),
        cmocka_unit_test(walks_are_right_while_the_table_is_replaced),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    cpprof__unwind_refresh_modules();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
