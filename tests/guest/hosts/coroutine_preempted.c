/* SPDX-License-Identifier: MIT */
/* guest: 2. Coroutines that a handler of a signal switches while they wait for
 * a mutex: both get it, their stacks go, and then the thread ends. */
#include "host.h"
#include <sys/mman.h>
#include <ucontext.h>

enum { STACK = 65536 };

static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t second = PTHREAD_MUTEX_INITIALIZER;
static ucontext_t a, b, scheduler;
static volatile int running, n_begun, n_locked;

static void
on_signal(int number)
{
    int kept = errno;

    (void)number;
    if (running == 1) {
        running = 2;
        swapcontext(&a, &b);
    } else if (running == 2) {
        running = 1;
        swapcontext(&b, &a);
    }
    errno = kept;
}

static void
lock(pthread_mutex_t *mutex, ucontext_t *next)
{
    sigset_t signals;

    sigemptyset(&signals);
    sigaddset(&signals, SIGUSR1);
    sigprocmask(SIG_UNBLOCK, &signals, NULL);
    n_begun++;
    pthread_mutex_lock(mutex);
    n_locked++;
    pthread_mutex_unlock(mutex);
    running = running == 1 ? 2 : 0;
    setcontext(next);
}

static void *
prepare(ucontext_t *context)
{
    void *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    getcontext(context);
    context->uc_stack.ss_sp = stack;
    context->uc_stack.ss_size = STACK;
    return stack;
}

static void *
schedule(void *arg)
{
    void *of_a = prepare(&a), *of_b = prepare(&b);

    makecontext(&a, (void (*)(void))lock, 2, &first, &b);
    makecontext(&b, (void (*)(void))lock, 2, &second, &scheduler);
    running = 1;
    swapcontext(&scheduler, &a);
    munmap(of_a, STACK);
    munmap(of_b, STACK);
    pthread_exit(arg);
}

static void
until(volatile int *count, int n)
{
    while (*count < n)
        sleep_ms(1);
    sleep_ms(20); /* it waits by now */
}

int
main(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    pthread_t thread;

    sigaction(SIGUSR1, &action, NULL);
    pthread_mutex_lock(&first);
    pthread_mutex_lock(&second);
    EXPECT(pthread_create(&thread, NULL, schedule, NULL) == 0, "a thread");
    until(&n_begun, 1);
    pthread_kill(thread, SIGUSR1);
    until(&n_begun, 2);
    pthread_mutex_unlock(&first);
    pthread_kill(thread, SIGUSR1);
    until(&n_locked, 1);
    pthread_mutex_unlock(&second);
    EXPECT(pthread_join(thread, NULL) == 0, "join");
    EXPECT(n_locked == 2, "%d locked", n_locked);
    return host_wrong;
}
