/* SPDX-License-Identifier: MIT */
/*
 * Code made at run time, told as agents of LLVM, mono and the JVM tell it: a
 * jitdump file in the folder that is the argument, whose first page is mapped
 * to execute. Each function is some 0.3 s of CPU time:
 *
 *     jit_stays     where it was made, with lines
 *     jit_moves     where it was moved to; jit_follows is then put where it was
 *
 * Without an argument it writes a perf map instead, and prints its name. Of one
 * address this says first jit_first, and then, a second later, jit_second.
 *
 * Source: the Linux tree, tools/perf/Documentation/jitdump-specification.txt
 * and jit-interface.txt.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define SLOT 64

enum { LOAD, MOVE, DEBUG_INFO };

static FILE *dump;
static uint8_t *code;

#ifdef __x86_64__
/* push %rbp; mov %rsp,%rbp; mov %edi,%ecx; 6: dec %ecx; jnz 6; pop %rbp; ret */
static const uint8_t loop[] = {0x55, 0x48, 0x89, 0xe5, 0x89, 0xf9,
                               0xff, 0xc9, 0x75, 0xfc, 0x5d, 0xc3};
#else
static const uint8_t loop[12];
#endif

static void
put(const void *bytes, size_t n)
{
    fwrite(bytes, 1, n, dump);
}

static void
put_u32(uint32_t v)
{
    put(&v, sizeof v);
}

static void
put_u64(uint64_t v)
{
    put(&v, sizeof v);
}

static void
put_record(uint32_t kind, size_t n_body)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    put_u32(kind);
    put_u32((uint32_t)(16 + n_body));
    put_u64((uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec);
}

static void
put_lines(uint64_t start)
{
    static const char file[] = "script.x";
    static const struct {
        uint32_t offset, line;
    } lines[] = {{0, 10}, {6, 12}, {10, 14}};
    size_t i;

    put_record(DEBUG_INFO, 16 + 3 * (16 + sizeof file));
    put_u64(start);
    put_u64(3);
    for (i = 0; i < 3; i++) {
        put_u64(start + lines[i].offset);
        put_u32(lines[i].line);
        put_u32(0);
        put(file, sizeof file);
    }
}

static void
put_load(const char *name, uint64_t start, uint64_t index)
{
    put_record(LOAD, 40 + strlen(name) + 1 + sizeof loop);
    put_u32((uint32_t)getpid());
    put_u32((uint32_t)getpid());
    put_u64(start);
    put_u64(start);
    put_u64(sizeof loop);
    put_u64(index);
    put(name, strlen(name) + 1);
    put(loop, sizeof loop);
}

static void
put_move(uint64_t from, uint64_t to, uint64_t index)
{
    put_record(MOVE, 48);
    put_u32((uint32_t)getpid());
    put_u32((uint32_t)getpid());
    put_u64(to);
    put_u64(from);
    put_u64(to);
    put_u64(sizeof loop);
    put_u64(index);
}

static void
begin(const char *folder)
{
    char path[4096];

    snprintf(path, sizeof path, "%s/jit-%d.dump", folder, (int)getpid());
    dump = fopen(path, "w+");
    if (!dump)
        return;
    put_u32(0x4a695444);
    put_u32(1);
    put_u32(40);
    put_u32(62);
    put_u32(0);
    put_u32((uint32_t)getpid());
    put_u64(0);
    put_u64(0);
    fflush(dump);
    mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_EXEC,
         MAP_PRIVATE, fileno(dump), 0);
}

/* The code, as a function, until it has taken 0.3 s. */
static void
run(uint8_t *at)
{
    void (*function)(int) = (void (*)(int))(uintptr_t)at;
    clock_t end = clock() + CLOCKS_PER_SEC * 3 / 10;

    while (clock() < end)
        function(1 << 22);
}

static void
name_and_run(FILE *map, const char *name)
{
    fprintf(map, "%lx %zx %s\n", (unsigned long)(uintptr_t)code, sizeof loop,
            name);
    fflush(map);
    run(code);
    sleep(1); /* its samples are counted */
}

static int
run_by_map(void)
{
    char path[64];
    FILE *map;

    snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
    map = fopen(path, "w");
    if (!map)
        return 1;
    puts(path);
    name_and_run(map, "jit_first");
    name_and_run(map, "jit_second");
    return fclose(map);
}

int
main(int argc, char **argv)
{
    uint64_t first;

    if (argc > 1)
        begin(argv[1]);
    code = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                -1, 0);
    if ((argc > 1 && !dump) || code == MAP_FAILED)
        return 1;
    memcpy(code, loop, sizeof loop);
    memcpy(code + SLOT, loop, sizeof loop);
    memcpy(code + 2 * SLOT, loop, sizeof loop);
    if (mprotect(code, 4096, PROT_READ | PROT_EXEC) != 0)
        return 1;
    if (argc < 2)
        return run_by_map();
    first = (uint64_t)(uintptr_t)code;
    put_lines(first);
    put_load("jit_stays", first, 1);
    put_lines(first + SLOT);
    put_load("jit_moves", first + SLOT, 2);
    put_move(first + SLOT, first + 2 * SLOT, 2);
    put_load("jit_follows", first + SLOT, 3);
    fflush(dump);
    run(code);
    run(code + 2 * SLOT);
    run(code + SLOT);
    return fclose(dump);
}
