/* SPDX-License-Identifier: MIT */
/* guest: 2. Threads that libc makes itself, by no name: of aio_read(), of
 * lio_listio() and mq_notify(), and of getaddrinfo_a().
 * links: anl */
#include "host.h"
#include <aio.h>
#include <fcntl.h>
#include <mqueue.h>
#include <netdb.h>

static volatile int n_notified;

static void
notified(union sigval value)
{
    free(malloc(3000));
    busy_ms(2);
    __atomic_add_fetch(&n_notified, value.sival_int, __ATOMIC_SEQ_CST);
}

int
main(void)
{
    char texts[16][64] = {{0}}, name[64];
    struct aiocb blocks[16] = {{0}}, *list[16];
    struct sigevent event = {.sigev_notify = SIGEV_THREAD,
                             .sigev_notify_function = notified};
    struct gaicb asked = {.ar_name = "127.0.0.1"}, *asks[1] = {&asked};
    struct mq_attr attr = {.mq_maxmsg = 4, .mq_msgsize = 16};
    int fd = open("/proc/self/exe", O_RDONLY), i, round;
    mqd_t queue;

    for (round = 0; round < 3; round++) {
        for (i = 0; i < 16; i++) {
            memset(&blocks[i], 0, sizeof blocks[i]);
            blocks[i].aio_fildes = fd;
            blocks[i].aio_buf = texts[i];
            blocks[i].aio_nbytes = 64;
            blocks[i].aio_offset = 0;
            blocks[i].aio_lio_opcode = LIO_READ;
            list[i] = &blocks[i];
        }
        event.sigev_value.sival_int = 1;
        EXPECT(lio_listio(LIO_NOWAIT, list, 16, &event) == 0, "lio_listio: %s",
               strerror(errno));
        for (i = 0; i < 16; i++) {
            const struct aiocb *one[1] = {&blocks[i]};

            while (aio_error(&blocks[i]) == EINPROGRESS)
                EXPECT(aio_suspend(one, 1, NULL) == 0 || errno == EAGAIN,
                       "aio_suspend: %s", strerror(errno));
            EXPECT(aio_return(&blocks[i]) == 64, "not read");
            EXPECT(!memcmp(texts[i], "\177ELF", 4), "read otherwise");
        }
        busy_ms(10);
    }
    snprintf(name, sizeof name, "/host-%d", (int)getpid());
    queue = mq_open(name, O_RDWR | O_CREAT, 0600, &attr);
    if (queue != (mqd_t)-1) {
        mq_unlink(name);
        event.sigev_value.sival_int = 10;
        EXPECT(mq_notify(queue, &event) == 0, "mq_notify: %s", strerror(errno));
        EXPECT(mq_send(queue, "x", 1, 0) == 0, "mq_send: %s", strerror(errno));
        for (i = 0; i < 4000 && n_notified != 13; i++)
            sleep_ms(1);
        EXPECT(n_notified == 13, "%d notified", n_notified);
    }
    EXPECT(getaddrinfo_a(GAI_WAIT, asks, 1, NULL) == 0 && asked.ar_result,
           "getaddrinfo_a");
    freeaddrinfo(asked.ar_result);
    return host_wrong;
}
