/* SPDX-License-Identifier: MIT */
/* Each probe has a function of its own, whose arguments are those of the probe:
 * readers take them from the registers of a call, whatever the note says. */
#include "collect/signal/heap/probes.h"

#include "arch/atomic.h"
#include "arch/place.h"

uint32_t cpprof__has_probes CPPROF__AT_START;

/* Readers add 1 to it in the memory of the process. */
#define SEMAPHORE                                                              \
    __attribute__((section(".probes"), visibility("hidden"), used))

extern uint16_t cpprof__alloc_semaphore, cpprof__free_semaphore;
SEMAPHORE uint16_t cpprof__alloc_semaphore;
SEMAPHORE uint16_t cpprof__free_semaphore;

/* A byte to which addresses in notes are relative, for who moves a file. */
__asm__(".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n"
        ".weak _.stapsdt.base\n"
        ".hidden _.stapsdt.base\n"
        "_.stapsdt.base: .space 1\n"
        ".size _.stapsdt.base, 1\n"
        ".popsection");

#define NOTE(name, semaphore, where)                                           \
    "990: nop\n"                                                               \
    ".pushsection .note.stapsdt,\"\",%%note\n"                                 \
    ".balign 4\n"                                                              \
    ".4byte 992f - 991f, 994f - 993f, 3\n"                                     \
    "991: .asciz \"stapsdt\"\n"                                                \
    "992: .balign 4\n"                                                         \
    "993: .8byte 990b, _.stapsdt.base, " semaphore "\n"                        \
    ".asciz \"otel_memory\"\n"                                                 \
    ".asciz \"" name "\"\n"                                                    \
    ".asciz \"" where "\"\n"                                                   \
    "994: .balign 4\n"                                                         \
    ".popsection\n"

#ifdef __x86_64__
#define FIRST  "8@%%rdi"
#define SECOND "8@%%rsi"
#define THIRD  "8@%%rdx"
#else
#define FIRST  "8@x0"
#define SECOND "8@x1"
#define THIRD  "8@x2"
#endif

/* What the compiler must have in the registers of the arguments there. */
#ifdef __x86_64__
#define IN_FIRST(name, value)  register uint64_t name __asm__("rdi") = value
#define IN_SECOND(name, value) register uint64_t name __asm__("rsi") = value
#define IN_THIRD(name, value)  register uint64_t name __asm__("rdx") = value
#else
#define IN_FIRST(name, value)  register uint64_t name __asm__("x0") = value
#define IN_SECOND(name, value) register uint64_t name __asm__("x1") = value
#define IN_THIRD(name, value)  register uint64_t name __asm__("x2") = value
#endif

static __attribute__((noinline)) void
alloc_probe(uintptr_t address, uint64_t bytes, uint64_t weighted)
{
    IN_FIRST(first, address);
    IN_SECOND(second, bytes);
    IN_THIRD(third, weighted);

    __asm__ volatile(
        NOTE("alloc", "cpprof__alloc_semaphore", FIRST " " SECOND " " THIRD)
        :
        : "r"(first), "r"(second), "r"(third));
}

static __attribute__((noinline)) void
free_probe(uintptr_t address)
{
    IN_FIRST(first, address);

    __asm__ volatile(NOTE("free", "cpprof__free_semaphore", FIRST)
                     :
                     : "r"(first));
}

void
cpprof__probe_alloc(uintptr_t address, uint64_t bytes, uint64_t weighted)
{
    if (load_relaxed(&cpprof__has_probes) &&
        load_relaxed(&cpprof__alloc_semaphore))
        alloc_probe(address, bytes, weighted);
}

void
cpprof__probe_free(uintptr_t address)
{
    if (load_relaxed(&cpprof__has_probes) &&
        load_relaxed(&cpprof__free_semaphore))
        free_probe(address);
}
