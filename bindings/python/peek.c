/* SPDX-License-Identifier: MIT */
/*
 * The stack of the calling native thread, told wherever it was interrupted:
 * with the GIL or without, in a handler, in malloc, in the midst of a call.
 *
 * Frames belong to the thread that runs them, and what they hold lives as long
 * as they do, so nothing has to be locked. But the leaf may be in the midst of
 * being made or unmade, and what is read of it anything. So nothing is believed
 * that was not proved: a frame is read where the thread's own data stack is, or
 * else through the kernel, which fails where there is no memory; code objects
 * are read so as well, some at a time, and must be alive, of the right type and
 * have the frame's instruction in them. An object that was freed has a count of
 * references of 0, or the allocator's link in its place, which is 0 or no small
 * number. Where something makes no sense the walk ends.
 *
 * A thread that sleeps is told of from another (peek_sleeper). It holds what
 * its frames hold as long as it sleeps; should it wake up, nothing of that is
 * used. So all of it is copied through the kernel first.
 *
 * Source: CPython 3.11, Include/internal/pycore_frame.h, Objects/locations.md.
 */
#include "python.h"

#include <errno.h>
#include <internal/pycore_frame.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

/* Code objects that are read at once. More take fewer system calls, and 150
 * bytes each of the handler's stack. */
#define BATCH 8

/* The most frames of a walk, in case that the list is a circle. */
#define FRAMES_MAX 1024

/* Tunable: bytes of a name or file that is not ASCII; others are not copied. */
#define TEXT_MAX 512

/* Tunable: bytes of the table of lines of code that a sleeping thread runs. */
#define LINES_MAX 32768

/* The most threads among which one is searched. */
#define STATES_MAX 512

/* A frame without its variables, and code without its instructions. */
#define FRAME_BYTES offsetof(struct _PyInterpreterFrame, localsplus)
#define CODE_BYTES  offsetof(PyCodeObject, co_code_adaptive)

struct position {
    const PyCodeObject *code;
    const _Py_CODEUNIT *at;
    const struct _PyInterpreterFrame *frame;
    bool is_entry;
};

/* Objects of a frame, copied. */
struct copies {
    char name[sizeof(PyCompactUnicodeObject) + TEXT_MAX];
    char file[sizeof(PyCompactUnicodeObject) + TEXT_MAX];
    char lines[sizeof(PyBytesObject) + LINES_MAX];
};

struct peek {
    struct copies *copies; /* NULL: the thread's own objects are used */
    const _PyStackChunk
        *chunk; /* of the data stack, where further frames are */
    const struct _PyInterpreterFrame *next;
    const struct _PyInterpreterFrame *collects; /* its line does; NULL: none */
    struct position positions[BATCH];
    union {
        PyCodeObject code;
        char bytes[CODE_BYTES];
    } codes[BATCH];
    char name[TEXT_MAX], file[TEXT_MAX], whole_name[NAME_BYTES];
};

/* ---- memory that may not be there -------------------------------------- */

/* How many of the pieces, from the first on, could be read. */
static size_t
read_pieces(const struct iovec *to, const struct iovec *from, size_t n)
{
    ssize_t got = process_vm_readv(getpid(), to, n, from, n, 0);
    size_t i = 0;

    while (i < n && got >= (ssize_t)to[i].iov_len)
        got -= (ssize_t)to[i++].iov_len;
    return i;
}

static bool
read_piece(void *to, const void *from, size_t n_bytes)
{
    struct iovec there = {(void *)(uintptr_t)from, n_bytes};

    return read_pieces(&(struct iovec){to, n_bytes}, &there, 1) == 1;
}

/* ---- frames ------------------------------------------------------------ */

static bool
is_in(const _PyStackChunk *chunk, const void *frame)
{
    uintptr_t start = (uintptr_t)chunk, at = (uintptr_t)frame;

    return chunk && at >= start && at - start <= chunk->size - FRAME_BYTES;
}

/* Frames of functions are in the data stack, leaf last; those of generators in
 * their objects. */
static bool
read_frame(struct peek *p, struct _PyInterpreterFrame *frame)
{
    const _PyStackChunk *chunk = p->chunk;

    if ((uintptr_t)p->next % sizeof(void *))
        return false;
    if (chunk && !is_in(chunk, p->next))
        chunk = chunk->previous;
    if (!is_in(chunk, p->next))
        return read_piece(frame, p->next, FRAME_BYTES);
    p->chunk = chunk;
    memcpy(frame, p->next, FRAME_BYTES);
    return true;
}

static size_t
read_frames(struct peek *p)
{
    struct _PyInterpreterFrame frame;
    size_t n = 0;

    while (n < BATCH && p->next && read_frame(p, &frame)) {
        p->positions[n++] = (struct position){frame.f_code, frame.prev_instr,
                                              p->next, frame.is_entry & 1};
        p->next = frame.previous;
    }
    return n;
}

/* ---- code -------------------------------------------------------------- */

/* The index of the instruction that runs, or ran last, in units; -1: none has
 * run yet. */
static ptrdiff_t
offset_in(const struct position *position)
{
    const char *first = (const char *)position->code + CODE_BYTES;

    return ((const char *)position->at - first) /
           (ptrdiff_t)sizeof(_Py_CODEUNIT);
}

static bool
is_alive(const PyObject *object, const PyTypeObject *type)
{
    return object->ob_type == type && object->ob_refcnt > 0 &&
           object->ob_refcnt < INT32_MAX;
}

static bool
makes_sense(const struct position *position, const PyCodeObject *code)
{
    ptrdiff_t offset = offset_in(position);

    return is_alive((const PyObject *)code, &PyCode_Type) && offset >= -1 &&
           offset < Py_SIZE(code);
}

/* How many, from the first on, are code objects. */
static size_t
read_codes(struct peek *p, size_t n)
{
    struct iovec to[BATCH], from[BATCH];
    size_t i;

    for (i = 0; i < n; i++) {
        to[i] = (struct iovec){p->codes[i].bytes, CODE_BYTES};
        from[i] =
            (struct iovec){(void *)(uintptr_t)p->positions[i].code, CODE_BYTES};
    }
    n = read_pieces(to, from, n);
    for (i = 0; i < n && makes_sense(&p->positions[i], &p->codes[i].code); i++)
        continue;
    return i;
}

/* ---- lines ------------------------------------------------------------- */

struct table {
    const unsigned char *at, *end;
};

static unsigned
next_varint(struct table *t)
{
    unsigned value = 0, shift = 0, byte = 64;

    while (byte & 64 && t->at < t->end && shift < 32) {
        byte = *t->at++;
        value |= (byte & 63) << shift;
        shift += 6;
    }
    return value;
}

static int
line_delta(struct table *t, unsigned kind)
{
    unsigned value;

    if (kind >= 10 && kind <= 12) /* one line, with columns */
        return (int)kind - 10;
    if (kind != 13 && kind != 14)
        return 0;
    value = next_varint(t);
    return value & 1 ? -(int)(value >> 1) : (int)(value >> 1);
}

/* 0: none. Entries begin with a byte that has the highest bit. */
static int
line_at(const PyCodeObject *code, ptrdiff_t offset)
{
    const PyBytesObject *bytes = (const PyBytesObject *)code->co_linetable;
    struct table t;
    unsigned line = (unsigned)code->co_firstlineno;

    if (offset < 0)
        return code->co_firstlineno;
    if (!bytes || !is_alive((const PyObject *)bytes, &PyBytes_Type))
        return 0;
    t.at = (const unsigned char *)bytes->ob_sval;
    t.end = t.at + Py_SIZE(bytes);
    while (t.at < t.end) {
        unsigned first = *t.at++, kind = first >> 3 & 15;

        line += (unsigned)line_delta(&t, kind);
        offset -= (first & 7) + 1;
        if (offset < 0)
            return kind == 15 ? 0 : (int)line;
        while (t.at < t.end && !(*t.at & 128))
            t.at++;
    }
    return 0;
}

/* ---- texts ------------------------------------------------------------- */

static char *
put_utf8(char *to, Py_UCS4 c)
{
    if (c >= 0xd800 && c < 0xe000)
        c = '?'; /* a byte of a file's name that is not UTF-8 */
    if (c < 0x80) {
        *to++ = (char)c;
        return to;
    }
    if (c < 0x800) {
        *to++ = (char)(0xc0 | c >> 6);
    } else if (c < 0x10000) {
        *to++ = (char)(0xe0 | c >> 12);
        *to++ = (char)(0x80 | (c >> 6 & 63));
    } else {
        *to++ = (char)(0xf0 | (c >> 18 & 7));
        *to++ = (char)(0x80 | (c >> 12 & 63));
        *to++ = (char)(0x80 | (c >> 6 & 63));
    }
    *to++ = (char)(0x80 | (c & 63));
    return to;
}

static void
transcode(PyObject *string, char *out)
{
    const void *data = (PyCompactUnicodeObject *)string + 1;
    Py_ssize_t n = ((PyASCIIObject *)string)->length, i;
    char *last = out + TEXT_MAX - 5;

    for (i = 0; i < n && out < last; i++)
        out =
            put_utf8(out, PyUnicode_READ(((PyASCIIObject *)string)->state.kind,
                                         data, i));
    *out = 0;
}

/* NULL: none. What the compiler makes of source is compact. */
static const char *
text_of(PyObject *string, char *buffer)
{
    const PyASCIIObject *ascii = (const PyASCIIObject *)string;

    if (!string || !is_alive(string, &PyUnicode_Type) || !ascii->state.ready ||
        !ascii->state.compact)
        return NULL;
    if (ascii->state.ascii)
        return (const char *)(ascii + 1);
    transcode(string, buffer);
    return buffer;
}

/* ---- objects of a sleeper ----------------------------------------------- */

/* A longer string is cut. */
static PyObject *
copy_string(const PyObject *string, char *copy)
{
    PyASCIIObject *header = (PyASCIIObject *)(void *)copy;
    size_t n_header = sizeof *header, n_bytes;
    Py_ssize_t max;

    if (!read_piece(header, string, sizeof *header) || header->length < 0)
        return NULL;
    if (!header->state.ascii)
        n_header = sizeof(PyCompactUnicodeObject);
    max = TEXT_MAX / (header->state.kind ? header->state.kind : 1) - 1;
    if (header->length > max)
        header->length = max;
    n_bytes = (size_t)header->length * header->state.kind;
    copy[n_header + n_bytes] = 0;
    if (!read_piece(copy + sizeof *header,
                    (const char *)string + sizeof *header,
                    n_header - sizeof *header + n_bytes))
        return NULL;
    return (PyObject *)header;
}

static PyObject *
copy_bytes(const PyObject *bytes, char *copy)
{
    PyVarObject *header = (PyVarObject *)(void *)copy;

    if (!read_piece(header, bytes, sizeof *header) || header->ob_size < 0)
        return NULL;
    if (header->ob_size > LINES_MAX)
        header->ob_size = LINES_MAX;
    if (!read_piece(copy + sizeof *header, (const char *)bytes + sizeof *header,
                    offsetof(PyBytesObject, ob_sval) - sizeof *header +
                        (size_t)header->ob_size))
        return NULL;
    return (PyObject *)header;
}

/* ---- the walk ---------------------------------------------------------- */

static bool
tell(struct peek *p, size_t i, cpprof_vm_visit *visit, void *ctx)
{
    PyCodeObject *code = &p->codes[i].code;
    struct cpprof_vm_peek frame = {
        .flags = p->positions[i].is_entry ? CPPROF_VM_ENTRY : 0,
        .function.start_line = code->co_firstlineno,
    };
    const char *name;

    if (p->copies) {
        code->co_qualname = copy_string(code->co_qualname, p->copies->name);
        code->co_filename = copy_string(code->co_filename, p->copies->file);
        code->co_linetable = copy_bytes(code->co_linetable, p->copies->lines);
    }
    name = text_of(code->co_qualname, p->name);
    frame.line = line_at(code, offset_in(&p->positions[i]));
    frame.function.file = text_of(code->co_filename, p->file);
    frame.function.name =
        name_in_profile(name, frame.function.file, p->whole_name);
    return visit(ctx, &frame);
}

/* The collector's frame is above the line that made it run. */
static void
walk(struct peek *p, cpprof_vm_visit *visit, void *ctx)
{
    const struct cpprof_vm_peek collector = {.function.name = COLLECTOR_NAME};
    size_t n, n_good, i, sum = 0;

    do {
        n = read_frames(p);
        n_good = n ? read_codes(p, n) : 0;
        for (i = 0; i < n_good; i++)
            if ((p->positions[i].frame == p->collects &&
                 !visit(ctx, &collector)) ||
                !tell(p, i, visit, ctx))
                return;
        sum += n;
    } while (n_good == BATCH && sum < FRAMES_MAX);
}

/* When the interpreter ends it frees the states of threads that may still run,
 * except that of the thread that ends it. */
static PyThreadState *
own_state(void)
{
    PyThreadState *state = PyGILState_GetThisThreadState();

    return state && _Py_IsFinalizing() && state != _PyThreadState_UncheckedGet()
               ? NULL
               : state;
}

void
peek_stack(void *thread, cpprof_vm_visit *visit, void *ctx)
{
    const PyThreadState *state = own_state();
    int saved = errno;
    struct peek p;

    if (!state || !state->cframe)
        return;
    p.copies = NULL;
    p.chunk = state->datastack_chunk;
    p.next = state->cframe->current_frame;
    p.collects = collector_caller(state);
    walk(&p, visit, ctx);
    errno = saved;
}

/* ---- of another thread ------------------------------------------------- */

/* The state of a native thread; the list changes meanwhile. */
static bool
find_state(int32_t tid, PyThreadState *copy)
{
    const PyThreadState *at =
        PyInterpreterState_ThreadHead(PyInterpreterState_Main());
    unsigned i;

    for (i = 0; at && i < STATES_MAX; i++, at = copy->next) {
        if (!read_piece(copy, at, sizeof *copy))
            return false;
        if (copy->native_thread_id == (unsigned long)tid)
            return true;
    }
    return false;
}

void
peek_sleeper(int32_t tid, cpprof_vm_visit *visit, void *ctx)
{
    static struct copies copies; /* there is one caller at a time */
    PyThreadState state;
    _PyCFrame cframe;
    int saved = errno;
    struct peek p;

    if (!_Py_IsFinalizing() && find_state(tid, &state) &&
        read_piece(&cframe, state.cframe, sizeof cframe)) {
        p.copies = &copies;
        p.chunk = NULL;
        p.next = cframe.current_frame;
        p.collects = NULL;
        walk(&p, visit, ctx);
    }
    errno = saved;
}

/* ---- is it as it should be? -------------------------------------------- */

static bool
compare(void *ctx, const struct cpprof_vm_peek *told)
{
    PyFrameObject **at = ctx, *frame = *at;
    PyCodeObject *code = frame ? PyFrame_GetCode(frame) : NULL;

    if (!frame || told->line != PyFrame_GetLineNumber(frame) ||
        told->function.start_line != code->co_firstlineno) {
        Py_XDECREF(code);
        return false;
    }
    *at = PyFrame_GetBack(frame);
    Py_DECREF(code);
    Py_DECREF(frame);
    return *at;
}

/* Python does not promise that the layout stays, even between releases of 3.11;
 * and the kernel may refuse to read memory. */
bool
peek_works(void)
{
    PyFrameObject *frame = PyThreadState_GetFrame(PyThreadState_Get());
    bool is_as_told;

    if (Py_Version >> 16 != PY_VERSION_HEX >> 16 || !frame) {
        Py_XDECREF(frame);
        return false;
    }
    peek_stack(NULL, compare, &frame);
    is_as_told = !frame;
    Py_XDECREF(frame);
    return is_as_told;
}
