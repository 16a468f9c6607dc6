#!/bin/bash
# Heap profiles of commands, whatever becomes of them: at the rate 1 every
# value is known.
. "$(dirname "$0")/tap.sh"
hoarder=$(realpath "$2")
start "$1"

# objects FILE [TYPE]: of the stacks through keep_blocks, as the profile says.
objects()
{
    "$cpprof" top -sample_index="${2:-inuse_objects}" -focus=keep_blocks \
        "$1" 2>/dev/null |
        sed -n 's/^Showing nodes accounting for \([0-9]*\),.*/\1/p'
}

# record WORD...: the hoarder, heap at the rate 1.
record()
{
    rm -f ./*.gz
    run "$cpprof" record -t heap -heap 1 -o h.pb.gz -- "$hoarder" "$@"
}

# --- every ending -----------------------------------------------------------
for ending in exit=3 _exit=3 quick_exit=3; do
    record keep=50 free=20 $ending
    check "$ending: the status is passed on" same "$status" 3
    check "$ending: what is in use" same "$(objects h.pb.gz)" 30
    check "$ending: what was allocated" \
        same "$(objects h.pb.gz alloc_objects)" 50
done
for ending in kill=9 kill=11 kill=15 abort; do
    record keep=50 thread=7 free=20 $ending
    check "$ending: what is in use" same "$(objects h.pb.gz)" 37
    check "$ending: what was allocated" \
        same "$(objects h.pb.gz alloc_objects)" 57
    check "$ending: frames have names" \
        grep -q 'keep_blocks' <("$cpprof" traces h.pb.gz 2>/dev/null)
done
check "nothing is left of all this" same "$(ls -A run)" ""

record keep=50 free=20
check "a line says what was written" grep -qxE \
    'cpprof: h\.pb\.gz: [0-9]+ samples, .* MB in use, no sample lost \(1 in 1 bytes\)' \
    err
check "and a line each what is in use at the end" grep -qE \
    'cpprof:   29\.3 KB in 30 objects: keep_blocks \(.*hoarder\.c:[0-9]+\)' err
run "$cpprof" record -t heap -heap 1 -peak -o p.pb.gz -- "$hoarder" \
    keep=50 free=50 keep=10
check "-peak: in use when it was most" same "$(objects p.pb.gz)" 50

# --- processes --------------------------------------------------------------
record keep=10 fork keep=5 free=3 kill=9 join free=1
check "a child leaves its parent's heap alone" same "$(objects h.pb.gz)" 9
check "a child has what its parent had, and its own" \
    same "$(objects h.hoarder.*.pb.gz)" 12
record keep=10 fork fork keep=1 _exit=0 join keep=2 join
check "so has its child" same \
    "$(for f in h.hoarder.*; do objects "$f"; done | sort -n | xargs)" "11 12"
record keep=10 fork free=10 _exit=0 join
check "a child that allocates nothing has no file" none 'h.hoarder.*'
check "and takes nothing away" same "$(objects h.pb.gz)" 10
record keep=10 vfork keep=1
check "vfork changes nothing" same "$(objects h.pb.gz)" 11
record keep=10 exec keep=3 exec keep=4 _exit=0
check "FILE is the last image" same "$(objects h.pb.gz)" 4
check "images before it have files" same \
    "$(for f in h.hoarder.*; do objects "$f"; done | xargs)" "10 3"
rm -f ./*.gz
run "$cpprof" record -t heap -heap 1 -o h.pb.gz -- \
    sh -c "'$hoarder' keep=5 & '$hoarder' keep=6 kill=9; wait"
check "processes of a shell have files" same \
    "$(for f in h.hoarder.*; do objects "$f"; done | sort -n | xargs)" "5 6"

# --- while it runs ----------------------------------------------------------
rm -f ./*.gz ready
"$cpprof" record -t heap -heap 1 -duration 0.5 -o h.pb.gz -- "$hoarder" \
    keep=20 sleep=1500 keep=5 ready=ready 2>err
check "-duration: what was in use then" same "$(objects h.pb.gz)" 20
check "the command ran on" test -e ready
rm -f ./*.gz ready
set -m # or it would ignore SIGINT
"$cpprof" record -t heap -heap 1 -o h.pb.gz -- \
    "$hoarder" keep=20 ready=ready sleep=20000 2>err &
set +m
for _ in $(seq 200); do
    [ ! -e ready ] || break
    sleep 0.05
done
kill -INT "$(pgrep -P $!)"
wait $! 2>/dev/null
check "SIGINT ends it as it would alone" same $? 130
check "and what was in use then is written" same "$(objects h.pb.gz)" 20
# What allocates all the while is copied when the recorder tells that it ends.
run "$cpprof" record -t cpu,heap,block,mutex,wall -heap 1 -duration 0.5 \
    -o s.pb.gz -- python3 -c '
import glob, time
begin = time.monotonic()
names = []
while time.monotonic() < begin + 10 and (time.monotonic() < begin + 1 or
                                         "cpprof-wall\n" in names):
    blocks = [bytearray(600) for _ in range(1000)]
    names = [open(f).read() for f in glob.glob("/proc/self/task/*/comm")]
print("cpprof-wall\n" in names, len(names) < 4)'
check "-duration: who allocates all the while is not looked at any more" \
    same "$(cat out)" "False True"

# --- kinds and names --------------------------------------------------------
rm -f ./*.gz
run "$cpprof" record -t heap,cpu -heap 1 -- "$hoarder" keep=9
check "two kinds, two files" same "$(echo *.gz)" "cpu.pb.gz heap.pb.gz"
check "of which one is a heap" same "$(objects heap.pb.gz)" 9
rm -f ./*.gz
run "$cpprof" record -t cpu,heap -o a.pb.gz -- "$hoarder" keep=9
check "FILE gets the kind" same "$(echo *.gz)" "a.cpu.pb.gz a.heap.pb.gz"
rm -f ./*.gz
run "$cpprof" record -t cpu,heap -o %k.a.gz -- "$hoarder" keep=9
check "in the place of %k" same "$(echo *.gz)" "cpu.a.gz heap.a.gz"
rm -f ./*.gz
run "$cpprof" record -- "$hoarder" keep=9
check "without -t it is the CPU" same "$(echo *.gz)" cpu.pb.gz
run "$cpprof" record -t heap -o /dev/null -- "$hoarder" keep=9
check "/dev/null is a file to write to" same "$status" 0

# --- the variable -----------------------------------------------------------
library=$(dirname "$cpprof")/libcpprof.so
# preloaded VARIABLE WORD...
preloaded()
{
    local variable=$1

    shift
    rm -f ./*.gz* ./*.txt
    LD_PRELOAD=$library CPPROF=$variable run "$hoarder" "$@"
}
preloaded heap=1,out=x.pb.gz keep=8 free=2
check "CPPROF=heap: written at the end" same "$(objects x.pb.gz)" 6
check "and nothing is said" same "$(cat err)" ""
preloaded heap=1,out=x.pb.gz keep=8 _exit=4
check "CPPROF=heap: written at _exit" same "$(objects x.pb.gz)" 8
check "the status is the program's" same "$status" 4
preloaded cpu=99,heap=1,out=%e.%k.pb.gz keep=8
check "CPPROF=cpu,heap: a file each" \
    same "$(echo *.gz)" "hoarder.cpu.pb.gz hoarder.heap.pb.gz"
preloaded heap=1,out=x.pb.gz keep=8 fork keep=1 sleep=1300 _exit=0 join
check "a child's file has its pid" same "$(objects x.pb.gz.*)" 9
preloaded heap=1,out=x.pb.gz keep=8 fork free=1 sleep=1300 _exit=0 join
check "one that allocates nothing has none" same "$(echo x.pb.gz*)" x.pb.gz
preloaded heap=1,out=x.pb.gz keep=8 fork keep=1 _exit=0 join
check "nor one that ends in less than a second" same "$(echo x.pb.gz*)" x.pb.gz
preloaded heap=1,debug=1,out=x.txt keep=8
check "debug=1: text" grep -q '^heap profile: ' x.txt
preloaded heap=0 keep=8
check "heap=0: nothing is written" none '*.gz'
preloaded cpu,heap=1,out=x.pb.gz signals
check "the signal is cpu's" same "$(($(cat out) & 1))" 1
preloaded heap=1,out=x.pb.gz signals
check "CPPROF=heap takes no signal" same "$(($(cat out) & 1))" 0
for word in heap=5x heap= heap=-1 peak=1 debug=9 heat; do
    [ "$word" != heap= ] || continue
    preloaded "$word" keep=1 exit=6
    check "CPPROF=$word: one line, and the program runs" one_line err \
        "cpprof: CPPROF: .*${word%%=*}.*; not profiling"
    check "CPPROF=$word: its status" same "$status" 6
done
preloaded heap,out=/nonexistent/x keep=1 exit=6
check "a folder that is not there: one line" one_line err \
    "cpprof: /nonexistent/x: No such file or directory"
preloaded heap,record=/nonexistent keep=1 exit=6
check "the same of record=" one_line err \
    "cpprof: /nonexistent: not recording: No such file or directory"
check "and the program runs" same "$status" 6

# --- programs of others -----------------------------------------------------
# alike NAME COMMAND...: says and returns what it does alone, and has a profile.
alike()
{
    local name=$1

    shift
    if ! command -v "$1" >/dev/null; then
        skip "$name" "not installed"
        return
    fi
    rm -f ./*.gz
    run "$@"
    mv out alone
    mv err alone_err
    local alone=$status
    run "$cpprof" record -t cpu,heap -heap 1 -o r.pb.gz -- "$@"
    check "$name: its status" same "$status" "$alone"
    check "$name: its words" cmp -s out alone
    check "$name: a heap with something in it" grep -qE \
        '^cpprof: r\.heap\.pb\.gz: [1-9][0-9]* samples,.* no sample lost' err
    check "$name: which is well-formed" \
        "$cpprof" -proto -output=again.pb.gz r.heap.pb.gz 2>/dev/null
}
alike sqlite3 sqlite3 :memory: 'create table t(a); with recursive
    n(x) as (select 1 union all select x + 1 from n where x < 5000)
    insert into t select x from n; select sum(a) from t'
alike python3 /usr/bin/python3 -c \
    'import json; print(len(json.dumps([str(i) for i in range(9999)])))'
alike perl perl -e 'my %h; $h{$_} = "x" x 10 for 1..9999; print scalar %h'
printf 'int main(void) { return 0; }\n' >empty.c
alike gcc gcc -O1 -c empty.c -o empty.o
alike git git --no-pager diff --no-index --stat /dev/null empty.c
alike bash bash -c 'for i in 1 2 3; do (echo $i; :) | cat; done; exit 5'

# --- no room ----------------------------------------------------------------
(
    ulimit -f 1000
    run "$cpprof" record -t heap -heap 1 -o h.pb.gz -- "$hoarder" keep=5 exit=4
    echo "$status" >status
    cp err limited
)
check "ulimit -f: the command runs" same "$(cat status)" 4
check "and a line says why there is no profile" \
    grep -q 'not recording: File too large' limited
mkdir small
if mount -t tmpfs -o size=300k tmpfs small 2>/dev/null; then
    chmod 755 small
    XDG_RUNTIME_DIR=$scratch/small run "$cpprof" record -t heap -heap 1 \
        -o h.pb.gz -- "$hoarder" keep=50000 exit=4
    full=$status
    cp err full_err
    XDG_RUNTIME_DIR=$scratch/small run "$cpprof" leaks -min 100m -- \
        "$hoarder" keep=50000
    check "a full file system: no verdict" same "$status" 2
    cp full_err err
    umount small
    check "a full file system: the command runs" same "$full" 4
    check "what found no room is counted" grep -qE '[1-9][0-9]* samples lost' err
else
    skip "a full file system" "no right to mount one"
fi

# --- a malloc that is not ours ----------------------------------------------
cat >own.c <<'C'
#include <stddef.h>
#include <stdlib.h>
static char pool[1 << 24];
static size_t at;
void *malloc(size_t n) { return pool + (at += (n + 31) & ~15ul) - n; }
void free(void *p) { (void)p; }
int main(void) { return malloc(5) == NULL; }
C
if cc -w -fno-builtin own.c -o own 2>/dev/null; then
    rm -f ./*.gz
    run "$cpprof" record -t heap -heap 1 -o h.pb.gz -- ./own
    check "its own malloc: no empty profile" none '*.gz'
    check "its own malloc: a line says whose" one_line err \
        'cpprof: h.pb.gz: not written: allocations of own .*/own'
    check "its own malloc: status 1" same "$status" 1
    run "$cpprof" leaks -- ./own
    check "leaks: no verdict without seeing" same "$status" 2
else
    skip "its own malloc" "no compiler"
fi

# --- a verdict --------------------------------------------------------------
rm -f ./*.gz
touch profile.pb.gz
for file in profile.pb.gz ./profile.pb.gz; do
    run "$cpprof" leaks "$file"
    check "leaks $file: status 2" same "$status" 2
    check "leaks $file: says that it is no command" one_line err \
        "cpprof: leaks: $file is a file, not a command to run; .*"
done
rm profile.pb.gz
run "$cpprof" leaks -- "$hoarder" keep=5 free=5
check "leaks: nothing" same "$status" 0
check "leaks: which is said" grep -qx 'cpprof: lost: nothing' err
run "$cpprof" leaks -- true
check "leaks: who allocates nothing loses nothing" same "$status" 0
check "leaks: and it is said that nothing was there to be looked at" \
    grep -qx 'cpprof: lost: nothing: true allocated nothing' err
check "leaks: and nothing else" same "$(wc -l <err)" 2
run bash -c 'ulimit -d 8000; exec "$@"' bash "$cpprof" leaks -- \
    "$hoarder" keep=5
check "leaks: no verdict without memory for tables" same "$status" 2
check "leaks: which limit is too low is said" \
    grep -q 'heap or waits: a quarter of ulimit -d is too little' err
run bash -c 'ulimit -d 8000; exec "$@"' bash env LD_PRELOAD="$library" \
    CPPROF=heap,out=none.pb.gz "$hoarder" keep=5
check "CPPROF=heap: which limit is too low is said" \
    one_line err 'cpprof: a quarter of ulimit -d is too little for tables'
check "CPPROF=heap: and there is no file of nothing" test ! -e none.pb.gz
run "$cpprof" leaks -- "$hoarder" keep=5 free=4
check "leaks: what is still reachable is nothing" same "$status" 0
check "leaks: which is said" grep -qE \
    'still reachable: [0-9.]+ (bytes|KB) in [0-9]+ objects' err
check "leaks: no file of nothing" same "$(echo *.gz)" heap.pb.gz
run "$cpprof" leaks -reachable -- "$hoarder" keep=5 free=4
check "leaks -reachable: something" same "$status" 1
check "leaks -reachable: a line says what" \
    grep -qE '1000 bytes in 1 object: keep_blocks' err
# A word that is left somewhere may hide one of them.
run "$cpprof" leaks -- "$hoarder" lose=20 keep=5
check "leaks: something lost" same "$status" 1
check "leaks: a line says what" \
    grep -qE '(19|20)000 bytes|1[89]\.[0-9] KB in (19|20) objects: lose_blocks' err
check "leaks: and nothing else" grep -qE 'lost: .* of 1 stack$' err
"$cpprof" tags heap.lost.pb.gz >out 2>&1
check "leaks: a profile of what is lost" grep -q direct out
run "$cpprof" leaks -min 100k -- "$hoarder" lose=20
check "leaks: less than -min is nothing" same "$status" 0
check "leaks: and what that is" \
    grep -qx 'cpprof: lost: nothing that -min and -ignore leave' err
run "$cpprof" leaks -ignore lose_b -- "$hoarder" lose=20
check "leaks: so is what -ignore names" same "$status" 0
run "$cpprof" leaks -n 0 -- "$hoarder" lose=20 thread=1
check "leaks: -n bounds the lines, not the verdict" same "$status" 1
run "$cpprof" leaks -- "$hoarder" keep=5 _exit=0
check "leaks: no verdict without a search" same "$status" 2
check "leaks: which is said" grep -q 'was not searched' err
rm -f ./*.lost.pb.gz
run "$cpprof" leaks -- "$hoarder" fork keep=5 _exit=0 join
check "leaks: children are not judged" same "$status" 0
check "leaks: and have no files" same "$(echo *.gz)" heap.pb.gz
for words in exit=1 kill=9; do
    run "$cpprof" leaks -- "$hoarder" $words
    check "leaks: no verdict after $words" same "$status" 2
    check "leaks: which is said" grep -q 'no verdict' err
done
run "$cpprof" leaks -- nonexistent-command
check "leaks: none of what cannot be run" same "$status" 2
run "$cpprof" leaks -ignore '(' -- "$hoarder"
check "leaks: none with a wrong expression" same "$status" 2
run "$cpprof" leaks
check "leaks: no command" one_line err 'cpprof: leaks: no command given; .*'
run "$cpprof" leaks -o /dev/null -- "$hoarder" keep=1
check "leaks: what cannot be read back" one_line err \
    'cpprof: leaks: /dev/null is no file'
run "$cpprof" leaks -h
check "leaks -h: names every flag" \
    same "$(grep -cE '^  -(growth|times|every|reachable|min|ignore|n|o|heap) ' \
    out)" 9

# --- growth ------------------------------------------------------------------
for n in 1 2 3 4; do
    run "$cpprof" record -t heap -heap 1 -o "same$n.pb.gz" -- "$hoarder" \
        keep=100
    run "$cpprof" record -t heap -heap 1 -o "more$n.pb.gz" -- "$hoarder" \
        keep=$((100 * n))
done
run "$cpprof" leaks -growth more?.pb.gz
check "growth: four that rise are steady" same "$status" 1
check "growth: the stack, its values and the confidence" \
    grep -qE ' 95.8%  97.7 KB -> 390.6 KB  keep_blocks' out
run "$cpprof" leaks -growth more[123].pb.gz
check "growth: three are not enough" same "$status" 0
check "growth: but are told" grep -qE ' 83.3% .*keep_blocks' out
run "$cpprof" leaks -growth same?.pb.gz
check "growth: what stays does not grow" same "$status" 0
check "growth: and is not told" grep -q '^0 grow' out
run "$cpprof" leaks -growth -min 1m more?.pb.gz
check "growth: less than -min is nothing" same "$status" 0
run "$cpprof" leaks -growth more2.pb.gz more1.pb.gz
check "growth: the order is that of time" same "$status" 2
finish
