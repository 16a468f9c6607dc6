/* SPDX-License-Identifier: MIT */
/*
 * Lines for the shell. On a terminal they come from libedit: BSD-licensed, in
 * every distribution, the line editor of the BSDs. It is loaded when a shell
 * starts, so that reports, which need none, start as fast without it; where it
 * is missing the shell reads plain lines.
 *
 * The terminal sends no signals while a line is edited: Ctrl-C and Ctrl-Z are
 * keys like others, and no handler has to run inside the editor. That mode
 * begins before the prompt is printed, so that whoever sees the prompt is
 * heard; libedit itself would do it after. Keys that are typed earlier, while a
 * report is made, are handled by the terminal: an interrupt is for the report,
 * and must not end a shell that has just stopped waiting for it.
 */
#include "cli/shell/shell.h"

#include "cli/terminal.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <histedit.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

#define PROMPT "(pprof) "

/* The functions of libedit that are used. */
struct library {
    void *handle;
    EditLine *(*init)(const char *, FILE *, FILE *, FILE *);
    void (*end)(EditLine *);
    const char *(*gets)(EditLine *, int *);
    int (*set)(EditLine *, int, ...);
    int (*wset)(EditLine *, int, ...);
    const LineInfo *(*line)(EditLine *);
    int (*insert)(EditLine *, const char *);
    void (*erase)(EditLine *, int);
    int (*cursor)(EditLine *, int);
    History *(*history_init)(void);
    void (*history_end)(History *);
    int (*history)(History *, HistEvent *, int, ...);
};

struct cpprof__shell_input {
    const struct pprof_profile *profile;
    struct library edit;
    EditLine *editor; /* NULL: plain lines */
    History *history;
    FILE *file; /* of plain lines */
    char *line; /* of getline() */
    size_t n_line;
    bool is_terminal;
    struct sigaction before; /* of SIGINT, where it is a terminal */
};

/* -------------------------------------------------------------- keys ---- */

static char *
prompt(EditLine *editor)
{
    static char text[] = PROMPT;

    (void)editor;
    return text;
}

/* Static, because the line editor passes its key functions nothing but itself;
 * there is one shell. */
static struct cpprof__shell_input *current;

/* Ctrl-C: forget the line. */
static unsigned char
forget_line(EditLine *editor, int key)
{
    const struct library *edit = &current->edit;
    const LineInfo *line = edit->line(editor);

    (void)key;
    edit->cursor(editor, (int)(line->lastchar - line->cursor));
    line = edit->line(editor);
    edit->erase(editor, (int)(line->lastchar - line->buffer));
    edit->insert(editor, "\n"); /* without it: the end */
    fputs("^C\n", stderr);
    return CC_NEWLINE;
}

/* Ctrl-Z: stop, with the terminal as the parent shell knows it. */
static unsigned char
suspend(EditLine *editor, int key)
{
    (void)key;
    current->edit.set(editor, EL_PREP_TERM, 0);
    raise(SIGTSTP);
    current->edit.set(editor, EL_PREP_TERM, 1);
    return CC_REDISPLAY;
}

/* Ignores the byte that a Ctrl-D has become which was typed before the editor
 * listened: it is no key. */
static unsigned char
skip(EditLine *editor, int key)
{
    (void)editor;
    (void)key;
    return CC_NORM;
}

static void
list(const struct cpprof__completion *c)
{
    size_t width = 0, n_columns, i;

    for (i = 0; i < c->n_listed; i++)
        if (strlen(c->listed[i]) > width)
            width = strlen(c->listed[i]);
    n_columns = cpprof__terminal_columns(STDERR_FILENO) / (width + 2);
    if (n_columns == 0)
        n_columns = 1;
    for (i = 0; i < c->n_listed; i++)
        fprintf(stderr, "%s%-*s", i % n_columns ? "" : "\n", (int)width + 2,
                c->listed[i]);
    if (c->n_listed < c->n_matches)
        fprintf(stderr, "\n... and %zu more", c->n_matches - c->n_listed);
    fputs("\n", stderr);
}

/* Tab. */
static unsigned char
complete(EditLine *editor, int key)
{
    const struct library *edit = &current->edit;
    const LineInfo *line = edit->line(editor);
    struct cpprof__completion c;
    unsigned char then = CC_REFRESH;

    (void)key;
    if (!cpprof__complete(current->profile, line->buffer,
                          (size_t)(line->cursor - line->buffer), &c))
        return CC_REFRESH_BEEP;
    if (c.text) {
        edit->erase(editor, (int)c.n_replaced);
        if (edit->insert(editor, c.text) != 0)
            then = CC_REFRESH_BEEP;
    } else if (c.n_matches) {
        list(&c);
        then = CC_REDISPLAY;
    } else {
        then = CC_REFRESH_BEEP;
    }
    cpprof__completion_free(&c);
    return then;
}

/* -------------------------------------------------------------- open ---- */

static bool
load(struct library *edit)
{
    static const char name[] = "libedit.so.2";
    size_t i;
    struct {
        const char *name;
        void *at;
    } symbols[] = {
        {"el_init", &edit->init},
        {"el_end", &edit->end},
        {"el_gets", &edit->gets},
        {"el_set", &edit->set},
        {"el_wset", &edit->wset},
        {"el_line", &edit->line},
        {"el_insertstr", &edit->insert},
        {"el_deletestr", &edit->erase},
        {"el_cursor", &edit->cursor},
        {"history_init", &edit->history_init},
        {"history_end", &edit->history_end},
        {"history", &edit->history},
    };

    edit->handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    for (i = 0; edit->handle && i < sizeof symbols / sizeof symbols[0]; i++) {
        void *symbol = dlsym(edit->handle, symbols[i].name);

        if (!symbol)
            return false;
        memcpy(symbols[i].at, &symbol, sizeof symbol);
    }
    return edit->handle != NULL;
}

static void
remember(void *ctx, const char *line)
{
    struct cpprof__shell_input *in = ctx;
    HistEvent event;

    in->edit.history(in->history, &event, H_ENTER, line);
}

/* Names are wide characters: el_set() would leak the copies that it makes. */
static void
bind_key(struct cpprof__shell_input *in, const wchar_t *key,
         const wchar_t *name, unsigned char (*function)(EditLine *, int))
{
    in->edit.wset(in->editor, EL_ADDFN, name, name, function);
    in->edit.wset(in->editor, EL_BIND, key, name, NULL);
}

/* The prompt goes to stderr, so that `cpprof FILE >report` works. */
static void
open_editor(struct cpprof__shell_input *in)
{
    HistEvent event;

    setlocale(LC_CTYPE, "");
    in->editor = in->edit.init("cpprof", stdin, stderr, stderr);
    if (!in->editor)
        return;
    in->edit.set(in->editor, EL_PROMPT, prompt);
    in->edit.set(in->editor, EL_EDITOR, "emacs");
    in->edit.set(in->editor, EL_SETTY, "-d", "-isig", NULL);
    bind_key(in, L"^C", L"cpprof-forget-line", forget_line);
    bind_key(in, L"^Z", L"cpprof-suspend", suspend);
    bind_key(in, L"^I", L"cpprof-complete", complete);
    bind_key(in, L"^@", L"cpprof-skip", skip);
    in->edit.set(in->editor, EL_BIND, "^R", "em-inc-search-prev", NULL);
    in->history = in->edit.history_init();
    if (!in->history)
        return;
    in->edit.history(in->history, &event, H_SETSIZE, CPPROF__HISTORY_LINES);
    in->edit.history(in->history, &event, H_SETUNIQUE, 1);
    cpprof__history_load(remember, in);
    in->edit.set(in->editor, EL_HIST, in->edit.history, in->history);
}

static void
ignore_signal(int number)
{
    (void)number;
}

struct cpprof__shell_input *
cpprof__shell_input_open(const struct pprof_profile *profile)
{
    struct cpprof__shell_input *in = calloc(1, sizeof *in);
    struct sigaction action = {.sa_handler = ignore_signal};

    if (!in)
        return NULL;
    in->profile = profile;
    in->file = stdin;
    in->is_terminal = isatty(STDIN_FILENO);
    if (in->is_terminal && isatty(STDERR_FILENO) &&
        !cpprof__terminal_is_dumb() && load(&in->edit)) {
        current = in;
        open_editor(in);
    }
    /* An interrupt that comes when no report is made, ends a plain line and not
     * the shell. A handler, not SIG_IGN, which programs would inherit. */
    action.sa_flags = in->editor ? SA_RESTART : 0;
    if (in->is_terminal)
        sigaction(SIGINT, &action, &in->before);
    return in;
}

void
cpprof__shell_input_close(struct cpprof__shell_input *in)
{
    if (in->editor)
        in->edit.end(in->editor);
    if (in->history)
        in->edit.history_end(in->history);
    if (in->is_terminal)
        sigaction(SIGINT, &in->before, NULL);
    /* The library stays: terminfo below it keeps what it read. */
    free(in->line);
    free(in);
    current = NULL;
}

bool
cpprof__shell_input_is_terminal(const struct cpprof__shell_input *in)
{
    return in->is_terminal;
}

/* -------------------------------------------------------------- line ---- */

static const char *
edited_line(struct cpprof__shell_input *in)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    const char *text = NULL;
    int n = 0, n_ready = 1;
    char *copy;

    /* If Ctrl-D was typed already, there is input of 0 bytes, which the editor
     * would take for a zero byte. */
    if (poll(&input, 1, 0) != 1 ||
        ioctl(STDIN_FILENO, FIONREAD, &n_ready) != 0 || n_ready) {
        in->edit.set(in->editor, EL_PREP_TERM, 1);
        text = in->edit.gets(in->editor, &n);
    }
    if (!text || n <= 0) {
        fputs("\n", stderr); /* after Ctrl-D */
        return NULL;
    }
    copy = strdup(text);
    if (!copy)
        return NULL;
    free(in->line);
    in->line = copy;
    copy[strcspn(copy, "\n")] = '\0';
    if (copy[strspn(copy, " \t")]) {
        remember(in, copy);
        cpprof__history_add(copy);
    }
    return copy;
}

/* Print the prompt and wait for a line; false: Ctrl-C came instead. The signal
 * is blocked until the wait, or it could be missed between the two. */
static bool
wait_for_line(const struct cpprof__shell_input *in)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    sigset_t interrupt, before;
    bool came = true;

    sigemptyset(&interrupt);
    sigaddset(&interrupt, SIGINT);
    sigprocmask(SIG_BLOCK, &interrupt, &before);
    fputs(PROMPT, stdout);
    fflush(stdout);
    if (in->is_terminal && ppoll(&input, 1, NULL, &before) < 0)
        came = errno != EINTR;
    sigprocmask(SIG_SETMASK, &before, NULL);
    return came;
}

static const char *
plain_line(struct cpprof__shell_input *in)
{
    for (;;) {
        errno = 0;
        if (wait_for_line(in)) {
            if (getline(&in->line, &in->n_line, in->file) >= 0)
                break;
            if (errno != EINTR)
                return NULL;
            clearerr(in->file);
        }
        fputs("\n", stdout); /* after "^C" */
    }
    in->line[strcspn(in->line, "\n")] = '\0';
    return in->line;
}

const char *
cpprof__shell_input_line(struct cpprof__shell_input *in)
{
    return in->editor ? edited_line(in) : plain_line(in);
}
