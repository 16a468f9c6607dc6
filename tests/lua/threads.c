/* SPDX-License-Identifier: MIT */
/*
 * States of Lua in threads of their own, which come and go, while the main
 * thread starts and stops profiles in all modes, and of CPU time with mixed
 * stacks; one in 4096 bytes that are allocated tells its stack, too. Each
 * profile is one whole file; what it says is looked at elsewhere.
 */
#include "script/module.h"
#include "state/state.h"
#include <cpprof/cpprof.h>
#include <cpprof/heap.h>
#include <cpprof/vm.h>

#include <lualib.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define N_THREADS 8
#define SECONDS   4
#define AT_MOST   60 /* where that brings less than ROUNDS profiles */
#define ROUNDS    12

static const char script[] =
    "local cpprof = require 'cpprof'\n"
    "local function fib(n) if n < 2 then return n end\n"
    "  return fib(n - 1) + fib(n - 2) end\n"
    "local function pong(n) for i = 1, n do coroutine.yield(fib(10)) end end\n"
    "for i = 1, 20 do\n"
    "  local co = coroutine.wrap(pong)\n"
    "  for j = 1, 5 do co(5) end\n"
    "  pcall(function() fib(12) error 'x' end)\n"
    "  cpprof.labels({round = i}, function() fib(14) coroutine.wrap(pong)(1) "
    "end)\n"
    "  assert(load('local x = 0 for i = 1, 1000 do x = x + i end'))()\n"
    "  local t = {}\n"
    "  for j = 1, 200 do t[j] = j * 7919 % 211 end\n"
    "  table.sort(t, function(a, b) return a < b end)\n"
    "end\n"
    "collectgarbage()\n";

static uint32_t is_over, n_runs, n_failed;

static double
now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static lua_State *
open_state(void)
{
    lua_State *L = luaL_newstate();

    luaL_openlibs(L);
    luaL_requiref(L, "cpprof", luaopen_cpprof, 0);
    lua_pop(L, 1);
    return L;
}

static void *
run_states(void *unused)
{
    while (!__atomic_load_n(&is_over, __ATOMIC_ACQUIRE)) {
        lua_State *L = open_state();
        int i;

        for (i = 0; i < 5; i++)
            if (luaL_dostring(L, script)) {
                fprintf(stderr, "# %s\n", lua_tostring(L, -1));
                __atomic_fetch_add(&n_failed, 1, __ATOMIC_RELAXED);
                lua_settop(L, 0);
            }
        __atomic_fetch_add(&n_runs, 1, __ATOMIC_RELAXED);
        lua_close(L);
    }
    return NULL;
}

struct file {
    size_t n_bytes;
    unsigned n_closed;
};

static int
count_bytes(void *ctx, const void *data, size_t n_bytes)
{
    ((struct file *)ctx)->n_bytes += n_bytes;
    return 0;
}

static int
count_close(void *ctx, int failed)
{
    ((struct file *)ctx)->n_closed += failed ? 100 : 1;
    return 0;
}

static bool
start_scripts(unsigned round, struct file *file)
{
    const struct cpprof_vm_options options = {
        .size = sizeof options,
        .mode = (enum cpprof_vm_mode)(round % 3),
        .rate_hz = round % 2 ? 1000 : 100,
        .flags = round % 5 ? 0 : CPPROF_FLAG_MERGE,
    };

    return cpprof_vm_start(&(struct cpprof_writer){sizeof(struct cpprof_writer),
                                                   count_bytes, count_close,
                                                   file},
                           &options, NULL) == CPPROF_OK;
}

static bool
start_cpu(struct file *file)
{
    const struct cpprof_cpu_options options = {.size = sizeof options,
                                               .rate_hz = 1000};

    return cpprof_cpu_start(
               &(struct cpprof_writer){sizeof(struct cpprof_writer),
                                       count_bytes, count_close, file},
               &options, NULL) == CPPROF_OK;
}

static bool
is_whole(const struct file *file)
{
    return file->n_closed == 1 && file->n_bytes > 0;
}

/* One after another, of any length: of scripts, of CPU time, or both. */
static bool
profile(unsigned round, size_t *n_bytes)
{
    struct file scripts = {0}, cpu = {0};
    struct timespec length = {0, (long)(1 + round * 7 % 40) * 1000000};
    bool has_scripts = round % 4 != 3, has_cpu = round % 4 != 0;

    if ((has_scripts && !start_scripts(round, &scripts)) ||
        (has_cpu && !start_cpu(&cpu)))
        return false;
    nanosleep(&length, NULL);
    if ((has_cpu && cpprof_cpu_stop(NULL) != CPPROF_OK) ||
        (has_scripts && cpprof_vm_stop(NULL) != CPPROF_OK))
        return false;
    *n_bytes += scripts.n_bytes + cpu.n_bytes;
    return (!has_scripts || is_whole(&scripts)) && (!has_cpu || is_whole(&cpu));
}

static void
check(unsigned number, const char *name, bool holds)
{
    printf("%sok %u - %s\n", holds ? "" : "not ", number, name);
}

int
main(void)
{
    pthread_t threads[N_THREADS];
    double begin = now();
    unsigned round = 0, n_wrong = 0, i;
    size_t n_bytes = 0;

    cpprof_heap_set_rate(4096);
    for (i = 0; i < N_THREADS; i++)
        pthread_create(&threads[i], NULL, run_states, NULL);
    while (now() < begin + SECONDS ||
           (round < ROUNDS && now() < begin + AT_MOST))
        n_wrong += !profile(round++, &n_bytes);
    __atomic_store_n(&is_over, 1, __ATOMIC_RELEASE);
    for (i = 0; i < N_THREADS; i++)
        pthread_join(threads[i], NULL);
    printf("1..3\n# %u profiles, %zu bytes, %u states\n", round, n_bytes,
           n_runs);
    check(1, "each profile is one whole file", !n_wrong && round >= ROUNDS);
    check(2, "no script fails", !n_failed && n_runs >= N_THREADS);
    check(3, "something was sampled", n_bytes > 1000 * (size_t)round / 10);
    return n_wrong || n_failed;
}
