/* SPDX-License-Identifier: MIT */
/*
 * Looks at a process before anything in it is touched, and refuses with one
 * line. Everything is read from /proc; what is not known is let through, as the
 * steps that follow fail without harm.
 */
#include "cli/attach/attach.h"

#include "base/file.h"
#include "base/text.h"
#include <cpprof/object.h>
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <unistd.h>

/* Files of /proc are as long as their process makes them. */
#define PROC_BYTES_MAX (256u << 20)

void
cpprof__read_proc(struct cpprof__buffer *text, const char *format, ...)
{
    char path[PATH_MAX];
    va_list args;

    va_start(args, format);
    vsnprintf(path, sizeof path, format, args);
    va_end(args);
    cpprof__buffer_free(text);
    *text = (struct cpprof__buffer){0};
    cpprof__file_read(text, path, PROC_BYTES_MAX);
    cpprof__buffer_append(text, "", 1);
}

bool
cpprof__status_field(const struct cpprof__buffer *status, const char *name,
                     char *value, size_t size)
{
    const char *at = cpprof__field((const char *)status->data, name);

    snprintf(value, size, "%.*s", at ? (int)strcspn(at, "\n") : 0,
             at ? at : "");
    return at != NULL;
}

/* ------------------------------------------------------------ reasons ---- */

struct look {
    struct cpprof__target *target;
    struct cpprof__buffer status;
    const char *library, *seen_library;
    bool force;
    char *reason;
};

/* Fill in the reason; false, for those who return it. */
static bool __attribute__((format(printf, 2, 3)))
no(struct look *look, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(look->reason, CPPROF__REASON_BYTES, format, args);
    va_end(args);
    return false;
}

static long
number(const struct look *look, const char *field)
{
    char value[64];

    cpprof__status_field(&look->status, field, value, sizeof value);
    return strtol(value, NULL, 10);
}

static void
read_name(pid_t pid, char *name, size_t size)
{
    struct cpprof__buffer text = {0};

    cpprof__read_proc(&text, "/proc/%d/comm", (int)pid);
    snprintf(name, size, "%.*s",
             text.data ? (int)strcspn((char *)text.data, "\n") : 0,
             text.data ? (char *)text.data : "");
    cpprof__buffer_free(&text);
    /* It is for a terminal, and may be of somebody who wants to do harm to it.
     */
    cpprof__clean_text(name);
}

/* A command that is at work has a thread traced for a moment. */
static bool
look_at_tracer(struct look *look)
{
    char tracer[32];
    int turn;

    if (!number(look, "TracerPid"))
        return true;
    if (!cpprof__turn_take(look->target->pid, &turn))
        return no(look, CPPROF__NO_TURN);
    cpprof__turn_release(turn);
    cpprof__read_proc(&look->status, "/proc/%d/status", (int)look->target->pid);
    if (!number(look, "TracerPid"))
        return true;
    read_name((pid_t)number(look, "TracerPid"), tracer, sizeof tracer);
    return no(look, "is traced already by %ld (%s)", number(look, "TracerPid"),
              tracer);
}

/* A file of a control group; "" if it cannot be read. The path of the group
 * ends with its line, and the other lines of /proc/PID/cgroup may follow. */
static void
read_group(const char *hierarchy, const char *path, const char *file,
           struct cpprof__buffer *text)
{
    cpprof__read_proc(text, "/sys/fs/cgroup%s%.*s/%s", hierarchy,
                      (int)strcspn(path, "\n"), path, file);
}

/* Is it in a control group whose processes are frozen, as a container that is
 * paused? Version 2 of control groups may be mounted beside version 1. */
static bool
is_frozen(pid_t pid)
{
    struct cpprof__buffer groups = {0}, text = {0};
    const char *one, *two;
    bool is = false;

    cpprof__read_proc(&groups, "/proc/%d/cgroup", (int)pid);
    two = groups.data ? strstr((char *)groups.data, "0::/") : NULL;
    one = groups.data ? strstr((char *)groups.data, ":freezer:/") : NULL;
    if (two) {
        read_group("", two + 3, "cgroup.events", &text);
        if (text.n < 2)
            read_group("/unified", two + 3, "cgroup.events", &text);
        is = text.data && strstr((char *)text.data, "frozen 1");
    }
    if (one && !is) {
        read_group("/freezer", one + 9, "freezer.state", &text);
        is = text.data && !strncmp((char *)text.data, "FROZEN", 6);
    }
    cpprof__buffer_free(&groups);
    cpprof__buffer_free(&text);
    return is;
}

/* Its memory goes before it is a zombie. */
#define ENDED "it ended meanwhile"

/* It is there, is a process, lives and runs a program. */
static bool
look_at_state(struct look *look)
{
    pid_t pid = look->target->pid;
    char state[64];

    cpprof__read_proc(&look->status, "/proc/%d/status", (int)pid);
    if (!look->status.data || look->status.n < 2)
        return no(look, "there is no such process");
    if (number(look, "Tgid") != pid)
        return no(look, "is a thread of process %ld", number(look, "Tgid"));
    if (pid == getpid())
        return no(look, "is this program itself");
    cpprof__status_field(&look->status, "State", state, sizeof state);
    if (*state == 'Z' && number(look, "Threads") > 1)
        return no(look, "goes on without its first thread, which has ended: "
                        "the kernel shows no memory of such a process");
    if (*state == 'Z' || *state == 'X')
        return no(look, "has ended and waits for its parent (a zombie)");
    if (number(look, "Kthread") ||
        (!number(look, "VmSize") &&
         !cpprof__status_field(&look->status, "Kthread", state, sizeof state)))
        return no(look, "is a thread of the kernel: it has no program");
    if (!number(look, "VmSize"))
        return no(look, ENDED);
    if (!look_at_tracer(look))
        return false;
    cpprof__status_field(&look->status, "State", state, sizeof state);
    if (*state == 'T' || *state == 't')
        return no(look, CPPROF__STOPPED_WORDS, (int)pid);
    if (is_frozen(pid))
        return no(look, "is frozen by its control group, as a container that "
                        "is paused; let it go on first");
    return true;
}

static bool
has_capability(unsigned n)
{
    struct cpprof__buffer status = {0};
    char value[32];
    bool has;

    cpprof__read_proc(&status, "/proc/self/status");
    cpprof__status_field(&status, "CapEff", value, sizeof value);
    has = strtoull(value, NULL, 16) >> n & 1;
    cpprof__buffer_free(&status);
    return has;
}

static long
yama_scope(void)
{
    struct cpprof__buffer text = {0};
    long scope;

    cpprof__read_proc(&text, "/proc/sys/kernel/yama/ptrace_scope");
    scope = text.data ? strtol((char *)text.data, NULL, 10) : 0;
    cpprof__buffer_free(&text);
    return scope;
}

/* May we read of it? The kernel asks the same in ptrace(2): ids, the dumpable
 * flag. */
static bool
look_at_rights(struct look *look)
{
    unsigned uid = (unsigned)number(look, "Uid");
    bool may_trace = has_capability(CAP_SYS_PTRACE);
    const struct passwd *user;
    char path[64];
    int fd;

    if (!may_trace && uid != getuid()) {
        user = getpwuid(uid);
        return no(look, "belongs to user %u (%s); be that user, or %s", uid,
                  user ? user->pw_name : "unknown",
                  getuid() ? "root" : "have CAP_SYS_PTRACE, which root lacks");
    }
    snprintf(path, sizeof path, "/proc/%d/maps", (int)look->target->pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && (errno == EACCES || errno == EPERM))
        return no(look, "may not be looked at: it is not dumpable (it runs "
                        "with other rights than its user's, or asked for "
                        "that); be root");
    if (fd >= 0)
        close(fd);
    return true;
}

static bool
shares_namespace(pid_t pid, const char *kind)
{
    char path[64];
    struct stat ours, theirs;

    snprintf(path, sizeof path, "/proc/self/ns/%s", kind);
    if (stat(path, &ours))
        return false;
    snprintf(path, sizeof path, "/proc/%d/ns/%s", (int)pid, kind);
    return !stat(path, &theirs) && ours.st_ino == theirs.st_ino;
}

/* In filter mode, and how many; 0: in none, or it is not known. */
static long
filters_in(const struct cpprof__buffer *status)
{
    char mode[32], n[32];

    return cpprof__status_field(status, "Seccomp", mode, sizeof mode) &&
                   !strcmp(mode, "2") &&
                   cpprof__status_field(status, "Seccomp_filters", n, sizeof n)
               ? strtol(n, NULL, 10)
               : 0;
}

static long
filters_of(const char *process)
{
    struct cpprof__buffer status = {0};
    long n;

    cpprof__read_proc(&status, "/proc/%s/status", process);
    n = filters_in(&status);
    cpprof__buffer_free(&status);
    return n;
}

bool
cpprof__attach_filter_may_kill(pid_t pid, const struct cpprof__buffer *status)
{
    long n = filters_in(status);

    return !n || n != filters_of("self") || n != filters_of("1") ||
           !shares_namespace(pid, "mnt") || !shares_namespace(pid, "pid") ||
           !cpprof__attach_filter_is_mild();
}

/* What the kernel forbids who may read, and what may end a process. */
static bool
look_at_walls(struct look *look)
{
    long scope = yama_scope();
    char value[64];

    if (scope >= 3)
        return no(look, "yama's ptrace_scope is 3: nobody may attach until "
                        "the system starts again");
    if (scope && !has_capability(CAP_SYS_PTRACE))
        return no(look,
                  "yama's ptrace_scope is %ld: only root may attach; allow it "
                  "with: sudo sysctl kernel.yama.ptrace_scope=0",
                  scope);
    if (number(look, "Seccomp") && !look->force &&
        cpprof__attach_filter_may_kill(look->target->pid, &look->status))
        return no(look, "has a seccomp filter, which may kill it for what "
                        "profiling calls; record -force tries all "
                        "the same");
    /* There is no process 0. */
    if (ptrace(PTRACE_DETACH, 0, 0, 0) && errno != ESRCH)
        return no(look, "cannot be attached to: a seccomp filter refuses "
                        "ptrace() to this program");
    cpprof__status_field(&look->status, "x86_Thread_features", value,
                         sizeof value);
    if (strstr(value, "shstk"))
        return no(look, "has a shadow stack, which is not supported");
    return true;
}

/* In a pid namespace of its own, but with the /proc of another? Its threads
 * have other numbers there than they have for themselves. */
static bool
look_at_proc(struct look *look)
{
    int pid = (int)look->target->pid;
    char pids[256], path[PATH_MAX];
    const char *inner;
    struct stat here, there;

    cpprof__status_field(&look->status, "NSpid", pids, sizeof pids);
    inner = strrchr(pids, '\t');
    snprintf(path, sizeof path, "/proc/%d/ns/pid", pid);
    if (!inner || stat(path, &here))
        return true;
    snprintf(path, sizeof path, "/proc/%d/root/proc/%ld/ns/pid", pid,
             strtol(inner, NULL, 10));
    if (!stat(path, &there) && there.st_ino == here.st_ino)
        return true;
    snprintf(path, sizeof path, "/proc/%d/root/proc/stat", pid);
    if (access(path, F_OK))
        return true;
    return no(look, "has a /proc that is not of its pid namespace, so its "
                    "threads cannot be found from within; begin it with one "
                    "of its own (unshare -p -f --mount-proc)");
}

/* The program's file: false, it cannot be read; and its loader, or "". */
static bool
read_program(pid_t pid, Elf64_Ehdr *e, char interpreter[PATH_MAX])
{
    char path[64];
    Elf64_Phdr p;
    bool is_read;
    unsigned i;
    int fd;

    memset(interpreter, 0, PATH_MAX);
    snprintf(path, sizeof path, "/proc/%d/exe", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    is_read = fd >= 0 && pread(fd, e, sizeof *e, 0) == (ssize_t)sizeof *e &&
              !memcmp(e->e_ident, ELFMAG, SELFMAG);
    for (i = 0; is_read && e->e_ident[EI_CLASS] == ELFCLASS64 && i < e->e_phnum;
         i++)
        if (pread(fd, &p, sizeof p, (off_t)(e->e_phoff + i * sizeof p)) ==
                (ssize_t)sizeof p &&
            p.p_type == PT_INTERP && p.p_filesz < PATH_MAX &&
            pread(fd, interpreter, p.p_filesz, (off_t)p.p_offset) > 0)
            break;
    if (fd >= 0)
        close(fd);
    return is_read;
}

static bool
is_musls(const char *loader)
{
    return !strncmp(basename(loader), "ld-musl-", 8);
}

bool
cpprof__attach_is_musl(pid_t pid)
{
    char loader[PATH_MAX];
    Elf64_Ehdr e;

    return read_program(pid, &e, loader) && is_musls(loader);
}

static bool
look_at_program(struct look *look)
{
    const unsigned machine = EM_X86_64;
    char interpreter[PATH_MAX];
    Elf64_Ehdr e = {0};
    bool is_read = read_program(look->target->pid, &e, interpreter);

    look->target->is_visible = !is_read;
    if (!is_read)
        return true;
    if (e.e_ident[EI_CLASS] == ELFCLASS32)
        return no(look, "is a 32-bit program");
    if (e.e_machine != machine)
        return no(look, "is a program for another processor");
    look->target->is_visible = true;
    if (!*interpreter)
        return no(look, "is linked statically: there is no loader to load "
                        "libcpprof.so with");
    if (is_musls(interpreter) && look->library && !*look->library)
        return no(look, "is a program for musl libc, and there is no "
                        "libcpprof.so for musl beside this one");
    return true;
}

bool
cpprof__attach_read(struct cpprof__target *t)
{
    cpprof__images_free(&t->images);
    t->images = (struct cpprof__images){0};
    cpprof__read_proc(&t->maps, "/proc/%d/maps", (int)t->pid);
    return t->maps.data &&
           cpprof__images_read(&t->images, t->pid, (char *)t->maps.data,
                               t->maps.n - 1);
}

/* What is mapped: libc, and perhaps the library. */
static bool
look_at_images(struct look *look)
{
    static const char *const needed[] = {"pthread_create",
                                         "pthread_detach",
                                         "pthread_self",
                                         "dlopen",
                                         "dlsym",
                                         "dlerror",
                                         "pthread_attr_init",
                                         "pthread_attr_setstacksize",
                                         "__errno_location"};
    struct cpprof__target *t = look->target;
    size_t i;

    cpprof__read_proc(&t->auxv, "/proc/%d/auxv", (int)t->pid);
    if (!t->auxv.data || !cpprof__attach_read(t))
        return no(look, "out of memory");
    if (t->auxv.n < 2 || t->maps.n < 2)
        return no(look, ENDED);
    if (!t->images.libc)
        return no(look, cpprof__attach_is_over(t->pid)
                            ? ENDED
                            : "has not loaded its libc, or its file is gone");
    for (i = 0; i < sizeof needed / sizeof *needed; i++)
        if (!cpprof__image_symbol(t->images.libc, needed[i]))
            return no(look, "its libc is older than glibc 2.34: it has no %s",
                      needed[i]);
    if (!t->images.syscall_ret || !t->images.sigreturn ||
        (t->images.is_musl && !t->images.cancelled.hi))
        return no(look, "its libc is not one that is known");
    for (i = 0; i < t->images.n; i++)
        if (t->images.at[i].has_code &&
            cpprof__image_symbol(&t->images.at[i], "__tsan_init"))
            return no(look, "has ThreadSanitizer, which knows only threads "
                            "that it has made itself");
    for (i = 0; i < t->images.n && !t->is_loaded; i++)
        if (t->images.at[i].has_code &&
            !strncmp(basename(t->images.at[i].path), "libcpprof.so", 12)) {
            t->is_loaded = true;
            t->loaded = &t->images.at[i];
            /* One that came with an earlier recording was removed after it. */
            if (!t->loaded->data && look->library)
                cpprof__image_stand_in(&t->images.at[i], t->pid, look->library);
            snprintf(t->library, sizeof t->library, "%s", t->images.at[i].path);
            if (!cpprof__image_symbol(&t->images.at[i], "cpprof_attach"))
                return no(look, "has loaded %s, which cannot be attached to",
                          t->library);
        }
    for (i = 0; i < t->images.n && !t->is_loaded; i++)
        if (t->images.at[i].has_code &&
            cpprof__image_symbol(&t->images.at[i], "cpprof_cpu_start"))
            return no(look, "is linked with libcpprof.a; ask it by its own "
                            "means");
    return true;
}

/* The library works on threads of its own. The kernel makes none for who has
 * its children begin in another pid namespace, and none for a user who may have
 * none; of another limit than 0 it is not known how much is left. */
static bool
look_at_new_threads(struct look *look, uint64_t limit)
{
    const uint64_t unlimited = 1ull << CAP_SYS_RESOURCE | 1ull << CAP_SYS_ADMIN;
    int pid = (int)look->target->pid;
    struct stat own, childrens;
    char path[64], value[32];

    snprintf(path, sizeof path, "/proc/%d/ns/pid", pid);
    if (!stat(path, &own)) {
        snprintf(path, sizeof path, "/proc/%d/ns/pid_for_children", pid);
        /* That of an empty namespace cannot be followed. */
        if (stat(path, &childrens) ? !lstat(path, &childrens)
                                   : childrens.st_ino != own.st_ino)
            return no(look, "can make no thread: its children begin in another "
                            "pid namespace (it called unshare or setns)");
    }
    cpprof__status_field(&look->status, "CapEff", value, sizeof value);
    return limit || !number(look, "Uid") ||
           strtoull(value, NULL, 16) & unlimited ||
           no(look, "can make no thread: its limit of processes is 0 "
                    "(ulimit -u)");
}

/* Tunables. What the library maps at most for all kinds, little of which ever
 * becomes memory; under a limit its tables take half of that, and a thread may
 * have libc map an arena. */
#define ROOM_BYTES  (480ull << 20)
#define ARENA_BYTES (128ull << 20)

/* The most that the program ever had counts, as it may want that again. */
static bool
look_at_room(struct look *look, uint64_t limit)
{
    uint64_t most = (uint64_t)number(look, "VmPeak") << 10, room = ROOM_BYTES;

    if (limit / 2 + ARENA_BYTES < room)
        room = limit / 2 + ARENA_BYTES;
    return most + room <= limit ||
           no(look,
              "may not have %llu MB more of address space, which profiling "
              "maps (ulimit -v)",
              (unsigned long long)room >> 20);
}

/* Who may not lock more than so much, and has all locked that it maps
 * (mlockall): most of it is by then. What the library maps is not locked for
 * long, and libc's arena is. */
static bool
look_at_locked(struct look *look, uint64_t limit)
{
    uint64_t locked = (uint64_t)number(look, "VmLck") << 10;
    char value[32];

    cpprof__status_field(&look->status, "CapEff", value, sizeof value);
    return strtoull(value, NULL, 16) & 1ull << CAP_IPC_LOCK ||
           2 * number(look, "VmLck") < number(look, "VmSize") ||
           (locked <= limit && limit - locked >= ROOM_BYTES) ||
           no(look,
              "has all that it maps locked (mlockall), and may not lock %llu "
              "MB more, which profiling maps (ulimit -l)",
              ROOM_BYTES >> 20);
}

/* A soft limit in the text of /proc/PID/limits; UINT64_MAX: none. */
static uint64_t
limit_in(const struct cpprof__buffer *limits, const char *name)
{
    const char *at = limits->data ? strstr((char *)limits->data, name) : NULL;

    at = at ? at + strlen(name) : "";
    at += strspn(at, " ");
    return *at >= '0' && *at <= '9' ? strtoull(at, NULL, 10) : UINT64_MAX;
}

/* Threads of ours have tables of descriptors of their own, so what the program
 * has open takes no number away. Numbers count from 0 to 2 on. */
#define DESCRIPTORS 5

static bool
look_at_descriptors(struct look *look, uint64_t limit)
{
    return limit >= DESCRIPTORS ||
           no(look,
              "may have no more than %llu files open, and profiling takes "
              "numbers up to %d (ulimit -n)",
              (unsigned long long)limit, DESCRIPTORS - 1);
}

/* One that has the library has made and mapped what it needs, and opens files
 * anew. */
static bool
look_at_limits(struct look *look)
{
    struct cpprof__buffer limits = {0};
    bool may;

    cpprof__read_proc(&limits, "/proc/%d/limits", (int)look->target->pid);
    look->target->file_limit = limit_in(&limits, "Max file size");
    may = look_at_descriptors(look, limit_in(&limits, "Max open files"));
    if (may && !look->target->is_loaded)
        may = look_at_new_threads(look, limit_in(&limits, "Max processes")) &&
              look_at_room(look, limit_in(&limits, "Max address space")) &&
              look_at_locked(look, limit_in(&limits, "Max locked memory"));
    cpprof__buffer_free(&limits);
    return may;
}

/* What a process writes for a recorder is mapped, so its files are as long as
 * they may become. ORDER: cpprof__store_shared_bytes() and
 * cpprof__recorded_offset(CPPROF__MIRROR_END). */
#define CPU_FILE_BYTES   5148672u
#define OTHER_FILE_BYTES 206495744u

bool
cpprof__attach_has_file_room(const struct cpprof__target *target,
                             bool is_cpu_alone,
                             char reason[CPPROF__REASON_BYTES])
{
    uint64_t n = is_cpu_alone ? CPU_FILE_BYTES : OTHER_FILE_BYTES;

    if (target->file_limit >= n)
        return true;
    snprintf(reason, CPPROF__REASON_BYTES,
             "may write files of no more than %llu bytes, and profiling needs "
             "%llu (ulimit -f)",
             (unsigned long long)target->file_limit, (unsigned long long)n);
    return false;
}

/* Does the process see the library where we do? */
static bool
look_at_library(struct look *look)
{
    struct cpprof__target *t = look->target;
    char path[PATH_MAX + 32];
    struct stat here, there;

    if (t->is_loaded || !look->library)
        return true;
    snprintf(t->library, sizeof t->library, "%s", look->seen_library);
    snprintf(path, sizeof path, "/proc/%d/root%s", (int)t->pid,
             look->seen_library);
    if (stat(look->library, &here))
        return no(look, "%s: %s", look->library, strerror(errno));
    if (stat(path, &there) || there.st_ino != here.st_ino ||
        there.st_dev != here.st_dev)
        return no(
            look,
            "does not see %s: it has another root (a container, a chroot)",
            look->seen_library);
    return true;
}

bool
cpprof__attach_look(struct cpprof__target *target, pid_t pid,
                    const char *library, const char *seen_library, bool force,
                    char reason[CPPROF__REASON_BYTES])
{
    struct look look = {.target = target,
                        .library = library,
                        .seen_library = seen_library,
                        .force = force,
                        .reason = reason};
    bool may;

    *target = (struct cpprof__target){.pid = pid, .force = force};
    read_name(pid, target->name, sizeof target->name);
    may = cpprof__guest_is_known() ||
          no(&look, "attaching is not known on this processor yet");
    may = may && look_at_state(&look);
    if (may) {
        may = look_at_rights(&look) && look_at_program(&look) &&
              look_at_walls(&look) && look_at_proc(&look) &&
              look_at_images(&look) && look_at_limits(&look);
        if (may && !look_at_library(&look)) /* another folder is what helps */
            may = target->is_visible = false;
        /* What it had goes piece by piece. */
        if (!may && cpprof__attach_is_over(pid))
            target->is_visible = no(&look, ENDED);
    }
    cpprof__buffer_free(&look.status);
    if (!may)
        cpprof__attach_free(target);
    return may;
}

bool
cpprof__attach_is_same(const struct cpprof__target *target)
{
    struct cpprof__buffer now = {0};
    bool is_same;

    cpprof__read_proc(&now, "/proc/%d/auxv", (int)target->pid);
    is_same = now.data && now.n == target->auxv.n &&
              memcmp(now.data, target->auxv.data, now.n) == 0;
    cpprof__buffer_free(&now);
    return is_same;
}

bool
cpprof__attach_is_stopped(pid_t pid)
{
    struct cpprof__buffer status = {0};
    char state[16], tracer[16];

    cpprof__read_proc(&status, "/proc/%d/status", (int)pid);
    cpprof__status_field(&status, "State", state, sizeof state);
    cpprof__status_field(&status, "TracerPid", tracer, sizeof tracer);
    cpprof__buffer_free(&status);
    return *state == 'T' ||
           (*state == 't' && strtol(tracer, NULL, 10) != getpid());
}

bool
cpprof__attach_is_over(pid_t pid)
{
    struct cpprof__buffer status = {0};
    char state[16], threads[16], size[32];

    cpprof__read_proc(&status, "/proc/%d/status", (int)pid);
    cpprof__status_field(&status, "State", state, sizeof state);
    cpprof__status_field(&status, "Threads", threads, sizeof threads);
    cpprof__status_field(&status, "VmSize", size, sizeof size);
    cpprof__buffer_free(&status);
    return !*state || *state == 'X' ||
           ((*state == 'Z' || !*size) && strtol(threads, NULL, 10) < 2);
}

void
cpprof__attach_free(struct cpprof__target *target)
{
    cpprof__buffer_free(&target->auxv);
    cpprof__buffer_free(&target->maps);
    cpprof__images_free(&target->images);
    target->auxv = target->maps = (struct cpprof__buffer){0};
    target->images = (struct cpprof__images){0};
}
