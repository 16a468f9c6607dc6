/* SPDX-License-Identifier: MIT */
/* guest: 2. No cancellation point of ours: threads that are cancelled before
 * they begin end where they would have. */
#include "host.h"

static int n_began, n_cleaned;

static void
clean(void *arg)
{
    (void)arg;
    __atomic_add_fetch(&n_cleaned, 1, __ATOMIC_RELAXED);
}

static void *
works(void *arg)
{
    pthread_cleanup_push(clean, NULL);
    __atomic_add_fetch(&n_began, 1, __ATOMIC_RELAXED);
    free(malloc(20000));
    pthread_testcancel();
    pthread_cleanup_pop(1);
    return arg;
}

int
main(void)
{
    for (int i = 0; i < 200; i++) {
        pthread_t thread;
        void *result;

        pthread_create(&thread, NULL, works, NULL);
        pthread_cancel(thread);
        EXPECT(pthread_join(thread, &result) == 0, "join");
    }
    EXPECT(n_began == 200, "%d of 200 began", n_began);
    EXPECT(n_cleaned == n_began, "%d cleaned up", n_cleaned);
    return host_wrong;
}
