/* SPDX-License-Identifier: MIT */
/*
 * Single lines of `perf script`: headers, frames, and source lines.
 *
 * Names of processes and functions may contain blanks, digits and brackets, so
 * nothing is split from the left. A header is read around the field that looks
 * like nothing else, the time; a frame is read from both of its ends.
 *
 * Invariants: a line that is none of these is refused and never half read.
 */
#include "profile/text/perf_line.h"

#include "profile/legacy/numbers.h"

static bool
is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static bool
cut_number(struct cpprof__text *text, int64_t *number)
{
    return !cpprof__parse_int(cpprof__take_digits(text), 10, number);
}

static bool
is_not_blank(char c)
{
    return !is_blank(c);
}

/* Cut the first word off; empty at the end. */
static struct cpprof__text
cut_word(struct cpprof__text *text)
{
    cpprof__take_while(text, is_blank);
    return cpprof__take_while(text, is_not_blank);
}

static bool
ends(struct cpprof__text text, char c)
{
    return text.n && text.at[text.n - 1] == c;
}

/* ------------------------------------------------------- header words ---- */

/* "PID/TID", or "TID" alone, as is the default. */
static bool
parse_ids(struct cpprof__text word, int64_t *pid, int64_t *tid)
{
    *pid = -1;
    if (!cut_number(&word, tid))
        return false;
    if (!word.n)
        return true;
    if (!cpprof__take(&word, "/"))
        return false;
    *pid = *tid;
    return cut_number(&word, tid) && !word.n;
}

/* "1970.885639:", seconds. */
static bool
parse_time(struct cpprof__text word, int64_t *time_ns)
{
    int64_t seconds, unit = 100000000;

    if (!ends(word, ':') || !cut_number(&word, &seconds) ||
        seconds > INT64_MAX / 1000000000 - 1 || word.at[0] != '.' || word.n < 3)
        return false;
    *time_ns = seconds * 1000000000;
    for (word.at++, word.n--; word.n > 1; word.at++, word.n--) {
        if (!cpprof__is_digit(word.at[0]))
            return false;
        *time_ns += (word.at[0] - '0') * unit;
        unit /= 10;
    }
    return true;
}

/* A whole word; a difference of profiles has negative ones. */
static bool
parse_period(struct cpprof__text word, int64_t *period)
{
    return !cpprof__begins(word, "+") && !cpprof__parse_int(word, 10, period);
}

/* ------------------------------------------------------------- header ---- */

/* What stands behind the time: "PERIOD EVENT: ...", "EVENT: ...", nothing. */
static bool
parse_event(struct cpprof__text rest, struct cpprof__perf_header *h)
{
    struct cpprof__text word = cut_word(&rest);

    h->has_period = parse_period(word, &h->period);
    if (h->has_period)
        word = cut_word(&rest);
    h->is_record = cpprof__begins(word, "PERF_RECORD_");
    h->rest = rest;
    if (!word.n)
        return !h->has_period;
    h->event = (struct cpprof__text){word.at, word.n - 1};
    return h->is_record || (ends(word, ':') && word.n > 1);
}

/* Words in front of the time that may be the process. */
struct ids {
    struct cpprof__text word;
    const char *before; /* end of what is in front of it */
};

static bool
take_ids(const struct ids *ids, struct cpprof__text line,
         struct cpprof__perf_header *h)
{
    h->comm = cpprof__trim(
        (struct cpprof__text){line.at, (size_t)(ids->before - line.at)});
    return h->comm.n && parse_ids(ids->word, &h->pid, &h->tid);
}

/* A header without a time: "COMM PID [CPU] PERIOD EVENT:". What looks like a
 * process right in front of the event may be its period. */
static bool
take_timeless(const struct ids last[2], struct cpprof__text word,
              struct cpprof__text rest, struct cpprof__text line,
              struct cpprof__perf_header *h)
{
    bool two = last[1].word.n && parse_period(last[0].word, &h->period) &&
               cpprof__trim((struct cpprof__text){
                                line.at, (size_t)(last[1].before - line.at)})
                   .n;

    h->has_period = two;
    h->time_ns = -1;
    h->event = (struct cpprof__text){word.at, word.n - 1};
    h->rest = rest;
    return word.n > 1 && take_ids(&last[two], line, h);
}

/*
 * Names of processes have spaces and digits in them, so the time, which looks
 * like nothing else, is looked for first; the last word in front of it that
 * can be a process is the process.
 */
bool
cpprof__perf_header(struct cpprof__text line, struct cpprof__perf_header *h)
{
    struct cpprof__text rest = line, word;
    struct ids last[2] = {{{NULL, 0}, NULL}};
    int64_t pid, tid;

    *h = (struct cpprof__perf_header){.time_ns = -1};
    for (;;) {
        const char *before = rest.at;

        word = cut_word(&rest);
        if (!word.n)
            return false;
        if (last[0].word.n && parse_time(word, &h->time_ns))
            return take_ids(&last[0], line, h) && parse_event(rest, h);
        if (last[0].word.n && ends(word, ':'))
            return take_timeless(last, word, rest, line, h);
        if (before == line.at || !parse_ids(word, &pid, &tid))
            continue;
        last[1] = last[0];
        last[0] = (struct ids){word, before};
    }
}

/* -------------------------------------------------------------- frame ---- */

/* A whole word, with "0x" or without. */
static bool
parse_address(struct cpprof__text word, uint64_t *address)
{
    cpprof__take(&word, "0x");
    return word.n <= 16 && !cpprof__parse_uint(word, 16, address);
}

/* Without a "+0x..." at its end. */
static struct cpprof__text
without_offset(struct cpprof__text text)
{
    size_t i = text.n;

    while (i && cpprof__is_xdigit(text.at[i - 1]))
        i--;
    if (i < text.n && i > 3 && memcmp(text.at + i - 3, "+0x", 3) == 0)
        text.n = i - 3;
    return text;
}

/* Where the file in brackets at the end begins: names and files may have
 * brackets in them, but hardly ever one without its other. */
static size_t
find_dso(struct cpprof__text text)
{
    size_t depth = 0, i = text.n;

    if (!ends(text, ')'))
        return text.n;
    while (i--) {
        depth += text.at[i] == ')';
        depth -= text.at[i] == '(';
        if (!depth)
            return i == 0 || is_blank(text.at[i - 1]) ? i : text.n;
    }
    return text.n;
}

static struct cpprof__text
known(struct cpprof__text text)
{
    if (cpprof__is_text(text, "[unknown]"))
        text.n = 0;
    return text;
}

bool
cpprof__perf_frame(struct cpprof__text line, struct cpprof__perf_frame *f)
{
    struct cpprof__text rest = line, dso = {NULL, 0};
    size_t at;

    if (!parse_address(cut_word(&rest), &f->address))
        return false;
    rest = cpprof__trim(rest);
    at = find_dso(rest);
    if (at < rest.n) {
        dso = (struct cpprof__text){rest.at + at + 1, rest.n - at - 2};
        rest.n = at;
    }
    f->inlined = cpprof__is_text(dso, "inlined");
    if (f->inlined)
        dso.n = 0;
    f->name = known(without_offset(cpprof__trim(rest)));
    f->dso = known(without_offset(dso));
    return true;
}

bool
cpprof__perf_source(struct cpprof__text line, struct cpprof__text *file,
                    int64_t *number)
{
    struct cpprof__text text = cpprof__trim(line), digits;
    size_t i = text.n;

    while (i && cpprof__is_digit(text.at[i - 1]))
        i--;
    if (i < 2 || i == text.n || text.at[i - 1] != ':')
        return false;
    digits = (struct cpprof__text){text.at + i, text.n - i};
    *file = (struct cpprof__text){text.at, i - 1};
    return cut_number(&digits, number);
}
