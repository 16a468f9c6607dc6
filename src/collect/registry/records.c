/* SPDX-License-Identifier: MIT */
/*
 * <cpprof/records.h>: gathers all records of a profile, then copies them into
 * the caller's array if all fit.
 *
 * Records are gathered as heads and one run of addresses, and laid out as the
 * caller's struct only at the end. Addresses become return addresses there, as
 * Go has them.
 */
#include "collect/registry/records.h"

#include "base/status.h"
#include "collect/registry/registry.h"
#include "collect/runtime/exempt.h"
#include "collect/runtime/uncancelled.h"
#include "collect/store/tables.h"

#include <stdlib.h>
#include <string.h>

struct head {
    int64_t values[CPPROF__RECORD_VALUES];
    uint32_t n_pcs;
};

void
cpprof__records_add_stack(struct cpprof__records *r, const int64_t *values,
                          uint32_t stack)
{
    struct cpprof__tree_node nodes[CPPROF_RECORD_DEPTH];
    size_t i, n = cpprof__tree_stack(&cpprof__tables.tree, stack, nodes,
                                     CPPROF_RECORD_DEPTH);
    struct head head = {.n_pcs = (uint32_t)n};

    if (values)
        memcpy(head.values, values, sizeof head.values);
    cpprof__buffer_append(&r->heads, &head, sizeof head);
    for (i = 0; i < n; i++) {
        uintptr_t pc = nodes[i].pc + 1; /* where the call returns to */

        cpprof__buffer_append(&r->pcs, &pc, sizeof pc);
    }
    r->n++;
}

/* ---- into the caller's array ------------------------------------------ */

/* The layout of a struct of <cpprof/records.h>: so many numbers, then the
 * stack. */
struct layout {
    size_t n_values;
    size_t n_bytes;
};

static void
put_all(const struct cpprof__records *r, char *out, struct layout layout)
{
    const struct head *heads = (const void *)r->heads.data;
    const uint8_t *pcs = r->pcs.data;
    size_t i;

    for (i = 0; i < r->n; i++, out += layout.n_bytes) {
        size_t values = layout.n_values * sizeof heads->values[0];
        size_t stack = heads[i].n_pcs * sizeof(uintptr_t);

        memset(out, 0, layout.n_bytes);
        memcpy(out, heads[i].values, values);
        if (stack)
            memcpy(out + values, pcs, stack);
        pcs += stack;
    }
}

struct request {
    const char *name;
    struct layout layout;
    bool not_in_use;
};

static enum cpprof_status
gather(struct cpprof__records *r, const struct request *request,
       struct cpprof_error *error)
{
    const struct cpprof__builtin *builtin =
        cpprof__registry_builtin(request->name);
    enum cpprof_status status;

    r->not_in_use = request->not_in_use;
    if (!builtin || !builtin->all_records)
        return cpprof__fail(error, CPPROF_UNSUPPORTED, 0,
                            "there are no records of %s", request->name);
    status = builtin->all_records(builtin, r, error);
    if (status == CPPROF_OK && (r->heads.failed || r->pcs.failed))
        status = cpprof__fail_nomem(error);
    return status;
}

static enum cpprof_status
all_records(const struct request *request, void *out, size_t n,
            size_t *n_records, struct cpprof_error *error)
{
    struct cpprof__records r = {0};
    enum cpprof_status status;
    CPPROF__EXEMPT;
    CPPROF__UNCANCELLED;

    status = gather(&r, request, error);
    if (status == CPPROF_OK) {
        *n_records = r.n;
        if (r.n && r.n <= n)
            put_all(&r, out, request->layout);
    }
    cpprof__buffer_free(&r.heads);
    cpprof__buffer_free(&r.pcs);
    return status;
}

enum cpprof_status
cpprof_heap_records(struct cpprof_alloc_record *out, size_t n, bool not_in_use,
                    size_t *n_records, struct cpprof_error *error)
{
    const struct request request = {"heap", {4, sizeof *out}, not_in_use};

    CPPROF__NEED(error, n_records && (out || !n));
    return all_records(&request, out, n, n_records, error);
}

enum cpprof_status
cpprof_block_records(struct cpprof_wait_record *out, size_t n,
                     size_t *n_records, struct cpprof_error *error)
{
    const struct request request = {"block", {2, sizeof *out}, false};

    CPPROF__NEED(error, n_records && (out || !n));
    return all_records(&request, out, n, n_records, error);
}

enum cpprof_status
cpprof_mutex_records(struct cpprof_wait_record *out, size_t n,
                     size_t *n_records, struct cpprof_error *error)
{
    const struct request request = {"mutex", {2, sizeof *out}, false};

    CPPROF__NEED(error, n_records && (out || !n));
    return all_records(&request, out, n, n_records, error);
}

enum cpprof_status
cpprof_threadcreate_records(struct cpprof_stack_record *out, size_t n,
                            size_t *n_records, struct cpprof_error *error)
{
    const struct request request = {"threadcreate", {0, sizeof *out}, false};

    CPPROF__NEED(error, n_records && (out || !n));
    return all_records(&request, out, n, n_records, error);
}

enum cpprof_status
cpprof_goroutine_records(struct cpprof_stack_record *out, size_t n,
                         size_t *n_records, struct cpprof_error *error)
{
    const struct request request = {"goroutine", {0, sizeof *out}, false};

    CPPROF__NEED(error, n_records && (out || !n));
    return all_records(&request, out, n, n_records, error);
}
