/* SPDX-License-Identifier: MIT */
/*
 * DIRECTORY/control, by which a recorder tells processes that they are to stop,
 * also when it has no time to say so. Its word is a robust mutex, which the
 * thread that prepares the directory takes and keeps: whatever ends that
 * thread, the kernel marks the word. Who has mapped the file sees the mark, and
 * needs neither a descriptor nor a right for that.
 *
 * The directory may be given to somebody with fewer rights than ours, who may
 * put any file in the place of this one. So the process that prepared it says
 * "stop" through its mapping, opens nothing again, and is the only one that
 * can.
 */
#include "collect/recording/control.h"

#include "arch/atomic.h"
#include "base/status.h"
#include "collect/signal/tables/mirror.h"
#include "collect/store/spool.h"
#include "own/memory.h"
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

/* A directory that was prepared here. It is known by its inode, because it may
 * be moved. Never freed. */
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
    struct prepared *made = cpprof__malloc(sizeof *made);
    struct stat st;

    if (!made || stat(directory, &st)) {
        cpprof__free(made);
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
words_of(const char *directory)
{
    const struct prepared *p = load_acquire(&prepared);
    struct stat st;

    if (stat(directory, &st))
        return NULL;
    while (p && (p->device != st.st_dev || p->inode != st.st_ino))
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
    char path[PATH_MAX + 16];
    int fd;

    CPPROF__NEED(error, directory);
    snprintf(path, sizeof path, "%s/control", directory);
    fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
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

enum cpprof_status
cpprof_recording_stop(const char *directory, struct cpprof_error *error)
{
    uint32_t *words;

    CPPROF__NEED(error, directory);
    words = words_of(directory);
    if (!words)
        return cpprof__fail(error, CPPROF_INVALID, 0,
                            "%s: not prepared by this process", directory);
    store_release(words, 1u);
    return CPPROF_OK;
}

bool
cpprof__control_is_set(const char *directory)
{
    const uint32_t *words = words_of(directory);

    return words && load_acquire(words) != 0;
}
