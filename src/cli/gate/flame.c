/* SPDX-License-Identifier: MIT */
/* The flame graph of what grew: head less base, on the page of reports. */
#include "cli/gate/gate.h"

#include "cli/messages.h"
#include "cli/output_file.h"

#include <string.h>
#include <unistd.h>

bool
cpprof__gate_flame(struct cpprof__gate_model *m, const char *path)
{
    struct pprof_report_options options = PPROF_REPORT_DEFAULTS;
    struct pprof_profile *sides[2] = {NULL, NULL}, *all = NULL;
    struct cpprof_error error = {0};
    struct cpprof_writer writer;
    bool is_open;
    enum cpprof_status status = CPPROF_OK;
    int i;

    for (i = 0; i < 2 && status == CPPROF_OK; i++)
        status = pprof_merger_finish(m->mergers[i], &sides[i], &error);
    if (status == CPPROF_OK)
        status = pprof_set_label(sides[0], "pprof::base", "true", &error);
    if (status == CPPROF_OK) {
        /* Both are as many runs as head has. */
        pprof_scale(sides[0], -(double)m->n_head / (double)m->n_base);
        status = pprof_merge(sides, 2, &all, &error);
    }
    options.divide_by = (double)m->n_head;
    options.sample_index = m->type;
    if (strcmp(path, "-") == 0)
        cpprof_writer_to_fd(STDOUT_FILENO, &writer);
    else if (status == CPPROF_OK)
        status = cpprof__output_file(path, &writer, &error);
    is_open = status == CPPROF_OK;
    if (status == CPPROF_OK)
        status = pprof_report_write(all, &writer, PPROF_REPORT_FLAMEGRAPH,
                                    &options, &error);
    for (i = 0; i < 2; i++)
        pprof_free(sides[i]);
    pprof_free(all);
    if (status != CPPROF_OK) /* which names a file that cannot be opened */
        cpprof__cli_fail("gate: %s%s%s", is_open ? path : "",
                         is_open ? ": " : "", error.text);
    return status == CPPROF_OK;
}
