/* SPDX-License-Identifier: MIT */
/*
 * Run a command and let system calls fail that cpprof makes in it; the
 * program's own are left alone.
 *
 *     faults_tracer LOG [FAULT]... -- COMMAND...
 *
 * LOG gets a line for each site: the number of a system call, the place in
 * cpprof that it comes from, and how often it did so. A site is that of cpprof
 *
 *   - if the call is made in a thread of ours, whatever library makes it; or
 *   - if the first frame outside of the system's libraries is ours. What a hook
 *     calls underneath for the program looks the same; faults.py knows those by
 *     the names of their functions.
 *
 * FAULT is NUMBER:PLACE:NTH:ERRNO: of this site the NTH call (from 1) fails
 * with ERRNO and is not made; NTH+ stands for all from there on. close() is
 * made, and fails all the same.
 *
 * Number 9999 is an allocation: faults_malloc.c makes that call. Behind its
 * place is the library that allocates for us, if it is another one.
 *
 * The exit status is that of the command, 128 and the signal that ended it; it
 * ends when all processes have ended.
 */
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define N_TASKS    1024
#define N_SITES    4096
#define N_RANGES   512
#define N_FAULTS   1024
#define ALLOCATION 9999

/* ---- what a process has mapped ---------------------------------------- */

enum { OF_PROGRAM, OF_SYSTEM, OF_US };

struct range {
    uint64_t start, end, offset;
    int owner;
    char name[64];
};

/* Of one process at a time: they take turns rarely. */
static struct range ranges[N_RANGES];
static unsigned n_ranges;
static pid_t mapped_pid;

static int
owner_of(const char *path)
{
    const char *name = strrchr(path, '/');

    if (!name)
        return *path == '[' ? OF_SYSTEM : OF_PROGRAM;
    if (strncmp(name + 1, "libcpprof", 9) == 0)
        return OF_US;
    if (strcmp(name + 1, "faults_malloc.so") == 0)
        return OF_SYSTEM;
    return strncmp(path, "/usr/lib", 8) && strncmp(path, "/lib", 4) ? OF_PROGRAM
                                                                    : OF_SYSTEM;
}

static void
read_ranges(pid_t pid)
{
    char path[64], line[4500], mode[8], file[4200];
    FILE *maps;

    snprintf(path, sizeof path, "/proc/%d/maps", pid);
    maps = fopen(path, "re");
    n_ranges = 0;
    mapped_pid = pid;
    while (maps && n_ranges < N_RANGES && fgets(line, sizeof line, maps)) {
        struct range *r = &ranges[n_ranges];
        unsigned long start, end, offset;
        const char *name;

        *file = '\0';
        if (sscanf(line, "%lx-%lx %7s %lx %*s %*s %4199s", &start, &end, mode,
                   &offset, file) < 4 ||
            mode[2] != 'x' || !*file)
            continue;
        name = strrchr(file, '/');
        *r = (struct range){start, end, offset, owner_of(file), ""};
        snprintf(r->name, sizeof r->name, "%.63s", name ? name + 1 : file);
        n_ranges++;
    }
    if (maps)
        fclose(maps);
}

static const struct range *
range_of(uint64_t address)
{
    for (unsigned i = 0; i < n_ranges; i++)
        if (address - ranges[i].start < ranges[i].end - ranges[i].start)
            return &ranges[i];
    return NULL;
}

/* ---- threads of it ---------------------------------------------------- */

struct task {
    pid_t tid, pid;
    bool is_named; /* is_ours is known */
    bool is_ours;
    long n_pending; /* the errno that the call it is in is to return */
    bool is_brk;
    bool maps_code; /* what is known of the process is old afterwards */
};

static struct task tasks[N_TASKS];

static struct task *
task_of(pid_t tid)
{
    struct task *empty = NULL;

    for (unsigned i = 0; i < N_TASKS; i++) {
        if (tasks[i].tid == tid)
            return &tasks[i];
        if (!tasks[i].tid && !empty)
            empty = &tasks[i];
    }
    if (!empty)
        exit(99);
    *empty = (struct task){.tid = tid};
    return empty;
}

static void
read_number(const char *path, const char *key, char *value, size_t n)
{
    char line[256];
    FILE *file = fopen(path, "re");

    *value = '\0';
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, key, strlen(key)) == 0)
            snprintf(value, n, "%s", line + strlen(key));
    if (file)
        fclose(file);
}

static void
name_task(struct task *t)
{
    char path[64], value[64];

    snprintf(path, sizeof path, "/proc/%d/status", t->tid);
    read_number(path, "Tgid:\t", value, sizeof value);
    t->pid = atoi(value);
    read_number(path, "Name:\t", value, sizeof value);
    t->is_ours = t->tid != t->pid && strncmp(value, "cpprof", 6) == 0;
    t->is_named = true;
}

/* ---- sites ------------------------------------------------------------ */

struct site {
    long number;
    char place[96];
    unsigned n;
};

static struct site sites[N_SITES];
static unsigned n_sites;

static struct site *
site_of(long number, const char *place)
{
    for (unsigned i = 0; i < n_sites; i++)
        if (sites[i].number == number && strcmp(sites[i].place, place) == 0)
            return &sites[i];
    if (n_sites == N_SITES)
        exit(99);
    sites[n_sites].number = number;
    snprintf(sites[n_sites].place, sizeof sites->place, "%s", place);
    return &sites[n_sites++];
}

/* ---- stacks ----------------------------------------------------------- */

static Dwfl *dwfl; /* of the process in mapped_pid */

static int
no_debug_file(Dwfl_Module *module, void **data, const char *name,
              Dwarf_Addr base, const char *file, const char *link,
              GElf_Word crc, char **result)
{
    (void)module, (void)data, (void)name, (void)base, (void)file, (void)link;
    (void)crc, (void)result;
    return -1;
}

static void
look_at(pid_t pid)
{
    static const Dwfl_Callbacks callbacks = {
        .find_elf = dwfl_linux_proc_find_elf, .find_debuginfo = no_debug_file};

    read_ranges(pid);
    dwfl_end(dwfl);
    dwfl = dwfl_begin(&callbacks);
    if (dwfl_linux_proc_report(dwfl, pid) != 0 ||
        dwfl_report_end(dwfl, NULL, NULL) != 0 ||
        dwfl_linux_proc_attach(dwfl, pid, true) != 0) {
        dwfl_end(dwfl); /* it ends just now */
        dwfl = NULL;
    }
}

static int
on_frame(Dwfl_Frame *frame, void *arg)
{
    const struct range *r;
    Dwarf_Addr pc;

    if (!dwfl_frame_pc(frame, &pc, NULL))
        return DWARF_CB_ABORT;
    r = range_of(pc);
    if (r && r->owner == OF_US)
        *(uint64_t *)arg = pc; /* the first of ours */
    return r && r->owner != OF_SYSTEM ? DWARF_CB_ABORT : DWARF_CB_OK;
}

/* The first word on the stack that may be an address in our code, or 0. In a
 * thread of ours it will do; in others it may be left from an earlier call. */
static uint64_t
first_word(const struct task *t, uint64_t sp)
{
    static uint64_t stack[4096];
    struct iovec mine = {stack, sizeof stack},
                 theirs = {(void *)sp, sizeof stack};
    ssize_t n;

    /* It may end sooner. */
    while ((n = process_vm_readv(t->tid, &mine, 1, &theirs, 1, 0)) < 0 &&
           theirs.iov_len > 64)
        theirs.iov_len /= 2;
    for (ssize_t i = 0; i < n / 8; i++) {
        const struct range *r = range_of(stack[i]);

        if (r && r->owner == OF_US)
            return stack[i];
        if (r && i == 0 && r->owner == OF_PROGRAM)
            break; /* where the call returns to */
    }
    return 0;
}

/* The place in our code that the call comes from; false: it is not ours. */
static bool
find_place(const struct task *t, uint64_t pc, uint64_t sp, char *place,
           size_t n)
{
    uint64_t found = 0;
    const struct range *r;

    if (mapped_pid != t->pid || !range_of(pc))
        look_at(t->pid);
    r = range_of(pc);
    if (r && r->owner == OF_US)
        found = pc;
    else if (r && r->owner == OF_SYSTEM)
        found = first_word(t, sp);
    if (found && !t->is_ours && r->owner != OF_US) {
        found = 0;
        if (dwfl)
            dwfl_getthread_frames(dwfl, t->tid, on_frame, &found);
    }
    r = range_of(found);
    if (r)
        snprintf(place, n, "%s+%lx%s", r->name,
                 (unsigned long)(found - r->start + r->offset),
                 t->is_ours ? "" : "!");
    else if (t->is_ours)
        snprintf(place, n, "beneath");
    else
        return false;
    return true;
}

/* ---- faults ----------------------------------------------------------- */

static struct fault {
    long number;
    char place[96];
    unsigned nth;
    bool is_ever;
    int error;
    unsigned n;
} faults[N_FAULTS];
static unsigned n_faults, n_failed;

static bool
read_fault(const char *text)
{
    struct fault *f = &faults[n_faults++];
    char ever[2] = "";

    if (sscanf(text, "%ld:%95[^:]:%u%1[+]:%d", &f->number, f->place, &f->nth,
               ever, &f->error) == 5)
        f->is_ever = true;
    else if (sscanf(text, "%ld:%95[^:]:%u:%d", &f->number, f->place, &f->nth,
                    &f->error) != 4)
        return false;
    return true;
}

static int
error_for(long number, const char *place)
{
    int error = 0;

    for (unsigned i = 0; i < n_faults; i++) {
        struct fault *f = &faults[i];

        if (f->number != number || strcmp(f->place, place))
            continue;
        f->n++;
        if (f->n == f->nth || (f->is_ever && f->n > f->nth))
            error = f->error;
    }
    n_failed += error != 0;
    return error;
}

/* The others cannot fail. */
static bool
is_wait(uint64_t operation)
{
    operation &= FUTEX_CMD_MASK;
    return operation == FUTEX_WAIT || operation == FUTEX_WAIT_BITSET;
}

/* Of an allocation that another library makes for us: which one. */
static void
note_caller(uint64_t caller, char *place, size_t n)
{
    const struct range *r = range_of(caller);
    size_t length = strlen(place);

    if (r && r->owner == OF_SYSTEM && strncmp(r->name, "libc.", 5))
        snprintf(place + length, n - length, "~%s", r->name);
}

static void
on_entry(struct task *t, const struct __ptrace_syscall_info *info)
{
    long number = (long)info->entry.nr;
    char place[96];

    if (!t->is_named)
        name_task(t);
    if (number == SYS_prctl && info->entry.args[0] == PR_SET_NAME)
        t->is_named = false; /* looked at by its next call */
    t->n_pending = 0;
    t->maps_code = number == SYS_mmap && info->entry.args[2] & PROT_EXEC;
    if (number == SYS_exit || number == SYS_exit_group ||
        number == SYS_rt_sigreturn ||
        (number == SYS_futex && !is_wait(info->entry.args[1])) ||
        !find_place(t, info->instruction_pointer, info->stack_pointer, place,
                    sizeof place))
        return;
    if (number == ALLOCATION)
        note_caller(info->entry.args[0], place, sizeof place);
    site_of(number, place)->n++;
    t->n_pending = error_for(number, place);
    t->is_brk = number == SYS_brk;
    if (t->n_pending && number != SYS_close)
        ptrace(PTRACE_POKEUSER, t->tid,
               offsetof(struct user_regs_struct, orig_rax), -1L);
}

static void
on_exit_of_call(struct task *t)
{
    if (t->n_pending)
        ptrace(PTRACE_POKEUSER, t->tid, offsetof(struct user_regs_struct, rax),
               t->is_brk ? 0 : -t->n_pending);
    t->n_pending = 0;
    if (t->maps_code)
        mapped_pid = 0;
    t->maps_code = false;
}

/* ---- the loop --------------------------------------------------------- */

static pid_t
start(char **command)
{
    int gate[2];
    char byte;
    pid_t pid;

    if (pipe2(gate, O_CLOEXEC) != 0 || (pid = fork()) < 0)
        exit(99);
    if (pid == 0) {
        close(gate[1]);
        while (read(gate[0], &byte, 1) < 0 && errno == EINTR)
            continue;
        execvp(*command, command);
        _exit(99);
    }
    if (ptrace(PTRACE_SEIZE, pid, 0,
               PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK |
                   PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE |
                   PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL) != 0) {
        perror("faults_tracer: ptrace");
        kill(pid, SIGKILL);
        exit(98);
    }
    close(gate[0]);
    close(gate[1]);
    return pid;
}

static void
on_stop(pid_t tid, int status)
{
    struct task *t = task_of(tid);
    struct __ptrace_syscall_info info;
    int signal = WSTOPSIG(status), event = status >> 16;

    if (signal == (SIGTRAP | 0x80)) {
        if (ptrace(PTRACE_GET_SYSCALL_INFO, tid, sizeof info, &info) > 0) {
            if (info.op == PTRACE_SYSCALL_INFO_ENTRY)
                on_entry(t, &info);
            else if (info.op == PTRACE_SYSCALL_INFO_EXIT)
                on_exit_of_call(t);
        }
        signal = 0;
    } else if (event == PTRACE_EVENT_STOP) {
        if (signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN ||
            signal == SIGTTOU) {
            ptrace(PTRACE_LISTEN, tid, 0, 0);
            return;
        }
        signal = 0;
    } else if (event) {
        if (event == PTRACE_EVENT_EXEC) {
            t->is_named = false;
            mapped_pid = 0;
        }
        signal = 0;
    }
    ptrace(PTRACE_SYSCALL, tid, 0, signal);
}

static void
write_log(const char *path)
{
    FILE *log = fopen(path, "we");

    if (!log)
        exit(99);
    for (unsigned i = 0; i < n_sites; i++)
        fprintf(log, "%ld %s %u\n", sites[i].number, sites[i].place,
                sites[i].n);
    fprintf(log, "failed %u\n", n_failed);
    fclose(log);
}

int
main(int argc, char **argv)
{
    int i = 2, result = 99, status;
    pid_t first, tid;

    for (; i < argc && strcmp(argv[i], "--"); i++)
        if (n_faults == N_FAULTS || !read_fault(argv[i]))
            return 99;
    if (i + 1 >= argc)
        return 99;
    first = start(argv + i + 1);
    while ((tid = waitpid(-1, &status, __WALL)) > 0 || errno == EINTR) {
        if (tid > 0 && WIFSTOPPED(status)) {
            on_stop(tid, status);
        } else if (tid > 0) {
            task_of(tid)->tid = 0;
            if (tid == first)
                result = WIFSIGNALED(status) ? 128 + WTERMSIG(status)
                                             : WEXITSTATUS(status);
        }
    }
    write_log(argv[1]);
    return result;
}
