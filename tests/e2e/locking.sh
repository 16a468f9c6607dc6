#!/bin/bash
# Programs of others that lock hard, with the library preloaded and the profiles
# of waits, of wall time and of the heap on: redis with threads for its
# connections, postgres with parallel workers, a program on oneTBB. Each gives
# the answers that it gives alone, says nothing of ours and ends as ever.
#
#     locking.sh CPPROF BUILD [TBB_WORK]
. "$(dirname "$0")/tap.sh"
build=$(realpath "$2")
tbb_work=${3:+$(realpath "$3")}
start "$1"

have()
{
    command -v "$1" >/dev/null
}

# Where a user who cannot come here finds it, too.
chmod 711 "$scratch"
mkdir lib
cp "$build"/libcpprof*.so lib/
library=$scratch/lib/libcpprof.so
words=block=1,mutex=1,wall=100,heap

# preloaded FOLDER COMMAND...: its profiles go into the folder.
preloaded()
{
    local folder=$1

    shift
    env LD_PRELOAD="$library" CPPROF="$words,out=$folder/%p.%k.pb.gz" "$@"
}

same_lines()
{
    diff "$1" "$2" >differences || {
        head -n 20 differences | comment
        return 1
    }
}

# has_profiles FOLDER: of each kind at least one, all of them whole.
has_profiles()
{
    local kind file

    for kind in block mutex wall heap; do
        compgen -G "$1/*.$kind.pb.gz" >/dev/null || {
            echo "no $kind profile" | comment
            return 1
        }
    done
    for file in "$1"/*.pb.gz; do
        "$cpprof" raw "$file" >raw 2>err || return 1
    done
}

# --- oneTBB -----------------------------------------------------------------
if [ -n "$tbb_work" ]; then
    mkdir tbb
    run "$tbb_work"
    mv out alone
    check "oneTBB: the program is right alone" same "$status" 0
    run preloaded tbb "$tbb_work"
    check "oneTBB: its status is the same" same "$status" 0
    check "oneTBB: what it says is the same" cmp alone out
    check "oneTBB: and nothing else" test ! -s err
    check "oneTBB: its profiles are there" has_profiles tbb
else
    skip "oneTBB" "not installed"
fi

# --- redis ------------------------------------------------------------------
# See real.sh for where the server is.

# Commands whose answers depend on what came before them only.
redis_commands()
{
    local i

    for i in $(seq 300); do
        echo "SET key:$i value:$((i * 7919 % 1000))"
        echo "INCRBY total $i"
        echo "ZADD board $((i * 31 % 97)) member:$((i % 50))"
        echo "RPUSH list:$((i % 5)) $i"
        echo "APPEND text x$i"
    done
    echo "MULTI"
    echo "DECRBY total 10"
    echo "EXPIRE key:1 1000"
    echo "EXEC"
    echo "ZRANGE board 0 -1 WITHSCORES"
    echo "SORT list:3 DESC"
    echo "EVAL 'return redis.call(\"strlen\", \"text\")' 0"
    echo "DBSIZE"
    echo "DEBUG DIGEST"
}

# serve_redis FOLDER WRAPPER...: answers, what the load left, the end.
serve_redis()
{
    local folder=$1 server

    shift
    mkdir "$folder"
    "$@" ./redis-server --port 0 --unixsocket "$scratch/$folder/s" --save '' \
        --appendonly no --io-threads 4 --io-threads-do-reads yes \
        --enable-debug-command yes --dir "$scratch/$folder" \
        >"$folder/log" 2>"$folder/err" &
    server=$!
    for _ in $(seq 100); do
        [ ! -S "$folder/s" ] || break
        sleep 0.1
    done
    redis_commands | redis-cli -s "$folder/s" >"$folder/answers" 2>&1
    timeout -k 1 60 redis-benchmark -s "$folder/s" -q -n 600 -c 20 -P 4 \
        -t set,get,incr,lpush,sadd,hset >"$folder/load" 2>&1
    echo "load $?" >>"$folder/answers"
    printf '%s\n' "GET counter:__rand_int__" "LLEN mylist" "SCARD myset" \
        "HLEN myhash" "DBSIZE" |
        redis-cli -s "$folder/s" >>"$folder/answers" 2>&1
    redis-cli -s "$folder/s" info stats | tr -d '\r' |
        sed -n 's/^io_threaded_reads_processed://p' >"$folder/threaded"
    redis-cli -s "$folder/s" shutdown nosave >/dev/null 2>&1
    wait "$server"
    echo "status $?" >>"$folder/answers"
}

if have redis-benchmark && have redis-check-rdb; then
    ln -s "$(command -v redis-check-rdb)" redis-server
    serve_redis redis.alone
    serve_redis redis preloaded redis
    tail -n 8 redis/answers | comment
    check "redis: it answers the same, and ends the same" \
        same_lines redis.alone/answers redis/answers
    check "redis: the load ran to its end" grep -qx 'load 0' redis/answers
    check "redis: the server ends well" grep -qx 'status 0' redis/answers
    check "redis: its threads did some of the work" \
        test "$(cat redis/threaded)" -gt 0
    check "redis: it says nothing else" test ! -s redis/err
    check "redis: its profiles are there" has_profiles redis
else
    skip "redis" "not installed"
fi

# --- postgres ---------------------------------------------------------------
postgres=$(compgen -G '/usr/lib/postgresql/*/bin' | sort -V | tail -n 1)

# It does not run as root.
as_user()
{
    if [ "$(id -u)" = 0 ]; then
        setpriv --reuid=postgres --regid=postgres --clear-groups env "$@"
    else
        env "$@"
    fi
}

sql='
CREATE TABLE t AS SELECT g a, md5(g::text) b FROM generate_series(1, 60000) g;
CREATE INDEX ON t (b);
ANALYZE t;
SET max_parallel_workers_per_gather = 4;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT count(*), sum(a), min(b), max(b) FROM t WHERE b > $$3$$;
SELECT count(*) FROM t x JOIN t y ON x.b = y.b WHERE x.a % 7 = 0;
SELECT md5(string_agg(b, $$$$ ORDER BY b)) FROM t;
SAVEPOINT nowhere;
SELECT 1 / (a - a) FROM t LIMIT 1;
BEGIN; LOCK TABLE t; UPDATE t SET a = -a WHERE a < 1000; ROLLBACK;
SELECT sum(a) FROM t;
SET statement_timeout = 100;
DO $$ BEGIN PERFORM pg_sleep(60); EXCEPTION WHEN query_canceled THEN
    RAISE NOTICE $n$cancelled$n$; END $$;
'

# serve_postgres FOLDER WRAPPER...
serve_postgres()
{
    local folder=$1 socket=$scratch/postgres

    shift
    mkdir "$folder"
    chmod 777 "$folder"
    "$@" "$postgres/postgres" -D "$scratch/postgres/data" -k "$socket" \
        -c listen_addresses= -c fsync=off \
        >"$folder/log" 2>&1 &
    server=$!
    for _ in $(seq 100); do
        ! "$postgres/pg_isready" -q -h "$socket" || break
        sleep 0.1
    done
    # Whether a worker or its leader fails is nobody's to say.
    psql=("$postgres/psql" -X -h "$socket" -U tester -At -v VERBOSITY=terse)
    "${psql[@]}" postgres -c "CREATE DATABASE ${folder//./_}" >/dev/null
    "${psql[@]}" "${folder//./_}" <<<"$sql" >"$folder/answers" \
        2>"$folder/errors"
    cat "$folder/errors" >>"$folder/answers"
    "$postgres/pgbench" -h "$socket" -U tester -i -q "${folder//./_}" \
        >"$folder/load" 2>&1
    "$postgres/pgbench" -h "$socket" -U tester -c 8 -j 2 -t 50 \
        "${folder//./_}" 2>&1 |
        sed -n '/processed:/p; /^number of failed/p' >>"$folder/answers"
    "${psql[@]}" "${folder//./_}" >>"$folder/answers" 2>&1 -c '
        SELECT (SELECT sum(abalance) FROM pgbench_accounts) =
            (SELECT sum(delta) FROM pgbench_history),
            (SELECT count(*) FROM pgbench_history)'
    kill -INT "$(head -n 1 postgres/data/postmaster.pid)"
    wait "$server"
    echo "status $?" >>"$folder/answers"
}

if [ -z "$postgres" ]; then
    skip "postgres" "not installed"
elif [ "$(id -u)" = 0 ] && ! id postgres >/dev/null 2>&1; then
    skip "postgres" "no user to run it"
else
    mkdir postgres
    chmod 777 postgres
    as_user "$postgres/initdb" -D "$scratch/postgres/data" -U tester -A trust \
        --no-sync --locale=C >initdb.log 2>&1
    check "postgres: there is a database" same $? 0
    serve_postgres postgres.alone as_user
    serve_postgres postgres.ours as_user LD_PRELOAD="$library" \
        CPPROF="$words,out=$scratch/postgres.ours/%p.%k.pb.gz"
    tail -n 6 postgres.ours/answers | comment
    check "postgres: it answers the same, and ends the same" \
        same_lines postgres.alone/answers postgres.ours/answers
    check "postgres: no transaction failed" \
        grep -q 'processed: 400/400' postgres.ours/answers
    check "postgres: its books balance" grep -qx 't|400' postgres.ours/answers
    check "postgres: the server ends well" \
        grep -qx 'status 0' postgres.ours/answers
    check "postgres: no process of it died" \
        same "$(grep -cE 'PANIC|terminated by|cpprof:' postgres.ours/log)" 0
    check "postgres: its profiles are there" has_profiles postgres.ours
fi
finish
