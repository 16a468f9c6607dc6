/* SPDX-License-Identifier: MIT */
/*
 * The probes of the heap, as a reader from outside finds and hears them: by the
 * notes of the file, the semaphores, and a breakpoint at each probe.
 */
#include "tap.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <ucontext.h>
#include <unistd.h>

#define N_BLOCKS 20000
#define SIZE     4000

struct probe {
    const char *name, *arguments;
    uint8_t *at;
    uint16_t *semaphore;
    size_t n;
} probes[] = {{"alloc", NULL, NULL, NULL, 0}, {"free", NULL, NULL, NULL, 0}};
enum { ALLOC, FREE };

static struct heard {
    uintptr_t address;
    uint64_t bytes, weighted;
} heard[N_BLOCKS];
static size_t n_heard, n_unknown_freed;

/* ---- the notes ---------------------------------------------------------- */

static char path[4096];
static uintptr_t base;

static int
find_library(struct dl_phdr_info *info, size_t n, void *ctx)
{
    (void)n;
    (void)ctx;
    if (strstr(info->dlpi_name, "libcpprof.so")) {
        snprintf(path, sizeof path, "%s", info->dlpi_name);
        base = info->dlpi_addr;
    }
    return 0;
}

static void
take_note(const uint8_t *description)
{
    const ElfW(Addr) *addresses = (const void *)description;
    const char *provider = (const char *)(addresses + 3),
               *name = provider + strlen(provider) + 1;
    size_t i;

    for (i = 0; i < 2; i++)
        if (!strcmp(provider, "otel_memory") && !strcmp(name, probes[i].name)) {
            probes[i].at = (uint8_t *)(base + addresses[0]);
            probes[i].semaphore = (uint16_t *)(base + addresses[2]);
            probes[i].arguments = name + strlen(name) + 1;
            probes[i].n++;
        }
}

/* The file stays mapped: texts of its notes are used. */
static void
read_notes(void)
{
    int fd = open(path, O_RDONLY);
    struct stat st;
    const uint8_t *file;
    const ElfW(Ehdr) * head;
    const ElfW(Shdr) * sections;
    size_t i, at;

    if (fd < 0 || fstat(fd, &st))
        return;
    file = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    head = (const void *)file;
    sections = (const void *)(file + head->e_shoff);
    for (i = 0; i < head->e_shnum; i++) {
        const char *names =
            (const char *)file + sections[head->e_shstrndx].sh_offset;
        const uint8_t *notes = file + sections[i].sh_offset;

        if (strcmp(names + sections[i].sh_name, ".note.stapsdt") != 0)
            continue;
        for (at = 0; at < sections[i].sh_size;) {
            const ElfW(Nhdr) *note = (const void *)(notes + at);

            at += sizeof *note + ((note->n_namesz + 3u) & ~3u);
            take_note(notes + at);
            at += (note->n_descsz + 3u) & ~3u;
        }
    }
}

/* ---- breakpoints -------------------------------------------------------- */

static void
hear(int signo, siginfo_t *info, void *context)
{
    mcontext_t *m = &((ucontext_t *)context)->uc_mcontext;
    uintptr_t pc, arguments[3];
    size_t i;

    (void)signo;
    (void)info;
#ifdef __x86_64__
    pc = (uintptr_t)m->gregs[REG_RIP] - 1;
    arguments[0] = (uintptr_t)m->gregs[REG_RDI];
    arguments[1] = (uintptr_t)m->gregs[REG_RSI];
    arguments[2] = (uintptr_t)m->gregs[REG_RDX];
#else
    pc = m->pc;
    m->pc += 4;
    memcpy(arguments, m->regs, sizeof arguments);
#endif
    if (pc == (uintptr_t)probes[ALLOC].at && n_heard < N_BLOCKS) {
        heard[n_heard++] =
            (struct heard){arguments[0], arguments[1], arguments[2]};
    } else if (pc == (uintptr_t)probes[FREE].at) {
        for (i = 0; i < n_heard && heard[i].address != arguments[0]; i++) {
        }
        if (i == n_heard)
            n_unknown_freed++;
        else
            heard[i].address = 0;
    }
}

static void
plant(const struct probe *p)
{
    uintptr_t page = (uintptr_t)p->at & ~(uintptr_t)4095;
#ifdef __x86_64__
    static const uint8_t code[] = {0xcc};
#else
    static const uint32_t code[] = {0xd4200000};
#endif

    mprotect((void *)page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC);
    memcpy(p->at, code, sizeof code);
    mprotect((void *)page, 8192, PROT_READ | PROT_EXEC);
    __builtin___clear_cache((char *)p->at, (char *)p->at + sizeof code);
}

static void
work(void)
{
    static void *blocks[N_BLOCKS];
    size_t i;

    for (i = 0; i < N_BLOCKS; i++)
        blocks[i] = malloc(SIZE);
    for (i = 0; i < N_BLOCKS; i++)
        free(blocks[i]);
}

int
main(int argc, char **argv)
{
    struct sigaction action = {.sa_sigaction = hear, .sa_flags = SA_SIGINFO};
    double sum = 0, true_sum = (double)N_BLOCKS * SIZE;
    size_t i, n_left = 0, n_wrong = 0;
    bool asked = argc > 1;

    if (!asked) {
        setenv("CPPROF", "probes,heap=64k,out=/dev/null", 1);
        execl("/proc/self/exe", argv[0], "asked", (char *)NULL);
        return 1;
    }
    dl_iterate_phdr(find_library, NULL);
    read_notes();
    check(probes[ALLOC].n == 1 && probes[FREE].n == 1, "a note for each probe");
    if (!probes[ALLOC].n || !probes[FREE].n)
        return check_done();
#ifdef __x86_64__
    check(!strcmp(probes[ALLOC].arguments, "8@%rdi 8@%rsi 8@%rdx") &&
              !strcmp(probes[FREE].arguments, "8@%rdi"),
          "arguments are where those of a function are");
#endif
    sigaction(SIGTRAP, &action, NULL);
    plant(&probes[ALLOC]);
    plant(&probes[FREE]);
    work();
    check(n_heard == 0, "nothing fires while nobody listens");
    ++*probes[ALLOC].semaphore;
    ++*probes[FREE].semaphore;
    work();
    --*probes[ALLOC].semaphore;
    --*probes[FREE].semaphore;
    for (i = 0; i < n_heard; i++) {
        n_left += heard[i].address != 0;
        n_wrong += heard[i].bytes != SIZE;
        sum += (double)heard[i].weighted;
    }
    /* One in 64 KiB of 80 MB: 1220, of which 3 % is a standard error. */
    check(n_heard > 600 && fabs(sum / true_sum - 1) < 0.2,
          "weights add up to what was allocated");
    note("%zu heard, %g of the truth", n_heard, sum / true_sum);
    check(!n_wrong, "each has its size");
    check(!n_left && !n_unknown_freed, "each is freed, and nothing else");
    return check_done();
}
