/* SPDX-License-Identifier: MIT */
/*
 * A small interpreter that can be profiled: what <cpprof/vm.h> wants of one is
 * marked with "profile:". Its programs are arrays of instructions; the one at
 * the end shares its time 70/20/10 between three functions.
 *
 *     cc toy_vm.c -lcpprof -o toy_vm && ./toy_vm out.pb.gz && pprof -top
 * out.pb.gz
 */
#include <cpprof/vm.h>

#include <stdio.h>
#include <time.h>

enum toy_op {
    TOY_WORK,   /* n times a little arithmetic */
    TOY_CALL,   /* the callee */
    TOY_REPEAT, /* all before it, n times */
    TOY_RETURN,
};

struct toy_code {
    enum toy_op op;
    int line;
    int n;
    const struct toy_function *callee;
};

struct toy_function {
    const char *name; /* NULL: toplevel */
    const char *file;
    int line;
    const struct toy_code *code;       /* NULL: a builtin */
    void (*builtin)(int n, void *arg); /* with n and arg of the interpreter */
};

#define TOY_DEPTH 200

struct toy {
    struct cpprof_vm_thread *t;
    struct toy_frame {
        const struct toy_function *function;
        uint32_t pc;
        int done; /* turns of the loop */
    } frames[TOY_DEPTH];
    size_t depth;
    volatile unsigned sum;
    void *arg;
    bool stop; /* repeat no more */
};

/* ---- profile: what a frame is, and what is known of a function --------- */

static size_t
toy_stack(void *thread, struct cpprof_vm_frame *frames, size_t max)
{
    const struct toy *toy = thread;
    size_t n = 0, i;

    for (i = toy->depth; i > 0 && n < max; i--, n++) {
        const struct toy_frame *f = &toy->frames[i - 1];
        const struct toy_code *code = f->function->code;

        frames[n].function = f->function;
        frames[n].pc = f->pc;
        frames[n].line = code ? code[f->pc].line : 0;
        frames[n].flags = i == 1 ? CPPROF_VM_ENTRY : 0;
    }
    return n;
}

static bool
toy_describe(void *thread, const void *function,
             struct cpprof_vm_function *what)
{
    const struct toy_function *f = function;

    *what = (struct cpprof_vm_function){f->name, NULL, f->file, f->line};
    return true;
}

/* The same for stacks of native profiles, with all that is known at once. */
static void
toy_peek(void *thread, cpprof_vm_visit *visit, void *ctx)
{
    const struct toy *toy = thread;
    struct cpprof_vm_peek told = {0};
    size_t i;

    for (i = toy->depth; i > 0; i--) {
        const struct toy_frame *f = &toy->frames[i - 1];

        toy_describe(thread, f->function, &told.function);
        told.line = f->function->code ? f->function->code[f->pc].line : 0;
        told.flags = i == 1 ? CPPROF_VM_ENTRY : 0;
        if (!visit(ctx, &told))
            return;
    }
}

static const struct cpprof_vm_ops toy_ops = {
    .size = sizeof(struct cpprof_vm_ops),
    .name = "toy",
    .stack = toy_stack,
    .describe = toy_describe,
    .peek = toy_peek,
};

/* ---- the interpreter --------------------------------------------------- */

/* profile: the caller's span ends, the callee's begins. */
static void
toy_push(struct toy *toy, const struct toy_function *function)
{
    if (toy->depth)
        cpprof_vm_span_next(toy->t);
    else
        cpprof_vm_span_begin(toy->t);
    toy->frames[toy->depth++] = (struct toy_frame){function, 0, 0};
}

/* profile: the callee's span ends while its frame is there. The caller is at
 * its call until then. */
static void
toy_pop(struct toy *toy)
{
    if (toy->depth > 1)
        cpprof_vm_span_next(toy->t);
    else
        cpprof_vm_span_end(toy->t);
    if (--toy->depth)
        toy->frames[toy->depth - 1].pc++;
}

static void
toy_work(struct toy *toy, int n)
{
    for (; n > 0; n--) {
        toy->sum = toy->sum * 31 + (unsigned)n;
        if (n % 64 == 0)
            cpprof_vm_thread_poll(toy->t); /* profile: in loops */
    }
}

static void
toy_call(struct toy *toy, const struct toy_code *code)
{
    if (toy->depth == TOY_DEPTH)
        return;
    toy_push(toy, code->callee);
    if (code->callee->builtin) {
        code->callee->builtin(code->n, toy->arg);
        cpprof_vm_thread_poll(toy->t);
        toy_pop(toy);
    }
}

static void
toy_step(struct toy *toy, struct toy_frame *f)
{
    const struct toy_code *code = &f->function->code[f->pc];

    switch (code->op) {
    case TOY_WORK:
        toy_work(toy, code->n);
        f->pc++;
        break;
    case TOY_CALL:
        toy_call(toy, code);
        break;
    case TOY_REPEAT:
        cpprof_vm_thread_poll(toy->t);
        f->pc = ++f->done < code->n && !toy->stop ? 0 : f->pc + 1;
        break;
    case TOY_RETURN:
        toy_pop(toy);
        break;
    }
}

/* profile: the native thread runs this one from here to there. */
__attribute__((noinline, unused)) static void
toy_run(struct toy *toy, const struct toy_function *function)
{
    struct cpprof_vm_thread *before = cpprof_vm_thread_enter(toy->t);

    toy_push(toy, function);
    while (toy->depth)
        toy_step(toy, &toy->frames[toy->depth - 1]);
    cpprof_vm_thread_enter(before);
}

/* profile: what of the above is the run loop, seen from a builtin. */
static void
toy_probe(int n, void *vm)
{
    cpprof_vm_learn_run_loop(vm, (const void *)toy_probe,
                             (const void *)toy_run);
}

static inline void
toy_learn(struct toy *toy, struct cpprof_vm *vm)
{
    static const struct toy_function probe = {"probe", NULL, 0, NULL,
                                              toy_probe};
    static const struct toy_code code[] = {{TOY_CALL, 1, 0, &probe},
                                           {TOY_RETURN, 1, 0, NULL}};
    static const struct toy_function once = {NULL, NULL, 0, code, NULL};

    toy->arg = vm;
    toy_run(toy, &once);
}

#ifndef TOY_NO_MAIN
static const struct toy_code work[][2] = {
    {{TOY_WORK, 11, 70000, NULL}, {TOY_RETURN, 12, 0, NULL}},
    {{TOY_WORK, 21, 20000, NULL}, {TOY_RETURN, 22, 0, NULL}},
    {{TOY_WORK, 31, 10000, NULL}, {TOY_RETURN, 32, 0, NULL}}};
static const struct toy_function functions[] = {
    {"seven", "split.toy", 10, work[0], NULL},
    {"two", "split.toy", 20, work[1], NULL},
    {"one", "split.toy", 30, work[2], NULL}};
static const struct toy_code top[] = {{TOY_CALL, 1, 0, &functions[0]},
                                      {TOY_CALL, 2, 0, &functions[1]},
                                      {TOY_CALL, 3, 0, &functions[2]},
                                      {TOY_REPEAT, 4, 10000, NULL},
                                      {TOY_RETURN, 5, 0, NULL}};
static const struct toy_function toplevel = {NULL, "split.toy", 1, top, NULL};

int
main(int argc, char **argv)
{
    struct cpprof_vm_options options = {.size = sizeof options,
                                        .mode = CPPROF_VM_MODE_SPAN};
    static struct toy toy;
    struct cpprof_error error;
    struct cpprof_writer writer;
    struct cpprof_vm *vm;

    if (cpprof_vm_new(&toy_ops, &vm, &error) ||
        cpprof_vm_thread_new(vm, &toy, &toy.t, &error) ||
        cpprof_writer_to_path(argc > 1 ? argv[1] : "toy.pb.gz", &writer,
                              &error) ||
        cpprof_vm_start(&writer, &options, &error))
        return fprintf(stderr, "toy_vm: %s\n", error.text), 1;
    toy_learn(&toy, vm);
    toy_run(&toy, &toplevel);
    if (cpprof_vm_stop(&error))
        return fprintf(stderr, "toy_vm: %s\n", error.text), 1;
    cpprof_vm_thread_free(toy.t);
    return 0;
}
#endif
