#!/bin/bash
# Programs that nobody here wrote, as Debian ships them, under cpprof record:
# they work as ever, their stacks are whole, and what is written opens in
# `go tool pprof` and reads there as it does in cpprof.
#
#     real.sh CPPROF INSPECT
. "$(dirname "$0")/tap.sh"
inspect=$(realpath "$2")
start "$1"

have()
{
    command -v "$1" >/dev/null
}

# value FILE KEY: a number out of inspect.
value()
{
    "$inspect" "$1" | sed -n "s/^$2 //p"
}

at_least()
{
    awk -v got="${1:-0}" -v least="$2" 'BEGIN { exit !(got >= least) }' || {
        echo "#   got:    $1"
        echo "#   wanted: at least $2"
        return 1
    }
}

# The two tables are equal. Debian's pprof prints the time in an older way, so
# that line is held against the clock instead.
same_top()
{
    local file=$1 printed

    shift
    # What the file says: each would look for other names of its own accord.
    set -- -symbolize=none "$@" "$file"
    TZ=UTC go tool pprof -top "$@" 2>/dev/null >go.top
    TZ=UTC "$cpprof" top "$@" >our.top || return 1
    grep -q '^Showing nodes' go.top || return 1
    grep -v '^Time:' go.top >go.rest
    grep -v '^Time:' our.top >our.rest
    cmp go.rest our.rest || return 1
    printed=$(sed -n 's/^Time: //p' our.top)
    same "$(date -u -d "$(sed -n 's/^Time: \(.*\) at \(.*\) (UTC)/\1 \2/p' \
        go.top)" '+%Y-%m-%d %H:%M')" "$(date -u -d "$printed" '+%Y-%m-%d %H:%M')"
}

opens_raw()
{
    TZ=UTC go tool pprof -raw "$1" >raw 2>raw.err &&
        grep -q '^PeriodType: cpu nanoseconds' raw &&
        grep -q '^Samples:' raw && grep -q '^Mappings' raw
}

# examine NAME FILE LEAST: what is to be true of every profile.
examine()
{
    local name=$1 file=$2 least=$3

    "$inspect" "$file" | sed "s/^/# $name: /"
    check "$name: a valid profile with enough samples" \
        at_least "$(value "$file" samples)" "$least"
    check "$name: nothing is lost" same "$(value "$file" lost_ms)" 0
    # A thread's last kernel time is ticked by the timer, every 4 ms.
    check "$name: hardly any time has no stack" \
        at_least 20 "$(value "$file" stackless_ms)"
    check "$name: 99.5 % of the stacks are complete" \
        at_least "$(value "$file" complete)" 99.5
    if have go; then
        check "$name: go tool pprof -raw reads it" opens_raw "$file"
        check "$name: cpprof top is go tool pprof -top" same_top "$file"
        check "$name: also by cumulated time" same_top "$file" -cum
        check "$name: and by lines" same_top "$file" -lines -nodecount=40
    else
        skip "$name: go tool pprof reads it" "no go"
    fi
}

# sees FILE FUNCTION: it is in some stack.
sees()
{
    at_least "$("$inspect" "$1" "$2" | sed 's/.* cpu_ms //')" 1
}

# Perf events, where they are allowed: a timer ticks every 4 ms, and up to that
# much of a process's end is in no stack at 1000 Hz.
engine=auto
! "$cpprof" record -e perf -o engine.pb.gz -- true 2>/dev/null || engine=perf
record()
{
    run timeout -k 5 60 "$cpprof" record -e $engine -F 1000 -o "$@"
}

# --- sqlite3 ----------------------------------------------------------------
query='WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c
    WHERE x < 1600000) SELECT count(*), sum(x % 7), max(hex(x)) FROM c;'
if have sqlite3; then
    expected=$(sqlite3 :memory: "$query")
    record sqlite.pb.gz -- sqlite3 :memory: "$query"
    check "sqlite3: its answer is the same" same "$(cat out)" "$expected"
    check "sqlite3: its status is the same" same "$status" 0
    examine sqlite3 sqlite.pb.gz 200
    check "sqlite3: its library is seen at work" sees sqlite.pb.gz sqlite3_step
else
    skip "sqlite3" "not installed"
fi

# --- python3 ----------------------------------------------------------------
program='
import json, re, threading
def work(n):
    rows = [{"id": i, "name": "row %d" % i} for i in range(n)]
    for _ in range(5):
        text = json.dumps(sorted(rows, key=lambda r: r["name"]))
        rows = json.loads(text)
    return len(re.findall("[0-9]+", text))
result = []
t = threading.Thread(target=lambda: result.append(work(30000)))
t.start(); print(work(40000)); t.join(); print(result[0])
'
# Debian's own, not what a version manager puts in front of it.
python=/usr/bin/python3
if have $python; then
    expected=$($python -c "$program")
    record python.pb.gz -- $python -c "$program"
    check "python3: its answer is the same" same "$(cat out)" "$expected"
    examine python3 python.pb.gz 200
    check "python3: its interpreter is seen at work" \
        sees python.pb.gz _PyEval_EvalFrameDefault
else
    skip "python3" "not installed"
fi

# --- redis ------------------------------------------------------------------
# The server is in redis-tools as well, under the name of another of its tools;
# it is what it is called.
if have redis-benchmark && have redis-check-rdb; then
    ln -s "$(command -v redis-check-rdb)" redis-server
    timeout -k 5 60 "$cpprof" record -e $engine -F 1000 -o redis.pb.gz -- \
        ./redis-server --port 0 \
        --unixsocket "$scratch/socket" --save '' --appendonly no \
        --dir "$scratch" --logfile "$scratch/redis.log" >out 2>err &
    recorder=$!
    for _ in $(seq 100); do
        [ ! -S socket ] || break
        sleep 0.1
    done
    redis-benchmark -s socket -q -n 60000 -c 20 -t set,get,lpush,lrange_100 \
        >benchmark.out 2>&1
    served=$?
    redis-cli -s socket shutdown nosave >shutdown.out 2>&1
    wait "$recorder"
    status=$?
    check "redis: the benchmark runs to its end" same "$served" 0
    check "redis: the server ends well" same "$status" 0
    examine redis redis.pb.gz 200
    check "redis: its event loop is seen at work" sees redis.pb.gz aeMain
else
    skip "redis" "not installed"
fi

# --- gcc: a driver and the compiler it starts --------------------------------
if have gcc; then
    {
        echo '#include <stdio.h>'
        for i in $(seq 200); do
            echo "int f$i(int *p, int n) { int s = 0; for (int i = 0; i < n;" \
                "i++) s += p[i] * $i + (p[i] % ($i + 3)); return s; }"
        done
    } >input.c
    gcc -O2 -c input.c -o alone.o
    record gcc.pb.gz -- gcc -O2 -c input.c -o recorded.o
    check "gcc: its status is the same" same "$status" 0
    check "gcc: what it makes is the same" cmp alone.o recorded.o
    check "gcc: the driver has a file" test -s gcc.pb.gz
    cc1=$(compgen -G 'gcc.cc1.*.pb.gz')
    check "gcc: the compiler it starts has one of its own" test -n "$cc1"
    examine cc1 "$cc1" 200
else
    skip "gcc" "not installed"
fi

# --- git --------------------------------------------------------------------
if have git; then
    export HOME=$scratch GIT_CONFIG_NOSYSTEM=1
    git init -q repository
    cp -r /usr/include/linux repository/
    record git.pb.gz -- git -C repository -c core.compression=9 add .
    check "git: its status is the same" same "$status" 0
    check "git: what it made is sound" git -C repository fsck --no-progress
    examine git git.pb.gz 100
else
    skip "git" "not installed"
fi
finish
