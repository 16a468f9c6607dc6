/* SPDX-License-Identifier: MIT */
#include "collect/threads/engine.h"

#include "base/status.h"

enum cpprof_status
cpprof__engine_choose(enum cpprof_engine wanted, uint32_t rate_hz,
                      const struct cpprof__engine **engine,
                      struct cpprof_error *error)
{
    const struct cpprof__engine *one;
    enum cpprof_status status;

    switch (wanted) {
    case CPPROF_ENGINE_AUTO: /* at any rate */
    case CPPROF_ENGINE_TIMER:
        one = &cpprof__engine_timer;
        break;
    case CPPROF_ENGINE_PERF:
        one = &cpprof__engine_perf;
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
