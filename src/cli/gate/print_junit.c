/* SPDX-License-Identifier: MIT */
/*
 * The report for servers that show tests: a suite, and a test for the whole and
 * for each function. A function that grew is a failure; what could not be
 * decided is an error where the verdict waits for it, else it is skipped.
 *
 * Source: the schema of Ant's JUnit reports (JUnit.xsd, windyroad), of which
 * all other schemas of such files take what is written here.
 */
#include "cli/gate/gate.h"

#include "base/text.h"

#include <string.h>
#include <time.h>

/* Characters that XML 1.0 allows. */
static bool
is_allowed(uint32_t rune)
{
    return rune == 9 || rune == 10 || rune == 13 ||
           (rune >= 0x20 && rune < 0xfffe &&
            (rune < 0xd800 || rune > 0xdfff)) ||
           (rune >= 0x10000 && rune <= 0x10ffff);
}

static void
escape(struct cpprof__buffer *out, const char *text, size_t n)
{
    size_t i, length;
    uint32_t rune;

    for (i = 0; i < n; i += length ? length : 1) {
        length = cpprof__utf8_next(text + i, n - i, &rune);
        if (!length || !is_allowed(rune))
            cpprof__buffer_append(out, "?", 1);
        else if (text[i] == '&')
            cpprof__buffer_append(out, "&amp;", 5);
        else if (text[i] == '<')
            cpprof__buffer_append(out, "&lt;", 4);
        else if (text[i] == '>')
            cpprof__buffer_append(out, "&gt;", 4);
        else if (text[i] == '"')
            cpprof__buffer_append(out, "&quot;", 6);
        else
            cpprof__buffer_append(out, text + i, length);
    }
}

static void
attribute(struct cpprof__buffer *out, const char *name, const char *text)
{
    cpprof__buffer_printf(out, " %s=\"", name);
    escape(out, text, strlen(text));
    cpprof__buffer_append(out, "\"", 1);
}

static void
escape_buffer(struct cpprof__buffer *out, struct cpprof__buffer *text)
{
    if (text->failed)
        out->failed = true;
    else
        escape(out, (const char *)text->data, text->n);
    cpprof__buffer_free(text);
}

/* NULL: nothing is to be said. */
static const char *
element_of(const struct cpprof__gate_row *row)
{
    if (row->verdict == CPPROF__GATE_PASS)
        return NULL;
    if (row->verdict == CPPROF__GATE_FAIL)
        return "failure";
    return row->must_be_sure ? "error" : "skipped";
}

static void
print_case(const struct cpprof__gate_model *m,
           const struct cpprof__gate_result *r,
           const struct cpprof__gate_row *row, struct cpprof__buffer *out)
{
    const char *element = element_of(row);
    struct cpprof__buffer reason = {0}, path = {0};

    cpprof__buffer_printf(out, "    <testcase");
    attribute(out, "name", cpprof__gate_name(m, row));
    attribute(out, "classname", "cpprof.gate");
    cpprof__buffer_printf(out, " time=\"0\"%s\n", element ? ">" : "/>");
    if (!element)
        return;
    if (strcmp(element, "skipped") == 0) {
        cpprof__buffer_printf(out, "      <skipped/>\n    </testcase>\n");
        return;
    }
    cpprof__gate_reason(m, row, &reason);
    cpprof__buffer_printf(out, "      <%s message=\"", element);
    escape_buffer(out, &reason);
    cpprof__buffer_printf(out, "\" type=\"%s\">",
                          row->verdict == CPPROF__GATE_FAIL ? "regression"
                                                            : "inconclusive");
    if (row->because != CPPROF__GATE_NONE) {
        const char *name = cpprof__gate_name(m, &r->rows.at[row->because]);

        cpprof__buffer_printf(out, "because of ");
        escape(out, name, strlen(name));
    } else {
        cpprof__gate_path(m, row, CPPROF__GATE_SHOWN, &path);
        escape_buffer(out, &path);
    }
    cpprof__buffer_printf(out, "</%s>\n    </testcase>\n", element);
}

/* The time of the newest run, so that equal input gives equal output. */
static void
print_time(const struct cpprof__gate_model *m, struct cpprof__buffer *out)
{
    int64_t newest = 0;
    struct tm parts;
    char text[32];
    time_t seconds;
    size_t i;

    for (i = 0; i < m->runs.n; i++)
        if (m->runs.at[i].time_ns > newest)
            newest = m->runs.at[i].time_ns;
    seconds = (time_t)(newest / 1000000000);
    gmtime_r(&seconds, &parts);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
    attribute(out, "timestamp", text);
}

static size_t
count(const struct cpprof__gate_result *r, const char *element)
{
    size_t n = 0, i;

    for (i = 0; i < r->rows.n; i++) {
        const char *is = element_of(&r->rows.at[i]);

        n += is && strcmp(is, element) == 0;
    }
    return n;
}

void
cpprof__gate_junit(const struct cpprof__gate_model *m,
                   const struct cpprof__gate_result *r,
                   struct cpprof__buffer *out)
{
    struct cpprof__buffer text = {0};
    size_t i;

    cpprof__buffer_printf(
        out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n"
             "  <testsuite name=\"cpprof gate\" package=\"cpprof\" id=\"0\"");
    print_time(m, out);
    cpprof__buffer_printf(
        out,
        " hostname=\"localhost\" tests=\"%zu\" failures=\"%zu\" "
        "errors=\"%zu\" time=\"0\">\n    <properties>\n      <property "
        "name=\"verdict\" value=\"%s\"/>\n    </properties>\n",
        r->rows.n, count(r, "failure"), count(r, "error"),
        cpprof__gate_word(r->verdict));
    for (i = 0; i < r->rows.n; i++)
        print_case(m, r, &r->rows.at[i], out);
    cpprof__buffer_printf(out, "    <system-out>");
    cpprof__gate_text(m, r, &text);
    escape_buffer(out, &text);
    cpprof__buffer_printf(out, "</system-out>\n    <system-err></system-err>\n"
                               "  </testsuite>\n</testsuites>\n");
}
