/* SPDX-License-Identifier: MIT */
/*
 * Looks at a command the way execve(2) and the dynamic loader will: where it
 * is, whether it may run, through which interpreters (`#!`), whether it gains
 * privilege (then the loader ignores LD_PRELOAD: ld.so(8), secure-execution
 * mode), and whether there is a loader at all (PT_INTERP).
 *
 * A file that cannot be checked, because it may be executed but not read, is
 * let through.
 */
#include "cli/record/record.h"

#include "cli/messages.h"

#include <elf.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

/* The most scripts in a row that the kernel follows (fs/exec.c). */
#define INTERPRETERS_MAX 5

/* The kernel reads this much of a script's first line (BINPRM_BUF_SIZE). */
#define FIRST_LINE_BYTES 256

/* execvp(3) looks here when there is no PATH. */
#define DEFAULT_PATH "/bin:/usr/bin"

/* What the checks of a file return: 0 if the command may run, the exit status
 * if it may not, or FOLLOW if the next path has to be looked at. */
#define FOLLOW (-1)

/* Print "COMMAND: TEXT", the command as the user gave it; returns exit_status.
 */
static int __attribute__((format(printf, 3, 4)))
refuse(const char *command, int exit_status, const char *format, ...)
{
    char text[1024];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    cpprof__cli_fail("%s: %s", command, text);
    return exit_status;
}

static int
exit_status_of(int sys)
{
    return sys == ENOENT ? CPPROF__EXIT_NOT_FOUND : CPPROF__EXIT_CANNOT_RUN;
}

/* --- where the command is --------------------------------------------------
 */

/* 0 or the errno with which execve would fail. */
static int
may_run(const char *path)
{
    struct stat st;

    if (stat(path, &st) < 0)
        return errno;
    if (S_ISDIR(st.st_mode))
        return EISDIR;
    if (!S_ISREG(st.st_mode))
        return EACCES;
    return eaccess(path, X_OK) < 0 ? errno : 0;
}

/* The first file in PATH that may run; if there is none, why the best of them
 * may not. */
static int
search_path(const char *name, char path[PATH_MAX])
{
    const char *next = getenv("PATH");
    int sys = ENOENT;

    for (next = next ? next : DEFAULT_PATH; next;) {
        size_t n = strcspn(next, ":");
        char candidate[PATH_MAX];
        int failed;

        /* An empty element is the current directory. */
        if (snprintf(candidate, sizeof candidate, "%.*s%s%s", (int)n, next,
                     n ? "/" : "", name) >= (int)sizeof candidate)
            failed = ENOENT;
        else
            failed = may_run(candidate);
        if (!failed) {
            strcpy(path, candidate);
            return 0;
        }
        if (failed != ENOENT && failed != ENOTDIR && failed != EISDIR)
            sys = failed;
        next = next[n] ? next + n + 1 : NULL;
    }
    return sys;
}

int
cpprof__find_command(const char *name, char path[PATH_MAX])
{
    if (!*name)
        return ENOENT;
    if (!strchr(name, '/'))
        return search_path(name, path);
    if (strlen(name) >= PATH_MAX)
        return ENAMETOOLONG;
    strcpy(path, name);
    return may_run(path);
}

/* --- privilege -------------------------------------------------------------
 */

/* Does the file have capabilities that make its exec a secure one? Not for
 * root, who has all of them (capabilities(7)). */
static bool
has_capabilities(int fd)
{
    struct vfs_ns_cap_data c = {0};
    bool any;

    if (getuid() == 0 ||
        fgetxattr(fd, "security.capability", &c, sizeof c) <= 0)
        return false;
    any = c.data[0].permitted || c.data[1].permitted;
    return any || c.magic_etc & htole32(VFS_CAP_FLAGS_EFFECTIVE);
}

/* The privilege that execve would grant and the user does not have; then the
 * loader takes nothing from the environment. */
static const char *
privilege_gained(int fd, const struct stat *st)
{
    bool no_set_id = prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1;
    struct statvfs fs;

    if (fstatvfs(fd, &fs) == 0 && fs.f_flag & ST_NOSUID)
        return NULL;
    if (!no_set_id && st->st_mode & S_ISUID && st->st_uid != getuid())
        return "set-user-ID";
    if (!no_set_id &&
        (st->st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) &&
        st->st_gid != getgid())
        return "set-group-ID";
    return has_capabilities(fd) ? "file capabilities" : NULL;
}

/* --- ELF -------------------------------------------------------------------
 */

static const char *
machine_name(unsigned machine)
{
    static const struct {
        unsigned machine;
        const char *name;
    } known[] = {
        {EM_386, "i386"},        {EM_X86_64, "x86-64"}, {EM_ARM, "ARM"},
        {EM_AARCH64, "aarch64"}, {EM_RISCV, "RISC-V"},  {EM_PPC64, "PowerPC64"},
        {EM_S390, "s390"},       {EM_MIPS, "MIPS"},
    };
    size_t i;

    for (i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].machine == machine)
            return known[i].name;
    return "another machine";
}

/* The machine that this program was built for, from its own file. */
static unsigned
own_machine(void)
{
    static unsigned machine;
    Elf64_Ehdr e;
    int fd;

    if (machine)
        return machine;
    fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && pread(fd, &e, sizeof e, 0) == (ssize_t)sizeof e)
        machine = e.e_machine;
    if (fd >= 0)
        close(fd);
    return machine;
}

/* The command may be the loader itself, which has no PT_INTERP and is no static
 * program. */
static bool
is_loader(const char *name)
{
    return !strncmp(name, "ld-", 3) || !strncmp(name, "ld.so", 5) ||
           !strncmp(name, "ld64.so", 7);
}

static bool
read_segment(int fd, const Elf64_Ehdr *e, unsigned i, Elf64_Phdr *p)
{
    return pread(fd, p, sizeof *p, (off_t)(e->e_phoff + i * sizeof *p)) ==
           (ssize_t)sizeof *p;
}

/* The PT_INTERP text of an image; "" when there is none. False: unreadable. */
static bool
read_interpreter(int fd, const Elf64_Ehdr *e, char interpreter[PATH_MAX])
{
    Elf64_Phdr p;
    unsigned i;

    *interpreter = 0;
    for (i = 0; e->e_phentsize == sizeof p && i < e->e_phnum; i++) {
        if (!read_segment(fd, e, i, &p))
            return false;
        if (p.p_type != PT_INTERP)
            continue;
        if (p.p_filesz < 2 || p.p_filesz > PATH_MAX ||
            pread(fd, interpreter, p.p_filesz, (off_t)p.p_offset) !=
                (ssize_t)p.p_filesz)
            return false;
        interpreter[p.p_filesz - 1] = 0;
        return true;
    }
    return true;
}

/* Where the byte at that address of an image is in its file; 0: nowhere. */
static uint64_t
offset_of(int fd, const Elf64_Ehdr *e, uint64_t address)
{
    Elf64_Phdr p;
    unsigned i;

    for (i = 0; i < e->e_phnum && read_segment(fd, e, i, &p); i++)
        if (p.p_type == PT_LOAD && address - p.p_vaddr < p.p_filesz)
            return p.p_offset + (address - p.p_vaddr);
    return 0;
}

/* The `n`th entry of that tag among those of the dynamic loader, which begin at
 * that offset of the file. */
static bool
find_dynamic(int fd, uint64_t at, int64_t tag, unsigned n, uint64_t *value)
{
    Elf64_Dyn d;

    for (; pread(fd, &d, sizeof d, (off_t)at) == (ssize_t)sizeof d &&
           d.d_tag != DT_NULL;
         at += sizeof d) {
        *value = d.d_un.d_val;
        if (d.d_tag == tag && !n--)
            return true;
    }
    return false;
}

/* Does the image itself ask for a library whose name begins so? */
static bool
needs_library(int fd, const Elf64_Ehdr *e, const char *begins)
{
    char name[32] = "";
    uint64_t names, dynamic = 0, value;
    Elf64_Phdr p;
    unsigned i;

    for (i = 0; i < e->e_phnum && read_segment(fd, e, i, &p); i++)
        if (p.p_type == PT_DYNAMIC)
            dynamic = p.p_offset;
    if (!dynamic || !find_dynamic(fd, dynamic, DT_STRTAB, 0, &value))
        return false;
    names = offset_of(fd, e, value);
    for (i = 0; names && find_dynamic(fd, dynamic, DT_NEEDED, i, &value); i++)
        if (pread(fd, name, sizeof name - 1, (off_t)(names + value)) > 0 &&
            !strncmp(name, begins, strlen(begins)))
            return true;
    return false;
}

bool
cpprof__preloads_asan(void)
{
    const char *preload = getenv("LD_PRELOAD");

    return preload && strstr(preload, "libasan.so");
}

/* Clang links the sanitizers statically: the library itself finds them. */
static int
check_sanitizers(const char *command, int fd, const Elf64_Ehdr *e)
{
    if (needs_library(fd, e, "libtsan.so"))
        return refuse(command, CPPROF__EXIT_CANNOT_RUN,
                      "built with ThreadSanitizer, which ends programs with "
                      "threads that it does not know");
    if (needs_library(fd, e, "libasan.so") && !cpprof__preloads_asan())
        return refuse(command, CPPROF__EXIT_CANNOT_RUN,
                      "built with AddressSanitizer, which has to be loaded "
                      "first: LD_PRELOAD=$(gcc -print-file-name=libasan.so)");
    return 0;
}

/* Has a static program the library in it? Then it has its note
 * (interpose/linked.c). */
static bool
has_library(int fd, const Elf64_Ehdr *e)
{
    static const struct {
        Elf64_Nhdr head;
        char name[8];
    } note = {{sizeof "cpprof", 0, 1}, "cpprof"};
    char notes[1024];
    Elf64_Phdr p;
    ssize_t n;
    unsigned i;

    for (i = 0; e->e_phentsize == sizeof p && i < e->e_phnum; i++) {
        if (!read_segment(fd, e, i, &p))
            return false;
        if (p.p_type != PT_NOTE)
            continue;
        n = pread(fd, notes,
                  p.p_filesz < sizeof notes ? p.p_filesz : sizeof notes,
                  (off_t)p.p_offset);
        if (n > 0 && memmem(notes, (size_t)n, &note, sizeof note))
            return true;
    }
    return false;
}

static bool
has_musl_library(void)
{
    char library[PATH_MAX], path[PATH_MAX];

    return cpprof__record_library(library) &&
           cpprof__record_musl_library(library, path);
}

static int
check_loader(const char *command, const char *path, int fd, const Elf64_Ehdr *e)
{
    char loader[PATH_MAX];

    if (!read_interpreter(fd, e, loader))
        return refuse(command, CPPROF__EXIT_CANNOT_RUN, "malformed ELF binary");
    if (!*loader)
        return is_loader(basename(path)) || has_library(fd, e)
                   ? 0
                   : refuse(command, CPPROF__EXIT_CANNOT_RUN,
                            "a static program; only programs with a dynamic "
                            "loader can be recorded (cpprof record -p has the "
                            "CPU time of one that runs)");
    if (!strncmp(basename(loader), "ld-musl-", 8) && !has_musl_library())
        return refuse(command, CPPROF__EXIT_CANNOT_RUN,
                      "a program for musl libc, and there is no libcpprof.so "
                      "for musl (cpprof record -p has the CPU time of one "
                      "that runs)");
    if (access(loader, F_OK) < 0)
        return refuse(command, CPPROF__EXIT_NOT_FOUND,
                      "its loader %s is missing", loader);
    return check_sanitizers(command, fd, e);
}

static int
check_elf(const char *command, const char *path, int fd, const Elf64_Ehdr *e)
{
    unsigned machine = e->e_machine;

    if (e->e_ident[EI_DATA] !=
        (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB))
        machine = __builtin_bswap16(e->e_machine);
    if (e->e_ident[EI_CLASS] == ELFCLASS32)
        return refuse(command, CPPROF__EXIT_CANNOT_RUN,
                      "a 32-bit program; only 64-bit ones can be recorded");
    if (machine && own_machine() && machine != own_machine())
        return refuse(command, CPPROF__EXIT_CANNOT_RUN,
                      "a program for %s, not %s", machine_name(machine),
                      machine_name(own_machine()));
    if ((e->e_type != ET_EXEC && e->e_type != ET_DYN) || !e->e_phnum)
        return refuse(command, CPPROF__EXIT_CANNOT_RUN,
                      "an ELF file that is no program");
    return check_loader(command, path, fd, e);
}

/* --- scripts ---------------------------------------------------------------
 */

/* A word of env's arguments that is not yet the command: an option that takes
 * nothing, or a variable. */
static bool
is_env_prefix(const char *word)
{
    return strchr(word, '=') ||
           (word[0] == '-' && (!word[1] || strchr("iS0v", word[1])));
}

/*
 * The command in "#!/usr/bin/env command", with -S "env -S A=1 command -x".
 * The text is cut up. NULL when there is none, or env was told things that are
 * not understood here.
 */
static const char *
env_command(char *text)
{
    char *word;

    while ((word = strsep(&text, " \t"))) {
        if (!strncmp(word, "-S", 2) && word[2])
            word += 2; /* -Scommand */
        if (!*word || is_env_prefix(word))
            continue;
        return word[0] == '-' ? NULL : word;
    }
    return NULL;
}

/* A script, "#! interpreter argument", names the next path to look at. The line
 * is split as the kernel does (fs/binfmt_script.c). */
static int
follow_script(const char *command, char *line, char next[PATH_MAX])
{
    char *interpreter = line + 2 + strspn(line + 2, " \t"), *end, *argument;
    const char *of_env;
    int sys;

    line[strcspn(line, "\n")] = 0;
    end = interpreter + strcspn(interpreter, " \t");
    argument = end + strspn(end, " \t");
    *end = 0;
    if (!*interpreter)
        return refuse(command, CPPROF__EXIT_CANNOT_RUN,
                      "a script without an interpreter");
    sys = may_run(interpreter);
    if (sys)
        return refuse(command, exit_status_of(sys), "its interpreter %s: %s",
                      interpreter, strerror(sys));
    strcpy(next, interpreter);
    if (strcmp(basename(interpreter), "env") != 0)
        return FOLLOW;
    /* env passes the environment on, so its command is what matters. */
    of_env = env_command(argument);
    if (!of_env)
        return 0;
    sys = cpprof__find_command(of_env, next);
    if (!sys)
        return FOLLOW;
    return refuse(command, exit_status_of(sys), "its interpreter %s: %s",
                  of_env, sys == ENOENT ? "command not found" : strerror(sys));
}

/* --- one file --------------------------------------------------------------
 */

static int
check_content(const char *command, const char *path, int fd,
              char next[PATH_MAX])
{
    union {
        Elf64_Ehdr elf;
        char line[FIRST_LINE_BYTES + 1];
    } head;
    const char *gained;
    struct stat st;
    ssize_t n;

    memset(&head, 0, sizeof head);
    n = pread(fd, &head, FIRST_LINE_BYTES, 0);
    if (n < 0 || fstat(fd, &st) < 0)
        return 0;
    if (!strncmp(head.line, "#!", 2))
        return follow_script(command, head.line, next);
    gained = privilege_gained(fd, &st);
    if (gained)
        return refuse(command, CPPROF__EXIT_CANNOT_RUN,
                      "gains privilege (%s), so the loader would not load "
                      "libcpprof.so",
                      gained);
    if (memcmp(head.line, ELFMAG, SELFMAG) == 0 && n >= EI_NIDENT)
        return check_elf(command, path, fd, &head.elf);
    /* Neither ELF nor "#!": execvp gives it to the shell. */
    strcpy(next, "/bin/sh");
    return FOLLOW;
}

bool
cpprof__is_data_file(const char *command)
{
    char path[PATH_MAX];
    struct stat st;

    return cpprof__find_command(command, path) && stat(command, &st) == 0 &&
           S_ISREG(st.st_mode);
}

int
cpprof__preflight(const char *command)
{
    const char *shown = *command ? command : "\"\"";
    char path[PATH_MAX], next[PATH_MAX];
    int sys = cpprof__find_command(command, path), n_followed, status = 0, fd;

    if (sys)
        return refuse(shown, exit_status_of(sys), "%s",
                      sys == ENOENT && !strchr(command, '/')
                          ? "command not found"
                          : strerror(sys));
    for (n_followed = 0; n_followed <= INTERPRETERS_MAX; n_followed++) {
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        if (fd < 0)
            return 0;
        status = check_content(shown, path, fd, next);
        close(fd);
        if (status != FOLLOW)
            return status;
        strcpy(path, next);
    }
    return refuse(shown, CPPROF__EXIT_CANNOT_RUN,
                  "interpreters name each other without end");
}
