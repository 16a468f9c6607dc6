/* SPDX-License-Identifier: MIT */
/*
 * The memory of a profiled image: the ring and the current store, anonymous or
 * in files of the recorder's directory.
 *
 * The ring's file is mapped shared and filled with memory before a handler may
 * touch it, because a full file system would otherwise be a SIGBUS in the
 * program. Of a store's file only the part that other processes read is
 * shared; indexes are private. Files are named by pid and the number of the
 * image, so that an exec'ed program finds the next free number.
 *
 * Invariants: a file that holds no sample is removed; whatever a handler has
 * committed is in the file at once.
 */
#include "collect/store/spool.h"

#include "arch/atomic.h"
#include "arch/place.h"
#include "base/status.h"
#include "collect/runtime/proc.h"
#include "collect/signal/tables/mirror.h"
#include "collect/signal/tables/reserve.h"
#include "collect/store/script_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Words of the ring. More: fewer samples are lost while the drainer waits for a
 * processor. They take 8 bytes each, are private to the process, and are
 * touched only as they are used. */
#define RING_WORDS_MIN (1u << 14)
#define RING_WORDS_MAX (1u << 17)

/* An exec'ed image takes the first free number; more than this many execs of
 * one pid are not recorded. Other users may take some away. */
#define IMAGES_MAX 1000u

/* Of the parent, in a child that has none of its own yet: empty memory. */
static struct cpprof__spool *inherited;

uint64_t
cpprof__spool_ring_words(uint32_t rate_hz, uint32_t max_depth)
{
    long n_cpus = sysconf(_SC_NPROCESSORS_ONLN);
    uint64_t wanted, words = RING_WORDS_MIN;

    /* Room for a quarter of a second of stacks at full depth from every
     * processor. */
    wanted = (uint64_t)(n_cpus > 0 ? n_cpus : 1) * rate_hz * max_depth / 4;
    while (words < wanted && words < RING_WORDS_MAX)
        words *= 2;
    return words;
}

void *
cpprof__map_file(int fd, size_t n_file, size_t n, int protection)
{
    long p = cpprof__map(cpprof__table_place(n), n, protection,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    long file = p;

    if (p > 0 && fd >= 0) {
        file = cpprof__map((uintptr_t)p, n_file, PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_FIXED, fd, 0);
        if (file < 0)
            munmap((void *)p, n);
    }
    if (file < 0)
        errno = (int)-file;
    return file < 0 ? NULL : (void *)p;
}

const uint32_t *
cpprof__spool_control(const char *directory)
{
    char path[PATH_MAX + 16];
    void *p;
    int fd;

    snprintf(path, sizeof path, "%s/control", directory);
    fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    p = mmap((void *)cpprof__table_place(CPPROF__SPOOL_CONTROL_BYTES),
             CPPROF__SPOOL_CONTROL_BYTES, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    return p == MAP_FAILED ? NULL : p;
}

/* Remove the file of an earlier image of this pid that was never sampled: a
 * shell that only execs leaves such files. In another pid namespace another
 * process has the pid. */
static void
remove_if_empty(const char *path, uint64_t pid_namespace)
{
    struct cpprof__spool_head head = {0};
    struct cpprof__ring ring = {0};
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    char store[PATH_MAX + 40];
    bool is_empty;

    if (fd < 0)
        return;
    is_empty = read(fd, &head, sizeof head) == sizeof head &&
               pread(fd, &ring, sizeof ring, CPPROF__SPOOL_RING_OFFSET) ==
                   sizeof ring &&
               !memcmp(head.magic, CPPROF__SPOOL_MAGIC, sizeof head.magic) &&
               head.pid_namespace == pid_namespace && head.n_records == 0 &&
               ring.head == 0 && ring.lost == 0;
    close(fd);
    if (!is_empty)
        return;
    unlink(path);
    snprintf(store, sizeof store, "%s.0", path);
    unlink(store);
}

/* Create PID.IMAGE for the first IMAGE that is not there. */
static int
create_image(const char *directory, uint32_t *image, char *path, size_t n)
{
    uint64_t pid_namespace = cpprof__proc_pid_namespace();
    uint32_t i;
    int fd = -1;

    for (i = 0; i < IMAGES_MAX && fd < 0; i++) {
        snprintf(path, n, "%s/%d.%u", directory, (int)getpid(), i);
        if (pid_namespace && (i == 0 || access(path, F_OK) == 0))
            remove_if_empty(path, pid_namespace);
        fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        *image = i;
        if (fd < 0 && errno != EEXIST)
            break;
    }
    return fd;
}

bool
cpprof__spool_begins_command(const char *directory)
{
    const uint32_t *control = cpprof__spool_control(directory);
    bool begins;

    if (!control) /* what is wrong with the directory is said at once */
        return true;
    begins = load_acquire(control + 1) == (uint32_t)getppid();
    munmap((void *)(uintptr_t)control, CPPROF__SPOOL_CONTROL_BYTES);
    return begins;
}

static enum cpprof_status
fail_file(struct cpprof_error *error, const char *path)
{
    return cpprof__fail(error, CPPROF_SYSTEM, errno, "%s: %s", path,
                        strerror(errno));
}

/* Back all of the ring with memory before a handler may touch it. */
static enum cpprof_status
map_ring(struct cpprof__spool *spool, uint32_t *image,
         struct cpprof_error *error)
{
    size_t n = spool->ring_block_bytes;
    char path[PATH_MAX + 32];
    void *p = NULL;
    int fd;

    if (!spool->in_files) {
        p = cpprof__reserve(n);
        spool->head = p;
        spool->is_wiped = p && !madvise(p, n, MADV_WIPEONFORK);
        return p ? CPPROF_OK : cpprof__fail_nomem(error);
    }
    fd = create_image(spool->directory, image, path, sizeof path);
    if (fd < 0)
        return fail_file(error, path);
    if (cpprof__is_too_long(n))
        errno = EFBIG;
    else if (!fallocate(fd, 0, 0, (off_t)n))
        p = cpprof__map_file(fd, n, n, PROT_READ | PROT_WRITE);
    if (!p) {
        enum cpprof_status status = fail_file(error, path);

        unlink(path);
        close(fd);
        return status;
    }
    close(fd);
    spool->head = p;
    return CPPROF_OK;
}

static void *
map_private_store(struct cpprof__spool *spool)
{
    size_t n = cpprof__store_bytes();
    void *p = cpprof__map_file(-1, 0, n, PROT_NONE);

    spool->is_wiped &= p && !madvise(p, n, MADV_WIPEONFORK);
    return p;
}

static void *
map_store(struct cpprof__spool *spool)
{
    const struct cpprof__spool_head *head = spool->head;
    size_t n = cpprof__store_shared_bytes();
    void *p = NULL;
    int fd;

    if (!spool->in_files)
        return map_private_store(spool);
    snprintf(spool->store_path, sizeof spool->store_path, "%s/%d.%u.%u",
             spool->directory, (int)head->pid, head->image, spool->n_stores);
    unlink(spool->store_path); /* of an image that was removed */
    fd = open(spool->store_path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return NULL;
    if (cpprof__is_too_long(n))
        errno = EFBIG;
    else if (!ftruncate(fd, (off_t)n))
        p = cpprof__map_file(fd, n, cpprof__store_bytes(), PROT_NONE);
    close(fd);
    return p;
}

bool
cpprof__spool_next_store(struct cpprof__spool *spool, void **old)
{
    struct cpprof__store store;
    void *block;

    /* Private memory is emptied and used again. */
    if (!spool->in_files && spool->store_block && !old &&
        cpprof__empty(spool->store_block, cpprof__store_bytes()))
        return cpprof__store_make_reserved(&spool->store, spool->store_block,
                                           NULL);
    block = map_store(spool);
    if (!block)
        return false;
    if (!cpprof__store_make_reserved(
            &store, block, spool->in_files ? spool->store_path : NULL)) {
        munmap(block, cpprof__store_bytes());
        return false;
    }
    if (old)
        *old = spool->store_block;
    else if (spool->store_block)
        munmap(spool->store_block, cpprof__store_bytes());
    spool->store_block = block;
    spool->store = store;
    spool->n_stores++;
    return true;
}

void *
cpprof__spool_give_store(struct cpprof__spool *spool)
{
    void *block = spool->store_block;

    spool->store_block = NULL;
    return block;
}

enum cpprof_status
cpprof__spool_make(struct cpprof__spool *spool, const char *directory,
                   uint64_t ring_words, struct cpprof_error *error)
{
    enum cpprof_status status;
    uint32_t image = 0;

    if (inherited)
        cpprof__spool_free(inherited, true);
    inherited = NULL;
    memset(spool, 0, sizeof *spool);
    spool->in_files = directory != NULL;
    snprintf(spool->directory, sizeof spool->directory, "%s",
             directory ? directory : "");
    spool->ring_block_bytes =
        CPPROF__SPOOL_RING_OFFSET + cpprof__ring_bytes(ring_words);
    status = map_ring(spool, &image, error);
    if (status != CPPROF_OK)
        return status;
    spool->ring = (void *)((char *)spool->head + CPPROF__SPOOL_RING_OFFSET);
    cpprof__ring_init(spool->ring, ring_words);
    spool->head->pid = (int32_t)getpid();
    spool->head->image = image;
    spool->head->pid_namespace = cpprof__proc_pid_namespace();
    spool->head->ring_words = ring_words;
    cpprof__proc_name(spool->head->name, sizeof spool->head->name);
    if (spool->in_files)
        spool->head->scripts = cpprof__script_file_record(directory);
    memcpy(spool->head->magic, CPPROF__SPOOL_MAGIC, sizeof spool->head->magic);
    if (spool->in_files)
        spool->control = cpprof__spool_control(directory);
    if (!cpprof__spool_next_store(spool, NULL)) {
        status = cpprof__fail(error, CPPROF_SYSTEM, errno,
                              "no memory for samples: %s", strerror(errno));
        cpprof__spool_free(spool, false);
    }
    return status;
}

static void
remove_files(const struct cpprof__spool *spool)
{
    const struct cpprof__spool_head *head = spool->head;
    char path[PATH_MAX + 48];
    uint32_t i;

    snprintf(path, sizeof path, "%s/%d.%u", spool->directory, (int)head->pid,
             head->image);
    unlink(path);
    for (i = 0; i < spool->n_stores; i++) {
        snprintf(path, sizeof path, "%s/%d.%u.%u", spool->directory,
                 (int)head->pid, head->image, i);
        unlink(path);
    }
}

void
cpprof__spool_free(struct cpprof__spool *spool, bool keep)
{
    if (!spool->head)
        return;
    if (spool->in_files && !keep)
        remove_files(spool);
    if (spool->in_files)
        munmap(spool->head, spool->ring_block_bytes);
    else
        cpprof__unreserve(spool->head, spool->ring_block_bytes);
    if (spool->store_block)
        munmap(spool->store_block, cpprof__store_bytes());
    if (spool->control)
        munmap((void *)(uintptr_t)spool->control, CPPROF__SPOOL_CONTROL_BYTES);
    /* Paths are left, whose pages a child would have to copy. */
    memset(spool, 0, offsetof(struct cpprof__spool, directory));
}

CPPROF__FIRST_STEP void
cpprof__spool_in_child(struct cpprof__spool *spool)
{
    if (spool->is_wiped)
        inherited = spool;
    else
        cpprof__spool_free(spool, true);
}

bool
cpprof__spool_is_of_command(const struct cpprof__spool *spool)
{
    return spool->control &&
           load_acquire(spool->control + 1) == (uint32_t)getppid();
}

bool
cpprof__spool_is_stopped(const struct cpprof__spool *spool)
{
    return cpprof__control_is_stopped(spool->control);
}
