/* SPDX-License-Identifier: MIT */
/* guest: 2. exec: a thread that has just begun becomes another program, which
 * takes the kernel a while, as the arguments are long; 40 times. */
#include "host.h"

#define N_WORDS 15
#define N_BYTES 100000

static char *words[N_WORDS + 3];

static void *
become_another(void *arg)
{
    execv("/proc/self/exe", words);
    _exit(99);
}

int
main(int argc, char **argv)
{
    static char left[16], word[N_BYTES + 1];
    int n = argc > 1 ? atoi(argv[1]) : 40;
    pthread_t thread;

    if (n == 0)
        return host_wrong;
    snprintf(left, sizeof left, "%d", n - 1);
    memset(word, 'x', N_BYTES);
    words[0] = argv[0];
    words[1] = left;
    for (int i = 0; i < N_WORDS; i++)
        words[2 + i] = word;
    if (n % 2 && pthread_create(&thread, NULL, become_another, NULL) == 0)
        pthread_join(thread, NULL);
    become_another(NULL);
}
