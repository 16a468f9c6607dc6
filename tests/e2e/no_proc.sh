#!/bin/bash
# A process without /proc: the caller and threads made later are sampled, the
# mappings are the loader's, and what cannot be had is said.
#
#     no_proc.sh CPPROF VICTIM

. "$(dirname "$0")/tap.sh"; start "$@"

library=$(dirname "$cpprof")/libcpprof.so

# CPPROF COMMAND...
without_proc()
{
    run unshare -m bash -c 'umount -l /proc && export LD_PRELOAD=$1 CPPROF=$2 \
        && shift 2 && "$@"' bash "$library" "$@"
}

# What a function has of the samples, in ms.
ms_of()
{
    "$cpprof" top -unit ms "$1" 2>/dev/null |
        awk -v name="$2" '$6 == name { print int($4) }'
}

if ! unshare -m umount -l /proc 2>/dev/null; then
    skip "without /proc" "it cannot be unmounted here"
    finish
fi

without_proc cpu,out=cpu.pb.gz "$victim" burn=300 thread=300 old_fork=300 return=3
check "the program ends as it does" same "$status" 3
check "nothing is complained of" same "$(cat err)" ""
check "the thread of the start is sampled" test "$(ms_of cpu.pb.gz victim_burn)" -ge 200
check "so is a thread made later" \
    test "$(ms_of cpu.pb.gz victim_thread)" -ge 200
check "and a child of fork" \
    test "$(ms_of "$(echo cpu.pb.gz.*)" victim_child)" -ge 200

for kind in wall goroutine threadcreate; do
    without_proc $kind,out=$kind.pb.gz "$victim" burn=20 return=3
    check "$kind: the program ends as it does" same "$status" 3
    check "$kind: a line says what is missing" one_line err \
        'cpprof: the threads cannot be listed: /proc/self/task: .*'
done

finish
