/* SPDX-License-Identifier: MIT */
/*
 * The names underneath, and what the library itself calls of them. The
 * constructor looks for all at once; a name is never looked for again, but for
 * C++'s operators, which come and go with libraries.
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

#if CPPROF__HAS_ALLOCATOR
/* Where malloc and C++'s operators are. */
static const struct link_map *malloc_in CPPROF__AT_START;
static const struct link_map
    *operators_in[CPPROF__N_CXX_NAMES] CPPROF__AT_START;
#endif

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

bool
cpprof__program_has_tsan(void)
{
    return __tsan_init || load_relaxed(&has_static_tsan);
}
#endif

/* ---- names ------------------------------------------------------------ */

#define TEXT(group, name) #name "\0"

static void
set(enum cpprof__name name, const struct cpprof__definition *to)
{
#if CPPROF__HAS_ALLOCATOR
    unsigned i = name - CPPROF__FIRST_CXX_NAME;

    if (name == CPPROF__NAME_malloc)
        store_relaxed(&malloc_in, to->module);
    else if (i < CPPROF__N_CXX_NAMES)
        store_relaxed(&operators_in[i], to->module);
#endif
    store_release(&cpprof__next[name], to->address);
}

/* Number `first` and the n - 1 that follow it. */
static void
find(const char *names, unsigned first, struct cpprof__definition *found,
     unsigned n)
{
    unsigned i;

    cpprof__next_symbols(names, found, n);
    for (i = 0; i < n; i++)
        set(first + i, &found[i]);
}

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

void
cpprof__names_find(void)
{
    struct cpprof__definition found[CPPROF__N_NEXT];

    if (cpprof__linked) {
        take_linked();
        return;
    }
    find(CPPROF__NAMES(TEXT) CPPROF__NAMES_BENEATH(TEXT), 0, found,
         CPPROF__N_NEXT);
    look_for_tsan();
}

void
cpprof__names_find_operators(void)
{
#if CPPROF__HAS_ALLOCATOR
    struct cpprof__definition found[CPPROF__N_CXX_NAMES];

    if (cpprof__linked)
        return;
    find(CPPROF__CXX_NAMES(TEXT), CPPROF__FIRST_CXX_NAME, found,
         CPPROF__N_CXX_NAMES);
#endif
}

bool
cpprof__is_of_allocator(enum cpprof__name name)
{
#if CPPROF__HAS_ALLOCATOR
    return operators_in[name - CPPROF__FIRST_CXX_NAME] == malloc_in;
#else
    return false;
#endif
}

/* ---- use -------------------------------------------------------------- */

void (*cpprof__first_use)(void) CPPROF__AT_START;
static bool is_used;

void
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

int
cpprof__real_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
                            void *(*start)(void *), void *arg)
{
    if (cpprof__program_has_tsan())
        return ENOTSUP;
    be_found(CPPROF__NAME_pthread_create);
    cpprof__use();
    return cpprof__real(pthread_create)(thread, attr, start, arg);
}
