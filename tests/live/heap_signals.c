/* SPDX-License-Identifier: MIT */
/*
 * A signal handler that allocates between any two instructions of our own, from
 * the program's call to the real allocator and back: in the middle of counting,
 * sampling, removing and restoring. And one on a small alternate stack.
 * Whatever it finds, nothing crashes, hangs or stays in the table.
 */
#include "heap_table.h"
#include "tap.h"

#include "../unit/trap_flag.h"
#include "collect/signal/heap/heap.h"
#include <cpprof/heap.h>

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <ucontext.h>

/* The text of this program, the library in it. */
static uintptr_t text_lo, text_hi;
static uint64_t n_steps, n_inside, n_failed;
static uint64_t chance = 1;
static bool allocate_inside;

static int
find_text(struct dl_phdr_info *info, size_t size, void *ctx)
{
    int i;

    for (i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD &&
            info->dlpi_phdr[i].p_flags & PF_X) {
            text_lo = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
            text_hi = text_lo + info->dlpi_phdr[i].p_memsz;
        }
    return 1; /* the first is the program */
}

/* Only in our code: the allocator's own must not be entered twice. */
static void
on_step(int signo, siginfo_t *info, void *context)
{
    uintptr_t pc = 0;
    void *block;

#ifdef __x86_64__
    pc = (uintptr_t)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
#endif

    /* By chance, not always: who repeats when another was faster would repeat
     * for ever. */
    n_steps++;
    chance = chance * 6364136223846793005 + 1442695040888963407;
    if (pc < text_lo || pc >= text_hi || !allocate_inside || chance >> 59)
        return;
    n_inside++;
    block = malloc(24 + n_inside % 100);
    n_failed += block == NULL;
    block = realloc(block, 200);
    n_failed += block == NULL;
    free(block);
}

static void
install(int signo, void (*handler)(int, siginfo_t *, void *), int flags)
{
    struct sigaction action = {.sa_flags = SA_SIGINFO | flags};

    action.sa_sigaction = handler;
    sigemptyset(&action.sa_mask);
    sigaction(signo, &action, NULL);
}

/* What is stepped through; the real allocator is warm for these sizes. */
static void
use_each(void)
{
    void *a = malloc(100), *b = calloc(3, 7), *c = NULL;

    a = realloc(a, 200);
    if (posix_memalign(&c, 64, 100))
        n_failed++;
    if (realloc(b, (size_t)1 << 62))
        n_failed++;
    cpprof_heap_record(&c, 10);
    cpprof_heap_release(&c);
    free(a);
    free(b);
    free(c);
}

static void
test_between_instructions(void)
{
    size_t before;
    int i;

    if (!HAS_TRAP_FLAG) {
        check_skip("between instructions", "no trap flag here");
        return;
    }
    install(SIGTRAP, on_step, 0);
    for (i = 0; i < 3; i++)
        use_each();
    before = heap_n_live();
    allocate_inside = true;
    for (i = 0; i < 8; i++) {
        trap_flag_on();
        use_each();
        trap_flag_off();
    }
    allocate_inside = false;
    note("%llu instructions, %llu of them ours", (unsigned long long)n_steps,
         (unsigned long long)n_inside);
    check_at_least((double)n_inside, 500,
                   "a handler allocated in the middle of our code");
    check_equal((int64_t)n_failed, 0, "and was given memory");
    check_equal((int64_t)heap_n_live(), (int64_t)before,
                "nothing of it stays in the table");
    check_equal((int64_t)cpprof__hook_self.exempt, 0,
                "the thread is not left exempt");
}

/* ---- a small stack ---------------------------------------------------- */

static size_t n_handled;
static void *kept[64];

static void
on_small_stack(int signo, siginfo_t *info, void *context)
{
    kept[n_handled % 64] = malloc(1000 + n_handled);
    n_handled++;
}

/* Handlers that only call malloc must do with what the system says, and as
 * much again for glibc's own. */
static void
test_small_stack(void)
{
    size_t least = getauxval(AT_MINSIGSTKSZ), n = least + 4096, i, bytes;
    stack_t small = {0};
    size_t n_missing = 0;
    char *page =
        mmap(NULL, 65536, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    n = (n + 4095) / 4096 * 4096;
    mprotect(page + 4096, n, PROT_READ | PROT_WRITE);
    small.ss_sp = page + 4096; /* a guard below */
    small.ss_size = n;
    sigaltstack(&small, NULL);
    install(SIGUSR1, on_small_stack, SA_ONSTACK);
    for (i = 0; i < 64; i++)
        raise(SIGUSR1);
    for (i = 0; i < 64; i++)
        n_missing += heap_entries_of(kept[i], &bytes) != 1 || bytes != 1000 + i;
    note("a stack of %zu bytes, the system's own part is %zu", n, least);
    check_equal((int64_t)n_missing, 0,
                "a handler on a small stack allocates and is seen");
    for (i = 0; i < 64; i++)
        free(kept[i]);
}

int
main(int argc, char **argv)
{
    if (!cpprof__heap.head)
        return check_skip_all("the heap's tables are not made");
    if (!heap_is_on(argc, argv))
        return check_skip_all("that allocator is not installed");
    dl_iterate_phdr(find_text, NULL);
    cpprof_heap_set_rate(1);
    test_small_stack();
    test_between_instructions();
    return check_done();
}
