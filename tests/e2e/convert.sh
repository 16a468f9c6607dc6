#!/bin/bash
# cpprof convert: between pprof, collapsed stacks and perf script, with files
# of real writers and `go tool pprof` as the judge.
#
#     convert.sh CPPROF
fixtures=$(realpath "$(dirname "$0")/../fixtures")
. "$(dirname "$0")/tap.sh"
start "$1"

convert()
{
    "$cpprof" convert "$@"
}

# The sum of the counts of collapsed stacks on stdin.
sum()
{
    awk '{ sum += $NF } END { printf "%d\n", sum }'
}

# raw_sum FILE COLUMN: of a sample type, as go tool pprof has it.
raw_sum()
{
    go tool pprof -symbolize=none -raw "$1" 2>/dev/null |
        awk -v column="$2" '/^Samples:/ { on = 1; getline; next }
            /^Locations/ { on = 0 }
            on && /^ *[-0-9]+ .*:/ { sub(/:.*/, ""); sum += $column }
            END { printf "%d\n", sum }'
}

# Stacks on stdin without their first N frames; unknown ones are alike.
alike()
{
    sed -E "s/^([^;]*;){$1}//; s/\[unknown <0x[0-9a-f]+>\]/[unknown]/g" |
        awk '{ n = $NF; sub(/ [0-9]+$/, ""); sum[$0] += n }
            END { for (s in sum) print s, sum[s] }' | LC_ALL=C sort
}

refused()
{
    local name=$1 pattern=$2

    shift 2
    run convert "$@"
    check "$name: status 2" same "$status" 2
    check "$name: one line" one_line err "cpprof: $pattern"
    check "$name: nothing on stdout" same "$(wc -c <out)" 0
}

# --- perf script -----------------------------------------------------------

n_samples=$(grep -c '^[^	]' "$fixtures/linux.perf")
clock=$(awk '/cpu-clock: $/ { sum += $(NF - 1) } END { print sum }' \
    "$fixtures/linux.perf")
run convert -o perf.pb.gz "$fixtures/linux.perf"
check "perf script to pprof: status 0" same "$status" 0
check "perf script to pprof: says nothing" same "$(cat out err)" ""
if command -v go >/dev/null; then
    check "go tool pprof counts its samples" \
        same "$(raw_sum perf.pb.gz 1)" "$n_samples"
    check "go tool pprof adds up its clock" \
        same "$(raw_sum perf.pb.gz 3)" "$clock"
    go tool pprof -symbolize=none -traces -sample_index=samples perf.pb.gz \
        >go.traces 2>/dev/null
    check "go tool pprof shows its threads" \
        same "$(grep -cE 'comm: *a worker' go.traces)" \
        "$(convert -to=perf-script perf.pb.gz | grep -c '^a worker')"
else
    skip "go tool pprof reads it" "no go"
fi
check "perf's own script folds it to the same" \
    same "$(convert -to=collapsed -sample_index=samples \
        "$fixtures/linux.perf" | alike 0)" \
    "$(alike 1 <"$fixtures/linux.folded")"
convert -to=perf-script "$fixtures/linux.perf" >once.perf
convert -to=perf-script once.perf >twice.perf
check "perf script written and read is the same" cmp once.perf twice.perf
check "perf script keeps stacks" \
    same "$(convert -to=collapsed once.perf)" \
    "$(convert -to=collapsed "$fixtures/linux.perf")"

# --- collapsed stacks ------------------------------------------------------

LC_ALL=C sort "$fixtures/linux.folded" >wanted
convert -o folded.pb.gz "$fixtures/linux.folded"
check "collapsed survives pprof" \
    same "$(convert -to=collapsed folded.pb.gz | LC_ALL=C sort)" \
    "$(cat wanted)"
convert -o plain.pb "$fixtures/linux.folded"
check "-o FILE.pb is not compressed" \
    same "$(gzip -dc <folded.pb.gz | cksum)" "$(cksum <plain.pb)"
convert -to=perf-script "$fixtures/linux.folded" >folded.perf
check "collapsed survives perf script" \
    same "$(convert -to=folded -sample_index=1 folded.perf | alike 0)" \
    "$(alike 0 <wanted)"
for file in go.cpu.pb.gz go.heap.pb.gz pprof_merged.pb.gz; do
    if ! command -v go >/dev/null; then
        skip "$file: total" "no go"
        continue
    fi
    check "$file: collapsed adds up to the total" \
        same "$(convert -to=collapsed -sample_index=1 "$fixtures/$file" |
            sum)" "$(raw_sum "$fixtures/$file" 2)"
done

# --- files and words -------------------------------------------------------

convert -to=collapsed "$fixtures/linux.folded" "$fixtures/linux.folded" >both
check "several files are added up" same "$(sum <both)" "$((2 * $(sum <wanted)))"
check "standard input" same "$(convert -to=collapsed - <wanted)" "$(cat wanted)"
check "standard input without a word" \
    same "$(convert <wanted | convert -to=collapsed | LC_ALL=C sort)" \
    "$(cat wanted)"
check "-o - is standard output" \
    same "$(convert -o - -to=collapsed wanted)" "$(cat wanted)"
check "-to=text" grep -q '^Samples:$' <(convert -to=text perf.pb.gz)
for ending in pb.gz pprof prof pb collapsed folded perf txt; do
    convert -o "file.$ending" wanted
    check "-o file.$ending" test -s "file.$ending"
done
check "-help" grep -q '^usage: cpprof convert' <(convert -help)
check "help convert" grep -q '^usage: cpprof convert' \
    <("$cpprof" help convert)
if script -qec true /dev/null >/dev/null 2>&1; then
    check "collapsed on a terminal" same \
        "$(script -qec "$cpprof convert wanted" /dev/null | tr -d '\r')" \
        "$(cat wanted)"
    check "pprof is not for terminals" grep -q 'not for terminals' \
        <(script -qec "$cpprof convert -to=pprof wanted" /dev/null)
else
    skip "on a terminal" "no script(1)"
fi

# --- refusals --------------------------------------------------------------

printf 'a;b 1\nc;d 2\noops\n' >bad.folded
sed '3s/.*/\toops/' "$fixtures/linux.perf" >bad.perf
echo "hello world" >prose
refused "unknown ending" \
    'convert: out\.svg: the ending tells no format; say -to=\.\.\.' \
    -o out.svg wanted
refused "unknown format" 'convert: no such format: -to=svg; .*' -to=svg wanted
refused "no such file" 'nowhere: No such file or directory' \
    -to=collapsed nowhere
refused "one of two files" 'nowhere: No such file or directory' wanted nowhere
refused "malformed collapsed" \
    'bad\.folded: parsing profile: collapsed stacks: line 3 is .*' bad.folded
refused "malformed perf script" \
    'bad\.perf: parsing profile: perf script: line 3 is .*' bad.perf
refused "prose" 'prose: parsing profile: unrecognized profile format.*' prose
refused "no such sample type" \
    'convert: sample_index "nix" must be one of: \[samples\]' \
    -to=collapsed -sample_index=nix wanted
refused "sample type of all" 'convert: -sample_index is for .*' \
    -sample_index=samples -o x.pb wanted
refused "no such folder" 'convert: .*No such file or directory' \
    -o /nonexistent/x.pb wanted
refused "flag behind files" 'convert: flags come before files: -to=text; .*' \
    wanted -to=text
check "a refusal leaves no file" none 'out.svg*'
finish
