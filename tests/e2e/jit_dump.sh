#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Code made at run time, by the jitdump file of an agent and of node, and by a
# perf map that names one address twice.
#
#     jit_dump.sh CPPROF JIT_AGENT

. "$(dirname "$0")/tap.sh"; start "$@"

record()
{
    "$cpprof" record -one -F 500 -o="$1" -- "${@:2}" >/dev/null 2>err
}

share()
{
    "$cpprof" -top -nodefraction=0 "$1" 2>/dev/null |
        awk -v name="$2" '$6 == name { print int($2) }'
}

# A third each, of a machine that others use, too.
is_a_part()
{
    local n
    n=$(share agent.pb.gz "$1")
    [ "${n:-0}" -ge 15 ] && [ "$n" -le 60 ]
}

if [ "$(uname -m)" = x86_64 ]; then
    mkdir dumps
    record agent.pb.gz "$victim" dumps
    for name in jit_stays jit_moves jit_follows; do
        check "agent: $name has its samples" is_a_part $name
    done
    "$cpprof" -traces -lines agent.pb.gz >out 2>err
    check "agent: lines, of what stays" grep -qE 'jit_stays .*script\.x:12' out
    check "agent: lines, of what moved" grep -qE 'jit_moves .*script\.x:12' out
    check "agent: what is put where another was has no lines of that" \
        test "$(grep -cE 'jit_follows .*script' out)" = 0
    check "agent: the caller is known" grep -q ' main' out

    "$cpprof" record -one -F 500 -o=map.pb.gz -- "$victim" >map 2>err
    for name in jit_first jit_second; do
        share=$(share map.pb.gz $name)
        check "map: $name has its samples" test "${share:-0}" -ge 15
    done
    rm -f "$(grep '^/tmp/perf-' map)"
else
    skip "agent" "not x86-64"
fi

if command -v node >/dev/null; then
    cat >app.js <<'END'
function countPrimes(limit) {
    let n = 0;
    for (let i = 2; i < limit; i++) {
        let prime = true;
        for (let k = 2; k * k <= i && prime; k++) prime = i % k !== 0;
        n += prime;
    }
    return n;
}
for (let end = Date.now() + 1500; Date.now() < end;) countPrimes(20000);
END
    record node.pb.gz node --perf-prof app.js
    "$cpprof" -top -nodefraction=0 node.pb.gz >out 2>err
    check "node: the function that computes is named" \
        grep -qE 'countPrimes' out
else
    skip "node --perf-prof" "no node"
fi
finish
