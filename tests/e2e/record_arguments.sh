#!/bin/bash
# cpprof record: a wrong word is one clear line and status 2, and the command
# does not run.
. "$(dirname "$0")/tap.sh"
start "$@"

# refused PATTERN WORD...: the words are refused with a line like that.
refused()
{
    local pattern=$1

    shift
    rm -f ran
    run "$cpprof" record "$@"
    check "record $*: status 2" same "$status" 2
    check "record $*: one line" one_line err "cpprof: $pattern"
    check "record $*: nothing ran" none ran
}

for rate in 0 -1 10001 99999999999999999999 x 1.5 "" " 5"; do
    refused "record: -F takes 1 to 10000 Hz, not \"$rate\"" \
        -F "$rate" -- touch ran
done
for seconds in 0 -1 x "" nan inf 1e99 s ms "1 s" 1ss 0s 10d; do
    refused "record: -duration takes a time, more than 0, as 10s, 500ms or 2m, not \"$seconds\"" \
        --duration "$seconds" -- touch ran
done
refused 'record: -depth takes 1 to 1024 frames, not "1025"' \
    -depth 1025 -- touch ran
refused 'record: -e takes auto, perf or timer, not "tick"' \
    -e tick -- touch ran
refused 'record: -symbolize takes full, functions or none, not "all"' \
    -symbolize all -- touch ran
for kinds in "" gpu cpu,gpu cpu, ,heap CPU vm wall,offcpu; do
    refused "record: -t takes cpu, heap, block, mutex and wall or offcpu, and vm beside them, with commas between them, not \"$kinds\"" \
        -t "$kinds" -- touch ran
done
for bytes in 0 -1 "" x 5x 1kk 1025g 99999999999999999999; do
    refused "record: -heap takes bytes, 1 to 1024g, not \"$bytes\"" \
        -t heap -heap "$bytes" -- touch ran
done
for flag in heap block mutex wall; do
    refused "record: -$flag is of $flag profiles: it takes -t $flag" \
        -$flag 5 -- touch ran
done
refused "record: -peak is of heap profiles: it takes -t heap" -peak -- touch ran
refused "record: -wall is of wall profiles: it takes -t wall" \
    -t heap -wall 5 -- touch ran
refused 'record: /nonexistent/a.heap.pb.gz: No such file or directory' \
    -t heap -o /nonexistent/a.%k.pb.gz -- touch ran
refused 'flag provided but not defined: -z' -z -- touch ran
refused 'flag needs an argument: -F' -F
refused 'record: no command given; .*'
refused 'record: no command given; .*' -F 99 --
refused 'record: /nonexistent/cpu.pb.gz: No such file or directory' \
    -o /nonexistent/cpu.pb.gz -- touch ran
mkdir folder
refused 'record: folder: Is a directory' -o folder -- touch ran
refused 'record: : No such file or directory' -o "" -- touch ran

run "$cpprof" record -h
check "record -h: status 0" same "$status" 0
check "record -h: names every flag" \
    same "$(grep -cE \
    '^  -(F|o|duration|e|depth|symbolize|t|heap|peak|labels|scripts) ' out)" 11

check "nothing is left of all this" same "$(ls -A run)" ""
check "no profile was written" none '*.gz'
run "$cpprof" version
check "version: one line" one_line out 'cpprof [0-9.]+.*'
run "$cpprof" version extra
check "version takes no words: status 2" same "$status $(cat out)" "2 "
check "and one line" one_line err 'cpprof: version takes no words: "extra"'
finish
