/* SPDX-License-Identifier: MIT */
/*
 * Changes of credentials and of namespaces, which concern every thread: threads
 * of ours are not there meanwhile (collect/runtime/own_threads.h).
 *
 * libc has each thread make the same system call for setuid() and its like, and
 * aborts where one fails and another does not. A program with one thread may
 * have kept a capability that lets its call succeed, while a thread of ours,
 * made before, has lost it. And the kernel lets no process of several threads
 * enter a user namespace.
 *
 * A thread of the program that leaves the table of descriptors would leave it
 * to the thread of ours that holds it, with all that is open there.
 */
#include "arch/kernel.h"
#include "arch/regs.h"
#include "collect/process/environment.h"
#include "collect/runtime/own_list.h"
#include "collect/runtime/own_lock.h"
#include "collect/runtime/own_threads.h"
#include "http/listen.h"
#include "interpose/parts.h"
#include "interpose/take_over.h"
#include "own/memory.h"
#include "push/process.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/types.h>
#include <unistd.h>

static void
wake_up(void)
{
    cpprof__http_wake_up();
    cpprof__push_wake_up();
}

/* A filter may refuse futex() for a program of one thread. Then threads of ours
 * can neither be woken nor joined, and libc, which waits by it until each
 * thread has changed, too, ends the process. */
static bool
cannot_wait(void)
{
    uint32_t word = 0;

    return cpprof__syscall(SYS_futex, (long)&word, FUTEX_WAKE_PRIVATE, 1, 0, 0,
                           0) < 0;
}

/* In a child of the bare clone() libc would wait for ever for a thread that the
 * parent was just making. */
static bool
have_to_be_left(void)
{
    return !cpprof__own_list_is_empty() &&
           (cpprof__own_threads_are_parents() || cannot_wait());
}

/* Handlers of the program wait: one that left by siglongjmp would leave the
 * pause as it is, for ever. A thread ends and begins with malloc, which is
 * locked while libc forks. */
struct cpprof__alone
cpprof__alone_begin(void)
{
    struct cpprof__alone alone;

    if (!cpprof__in_fork())
        cpprof__environment_before_credentials();
    cpprof__block_signals(&alone.mask);
    alone.are_left = have_to_be_left();
    alone.are_paused = !alone.are_left && !cpprof__in_fork() &&
                       cpprof__own_threads_pause(wake_up);
    return alone;
}

int
cpprof__alone_end(const struct cpprof__alone *alone, int result)
{
    int saved_errno = errno;

    if (alone->are_paused)
        cpprof__own_threads_resume();
    pthread_sigmask(SIG_SETMASK, &alone->mask, NULL);
    errno = saved_errno;
    return result;
}

bool
cpprof__alone_again(struct cpprof__alone *alone)
{
    bool was_alone = cpprof__own_list_was_empty();
    int saved_errno = errno;

    *alone = cpprof__alone_begin();
    pthread_sigmask(SIG_SETMASK, &alone->mask, NULL);
    errno = saved_errno;
    return alone->are_paused || !was_alone;
}

/* The name underneath, while no thread of ours is there; or `otherwise`, while
 * they have to be left as they are. A child with a copy of the memory and a
 * thread pointer of its own is asked first, as nothing of ours is there. */
#define ALONE_OR(name, parameters, arguments, otherwise)                       \
    TAKE_OVER(name, int, parameters, arguments)                                \
                                                                               \
    static int name##_on parameters                                            \
    {                                                                          \
        struct cpprof__alone alone;                                            \
                                                                               \
        if (!cpprof__thread_pointer_is_libcs() &&                              \
            cpprof__own_threads_are_anothers())                                \
            return (int)(otherwise);                                           \
        NEEDS_STORAGE(name, arguments);                                        \
        alone = cpprof__alone_begin();                                         \
        return cpprof__alone_end(&alone, alone.are_left ? (int)(otherwise)     \
                                                        : cpprof__real(name)   \
                                                              arguments);      \
    }

/* The calling thread changes by itself, as the program's only one. */
#define ALONE(name, parameters, arguments, number, ...)                        \
    ALONE_OR(name, parameters, arguments, syscall(SYS_##number, __VA_ARGS__))

/* No header of libc declares it. */
int
capset(cap_user_header_t head, cap_user_data_t data);

ALONE(setuid, (uid_t uid), (uid), setuid, uid)
ALONE(seteuid, (uid_t uid), (uid), setresuid, -1, uid, -1)
ALONE(setreuid, (uid_t real, uid_t effective), (real, effective), setreuid,
      real, effective)
ALONE(setresuid, (uid_t real, uid_t effective, uid_t saved),
      (real, effective, saved), setresuid, real, effective, saved)
ALONE(setgid, (gid_t gid), (gid), setgid, gid)
ALONE(setegid, (gid_t gid), (gid), setresgid, -1, gid, -1)
ALONE(setregid, (gid_t real, gid_t effective), (real, effective), setregid,
      real, effective)
ALONE(setresgid, (gid_t real, gid_t effective, gid_t saved),
      (real, effective, saved), setresgid, real, effective, saved)
ALONE(setgroups, (size_t n, const gid_t *gids), (n, gids), setgroups, n, gids)
ALONE_OR(capset, (cap_user_header_t head, cap_user_data_t data), (head, data),
         cpprof__real(capset)(head, data))
ALONE_OR(setns, (int fd, int kind), (fd, kind), cpprof__real(setns)(fd, kind))

TAKE_OVER(initgroups, int, (const char *user, gid_t gid), (user, gid))

/* Of a static program only if it has the function itself: it needs libraries
 * there, and the linker warns. */
extern __typeof__(getgrouplist) getgrouplist __attribute__((weak));

/* As in libc's: room for most users at once, as each look may be a question to
 * a server of names. */
#define GROUPS_FIRST 64

/* As libc's: as many as the kernel takes. It may wait for a server of names,
 * and handlers of the program may end the process meanwhile; threads of ours go
 * for the change alone. */
static int
initgroups_in_two(const char *user, gid_t gid)
{
    int n = GROUPS_FIRST, room = 0, result = -1;
    gid_t *gids = NULL, *more;

    do {
        more = n > room ? cpprof__realloc(gids, (size_t)n * sizeof *gids)
                        : NULL; /* it fails for another reason */
        if (!more) {
            cpprof__free(gids);
            errno = ENOMEM;
            return -1;
        }
        gids = more;
        room = n;
    } while (getgrouplist(user, gid, gids, &n) < 0);
    while (n > 0 && (result = setgroups_on((size_t)n, gids)) && errno == EINVAL)
        n--;
    cpprof__free(gids);
    return result;
}

static int
initgroups_on(const char *user, gid_t gid)
{
    struct cpprof__alone alone;

    NEEDS_STORAGE(initgroups, (user, gid));
    if (getgrouplist)
        return initgroups_in_two(user, gid);
    alone = cpprof__alone_begin();
    return cpprof__alone_end(&alone, cpprof__real(initgroups)(user, gid));
}

/*
 * After a change of the pid namespace for children no thread can begin any
 * more: threads of ours that went could not come back. Namespaces alone want no
 * thread that is alone, but for that of users; what a thread shares with others
 * (CLONE_FILES and the like) is left as the macro above has it.
 */
static bool
keeps_threads(int flags)
{
    const int namespaces = CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWUTS |
                           CLONE_NEWIPC | CLONE_NEWNET | CLONE_NEWCGROUP;

    return flags & CLONE_NEWPID && !(flags & ~namespaces);
}

TAKE_OVER(unshare, int, (int flags), (flags))

static int
unshare_on(int flags)
{
    struct cpprof__alone alone;

    NEEDS_STORAGE(unshare, (flags));
    if (keeps_threads(flags))
        return cpprof__real(unshare)(flags);
    alone = cpprof__alone_begin();
    return cpprof__alone_end(&alone, cpprof__real(unshare)(flags));
}

/* Came with glibc 2.34; before it a program that asks for the name finds ours.
 */
int
close_range(unsigned from, unsigned to, int flags) __THROW;

static int
call_close_range(unsigned from, unsigned to, int flags)
{
    return (int)syscall(SYS_close_range, from, to, flags);
}

TAKE_OVER_OR(close_range, int, (unsigned from, unsigned to, int flags),
             (from, to, flags), call_close_range)

static int
close_range_on(unsigned from, unsigned to, int flags)
{
    struct cpprof__alone alone;

    NEEDS_STORAGE(close_range, (from, to, flags));
    if (!(flags & CLOSE_RANGE_UNSHARE))
        return cpprof__real(close_range)(from, to, flags);
    alone = cpprof__alone_begin();
    return cpprof__alone_end(&alone,
                             cpprof__real(close_range)(from, to, flags));
}

/* ---- chroot ----------------------------------------------------------- */

/* The folder of a recording cannot be reached from in there. */
TAKE_OVER(chroot, int, (const char *path), (path))

static int
chroot_on(const char *path)
{
    NEEDS_STORAGE(chroot, (path));
    cpprof__environment_before_credentials();
    return cpprof__real(chroot)(path);
}
