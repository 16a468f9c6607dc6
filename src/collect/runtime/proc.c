/* SPDX-License-Identifier: MIT */
/*
 * Small reads from /proc. Nothing here may be called in a handler. Where /proc
 * is missing the mappings are those that the loader knows, and every other call
 * fails or returns what its header says.
 */
#include "collect/runtime/proc.h"

#include "arch/atomic.h"
#include "arch/place.h"
#include "base/file.h"
#include "collect/runtime/loader.h"
#include "collect/runtime/own_lock.h"
#include "collect/signal/unwind/stack_view.h"

#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE 4096ul

/* ---- the mappings ----------------------------------------------------- */

/* As the kernel was asked for it: where that is no absolute path, the folder
 * may have changed since. */
static void
exe_without_proc(char *path, size_t n)
{
    const char *asked = (const char *)getauxval(AT_EXECFN);
    char whole[PATH_MAX];

    snprintf(path, n, "%s", asked && realpath(asked, whole) ? whole : "");
}

/* The lines that the kernel would write, without inodes. */
static int
add_module(struct dl_phdr_info *info, size_t n, void *arg)
{
    static const char vdso[] = "linux-vdso.so";
    const char *name = info->dlpi_name;
    struct cpprof__buffer *out = arg;
    char path[PATH_MAX];
    unsigned i;

    (void)n;
    if (!*name) {
        exe_without_proc(path, sizeof path);
        name = path;
    } else if (!strncmp(name, vdso, sizeof vdso - 1)) {
        name = "[vdso]";
    }
    for (i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + part->p_vaddr;

        if (part->p_type == PT_LOAD)
            cpprof__buffer_printf(
                out, "%lx-%lx %c%c%cp %lx 00:00 0 %s\n",
                (unsigned long)(start & ~(PAGE - 1)),
                (unsigned long)((start + part->p_memsz + PAGE - 1) &
                                ~(PAGE - 1)),
                part->p_flags & PF_R ? 'r' : '-',
                part->p_flags & PF_W ? 'w' : '-',
                part->p_flags & PF_X ? 'x' : '-',
                (unsigned long)(part->p_offset & ~(PAGE - 1)), name);
    }
    return 0;
}

/* Without /proc: what the loader had when it was last asked. Whoever wants the
 * mappings may hold a lock that somebody waits for who has the loader's. */
static struct cpprof__own_lock modules_lock;
static struct cpprof__buffer modules;

void
cpprof__proc_note_modules(void)
{
    struct cpprof__buffer now = {0}, before;

    if (!access("/proc/self/maps", F_OK))
        return;
    if (!cpprof__loader_visit(add_module, &now) || now.failed) {
        cpprof__buffer_free(&now);
        return;
    }
    cpprof__own_lock_take(&modules_lock);
    before = modules;
    modules = now;
    cpprof__own_lock_give(&modules_lock);
    cpprof__buffer_free(&before);
}

/* What another thread was about to change is dropped. */
CPPROF__FIRST_STEP void
cpprof__proc_in_child(void)
{
    if (cpprof__own_lock_in_child(&modules_lock))
        modules = (struct cpprof__buffer){0};
}

static bool
maps_of_modules(struct cpprof__buffer *out)
{
    bool has;

    if (!load_relaxed(&modules.n))
        cpprof__proc_note_modules();
    cpprof__own_lock_take(&modules_lock);
    has = modules.n > 0;
    if (has)
        cpprof__buffer_append(out, modules.data, modules.n);
    cpprof__own_lock_give(&modules_lock);
    return has && !out->failed;
}

bool
cpprof__proc_maps(struct cpprof__buffer *out)
{
    /* The first since Linux 3.17. */
    return !cpprof__file_read(out, "/proc/thread-self/maps", SIZE_MAX) ||
           !cpprof__file_read(out, "/proc/self/maps", SIZE_MAX) ||
           maps_of_modules(out);
}

void
cpprof__proc_exe(char *path, size_t n)
{
    static const char deleted[] = " (deleted)";
    ssize_t got = readlink("/proc/thread-self/exe", path, n - 1);
    size_t tail = sizeof deleted - 1;

    if (got < 0)
        got = readlink("/proc/self/exe", path, n - 1);
    if (got < 0) {
        exe_without_proc(path, n);
        return;
    }
    path[got] = 0;
    if ((size_t)got > tail && !strcmp(path + got - tail, deleted))
        path[(size_t)got - tail] = 0;
}

enum { NAME_UNKNOWN, NAME_COMES, NAME_KNOWN };
static uint32_t name_state;
static char exe_name[NAME_MAX + 1] CPPROF__LARGE;

/* Apart: a child of fork is on a program's stack, and knows the name. */
__attribute__((noinline)) static void
find_name(char *name, size_t n)
{
    char path[PATH_MAX];
    const char *base;

    cpprof__proc_exe(path, sizeof path);
    base = strrchr(path, '/');
    snprintf(name, n, "%s", base ? base + 1 : path);
}

void
cpprof__proc_name(char *name, size_t n)
{
    uint32_t unknown = NAME_UNKNOWN;

    if (load_acquire(&name_state) == NAME_KNOWN) {
        snprintf(name, n, "%s", exe_name);
        return;
    }
    find_name(name, n);
    if (*name && strlen(name) < sizeof exe_name &&
        cas_acq_rel(&name_state, &unknown, (uint32_t)NAME_COMES)) {
        strcpy(exe_name, name);
        store_release(&name_state, (uint32_t)NAME_KNOWN);
    }
}

/* A field of a status file; NULL: there is none. */
static const char *
status_field(struct cpprof__buffer *status, const char *path, const char *key)
{
    return cpprof__file_read(status, path, SIZE_MAX)
               ? NULL
               : cpprof__field((const char *)status->data, key);
}

uint64_t
cpprof__proc_pid_namespace(void)
{
    struct stat info;

    return stat("/proc/self/ns/pid", &info) ? 0 : info.st_ino;
}

bool
cpprof__proc_threads(struct cpprof__folder *tasks)
{
    char process[16] = "";

    if (readlink("/proc/self", process, sizeof process - 1) > 0 &&
        atoi(process) != (int)getpid()) {
        errno = ESRCH;
        return false;
    }
    return cpprof__folder_open(tasks, "/proc/self/task");
}

uint32_t
cpprof__proc_n_threads(void)
{
    struct cpprof__buffer status = {0};
    const char *at = status_field(&status, "/proc/self/status", "Threads");
    uint32_t n = at ? (uint32_t)strtoul(at, NULL, 10) : 0;
    cpprof__buffer_free(&status);
    return n;
}

double
cpprof__proc_signals_queued(void)
{
    struct cpprof__buffer status = {0};
    const char *at = status_field(&status, "/proc/self/status", "SigQ");
    double queued = 0, limit = 0;
    char *end;

    if (at) {
        queued = (double)strtoull(at, &end, 10);
        limit = *end == '/' ? (double)strtoull(end + 1, NULL, 10) : 0;
    }
    cpprof__buffer_free(&status);
    return limit > 0 ? queued / limit : 0;
}

/* A number of one line; false: it cannot be read. */
static bool
status_number(const char *path, const char *key, uint64_t *n)
{
    struct cpprof__buffer status = {0};
    const char *at = status_field(&status, path, key);

    *n = at ? strtoull(at, NULL, 10) : 0;
    cpprof__buffer_free(&status);
    return at != NULL;
}

bool
cpprof__proc_locks_memory(void)
{
    uint64_t n;

    return status_number("/proc/thread-self/status", "VmLck", &n) && n;
}

static bool had_filter;

void
cpprof__proc_note_filter(void)
{
    store_relaxed(&had_filter, true);
    cpprof__stack_view_probe_own();
}

bool
cpprof__proc_had_filter(void)
{
    return load_relaxed(&had_filter);
}

bool
cpprof__proc_has_own_filter(void)
{
    static const char own[] = "/proc/thread-self/status";
    static const char filters[] = "Seccomp_filters";
    uint64_t ours, firsts;

    if (!status_number(own, "Seccomp", &ours) || !ours)
        return false;
    return !status_number(own, filters, &ours) ||
           !status_number("/proc/1/status", filters, &firsts) || ours != firsts;
}

bool
cpprof__proc_blocks(int32_t tid, int signo)
{
    struct cpprof__buffer status = {0};
    const char *at;
    uint64_t mask;
    char path[64];

    snprintf(path, sizeof path, "/proc/self/task/%d/status", tid);
    at = status_field(&status, path, "SigBlk");
    mask = at ? strtoull(at, NULL, 16) : 0;
    cpprof__buffer_free(&status);
    return mask >> (signo - 1) & 1;
}

/* ---- the main thread -------------------------------------------------- */

const char *
cpprof__proc_stat_field(const char *stat, unsigned number)
{
    const char *at = strrchr(stat, ')');
    unsigned i;

    for (i = 2; at && i < number; i++) {
        at = strchr(at, ' ');
        at += at != NULL;
    }
    return at;
}

/* /proc/self is the main thread's, which has an executable as long as it runs:
 * to ask for that takes no descriptor, where a thread that asks each second may
 * have the program's table. */
bool
cpprof__proc_main_has_ended(int *status)
{
    struct cpprof__buffer stat = {0};
    const char *state = NULL, *code = NULL;
    char path[64];
    bool has;

    *status = 0;
    if (readlink("/proc/self/exe", path, sizeof path) >= 0)
        return false;

    snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)getpid());
    if (!cpprof__file_read(&stat, path, SIZE_MAX)) {
        state = cpprof__proc_stat_field((const char *)stat.data, 3);
        code = cpprof__proc_stat_field((const char *)stat.data, 52);
    }
    has = state && (*state == 'Z' || *state == 'X');
    *status = has && code ? atoi(code) : 0;
    cpprof__buffer_free(&stat);
    return has;
}
