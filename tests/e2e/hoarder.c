/* SPDX-License-Identifier: MIT */
/*
 * A program that allocates as its words say, in order, and ends somehow:
 *
 *     keep=N      N blocks of 1000 bytes, kept (in keep_blocks)
 *     lose=N      N blocks of 1000 bytes that nothing leads to (lose_blocks)
 *     free=N      the first N kept ones are freed
 *     thread=N    a thread that keeps N blocks, and ends
 *     fork ... join   the words in between are a child's; join waits for it
 *     vfork       a child that executes /bin/true
 *     exec        the words that follow are those of a new image
 *     ready=FILE  makes FILE;  sleep=MS
 *     exit=N _exit=N quick_exit=N kill=SIGNAL abort
 *     signals     prints 1 when the sampling signal has a handler, else 0
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define BLOCKS 200000

static char *blocks[BLOCKS];
static int n_kept, n_freed;

__attribute__((noinline)) static void
keep_blocks(int n)
{
    while (n-- > 0 && n_kept < BLOCKS) {
        blocks[n_kept] = malloc(1000);
        if (!blocks[n_kept])
            abort();
        blocks[n_kept++][0] = 1;
    }
}

__attribute__((noinline)) static void
lose_blocks(int n)
{
    char *volatile block;

    while (n-- > 0) {
        block = malloc(1000);
        block[0] = 1;
    }
    block = NULL;
}

static void *
keep_in_thread(void *n)
{
    keep_blocks(*(int *)n);
    return NULL;
}

static void
run_thread(int n)
{
    pthread_t thread;

    if (!pthread_create(&thread, NULL, keep_in_thread, &n))
        pthread_join(thread, NULL);
}

/* As the kernel knows it: sigaction() does not tell of libc's own. */
static void
print_signals(void)
{
    FILE *status = fopen("/proc/self/status", "r");
    unsigned long long caught = 0;
    char line[256];

    while (status && fgets(line, sizeof line, status))
        if (!strncmp(line, "SigCgt:", 7))
            caught = strtoull(line + 7, NULL, 16);
    printf("%llu\n", caught >> (33 - 1) & 1);
    if (status)
        fclose(status);
}

static void
vfork_true(void)
{
    pid_t pid = vfork();

    if (!pid) {
        execl("/bin/true", "true", (char *)NULL);
        _exit(99);
    }
    waitpid(pid, NULL, 0);
}

static void
end(const char *word, int n)
{
    if (!strcmp(word, "exit"))
        exit(n);
    if (!strcmp(word, "_exit"))
        _exit(n);
    if (!strcmp(word, "quick_exit"))
        quick_exit(n);
    if (!strcmp(word, "kill"))
        kill(getpid(), n);
    if (!strcmp(word, "abort"))
        abort();
}

static void
do_word(char **argv, char *word)
{
    char *value = strchr(word, '=');
    int n = value ? atoi(value + 1) : 0;

    if (value)
        *value++ = 0;
    if (!strcmp(word, "keep"))
        keep_blocks(n);
    else if (!strcmp(word, "lose"))
        lose_blocks(n);
    else if (!strcmp(word, "free"))
        for (; n-- > 0 && n_freed < n_kept; n_freed++)
            free(blocks[n_freed]);
    else if (!strcmp(word, "thread"))
        run_thread(n);
    else if (!strcmp(word, "ready"))
        close(open(value, O_CREAT | O_WRONLY, 0600));
    else if (!strcmp(word, "sleep"))
        usleep((useconds_t)n * 1000);
    else if (!strcmp(word, "signals"))
        print_signals();
    else if (!strcmp(word, "vfork"))
        vfork_true();
    else if (!strcmp(word, "exec"))
        execv("/proc/self/exe", argv);
    else
        end(word, n);
}

int
main(int argc, char **argv)
{
    bool is_child = false;
    int i;

    for (i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "join")) {
            if (is_child)
                return 0;
            while (wait(NULL) > 0)
                continue;
        } else if (!strcmp(argv[i], "fork")) {
            is_child = fork() == 0;
            while (!is_child && i + 1 < argc && strcmp(argv[i + 1], "join"))
                i++;
        } else {
            char word[256];

            snprintf(word, sizeof word, "%s", argv[i]);
            argv[i] = argv[0]; /* of an exec */
            do_word(argv + i, word);
        }
    }
    return 0;
}
