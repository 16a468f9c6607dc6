/* SPDX-License-Identifier: MIT */
/*
 * In libcpprof-static.a: what the names that are taken over are underneath, in
 * a program that has no loader to ask. The linker fills it in. `--wrap=NAME`
 * makes of each reference to NAME one to __wrap_NAME, which is what this
 * library has instead of NAME there (src/interpose/wrap.py), and of one to
 * __real_NAME one to NAME.
 *
 * Source: ld(1), --wrap.
 */
#include "collect/runtime/real.h"

#include <elf.h>

#define REAL(group, name)    extern char real_##name[] __asm__("__real_" #name);
#define BENEATH(group, name) extern char real_##name[] __asm__(#name);
CPPROF__NAMES(REAL)
CPPROF__NAMES_BENEATH(BENEATH)

/* What is not wrapped: it would bring the loader and the name service into the
 * program, or is not in every libc. */
#define MAY_BE_MISSING(group, name)                                            \
    extern char real_##name[] __attribute__((weak));
CPPROF__NAMES_UNWRAPPED(MAY_BE_MISSING)

/* Not in glibc before 2.34; credentials.c has what it does. */
extern char real_close_range[] __attribute__((weak));

#define ADDRESS(group, name) real_##name,
static void *const addresses[CPPROF__N_NEXT] = {
    CPPROF__NAMES(ADDRESS) CPPROF__NAMES_BENEATH(ADDRESS)};
void *const *cpprof__linked = addresses;

#ifdef CPPROF__NAMES_LACKING /* musl */
#define LACKING(name) extern char real_##name[] __attribute__((weak));
CPPROF__NAMES_LACKING(LACKING)

/* The list of modules is the loader's. */
static struct r_debug no_modules;
struct r_debug *_dl_debug_addr = &no_modules;
#endif

/* init.c refers to it, which takes this file along. */
extern const char cpprof__links_names;
const char cpprof__links_names = 0;

/* By this `cpprof record` knows the program (cli/record/preflight.c): a note,
 * which stays in one that is stripped. */
__attribute__((section(".note.cpprof"), used, aligned(4))) static const struct {
    Elf64_Nhdr head;
    char name[8];
} note = {{sizeof "cpprof", 0, 1}, "cpprof"};
