/* SPDX-License-Identifier: MIT */
/*
 * Demangling with libiberty, through its two callback functions, which do not
 * allocate. Cost is bounded on both sides. Output ends with a jump out of the
 * callback, because a few hundred bytes of substitutions can print gigabytes.
 * Long names get a stack of their own that is large enough for them, so that
 * the thread that writes the profile does not need one. There they may exceed
 * libiberty's own limit of 1 KiB, as real templates do.
 */
#include "symbol/elf/demangle.h"

#include "own/memory.h"

#include <libiberty/demangle.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#define LONGEST_INPUT  (16 * 1024)
#define LONGEST_OUTPUT (64 * 1024)

/* DEMANGLE_RECURSION_LIMIT is 2048 components, and two are made per byte. */
#define LONGEST_LIMITED 1024

/* A byte of a name can take 430 bytes of stack: up to here the caller's. More
 * saves making a stack, 20 us, for more of the names. */
#define LONGEST_ON_CALLERS 256

/* Reserved, not touched: 72 bytes of tables per byte of input, and recursion
 * of up to one level per byte, 1 KiB each. */
#define LARGE_STACK_BYTES (32 * 1024 * 1024)
#define GUARD_BYTES       (64 * 1024)

/* c++filt's. Rust goes without VERBOSE, which would print the hash. */
#define CXX_OPTIONS (DMGL_PARAMS | DMGL_ANSI | DMGL_VERBOSE)

struct job {
    const char *mangled; /* terminated */
    int unlimited;       /* DMGL_NO_RECURSE_LIMIT or 0 */
    struct cpprof__buffer *out;
    size_t n_before; /* bytes in out when the job started */
    bool done;
    jmp_buf too_long;
    ucontext_t caller;
};

static void
take(const char *text, size_t n, void *ctx)
{
    struct job *job = ctx;

    cpprof__buffer_append(job->out, text, n);
    if (job->out->failed || job->out->n - job->n_before > LONGEST_OUTPUT)
        longjmp(job->too_long, 1);
}

static bool
demangle_any(struct job *job)
{
    const char *name = job->mangled;

    if (rust_demangle_callback(name, DMGL_PARAMS | job->unlimited, take, job))
        return true;
    if (!job->out->failed)
        job->out->n = job->n_before;
    return cplus_demangle_v3_callback(name, CXX_OPTIONS | job->unlimited, take,
                                      job) != 0;
}

static void
run(struct job *job)
{
    if (setjmp(job->too_long) == 0)
        job->done = demangle_any(job);
}

/* makecontext passes ints only. */
static void
run_on_stack(unsigned low, unsigned high)
{
    run((struct job *)((uintptr_t)low | (uintptr_t)high << 32));
}

static void
run_with_large_stack(struct job *job)
{
    size_t n_bytes = GUARD_BYTES + LARGE_STACK_BYTES;
    uintptr_t address = (uintptr_t)job;
    ucontext_t context;
    char *stack = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (stack == MAP_FAILED)
        return;
    if (mprotect(stack, GUARD_BYTES, PROT_NONE) == 0 &&
        getcontext(&context) == 0) {
        context.uc_stack.ss_sp = stack + GUARD_BYTES;
        context.uc_stack.ss_size = LARGE_STACK_BYTES;
        context.uc_link = &job->caller;
        makecontext(&context, (void (*)(void))run_on_stack, 2,
                    (unsigned)address, (unsigned)(address >> 32));
        swapcontext(&job->caller, &context);
    }
    munmap(stack, n_bytes);
}

static bool
looks_mangled(const char *name, size_t n)
{
    return n > 2 && name[0] == '_' &&
           (name[1] == 'Z' || name[1] == 'R' ||
            (n > 8 && memcmp(name, "_GLOBAL_", 8) == 0));
}

bool
cpprof__demangle(struct cpprof__buffer *out, const char *mangled, size_t n)
{
    struct job job = {.out = out, .n_before = out->n};
    char *copy;

    if (!looks_mangled(mangled, n) || n > LONGEST_INPUT)
        return false;
    copy = cpprof__strndup(mangled, n);
    if (!copy)
        return false;
    job.mangled = copy;
    if (n > LONGEST_LIMITED)
        job.unlimited = DMGL_NO_RECURSE_LIMIT;
    if (n <= LONGEST_ON_CALLERS)
        run(&job);
    else
        run_with_large_stack(&job);
    cpprof__free(copy);
    if (out->failed)
        return false;
    if (!job.done)
        out->n = job.n_before;
    return out->n > job.n_before;
}
