/* SPDX-License-Identifier: MIT */
/*
 * Names of addresses: "ADDRESS+ADDRESS+...", of the body of a POST or as the
 * query of another request, each of them a number as Go writes them. Answered
 * by a line for each that has a name, the one that the linker knows: pprof
 * makes it readable in the way that its user wants.
 *
 * Source: Go net/http/pprof (Symbol), strconv (ParseUint), bufio (ReadSlice);
 * google/pprof internal/symbolz.
 */
#include "base/buffer.h"
#include "collect/addresses.h"
#include "collect/exempt.h"
#include "http/call.h"
#include "http/number.h"

#include <inttypes.h>
#include <string.h>

/* The buffer that Go reads through: a longer address ends its answer. */
#define WORD_MAX 4096

/* Bytes that are gathered before they are sent. */
#define CHUNK (32u * 1024)

struct words {
    const char *at;
    size_t n;
    bool is_body; /* its end is known with its last byte */
    bool is_over;
    bool is_full; /* ended by a word that was too long */
};

static struct words
words_of(const struct cpprof_http_request *request)
{
    const char *query = request->query ? request->query : "";

    if (strcmp(request->method, "POST") == 0)
        return (struct words){request->body,
                              request->body ? request->n_body : 0, true, false,
                              false};
    return (struct words){query, strlen(query), false, false, false};
}

/* The next word, of *n bytes. */
static const char *
next_word(struct words *w, size_t *n)
{
    const char *word = w->at, *plus;

    *n = w->n < WORD_MAX ? w->n : WORD_MAX;
    plus = *n ? memchr(word, '+', *n) : NULL;
    if (plus) {
        *n = (size_t)(plus - word);
        w->at += *n + 1;
        w->n -= *n + 1;
        return word;
    }
    w->is_over = true;
    w->is_full = w->n > WORD_MAX || (w->n == WORD_MAX && !w->is_body);
    return word;
}

static void
add_names(struct cpprof__answer *a, struct cpprof__addresses *addresses,
          struct words words, struct cpprof__buffer *b)
{
    while (!words.is_over && !a->sys && !b->failed) {
        size_t n;
        const char *word = next_word(&words, &n), *name;
        uint64_t pc = cpprof__number(word, n);

        name = pc ? cpprof__addresses_name(addresses, pc) : NULL;
        if (name)
            cpprof__buffer_printf(b, "0x%" PRIx64 " %s\n", pc, name);
        if (b->n < CHUNK)
            continue;
        cpprof__answer_begin(a, &a->expected);
        cpprof__answer_write(a, b->data, b->n);
        b->n = 0;
    }
    if (words.is_full)
        cpprof__buffer_printf(b, "reading request: bufio: buffer full\n");
}

static void
answer(struct cpprof__answer *a, struct cpprof__addresses *addresses,
       const struct cpprof_http_request *request)
{
    struct cpprof__buffer b = {0};

    a->expected = (struct cpprof__answer_head){
        .status = 200, .content_type = CPPROF__PLAIN, .n_body = -1};
    /* How many there are is not known; pprof cares whether it is 0. */
    cpprof__buffer_printf(&b, "num_symbols: 1\n");
    add_names(a, addresses, words_of(request), &b);
    if (b.failed)
        cpprof__answer_error(a, 500, "out of memory");
    else if (!a->has_begun)
        cpprof__answer_text(a, CPPROF__PLAIN, b.data, b.n);
    else
        cpprof__answer_write(a, b.data, b.n);
    cpprof__buffer_free(&b);
}

void
cpprof__http_symbol(struct cpprof__call *call)
{
    struct cpprof__addresses *addresses;
    CPPROF__EXEMPT;

    addresses = cpprof__addresses_open();
    if (addresses)
        answer(&call->answer, addresses, &call->request);
    else
        cpprof__answer_error(&call->answer, 500, "out of memory");
    cpprof__addresses_close(addresses);
}
