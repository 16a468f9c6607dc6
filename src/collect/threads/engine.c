/* SPDX-License-Identifier: MIT */
#include "collect/threads/engine.h"

#include "base/status.h"

#include <time.h>

/* CONFIG_HZ of the running kernel: what a CPU timer can deliver at most. */
static uint32_t
kernel_hz(void)
{
    struct timespec tick;

    /* The coarse clock advances once a tick. */
    if (clock_getres(CLOCK_MONOTONIC_COARSE, &tick) || tick.tv_nsec <= 0)
        return 100;
    return (uint32_t)(1000000000 / tick.tv_nsec);
}

static enum cpprof_status
choose_automatically(uint32_t rate_hz, const struct cpprof__engine **engine,
                     struct cpprof_error *error)
{
    const struct cpprof__engine *order[] = {&cpprof__engine_timer,
                                            &cpprof__engine_perf};
    uint64_t period_ns = 1000000000u / rate_hz;
    enum cpprof_status status = CPPROF_OK;
    int i;

    if (rate_hz > kernel_hz() / 2) {
        order[0] = &cpprof__engine_perf;
        order[1] = &cpprof__engine_timer;
    }
    for (i = 0; i < 2; i++) {
        status = order[i]->open(period_ns, error);
        if (status == CPPROF_OK) {
            *engine = order[i];
            break;
        }
    }
    return status;
}

enum cpprof_status
cpprof__engine_choose(enum cpprof_engine wanted, uint32_t rate_hz,
                      const struct cpprof__engine **engine,
                      struct cpprof_error *error)
{
    const struct cpprof__engine *one;
    enum cpprof_status status;

    switch (wanted) {
    case CPPROF_ENGINE_AUTO:
        return choose_automatically(rate_hz, engine, error);
    case CPPROF_ENGINE_PERF:
        one = &cpprof__engine_perf;
        break;
    case CPPROF_ENGINE_TIMER:
        one = &cpprof__engine_timer;
        break;
    default:
        return cpprof__fail(error, CPPROF_INVALID, 0, "unknown engine %d",
                            (int)wanted);
    }
    status = one->open(1000000000u / rate_hz, error);
    if (status == CPPROF_OK)
        *engine = one;
    return status;
}
