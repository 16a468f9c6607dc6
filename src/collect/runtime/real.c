/* SPDX-License-Identifier: MIT */
/*
 * The names underneath, and what the library itself calls of them. The
 * constructor looks for all at once; a name is never looked for again.
 */
#include "collect/runtime/real.h"
#include "collect/runtime/loader.h"

#include "arch/place.h"
#include "collect/runtime/next.h"
#include "collect/signal/unwind/module.h"

#include <errno.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

void *cpprof__next[CPPROF__N_NEXT] CPPROF__AT_START;

/* linked.c has the other one. */
__attribute__((weak)) void *const *cpprof__linked CPPROF__AT_START;

/* Where malloc is. */
static const struct link_map *malloc_in CPPROF__AT_START;

/* ---- ThreadSanitizer -------------------------------------------------- */

#ifdef __SANITIZE_THREAD__ /* this library is known to it, too */
static void
look_for_tsan(void)
{
}

bool
cpprof__program_has_tsan(void)
{
    return false;
}
#else
extern void
__tsan_init(void) __attribute__((weak));

static bool has_static_tsan CPPROF__AT_START;

/* Not by memmem(), which the sanitizer has, too. */
static bool
has_text(const char *at, size_t n, const char *text, size_t n_text)
{
    size_t i, k;

    for (i = 0; i + n_text <= n; i++) {
        for (k = 0; k < n_text && at[i + k] == text[k]; k++)
            continue;
        if (k == n_text)
            return true;
    }
    return false;
}

/* The program is the first that is visited. */
static int
look_in_program(struct dl_phdr_info *program, size_t size, void *arg)
{
    static const char name[] = "ThreadSanitizer";
    unsigned i;

    for (i = 0; i < program->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &program->dlpi_phdr[i];

        if (part->p_type == PT_LOAD &&
            (part->p_flags & (PF_R | PF_W)) == PF_R &&
            has_text((char *)program->dlpi_addr + part->p_vaddr, part->p_filesz,
                     name, sizeof name))
            store_relaxed(&has_static_tsan, true);
    }
    return 1;
}

/*
 * A program that `gcc -static-libtsan` linked does not export __tsan_init. But
 * it exports pthread_create, as hardly any other program does, and has the
 * sanitizer's name among its constants. This file has that name, too, so where
 * this library is part of the program the weak symbol has to do.
 */
static void
look_for_tsan(void)
{
    const struct link_map *module = NULL;

    cpprof__first_symbol("pthread_create", &module);
    if (module && !module->l_prev && module != cpprof__own_module())
        dl_iterate_phdr(look_in_program, NULL);
}

CPPROF__FIRST_STEP bool
cpprof__program_has_tsan(void)
{
    return __tsan_init || load_relaxed(&has_static_tsan);
}
#endif

/* ---- names ------------------------------------------------------------ */

#define TEXT(group, name) #name "\0"

/* glibc says of such a program's code alone where it is, and not where its
 * frame table is. */
static void
take_linked(void)
{
    unsigned i;

    cpprof__module_use_table(true);
    for (i = 0; i < CPPROF__N_NEXT; i++)
        store_release(&cpprof__next[i], cpprof__linked[i]);
}

CPPROF__FIRST_STEP void
cpprof__names_find(void)
{
    struct cpprof__definition found[CPPROF__N_NEXT];
    unsigned i;

    if (cpprof__linked) {
        take_linked();
        return;
    }
    cpprof__next_symbols(CPPROF__NAMES(TEXT) CPPROF__NAMES_BENEATH(TEXT), found,
                         CPPROF__N_NEXT);
    for (i = 0; i < CPPROF__N_NEXT; i++)
        store_release(&cpprof__next[i], found[i].address);
#if CPPROF__HAS_ALLOCATOR
    store_relaxed(&malloc_in, found[CPPROF__NAME_malloc].module);
#endif
    look_for_tsan();
}

void
cpprof__names_beside_malloc(const char *names, struct cpprof__definition *found,
                            unsigned n)
{
    cpprof__module_symbols(load_relaxed(&malloc_in), names, found, n);
}

/* ---- use -------------------------------------------------------------- */

void (*cpprof__first_use)(void) CPPROF__AT_START;
static bool is_used CPPROF__AT_START;

CPPROF__FIRST_STEP void
cpprof__use(void)
{
    void (*first)(void);

    if (load_acquire(&is_used) || swap_acq_rel(&is_used, true))
        return;
    cpprof__loader_list();
    first = load_acquire(&cpprof__first_use);
    if (first)
        first();
}

/* ---- what the library itself calls ------------------------------------ */

/* Where nothing is taken over, as in a test of these files, nobody has looked
 * before. */
static void
be_found(enum cpprof__name name)
{
    if (!load_acquire(&cpprof__next[name]))
        cpprof__names_find();
}

CPPROF__FIRST_STEP int
cpprof__real_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
                            void *(*start)(void *), void *arg)
{
    if (cpprof__program_has_tsan())
        return ENOTSUP;
    be_found(CPPROF__NAME_pthread_create);
    cpprof__use();
    return cpprof__real(pthread_create)(thread, attr, start, arg);
}

CPPROF__FIRST_STEP int
cpprof__real_pthread_join(pthread_t thread, void **result)
{
    be_found(CPPROF__NAME_pthread_join);
    return cpprof__real(pthread_join)(thread, result);
}

CPPROF__FIRST_STEP int
cpprof__real_pthread_detach(pthread_t thread)
{
    be_found(CPPROF__NAME_pthread_detach);
    return cpprof__real(pthread_detach)(thread);
}
