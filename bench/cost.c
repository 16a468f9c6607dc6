/* SPDX-License-Identifier: MIT */
/*
 * cost COMMAND ...: run it without its output and print its CPU time in
 * seconds; its peak memory goes to standard error.
 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

int
main(int argc, char **argv)
{
    struct rusage usage;
    int status, null = open("/dev/null", O_WRONLY);
    pid_t pid;

    if (argc < 2)
        return 2;
    pid = fork();
    if (pid == 0) {
        dup2(null, STDOUT_FILENO);
        dup2(null, STDERR_FILENO);
        execvp(argv[1], argv + 1);
        _exit(127);
    }
    if (pid < 0 || wait4(pid, &status, 0, &usage) < 0 || status)
        return 1;
    fprintf(stderr, "  %s: peak %ld MB\n", argv[1], usage.ru_maxrss / 1024);
    printf("%.4f\n",
           (double)usage.ru_utime.tv_sec + (double)usage.ru_stime.tv_sec +
               (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6);
    return 0;
}
