/* SPDX-License-Identifier: MIT */
/*
 * perf_event_open(2) on each thread of a process and each processor, with the
 * CPU clock. Threads that are made later inherit the events; those that were
 * made between two openings may have both their own and an inherited one: the
 * first that speaks for a thread is heard, until the thread ends or its process
 * executes another program. A processor's events share one buffer; the buffers
 * are read in the order of time.
 */
#include "cli/attach/events.h"

#include "arch/atomic.h"
#include "arch/clock.h"
#include "cli/attach/attach.h"

#include <dirent.h>
#include <errno.h>
#include <linux/capability.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined __x86_64__ && defined __LP64__

/* Tunables. So much of a stack is copied, of all samples of a processor so much
 * in a second; a deeper stack is cut. And so large is a processor's buffer,
 * where the user may have as much: half a second of it at least. */
#define STACK_MAX       (32u * 1024)
#define STACK_MIN       (4u * 1024)
#define STACKS_A_SECOND (8u << 20)
#define BUFFER_MAX      (4u << 20)
#define BUFFER_MIN      (64u << 10)

/* A record is shorter than this (its length has 16 bits). */
#define RECORD_MAX 65536u

/* Numbers of the kernel's asm/perf_regs.h, by those of DWARF, pc the last. */
static const uint8_t perf_regs[] = {0,  3,  2,  1,  4,  5,  6,  7, 16,
                                    17, 18, 19, 20, 21, 22, 23, 8};
#define REGS_MASK 0xff01ffull /* ax to ip, r8 to r15 */
#define N_REGS    17

_Static_assert(sizeof perf_regs == CPPROF__N_REGS && N_REGS == CPPROF__N_REGS,
               "all registers of a frame are asked for");

struct one {
    uint64_t id;
    pid_t tid;
    int fd;
};

struct buffer {
    struct perf_event_mmap_page *page; /* NULL: the processor has none */
    size_t n_data;
    int fd;                       /* the event whose buffer it is */
    uint64_t tail, head, next_ns; /* of a reading */
};

/* Whose event is heard for a thread. */
struct voice {
    pid_t tid, of;
};

struct cpprof__events {
    pid_t pid;
    struct perf_event_attr attr;
    struct one *at; /* by id, which the kernel counts up */
    size_t n, capacity;
    struct voice *voices;
    size_t n_voices, voices_capacity;
    struct buffer *buffers; /* of each processor */
    size_t n_buffer;        /* its bytes, at most */
    long n_processors;
    uint8_t record[RECORD_MAX];
};

/* ------------------------------------------------------------- opening ---- */

static void
fill(struct perf_event_attr *attr, uint32_t rate_hz)
{
    uint32_t stack = STACKS_A_SECOND / rate_hz & -1024u;

    *attr = (struct perf_event_attr){
        .size = sizeof *attr,
        .type = PERF_TYPE_SOFTWARE,
        .config = PERF_COUNT_SW_CPU_CLOCK,
        .sample_period = 1000000000u / rate_hz,
        .sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID |
                       PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER |
                       PERF_SAMPLE_STACK_USER,
        .exclude_callchain_kernel = 1,
        .sample_regs_user = REGS_MASK,
        .sample_stack_user = stack < STACK_MIN   ? STACK_MIN
                             : stack > STACK_MAX ? STACK_MAX
                                                 : stack,
        .inherit = 1,
        .exclude_hv = 1,
        .mmap = 1,
        .comm = 1,
        .comm_exec = 1,
        .task = 1,
        .sample_id_all = 1,
        .use_clockid = 1,
        .clockid = CLOCK_MONOTONIC,
    };
}

static int
open_event(const struct perf_event_attr *attr, pid_t tid, int processor)
{
    return (int)syscall(SYS_perf_event_open, attr, tid, processor, -1,
                        PERF_FLAG_FD_CLOEXEC);
}

/* Ask for less until it may be had. 0, or an errno. */
static int
settle(struct perf_event_attr *attr, pid_t tid)
{
    int fd = open_event(attr, tid, -1);

    if (fd < 0 && (errno == EACCES || errno == EPERM)) {
        attr->exclude_kernel = 1;
        fd = open_event(attr, tid, -1);
    }
    if (fd < 0)
        return errno;
    close(fd);
    return 0;
}

/* Is memory for buffers not limited? */
static bool
may_lock(void)
{
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2] = {0};

    return !syscall(SYS_capget, &head, data) &&
           data[0].effective >> CAP_IPC_LOCK & 1;
}

/*
 * What each processor's buffer may have, so that all of this recorder have the
 * same: of a user's perf_event_mlock_kb for each processor, and of the limit.
 * Source: perf_mmap() of Linux, perf_event_open(2), "MMAP layout".
 */
static size_t
share(unsigned n_processes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), n = BUFFER_MAX;
    uint64_t n_processors = (uint64_t)sysconf(_SC_NPROCESSORS_ONLN), all;
    struct cpprof__buffer text = {0};
    struct rlimit limit;

    if (may_lock() || getrlimit(RLIMIT_MEMLOCK, &limit) ||
        limit.rlim_cur == RLIM_INFINITY)
        return n;
    cpprof__read_proc(&text, "/proc/sys/kernel/perf_event_mlock_kb");
    all = text.data ? strtoull((char *)text.data, NULL, 10) << 10 : 0;
    cpprof__buffer_free(&text);
    all = all * n_processors + limit.rlim_cur;
    while (n > BUFFER_MIN && (n + page) * n_processors * n_processes > all)
        n /= 2;
    return n;
}

/* ENOBUFS: not so much memory may be locked. */
static int
map_buffer(struct buffer *buffer, int fd, size_t most)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), n;
    void *p = MAP_FAILED;

    for (n = most; p == MAP_FAILED && n >= BUFFER_MIN; n /= 2) {
        p = mmap(NULL, page + n, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        buffer->n_data = n;
    }
    if (p == MAP_FAILED)
        return errno == EPERM ? ENOBUFS : errno;
    buffer->page = p;
    buffer->fd = fd;
    return 0;
}

/* The event of a thread on a processor; 0, or an errno. */
static int
add(struct cpprof__events *e, pid_t tid, int processor)
{
    struct buffer *buffer = &e->buffers[processor];
    struct one one = {.tid = tid};
    int error;

    if (e->n == e->capacity) {
        size_t capacity = e->capacity * 2 + 64;
        struct one *more = reallocarray(e->at, capacity, sizeof *more);

        if (!more)
            return ENOMEM;
        e->at = more;
        e->capacity = capacity;
    }
    one.fd = open_event(&e->attr, tid, processor);
    if (one.fd < 0)
        return errno;
    error = 0;
    if (!buffer->page)
        error = map_buffer(buffer, one.fd, e->n_buffer);
    else if (ioctl(one.fd, PERF_EVENT_IOC_SET_OUTPUT, buffer->fd) < 0)
        error = errno;
    if (!error && ioctl(one.fd, PERF_EVENT_IOC_ID, &one.id) < 0)
        error = errno;
    if (error) {
        if (buffer->fd != one.fd)
            close(one.fd);
        return error;
    }
    e->at[e->n++] = one;
    return 0;
}

static bool
has_own(const struct cpprof__events *e, pid_t tid)
{
    size_t i;

    for (i = 0; i < e->n; i++)
        if (e->at[i].tid == tid)
            return true;
    return false;
}

/* All processors; one that is off has no events, a thread may be gone. */
static int
add_thread(struct cpprof__events *e, pid_t tid)
{
    int i, error = 0;

    for (i = 0; i < e->n_processors && !error; i++) {
        error = add(e, tid, i);
        if (error == ENODEV || error == ESRCH)
            error = 0;
    }
    return error;
}

/* *n_new: threads that had none. */
static int
add_threads(struct cpprof__events *e, size_t *n_new)
{
    const struct dirent *entry;
    char path[64];
    int error = 0;
    DIR *tasks;

    *n_new = 0;
    snprintf(path, sizeof path, "/proc/%d/task", (int)e->pid);
    tasks = opendir(path);
    if (!tasks)
        return errno;
    while (!error && (entry = readdir(tasks))) {
        pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);

        if (tid <= 0 || has_own(e, tid))
            continue;
        error = add_thread(e, tid);
        ++*n_new;
    }
    closedir(tasks);
    return error;
}

static void
allow_many_files(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit))
        return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

struct cpprof__events *
cpprof__events_open(pid_t pid, uint32_t rate_hz, unsigned n_processes,
                    int *error)
{
    struct cpprof__events *e = calloc(1, sizeof *e);
    size_t n_new, rounds = 0;

    *error = ENOMEM;
    if (!e)
        return NULL;
    e->pid = pid;
    e->n_processors = sysconf(_SC_NPROCESSORS_CONF);
    e->buffers = calloc((size_t)e->n_processors, sizeof *e->buffers);
    fill(&e->attr, rate_hz);
    allow_many_files();
    e->n_buffer = share(n_processes);
    *error = e->buffers ? settle(&e->attr, pid) : ENOMEM;
    /* Threads that came while others were opened have to be looked for. */
    do
        *error = *error ? *error : add_threads(e, &n_new);
    while (!*error && n_new && ++rounds < 4);
    if (!*error && !e->n)
        *error = ESRCH;
    if (!*error)
        return e;
    cpprof__events_close(e);
    return NULL;
}

bool
cpprof__events_are_user_only(const struct cpprof__events *e)
{
    return e->attr.exclude_kernel;
}

void
cpprof__events_close(struct cpprof__events *e)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), i;

    for (i = 0; i < e->n; i++)
        close(e->at[i].fd);
    for (i = 0; e->buffers && i < (size_t)e->n_processors; i++)
        if (e->buffers[i].page)
            munmap(e->buffers[i].page, page + e->buffers[i].n_data);
    free(e->buffers);
    free(e->voices);
    free(e->at);
    free(e);
}

/* ------------------------------------------------------------- reading ---- */

/* Source: perf_event_open(2), "MMAP layout". */
static uint64_t
word_at(const uint8_t **at, const uint8_t *end)
{
    uint64_t word = 0;

    if (end - *at < 8)
        return 0;
    memcpy(&word, *at, 8);
    *at += 8;
    return word;
}

static pid_t
owner_of(const struct cpprof__events *e, uint64_t id)
{
    size_t lo = 0, hi = e->n;

    while (lo < hi) {
        size_t mid = (lo + hi) / 2;

        if (e->at[mid].id < id)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < e->n && e->at[lo].id == id ? e->at[lo].tid : 0;
}

/* Does another event speak for the thread? Without memory none does. */
static bool
is_doubled(struct cpprof__events *e, uint64_t id, pid_t tid)
{
    pid_t of = owner_of(e, id);
    size_t i;

    for (i = 0; i < e->n_voices; i++)
        if (e->voices[i].tid == tid)
            return e->voices[i].of != of;
    if (e->n_voices == e->voices_capacity) {
        size_t capacity = e->voices_capacity * 2 + 64;
        struct voice *more = reallocarray(e->voices, capacity, sizeof *more);

        if (!more)
            return false;
        e->voices = more;
        e->voices_capacity = capacity;
    }
    e->voices[e->n_voices++] = (struct voice){tid, of};
    return false;
}

static void
forget_voice(struct cpprof__events *e, pid_t tid)
{
    size_t i;

    for (i = 0; i < e->n_voices; i++)
        if (e->voices[i].tid == tid) {
            e->voices[i] = e->voices[--e->n_voices];
            return;
        }
}

/* The body of a sample. False: it is not one that counts: a forked child's, or
 * without registers, as a thread of the kernel has none. */
static bool
decode(struct cpprof__events *e, const uint8_t *at, const uint8_t *end,
       struct cpprof__event *event)
{
    uint64_t by_perf[24] = {0};
    uint64_t ids = word_at(&at, end), id, n;
    unsigned i;

    word_at(&at, end); /* the time */
    id = word_at(&at, end);
    event->tid = (pid_t)(ids >> 32);
    n = word_at(&at, end);
    if (n > (uint64_t)(end - at) / 8)
        return false;
    event->chain = at;
    event->n_chain = n;
    at += n * 8;
    if ((pid_t)(uint32_t)ids != e->pid || is_doubled(e, id, event->tid) ||
        word_at(&at, end) != PERF_SAMPLE_REGS_ABI_64)
        return false;
    for (i = 0; i < 24; i++)
        if (REGS_MASK >> i & 1)
            by_perf[i] = word_at(&at, end);
    for (i = 0; i < N_REGS; i++)
        event->regs.r[i] = by_perf[perf_regs[i]];
    event->regs.known = (1ull << CPPROF__N_REGS) - 1;
    n = word_at(&at, end);
    event->stack = at;
    event->n_stack = 0;
    if (n && n <= (uint64_t)(end - at)) {
        at += n;
        event->n_stack = word_at(&at, end); /* those that could be read */
        if (event->n_stack > n)
            event->n_stack = n;
    }
    return true;
}

/* From the buffer, which may begin anew within. */
static void
copy(const struct buffer *b, uint64_t from, void *to, size_t n)
{
    const uint8_t *data = (const uint8_t *)b->page + b->page->data_offset;
    size_t at = from & (b->n_data - 1), first = b->n_data - at;

    first = first < n ? first : n;
    memcpy(to, data + at, first);
    memcpy((uint8_t *)to + first, data, n - first);
}

/* The time of a record: behind the ids of a sample, and before the last word
 * of others. */
static uint64_t
time_of(const struct buffer *b, uint64_t at,
        const struct perf_event_header *header)
{
    uint64_t ns;

    if (header->size < 16 + sizeof *header)
        return 0;
    copy(b,
         at + (header->type == PERF_RECORD_SAMPLE ? sizeof *header + 8
                                                  : header->size - 16u),
         &ns, sizeof ns);
    return ns;
}

/* Look at the next record of a buffer; false: there is none. */
static bool
peek(struct buffer *b, struct perf_event_header *header)
{
    if (!b->page || b->head - b->tail < sizeof *header)
        return false;
    copy(b, b->tail, header, sizeof *header);
    if (header->size < sizeof *header || header->size > b->head - b->tail) {
        b->tail = b->head;
        return false;
    }
    b->next_ns = time_of(b, b->tail, header);
    return true;
}

/* The buffer with the oldest record that is no younger than until_ns. */
static struct buffer *
oldest(struct cpprof__events *e, uint64_t until_ns)
{
    struct perf_event_header header;
    struct buffer *found = NULL;
    long i;

    for (i = 0; i < e->n_processors; i++) {
        struct buffer *b = &e->buffers[i];

        if (peek(b, &header) && b->next_ns <= until_ns &&
            (!found || b->next_ns < found->next_ns))
            found = b;
    }
    return found;
}

static bool
is_exec(const struct perf_event_header *header)
{
    return header->type == PERF_RECORD_COMM &&
           header->misc & PERF_RECORD_MISC_COMM_EXEC;
}

/* When the process last executed a program, of what has come; 0: it did not. */
static uint64_t
last_exec_ns(struct cpprof__events *e, uint64_t until_ns)
{
    struct perf_event_header header;
    uint64_t last_ns = 0;
    uint32_t pid;
    long i;

    for (i = 0; i < e->n_processors; i++) {
        struct buffer *b = &e->buffers[i];
        uint64_t tail = b->tail;

        for (; peek(b, &header) && b->next_ns <= until_ns;
             b->tail += header.size) {
            if (!is_exec(&header))
                continue;
            copy(b, b->tail + sizeof header, &pid, sizeof pid);
            if ((pid_t)pid == e->pid && b->next_ns > last_ns)
                last_ns = b->next_ns;
        }
        b->tail = tail;
    }
    return last_ns;
}

/* The record that e->record begins with. False: nothing to be told. */
static bool
take_record(struct cpprof__events *e, struct cpprof__event *event,
            uint64_t *lost)
{
    struct perf_event_header header;
    const uint8_t *at = e->record + sizeof header, *end;
    uint64_t first;

    memcpy(&header, e->record, sizeof header);
    end = e->record + header.size;
    if (header.type == PERF_RECORD_SAMPLE) {
        event->kind = CPPROF__EVENT_TICK;
        return decode(e, at, end, event);
    }
    first = word_at(&at, end);
    if (header.type == PERF_RECORD_EXIT)
        forget_voice(e, (pid_t)(uint32_t)word_at(&at, end));
    /* An end may be among them. */
    if (header.type == PERF_RECORD_LOST) {
        *lost += word_at(&at, end);
        e->n_voices = 0;
    }
    if ((pid_t)(uint32_t)first != e->pid)
        return false;
    if (is_exec(&header))
        e->n_voices = 0;
    event->kind = is_exec(&header)                  ? CPPROF__EVENT_EXEC
                  : header.type == PERF_RECORD_EXIT ? CPPROF__EVENT_ENDED
                                                    : CPPROF__EVENT_MAPPED;
    return event->kind != CPPROF__EVENT_MAPPED ||
           header.type == PERF_RECORD_MMAP;
}

uint64_t
cpprof__events_read(struct cpprof__events *e,
                    void (*take)(void *ctx, const struct cpprof__event *event),
                    void *ctx)
{
    uint64_t until_ns = cpprof__now_ns(CLOCK_MONOTONIC), exec_ns, lost = 0;
    struct cpprof__event event;
    struct buffer *b;
    long i;

    for (i = 0; i < e->n_processors; i++) {
        b = &e->buffers[i];
        if (!b->page)
            continue;
        b->head = load_acquire(&b->page->data_head);
        b->tail = b->page->data_tail;
    }
    exec_ns = last_exec_ns(e, until_ns);
    while ((b = oldest(e, until_ns))) {
        struct perf_event_header header;

        copy(b, b->tail, &header, sizeof header);
        copy(b, b->tail, e->record, header.size);
        event.exec_follows = b->next_ns < exec_ns;
        if (take_record(e, &event, &lost))
            take(ctx, &event);
        b->tail += header.size;
        store_release(&b->page->data_tail, b->tail);
    }
    return lost;
}

#else

struct cpprof__events *
cpprof__events_open(pid_t pid, uint32_t rate_hz, unsigned n_processes,
                    int *error)
{
    (void)pid;
    (void)n_processes;
    (void)rate_hz;
    *error = ENOSYS;
    return NULL;
}

uint64_t
cpprof__events_read(struct cpprof__events *events,
                    void (*take)(void *ctx, const struct cpprof__event *event),
                    void *ctx)
{
    (void)events;
    (void)take;
    (void)ctx;
    return 0;
}

bool
cpprof__events_are_user_only(const struct cpprof__events *events)
{
    return !events;
}

void
cpprof__events_close(struct cpprof__events *events)
{
    (void)events;
}

#endif

int
cpprof__events_probe(pid_t pid, unsigned n_processes)
{
    int error = 0;
    struct cpprof__events *e =
        cpprof__events_open(pid, 100, n_processes, &error);

    if (e)
        cpprof__events_close(e);
    return e ? 0 : error;
}

const char *
cpprof__events_error(int error)
{
    return error == ENOSYS    ? "not on this processor, or not in this kernel"
           : error == ENOBUFS ? "no buffer: more memory has to be locked than "
                                "`ulimit -l` allows"
           : error == EMFILE  ? "more descriptors are needed, one for each "
                                "thread and processor, than `ulimit -n` allows"
                              : strerror(error);
}
