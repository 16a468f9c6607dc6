#!/bin/bash
# cpprof record: a command that cannot be recorded is one clear line, before
# anything runs.
. "$(dirname "$0")/tap.sh"
start "$@"

# refused STATUS PATTERN COMMAND...
refused()
{
    local want=$1 pattern=$2

    shift 2
    run "$cpprof" record -- "$@"
    check "$1: status $want" same "$status" "$want"
    check "$1: one line" one_line err "cpprof: $pattern"
    check "$1: no profile" none '*.gz'
}

# recorded STATUS COMMAND...
recorded()
{
    local want=$1

    shift
    run "$cpprof" record -- "$@"
    check "$1: recorded" same "$status" "$want"
    check "$1: one line" one_line err 'cpprof: cpu\.pb\.gz: [0-9]+ samples.*'
    rm -f ./*.gz
}

# script NAME FIRST-LINE [MORE]: an executable file of these lines.
script()
{
    printf '%s\n' "${@:2}" >"$1"
    chmod +x "$1"
}

# compile NAME FLAG...: a program, unless the compiler cannot make such.
compile()
{
    echo 'int main(void) { return 3; }' |
        ${CC:-cc} -x c - -o "$1" "${@:2}" 2>/dev/null
}

# --- where it is ------------------------------------------------------------
refused 127 'no-such-command: command not found' no-such-command
refused 127 '\./no-such-file: No such file or directory' ./no-such-file
refused 127 '"": command not found' ''
refused 126 '\./: Is a directory' ./
refused 126 '/dev/null: Permission denied' /dev/null
cp "$victim" plain
chmod 644 plain
refused 126 '\./plain: Permission denied' ./plain

# As execvp(3): the first in PATH that may run.
mkdir first second
cp plain first/search-me
cp "$victim" second/search-me
mkdir first/and-a-folder
cp "$victim" second/and-a-folder
PATH=$PWD/first:$PWD/second:$PATH
recorded 4 search-me burn=400 return=4
recorded 5 and-a-folder burn=400 return=5
chmod 644 second/search-me
refused 126 'search-me: Permission denied' search-me

# --- what it is -------------------------------------------------------------
if compile static -static; then
    refused 126 '\./static: a static program; .*' ./static
    script to-static '#!./static'
    refused 126 '\./to-static: a static program; .*' ./to-static
    script env-static "#!/usr/bin/env ./static"
    refused 126 '\./env-static: a static program; .*' ./env-static
else
    skip "a static program" "the compiler makes none"
fi
if compile static-pie -static-pie; then
    refused 126 '\./static-pie: a static program; .*' ./static-pie
else
    skip "a static PIE" "the compiler makes none"
fi
# Heads of files: ELF, then class, byte order, version; type and machine.
{ printf '\177ELF\1\1\1'; head -c 64 /dev/zero; } >bits32
{ printf '\177ELF\2\2\1'; head -c 9 /dev/zero
  printf '\0\2\0\26'; head -c 64 /dev/zero; } >s390
{ printf '\177ELF\2\1\1'; head -c 64 /dev/zero; } >no-type
chmod +x bits32 s390 no-type
refused 126 '\./bits32: a 32-bit program; only 64-bit ones can be recorded' \
    ./bits32
refused 126 '\./s390: a program for s390, not .*' ./s390
refused 126 '\./no-type: an ELF file that is no program' ./no-type
compile musl -Wl,--dynamic-linker=/lib/ld-musl-x86_64.so.1
# A folder with a library for musl beside that of glibc is no case of this test.
musl=$(dirname "$cpprof")/musl/libcpprof.so
if [ ! -e "$musl" ]; then
    refused 126 '\./musl: a program for musl libc, and there is no .*' ./musl
fi
compile raced -fsanitize=thread
refused 126 '\./raced: built with ThreadSanitizer, .*' ./raced
if compile asan -fsanitize=address; then
    refused 126 '\./asan: built with AddressSanitizer, .*libasan.so.*' ./asan
    LD_PRELOAD=$(${CC:-cc} -print-file-name=libasan.so) recorded 3 ./asan
else
    skip "a program with AddressSanitizer" "the compiler makes none"
fi
compile orphan -Wl,--dynamic-linker=/nonexistent/ld.so
refused 127 '\./orphan: its loader /nonexistent/ld\.so is missing' ./orphan

# What the command starts is not looked at. It runs as it does alone, and that its
# time is in no profile is said.
hog='#include <time.h>
int main(void) { while (clock() < CLOCKS_PER_SEC / 2) continue; return 3; }'
for how in "musl-gcc" "cc -static"; do
    if [ "$how" = musl-gcc ] && [ -e "$musl" ]; then
        skip "$how: a program that the command starts" "it is recorded"
        continue
    fi
    if ! echo "$hog" | $how -x c - -o hog 2>/dev/null; then
        skip "$how: a program that the command starts" "cannot be made"
        continue
    fi
    run "$cpprof" record -one -o one.pb.gz -- \
        sh -c "'$victim' burn=60; ./hog; exit \$?"
    check "$how: what the command starts ends as alone" same "$status" 3
    check "$how: its time is said to be missing" grep -qE \
        '^cpprof: 0\.[4-9] of [0-9.]+ s of CPU time are in no profile: ' err
    run "$cpprof" top -unit=ms one.pb.gz
    check "$how: -one: its time is a line of the profile" grep -qE \
        '^ +[4-6][0-9]{2}(\.[0-9]+)?ms .* \[processes without a profile\]$' out
    rm -f ./*.gz
done

# The loader as the command is no static program.
loader=$(readelf -lW "$victim" |
    sed -n 's/.*interpreter: \(.*\)].*/\1/p')
recorded 6 "$loader" "$victim" burn=400 return=6

# --- scripts ----------------------------------------------------------------
script no-interpreter '#!/nonexistent/sh'
refused 127 \
    '\./no-interpreter: its interpreter /nonexistent/sh: No such file .*' \
    ./no-interpreter
script no-env '#!/usr/bin/env no-such-command'
refused 127 '\./no-env: its interpreter no-such-command: command not found' \
    ./no-env
script nothing '#!'
refused 126 '\./nothing: a script without an interpreter' ./nothing
script one '#!./two'
script two '#!./one'
refused 126 '\./one: interpreters name each other without end' ./one
script good "#! /bin/sh -e" "\"$victim\" burn=400" 'exit 7'
run "$cpprof" record -- ./good
check "a script is recorded" same "$status" 7
check "and what it starts gets its own file" \
    same "$(compgen -G 'cpu.victim.*.pb.gz' | wc -l)" 1
rm -f ./*.gz
script env-good "#!/usr/bin/env -S A=1 $victim burn=400 return=8"
recorded 8 ./env-good

# --- privilege --------------------------------------------------------------
# Set-user-ID counts when it is somebody else's: as root, nobody's.
if [ "$(id -u)" = 0 ]; then
    cp "$victim" set-user && chown nobody set-user && chmod 4755 set-user
    refused 126 '\./set-user: gains privilege \(set-user-ID\), .*' ./set-user
    cp "$victim" set-group && chgrp nogroup set-group &&
        chmod 2755 set-group
    refused 126 '\./set-group: gains privilege \(set-group-ID\), .*' \
        ./set-group
    cp "$victim" own-id && chmod 4755 own-id
    recorded 9 ./own-id burn=400 return=9
elif [ -u /usr/bin/su ]; then
    refused 126 '/usr/bin/su: gains privilege \(set-user-ID\), .*' /usr/bin/su
else
    skip "set-user-ID" "not root, and no such program here"
fi

check "nothing is left of all this" same "$(ls -A run)" ""
finish
