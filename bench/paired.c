/* SPDX-License-Identifier: MIT */
/*
 * Run several commands in turn, round after round, and print what each costs
 * as a ratio to the first of the same round: on a noisy machine only what ran
 * side by side can be compared.
 *
 *     paired ROUNDS NAME COMMAND [NAME COMMAND ...]
 *
 * A command is given to sh -c; its cost is the last number it prints on
 * standard output. The order within a round is turned by one each time, so
 * that nobody always runs after the same neighbour.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COMMANDS_MAX 16
#define ROUNDS_MAX   1000

static double cost[COMMANDS_MAX][ROUNDS_MAX];

static double
run(const char *command)
{
    char line[4096], last[4096] = "";
    FILE *pipe = popen(command, "r");
    double number;
    char *end;

    if (!pipe) {
        perror("popen");
        exit(1);
    }
    while (fgets(line, sizeof line, pipe))
        memcpy(last, line, sizeof last);
    if (pclose(pipe) != 0) {
        fprintf(stderr, "paired: failed: %s\n", command);
        exit(1);
    }
    number = strtod(last, &end);
    if (end == last || number <= 0) {
        fprintf(stderr, "paired: no number from: %s\n", command);
        exit(1);
    }
    return number;
}

static int
compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double
quantile(const double *sorted, int n, double q)
{
    return sorted[(int)(q * (n - 1) + 0.5)];
}

static void
print_row(const char *name, int command, int n_rounds)
{
    double ratio[ROUNDS_MAX], own[ROUNDS_MAX];
    int i;

    for (i = 0; i < n_rounds; i++) {
        own[i] = cost[command][i];
        ratio[i] = cost[command][i] / cost[0][i];
    }
    qsort(own, (size_t)n_rounds, sizeof *own, compare);
    qsort(ratio, (size_t)n_rounds, sizeof *ratio, compare);
    printf("%-34s %9.4f   %7.4f   %7.4f .. %.4f\n", name,
           quantile(own, n_rounds, 0.5), quantile(ratio, n_rounds, 0.5),
           quantile(ratio, n_rounds, 0.25), quantile(ratio, n_rounds, 0.75));
}

int
main(int argc, char **argv)
{
    int n_rounds = argc > 1 ? atoi(argv[1]) : 0;
    int n = (argc - 2) / 2, round, i;

    if (argc < 4 || argc % 2 || n > COMMANDS_MAX || n_rounds < 1 ||
        n_rounds > ROUNDS_MAX) {
        fprintf(stderr, "usage: paired ROUNDS NAME COMMAND ...\n");
        return 2;
    }
    for (i = 0; i < n; i++)
        run(argv[3 + 2 * i]); /* warm */
    for (round = 0; round < n_rounds; round++)
        for (i = 0; i < n; i++) {
            int command = (i + round) % n;

            cost[command][round] = run(argv[3 + 2 * command]);
        }
    printf("%-34s %9s   %7s   %s\n", "", "median", "ratio",
           "middle half of the ratios");
    for (i = 0; i < n; i++)
        print_row(argv[2 + 2 * i], i, n_rounds);
    return 0;
}
