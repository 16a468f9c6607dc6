#!/bin/bash
# cpprof record: the command runs as it would alone, and each process that has
# samples gets a file of its own.
. "$(dirname "$0")/tap.sh"
start "$@"

line='[0-9]+ samples?, [0-9]+ threads?, [0-9.]+ s, none lost \(.* Hz.*\)'

# samples FILE: how many, as the profile's own values say.
samples()
{
    "$cpprof" top -sample_index=samples "$1" 2>/dev/null |
        sed -n 's/.*of \([0-9]*\) total.*/\1/p'
}

# --- the command's own life -------------------------------------------------
run "$cpprof" record -F 250 -- "$victim" burn=200 return=7
check "exit status is passed on" same "$status" 7
check "one line says what was written" \
    one_line err "cpprof: cpu\\.pb\\.gz: $line"
check "samples are there" test "$(samples cpu.pb.gz)" -ge 10
check "the sample files are gone" same "$(ls -A run)" ""
for signal in 9 11 15; do
    run "$cpprof" record -- "$victim" burn=100 kill=$signal
    check "signal $signal is passed on" same "$status" $((128 + signal))
done

run "$cpprof" record -- sh -c 'cat; echo out; echo err >&2'
check "output is the command's own" same "$(cat out)" out
check "so are its errors" same "$(head -n 1 err)" err

# Dispositions, mask and descriptors are inherited unchanged.
show='grep -E "^Sig(Blk|Ign):" /proc/self/status; ls /proc/self/fd'
run sh -c "trap '' HUP; $show"
mv out alone
run "$cpprof" record -- sh -c "trap '' HUP; $show"
check "signals and descriptors are those of the command alone" \
    same "$(cat out)" "$(cat alone)"

# --- signals to the recorder ------------------------------------------------
# Starts the recorder of a command that says when it is ready.
begin()
{
    rm -f ready
    "$cpprof" record -- sh -c "$1"'; : >ready; while :; do :; done' \
        >out 2>err </dev/null &
    recorder=$!
    for _ in $(seq 200); do
        [ ! -e ready ] || break
        sleep 0.05
    done
}

begin 'trap "exit 9" TERM'
sleep 0.3
kill -TERM "$recorder"
wait "$recorder"
check "SIGTERM goes to the command, which decides" same $? 9
check "and the profile is written" \
    one_line err "cpprof: cpu\\.pb\\.gz: $line"
if (( 16#$(sed -n 's/^SigIgn:\t//p' /proc/$$/status) & 1 )); then
    skip "SIGHUP ends it as it would alone" "it is ignored, as under nohup"
else
    begin :
    sleep 0.3
    kill -HUP "$recorder"
    wait "$recorder" 2>/dev/null
    check "SIGHUP ends it as it would alone" same $? 129
    check "and the profile is written" \
        one_line err "cpprof: cpu\\.pb\\.gz: $line"
fi
begin :
kill -INT "$recorder"
sleep 0.3
check "SIGINT is the command's alone" kill -0 "$recorder"
kill -TERM "$recorder"
wait "$recorder" 2>/dev/null
check "nothing is left of the killed" same "$(ls -A run)" ""

# Writing waits for a reader that never comes, and is interrupted. A signal in
# the first half second might still be one that was meant for the command.
mkfifo pipe
"$cpprof" record -o pipe -- sh -c "\"$victim\" burn=100; : >ended" \
    >out 2>err </dev/null &
recorder=$!
for _ in $(seq 200); do
    [ ! -e ended ] || break
    sleep 0.05
done
sleep 0.1
kill -TERM "$recorder"
sleep 2
check "a signal right after the end does not cost the profile" \
    kill -0 "$recorder"
kill -TERM "$recorder"
wait "$recorder" 2>/dev/null
check "a later one interrupts the writing" same $? 143
check "and nothing is left" same "$(ls -A run)" ""
rm pipe

# --- what the library is told -----------------------------------------------
run "$cpprof" record -F 77 -e timer -depth 99 -symbolize none -- \
    sh -c 'echo "$CPPROF"'
check "flags reach the library" grep -qxE \
    'record=.*,cpu=77,depth=99,engine=timer,symbolize=none,command=[0-9]+' out
run "$cpprof" record -F 77 -t cpu,vm -scripts -- sh -c 'echo "$CPPROF"'
check "scripts are asked for by their words" grep -qxE \
    'record=.*,cpu=77,scripts,.*,vm=77,out=/.*/vm.pb.gz,command=[0-9]+' out
run env LD_PRELOAD=libm.so.6 "$cpprof" record -- sh -c 'echo "$LD_PRELOAD"'
check "what was preloaded stays, behind us" \
    grep -qxE '/.*libcpprof\.so.*:libm\.so\.6' out
run "$cpprof" record -- sh -c "stat -c '%a %F' run/*"
mode=$([ "$(id -u)" = 0 ] && echo 711 || echo 700)
check "nobody else lists the folder of the samples" \
    same "$(cat out)" "$mode directory"
run env XDG_RUNTIME_DIR=/nonexistent "$cpprof" record -- \
    sh -c 'echo "$CPPROF"'
check "without XDG_RUNTIME_DIR there is another" \
    grep -qE '^record=/(dev/shm|tmp)/' out

# --- files ------------------------------------------------------------------
rm -f ./*.gz
# --- one profile of all --------------------------------------------------------
cp "$victim" other
run "$cpprof" record -one -F 500 -o one.pb.gz -- sh -c \
    "\"$victim\" burn=300 & ./other burn=300 kill=9; wait"
check "-one: one line says what was written" grep -qxE \
    'cpprof: one\.pb\.gz: [0-9]+ samples of [23] processes, 0 lost' err
check "-one: and it is the only file" same "$(echo one*)" one.pb.gz
"$cpprof" -tags one.pb.gz >tags 2>/dev/null
check "-one: samples tell their process" grep -qE ': victim$' tags
check "-one: one that was killed, too" grep -qE ': other$' tags
check "-one: and its number" \
    test "$(sed -n '/^ *pid:/,/^$/p' tags | grep -c '%): [0-9]')" -ge 2
for process in victim other; do
    ms=$("$cpprof" top -unit=ms -tagfocus=process=$process one.pb.gz \
        2>/dev/null | sed -nE 's/^.* ([0-9]+)(\.[0-9]+)?ms +[0-9.]+% +victim_burn$/\1/p')
    check "-one: the time of $process" \
        test "${ms:-0}" -ge 200 -a "${ms:-0}" -le 450
done
"$cpprof" -raw -symbolize=none one.pb.gz >raw 2>/dev/null
check "-one: a library of both is one mapping" \
    same "$(grep -c '/libc\.so\.6 ' raw)" 1
check "-one: two copies of one build are, too" \
    same "$(grep -cE '/(victim|other) [0-9a-f]+ ' raw)" 1
check "-one: and the name of the thread" \
    same "$("$cpprof" -tags one.pb.gz 2>/dev/null | sed -n '/^ *thread:/,/^$/p' |
        grep -cE ': (victim|other)$')" 2
rm -f one.pb.gz other
run "$cpprof" record -one -F 500 -o exec.pb.gz -- "$victim" burn=300 exec \
    burn=300 exec burn=300
check "-one: who executes itself anew is one process" \
    grep -q ' samples of 1 process, 0 lost' err
rm -f exec.pb.gz
cp "$victim" $'odd\xff\xfe'
run "$cpprof" record -one -o odd.pb.gz -- $'./odd\xff\xfe' burn=300
check "-one: a name that is no UTF-8 has question marks" \
    grep -q ': odd??$' <("$cpprof" -tags odd.pb.gz 2>/dev/null)
check "-one: and nothing of the file is none" \
    same "$(zcat odd.pb.gz | LC_ALL=C grep -ac $'\xff\xfe')" 0
rm -f odd*
# More processes than the recorder keeps files of: they are added up meanwhile.
# One that has no sample is none of them: on a busy machine all ticks of 15 ms may
# be late, so there is a longer try.
for burn in 15 45 135; do
    run "$cpprof" record -one -F 1000 -o many.pb.gz -- sh -c "i=0
        while [ \$i -lt 130 ]; do i=\$((i + 1)); \"$victim\" burn=$burn; done"
    ! grep -qE ' samples of 13[01] processes, 0 lost' err || break
done
check "-one: 130 processes one after the other" grep -qE \
    ' samples of 13[01] processes, 0 lost' err
check "-one: the time of all of them" test \
    "$(sed -E 's/.*: ([0-9]+) samples.*/\1/' err)" -ge 1800
rm -f many.pb.gz
run "$cpprof" record -one -t cpu,heap -o %k.one -- "$victim" burn=200
check "-one: a file for each kind" same "$(echo *.one)" "cpu.one heap.one"
rm -f ./*.one
run "$cpprof" record -one -legacy -- "$victim" burn=10
check "-one: not in a form without labels" grep -q 'has no labels' err

# --- the binary form --------------------------------------------------------
# milliseconds READER...: cumulative, of victim_burn.
milliseconds()
{
    "$@" 2>/dev/null |
        sed -nE 's/^.* ([0-9]+)(\.[0-9]+)?ms +[0-9.]+% +victim_burn$/\1/p'
}
for ending in return=0 kill=9; do
    run "$cpprof" record -legacy -F 500 -o b.prof -- "$victim" burn=250 $ending
    check "-legacy, $ending: machine words" same \
        "$(od -A n -t u8 -N 40 b.prof | xargs)" "0 3 0 2000 0"
    check "-legacy, $ending: mappings behind them" \
        grep -aqE '^[0-9a-f]+-[0-9a-f]+ r-xp .*/victim$' b.prof
    ms=$(milliseconds "$cpprof" top -unit=ms b.prof)
    check "-legacy, $ending: what was used" \
        test "${ms:-0}" -ge 180 -a "${ms:-0}" -le 400
    check "-legacy, $ending: the one caller of all is there" \
        grep -qE ' main$' <("$cpprof" top b.prof 2>/dev/null)
    if command -v go >/dev/null; then
        check "-legacy, $ending: go tool pprof says the same" same \
            "$(milliseconds go tool pprof -top -unit=ms "$victim" b.prof)" "$ms"
    else
        skip "-legacy, $ending: go tool pprof" "there is no go"
    fi
done
rm -f b.prof

run "$cpprof" record -F 250 -- "$victim" burn=100 fork=200 return=0
check "a child has its file, with name and pid" \
    same "$(compgen -G 'cpu.victim.[0-9]*.pb.gz' | wc -l)" 1
check "and its line" same "$(grep -cE "$line" err)" 2
check "its samples are in it" \
    test "$(samples "$(compgen -G 'cpu.victim.*.pb.gz')")" -ge 10

rm -f ./*.gz
wide=$'\303\251' # of two bytes
long=$(printf '%0120d' 0 | sed "s/0/$wide/g")
cp "$victim" "$long"
run "$cpprof" record -F 250 -- sh -c "./$long burn=200; :"
check "a child of a long name has its file, whose name is cut" \
    test "$(samples "$(compgen -G "cpu.$wide*$wide.[0-9]*.pb.gz")")" -ge 10
rm -f "$long"

rm -f ./*.gz
run "$cpprof" record -F 250 -o out.prof -- "$victim" burn=100 exec burn=200 return=0
check "an earlier image has its file, with its number" \
    same "$(compgen -G 'out.victim.*.0.prof' | wc -l)" 1
check "the last image is FILE" test "$(samples out.prof)" -ge 10

run "$cpprof" record -o many -- sh -c \
    "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do \"$victim\" burn=100 & done; wait"
check "twelve children have their files" \
    same "$(compgen -G 'many.victim.*' | wc -l)" 12
check "but not a line each" test "$(wc -l <err)" -le 12
check "the rest is told in one" grep -qE '[0-9]+ more files' err

rm -f many*
run "$cpprof" record -o /dev/null -- "$victim" burn=100 fork=100 return=2
check "FILE may be a device" same "$status" 2
check "which is not replaced" test -c /dev/null
check "and nothing is written beside it" none '/dev/null.*'
check "which is said" grep -q 'is no file: 1 other process was not' err

run "$cpprof" record -o /dev/full -- "$victim" burn=100 return=0
check "a failed write is the status" same "$status" 1
check "and the line" one_line err \
    'cpprof: /dev/full: write: No space left on device'
run "$cpprof" record -o /dev/full -- "$victim" burn=100 return=6
check "unless the command failed itself" same "$status" 6

echo old >cpu.pb.gz
run "$cpprof" record -- ./no-such-command
check "nothing recorded: the old profile stays" same "$(cat cpu.pb.gz)" old

# --- a time limit -----------------------------------------------------------
# Longer where a busy machine left the command too little of it.
for duration in 500ms 2s 8s; do
    rm -f ./*.gz go err
    "$cpprof" record -duration $duration -- sh -c \
        "i=0; until [ -e go ]; do i=\$((i + 1)); done; echo done; exit 5" \
        >out 2>err </dev/null &
    recorder=$!
    for _ in $(seq 600); do
        [ ! -s err ] || break
        sleep 0.05
    done
    [ "$(samples cpu.pb.gz)" -lt 5 ] && [ $duration != 8s ] || break
    : >go
    wait "$recorder"
done
check "-duration: the file is there before the end" test -s cpu.pb.gz
check "with samples" test "$(samples cpu.pb.gz)" -ge 5
check "in one line" one_line err "cpprof: cpu\\.pb\\.gz: $line"
check "and the command runs on" same "$(cat out)" ""
cp cpu.pb.gz first
: >go
wait "$recorder"
check "to its own end" same "$? $(cat out)" "5 done"
check "which adds nothing to the file" cmp -s cpu.pb.gz first

# --- root's servers ------------------------------------------------------------
# They become another user before they work, as nginx does.
if [ "$(id -u)" = 0 ]; then
    for seconds in 0.5 5; do
        run "$cpprof" record -one -F 500 -o one.pb.gz -- python3 -c "
import os, time
if not os.fork():
    os.setgid(65534)
    os.setuid(65534)
    while time.process_time() < $seconds:
        pass
    os._exit(0)
os.wait()"
        [ "$(samples one.pb.gz)" -lt 20 ] || break
    done
    check "a child that becomes another user is in the profile" \
        test "$(samples one.pb.gz)" -ge 20
    run "$cpprof" record -t cpu,heap -o k.pb.gz -- sh -c '
        said=$(setpriv --reuid=65534 --regid=65534 --clear-groups \
            sh -c "true; id -u" 2>&1)
        echo "[$said]"'
    check "one that execs as another user writes nothing into a pipe" \
        same "$(cat out)" "[65534]"
else
    skip "a child that becomes another user is in the profile" "needs root"
fi

# --- what a killed recorder left --------------------------------------------
rm -f pid
"$cpprof" record -- sh -c 'echo $$ >pid; exec sleep 100' 2>/dev/null &
recorder=$!
until ls run/*/*/[0-9]* >/dev/null 2>&1 && test -s pid; do sleep 0.05; done
left=$(ls run)
run "$cpprof" record -- true
check "the folder of a recorder that runs stays" same "$(ls run)" "$left"
kill -9 $recorder
wait $recorder 2>/dev/null
touch -d '5 minutes ago' "run/$left"
mkdir -m 700 run/cpprof-report
echo mine >run/cpprof-report/notes
touch -d '5 minutes ago' run/cpprof-report
run "$cpprof" record -- true
check "a folder with a name like that stays, and what is in it" \
    same "$(cat run/cpprof-report/notes)" mine
rm -r run/cpprof-report
check "that of one that was killed, too, while its processes run" \
    same "$(ls run)" "$left"
kill "$(cat pid)"
while kill -0 "$(cat pid)" 2>/dev/null; do sleep 0.05; done
run "$cpprof" record -- true
check "and the next recorder removes it" same "$(ls -A run)" ""

# --- where the library is ---------------------------------------------------
# An installation (tests/e2e/install.sh has more of them) in a path that
# LD_PRELOAD would take apart.
mkdir -p "a b/bin"
cp "$cpprof" "a b/bin/"
run "a b/bin/cpprof" record -- "$victim" burn=100 return=3
check "without its library: status 2" same "$status" 2
check "and one line" one_line err 'cpprof: record: libcpprof\.so is neither .*'
build=$(dirname "$cpprof")
lib="a b/bin/$(sed 's/.* in //' err)"
mkdir -p "$lib"
cp "$build/libcpprof.so" "$lib/$(readlink "$build/libcpprof.so")"
run "a b/bin/cpprof" record -F 250 -- "$victim" burn=200 return=3
check "with it, in a folder with a space" same "$status" 3
check "and it samples" test "$(samples cpu.pb.gz)" -ge 10
check "nothing is left of all this" same "$(ls -A run)" ""
finish
