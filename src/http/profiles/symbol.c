/* SPDX-License-Identifier: MIT */
/*
 * Names of addresses: "ADDRESS+ADDRESS+...", of the body of a POST or as the
 * query of another request, each of them a number as Go writes them. The answer
 * has a line for each address with a name. It is the linker's name, because
 * pprof demangles names as its user wants.
 *
 * Source: Go net/http/pprof (Symbol), strconv (ParseUint), bufio (ReadSlice);
 * google/pprof internal/symbolz.
 */
#include "base/buffer.h"
#include "base/text.h"
#include "collect/encode/addresses.h"
#include "collect/runtime/exempt.h"
#include "http/profiles/limits.h"

#include <inttypes.h>
#include <string.h>

/* The size of the buffer that Go reads through. A longer word ends the answer,
 * as in Go. */
#define WORD_MAX 4096

/* Bytes that are gathered before they are sent. */
#define CHUNK (256u * 1024)

struct words {
    const char *at;
    size_t n;
    bool is_body; /* its end is known with its last byte */
    bool is_over;
    bool is_full; /* ended by a word that was too long */
};

static struct words
read_words(const struct cpprof_http_request *request)
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

/* Add the names of the next words, until there is a chunk. */
static void
add_names(struct cpprof__addresses *addresses, struct words *words,
          struct cpprof__buffer *b)
{
    while (!words->is_over && !b->failed && b->n < CHUNK) {
        size_t n;
        const char *word = next_word(words, &n), *name;
        uint64_t pc;

        cpprof__go_uint(word, n, 0, &pc); /* 0: it is none */
        name = pc ? cpprof__addresses_name(addresses, pc) : NULL;
        if (name)
            cpprof__buffer_printf(b, "0x%" PRIx64 " %s\n", pc, name);
    }
    if (words->is_full)
        cpprof__buffer_printf(b, "reading request: bufio: buffer full\n");
}

/* One chunk is made in each turn and sent when the turn is over, so that a slow
 * reader does not hold the symbolizer. */
static void
make_chunk(struct cpprof__call *call, struct words *words,
           struct cpprof__buffer *b)
{
    struct cpprof__addresses *addresses;

    if (!cpprof__turn_begin(call))
        return;
    addresses = cpprof__addresses_open();
    if (addresses)
        add_names(addresses, words, b);
    else
        b->failed = true;
    cpprof__addresses_close(addresses);
    cpprof__turn_end();
}

static void
send_chunk(struct cpprof__answer *a, const struct words *words,
           struct cpprof__buffer *b)
{
    if (b->failed)
        cpprof__answer_error(a, 500, "out of memory");
    else if (!a->has_begun && words->is_over)
        cpprof__answer_text(a, CPPROF__PLAIN, b->data, b->n);
    else {
        cpprof__answer_begin(a, &a->expected);
        cpprof__answer_write(a, b->data, b->n);
    }
}

void
cpprof__http_symbol(struct cpprof__call *call)
{
    struct words words = read_words(&call->request);
    struct cpprof__answer *a = &call->answer;
    struct cpprof__buffer b = {0};
    CPPROF__EXEMPT;

    a->expected = (struct cpprof__answer_head){
        .status = 200, .content_type = CPPROF__PLAIN, .n_body = -1};
    /* The number of symbols is not known. pprof only cares whether it is 0. */
    cpprof__buffer_printf(&b, "num_symbols: 1\n");
    do {
        make_chunk(call, &words, &b);
        if (!a->sys)
            send_chunk(a, &words, &b);
        b.n = 0;
    } while (!words.is_over && !b.failed && !a->sys);
    cpprof__buffer_free(&b);
}
