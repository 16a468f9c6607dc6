#!/bin/bash
# Profiles of the waits of commands, whatever becomes of them.
. "$(dirname "$0")/tap.sh"
waiter=$(realpath "$2")
start "$1"

# waits FILE FUNCTION: how many contentions there are below it.
waits()
{
    "$cpprof" top -sample_index=contentions -focus="^$2\$" "$1" 2>/dev/null |
        sed -n 's/^Showing nodes accounting for \([0-9]*\),.*/\1/p'
}

# delay FILE FUNCTION: milliseconds of waiting.
delay()
{
    "$cpprof" top -unit=ms -focus="^$2\$" "$1" 2>/dev/null |
        sed -n 's/^Showing nodes accounting for \([0-9]*\)[.0-9]*ms,.*/\1/p'
}

# within VALUE LEAST MOST
within()
{
    [ -n "$1" ] && [ "$1" -ge "$2" ] && [ "$1" -le "$3" ]
}

# waited FILE FUNCTION: for 15 ms to 3 s; else what is in the file is shown.
waited()
{
    within "$(delay "$1" "$2")" 15 3000 || {
        "$cpprof" traces "$1" 2>&1 | head -n 60 | comment
        return 1
    }
}

record()
{
    rm -f ./*.gz
    run "$cpprof" record -t block,mutex -block 1 -- "$waiter" "$@"
}

# --- every ending -----------------------------------------------------------
for ending in 0 _exit kill; do
    record 5 $ending
    check "$ending: who waited" same "$(waits block.pb.gz wait_for_it)" 5
    check "$ending: who was waited for" \
        same "$(waits mutex.pb.gz give_it_up)" 5
    check "$ending: how long" within "$(delay block.pb.gz wait_for_it)" 80 400
    check "$ending: the same on both sides" \
        within "$(delay mutex.pb.gz give_it_up)" 80 400
done
check "nothing is left of all this" same "$(ls -A run)" ""
record 2
check "a line says what was written" grep -qxE \
    'cpprof: block\.pb\.gz: [0-9]+ waits, 0\.[0-9]+ s of waiting, none lost' err
check "and of the other kind" grep -qxE \
    'cpprof: mutex\.pb\.gz: 2 contentions, 0\.[0-9]+ s of waiting, none lost' \
    err

# --- processes --------------------------------------------------------------
record 2 fork 3 kill
check "a child leaves its parent's waits alone" \
    same "$(waits block.pb.gz wait_for_it)" 2
check "a child has its own" \
    same "$(waits "$(echo block.waiter.*.pb.gz)" wait_for_it)" 3
record 2 fork 0
check "one that waits for nothing has no file" none 'mutex.waiter.*'

# --- by wall time -----------------------------------------------------------
# The main thread waits for 20 ms or is interrupted, and so does the other.
for ending in 0 _exit kill; do
    rm -f ./*.gz
    run "$cpprof" record -t wall,cpu -wall 500 -- "$waiter" 15 $ending
    check "wall, $ending: who waits" \
        waited wall.pb.gz wait_for_it
    check "wall, $ending: and the one that sleeps meanwhile" \
        waited wall.pb.gz round_of_waiting
    check "wall, $ending: the state is a label" grep -q 'sleeping$' \
        <("$cpprof" tags wall.pb.gz 2>/dev/null)
done
check "wall: a line says how much" grep -qE \
    "^cpprof: wall\.pb\.gz: [0-9]+ samples, [0-9.]+ s of threads' time\$" err
rm -f ./*.gz
run "$cpprof" record -t offcpu -wall 500 -- "$waiter" 3 fork 15 kill
check "offcpu: a child has its own" \
    waited "$(echo offcpu.waiter.*.pb.gz)" wait_for_it
check "offcpu: nobody runs" same \
    "$("$cpprof" tags offcpu.pb.gz 2>/dev/null | grep -c 'running$')" 0

# --- kinds ------------------------------------------------------------------
rm -f ./*.gz
run "$cpprof" record -t cpu,heap,block,mutex -o a.%k.gz -- "$waiter" 1
check "all kinds at once" same "$(echo *.gz)" \
    "a.block.gz a.cpu.gz a.heap.gz a.mutex.gz"
run "$cpprof" record -t block,mutex -legacy -block 1 -o %k.txt -- "$waiter" 2
check "-legacy: text" same "$(head -1 block.txt) $(head -1 mutex.txt)" \
    "--- contention: --- mutex:"
check "without names" same "$(grep -c '^#' block.txt)" 0
run "$cpprof" record -t wall,offcpu -- "$waiter" 1
check "wall and offcpu exclude each other" same "$status" 2
run "$cpprof" record -t block,goroutine -- "$waiter" 1
check "a kind that cannot be recorded is refused" same "$status" 2
run "$cpprof" record -t block -block 0 -- "$waiter" 1
check "so is no rate" same "$status" 2

# --- the variable -----------------------------------------------------------
library=$(dirname "$cpprof")/libcpprof.so
for ending in 0 _exit; do
    rm -f ./*.gz
    LD_PRELOAD=$library CPPROF=block=1,mutex=1,out=%k.gz \
        run "$waiter" 3 $ending
    check "CPPROF, $ending: who waited" same "$(waits block.gz wait_for_it)" 3
    check "CPPROF, $ending: for whom" same "$(waits mutex.gz give_it_up)" 3
done
rm -f ./*.gz
LD_PRELOAD=$library CPPROF=block=1,out=b.gz run "$waiter" 1 fork second 2
check "CPPROF, of a child" same "$(waits "$(echo b.gz.*)" wait_for_it)" 2
LD_PRELOAD=$library CPPROF=threads,threadcreate,debug=1,out=%k.txt \
    run "$waiter" 1
check "CPPROF=threads: those at the end" \
    same "$(head -1 goroutine.txt)" "goroutine profile: total 1"
check "CPPROF=threadcreate: those that are left" \
    grep -qE '^threadcreate profile: total [0-9]+$' threadcreate.txt
finish
