/* SPDX-License-Identifier: MIT */
/*
 * DIRECTORY/control, by which a recorder tells processes that they are to stop,
 * also when it has no time to say so. Its word is a robust mutex, which the
 * thread that prepares the directory takes and keeps: whatever ends that
 * thread, the kernel marks the word. Who has mapped the file sees the mark, and
 * needs neither a descriptor nor a right for that.
 *
 * The directory may be given to somebody with fewer rights than ours, who may
 * put any file in the place of this one. Who prepared it therefore writes
 * through its mapping and opens nothing again; others write only where both are
 * their own.
 */
#include "collect/recording/control.h"

#include "arch/atomic.h"
#include "base/status.h"
#include "collect/signal/tables/mirror.h"
#include "collect/store/spool.h"
#include <cpprof/recording.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int
open_control(const char *directory, int flags)
{
    char path[PATH_MAX + 16];
    struct stat st;
    int fd;

    snprintf(path, sizeof path, "%s/control", directory);
    fd = open(path, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    if (fd < 0 || (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_nlink == 1))
        return fd;
    close(fd);
    errno = EINVAL;
    return -1;
}

/* A directory that was prepared here, by its inode, as it may be named
 * otherwise later. Never freed. */
struct prepared {
    dev_t device;
    ino_t inode;
    uint32_t *words;
    struct prepared *next;
};

static struct prepared *prepared;

static bool
remember(const char *directory, uint32_t *words)
{
    struct prepared *made = malloc(sizeof *made);
    struct stat st;

    if (!made || stat(directory, &st)) {
        free(made);
        return false;
    }
    *made = (struct prepared){st.st_dev, st.st_ino, words, NULL};
    made->next = load_acquire(&prepared);
    while (!cas_acq_rel(&prepared, &made->next, made))
        continue;
    return true;
}

/* NULL: it was not prepared here. */
static uint32_t *
words_of(const struct stat *directory)
{
    const struct prepared *p = load_acquire(&prepared);

    while (p &&
           (p->device != directory->st_dev || p->inode != directory->st_ino))
        p = p->next;
    return p ? p->words : NULL;
}

static enum cpprof_status
fail(const char *directory, struct cpprof_error *error)
{
    return cpprof__fail(error, CPPROF_SYSTEM, errno, "%s/control: %s",
                        directory, strerror(errno));
}

/* Its first word is the thread that has it: see cpprof__control_is_stopped().
 */
static int
take(uint32_t *words)
{
    pthread_mutex_t *mutex = (void *)(words + CPPROF__CONTROL_RECORDER);
    pthread_mutexattr_t robust;
    int failed = pthread_mutexattr_init(&robust);

    if (failed)
        return failed;
    failed = pthread_mutexattr_setpshared(&robust, PTHREAD_PROCESS_SHARED);
    if (!failed)
        failed = pthread_mutexattr_setrobust(&robust, PTHREAD_MUTEX_ROBUST);
    if (!failed)
        failed = pthread_mutex_init(mutex, &robust);
    if (!failed)
        failed = pthread_mutex_lock(mutex);
    pthread_mutexattr_destroy(&robust);
    if (!failed && (load_relaxed(words + CPPROF__CONTROL_RECORDER) &
                    FUTEX_TID_MASK) != (uint32_t)syscall(SYS_gettid))
        failed = ENOTSUP;
    return failed;
}

/* The mapping stays as long as the thread does. */
enum cpprof_status
cpprof_recording_prepare(const char *directory, struct cpprof_error *error)
{
    const size_t n = CPPROF__SPOOL_CONTROL_BYTES;
    enum cpprof_status status = CPPROF_OK;
    uint32_t *words = MAP_FAILED;
    int fd;

    CPPROF__NEED(error, directory);
    fd = open_control(directory, O_RDWR | O_CREAT | O_EXCL);
    if (fd >= 0 && !posix_fallocate(fd, 0, (off_t)n))
        words = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (words == MAP_FAILED)
        status = fail(directory, error);
    if (fd >= 0)
        close(fd);
    if (status != CPPROF_OK)
        return status;
    store_relaxed(words + 1, (uint32_t)getpid());
    errno = take(words);
    if (!errno && remember(directory, words))
        return CPPROF_OK;
    status = fail(directory, error);
    munmap(words, n);
    return status;
}

static enum cpprof_status
stop_others(const char *directory, const struct stat *folder,
            struct cpprof_error *error)
{
    const uint32_t stop = 1;
    struct stat st;
    bool is_written;
    int fd = open_control(directory, O_WRONLY);

    if (fd < 0)
        return fail(directory, error);
    errno = EPERM;
    is_written = folder->st_uid == geteuid() && !fstat(fd, &st) &&
                 st.st_uid == geteuid() &&
                 pwrite(fd, &stop, sizeof stop, 0) == sizeof stop;
    close(fd);
    return is_written ? CPPROF_OK : fail(directory, error);
}

enum cpprof_status
cpprof_recording_stop(const char *directory, struct cpprof_error *error)
{
    uint32_t *words;
    struct stat st;

    CPPROF__NEED(error, directory);
    if (stat(directory, &st))
        return fail(directory, error);
    words = words_of(&st);
    if (!words)
        return stop_others(directory, &st, error);
    store_release(words, 1u);
    return CPPROF_OK;
}

bool
cpprof__control_is_set(const char *directory)
{
    const uint32_t *words;
    uint32_t stop = 0;
    struct stat st;
    int fd;

    words = stat(directory, &st) ? NULL : words_of(&st);
    if (words)
        return load_acquire(words) != 0;
    fd = open_control(directory, O_RDONLY);
    if (fd < 0)
        return false;
    if (read(fd, &stop, sizeof stop) != sizeof stop)
        stop = 0;
    close(fd);
    return stop != 0;
}
