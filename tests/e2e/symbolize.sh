#!/bin/bash
# Names for profiles that have none: the binaries of the profile are found,
# read, and their names are those that addr2line gives.
#
#     symbolize.sh CPPROF
. "$(dirname "$0")/tap.sh"
start "$1"
export HOME=$scratch/home
unset PPROF_BINARY_PATH

cat >lib.cc <<'END'
#include <algorithm>
#include <vector>
namespace shared {
static inline unsigned mix(unsigned x)
{
    for (int i = 0; i < 3; i++)
        x = x * 1664525u + 1013904223u;
    return x ^ (x >> 13);
}
__attribute__((noinline)) unsigned churn(std::vector<unsigned> &v, unsigned s)
{
    for (auto &e : v)
        e = s = mix(s);
    std::sort(v.begin(), v.end(),
              [](unsigned a, unsigned b) { return mix(a) < mix(b); });
    return v[v.size() / 2];
}
}
END
cat >main.cc <<'END'
#include <cstdio>
#include <map>
#include <string>
#include <vector>
namespace shared { unsigned churn(std::vector<unsigned> &v, unsigned s); }
namespace app { namespace {
template <class T> inline T twist(T x) { return x ^ (x << 7) ^ (x >> 9); }
__attribute__((noinline)) unsigned local_loop(unsigned n)
{
    unsigned s = 1;
    for (unsigned i = 0; i < n; i++)
        s = twist(s) + i;
    return s;
}
}
template <class K, class V> struct Table {
    std::map<K, V> m;
    __attribute__((noinline)) unsigned run(unsigned n)
    {
        for (unsigned i = 0; i < n; i++)
            m[std::to_string(i % 1000)] += twist(i);
        return m.size();
    }
};
}
int main()
{
    std::vector<unsigned> v(20000);
    app::Table<std::string, unsigned> t;
    unsigned s = 0;
    for (int i = 0; i < 60; i++)
        s += shared::churn(v, i) + app::local_loop(1000000) + t.run(20000);
    printf("%u\n", s);
}
END
if ! command -v g++ addr2line readelf >/dev/null; then
    skip "everything" "no g++ or binutils"
    finish
fi
id='-Wl,--build-id=sha1'
g++ -O2 -g -fPIC -shared -o libwork.so lib.cc $id &&
    g++ -O2 -g -o pie main.cc -L. -lwork -Wl,-rpath,"$scratch" $id &&
    g++ -O2 -g -no-pie -o fixed main.cc lib.cc -Wl,--build-id=none ||
    exit 99

record()
{
    "$cpprof" record -F 500 -symbolize none -o "$1.pb.gz" -- "./$1" \
        >/dev/null 2>&1
}

# named FILE WORDS...: "ADDRESS MAPPING FUNCTION FILE:LINE" for every function
# of every location that cpprof names, inlined ones with the address, too.
named()
{
    "$cpprof" -raw -symbolize=local:demangle=none "$@" 2>err |
        awk '/^Locations/ { on = 1; next } /^Mappings/ { on = 0 }
            !on { next }
            /^ +[0-9]+: 0x/ { address = $2; mapping = $3; $1 = $2 = $3 = "" }
            { sub(/ s=[0-9].*/, ""); sub(/^ +/, "")
              match($0, /:[0-9]+:[0-9]+$/)
              place = substr($0, 1, RSTART - 1)
              split(substr($0, RSTART + 1), at, ":")
              line = at[1]
              if (match(place, / [^ ]*$/)) {
                  file = substr(place, RSTART + 1)
                  name = substr(place, 1, RSTART - 1)
              } else { name = place; file = "" }
              if (file != "") print address, mapping, name, file ":" line }'
}

# as_addr2line BINARY BASE MAPPING <named: the same from addr2line. Asked for
# a function first, it takes the linker's name for the innermost one: so all is
# asked twice.
as_addr2line()
{
    awk -v m="$3" '$2 == m && !seen[$1]++ { print $1 }' >addresses
    cat addresses addresses | while read -r address; do
        printf '%x\n' $((address - $2))
    done | addr2line -aif -e "$1" | sed 's/ (discriminator.*//' |
        awk -v m="$3" '
            BEGIN { while ((getline line <"addresses") > 0) address[++n] = line }
            /^0x/ { number++; next }
            number <= n { next }
            name == "" { name = $0; next }
            { print address[number - n], m, name, $0; name = "" }'
}

# alike FILE: without the name of the last function of each address, which
# addr2line takes from elsewhere than that of an inlined one.
alike()
{
    awk 'NR > 1 { print $1 == address ? line : outer }
        { address = $1; line = $0; outer = $1 " " $2 " = " $NF }
        END { print outer }' "$1"
}

# base_of PROFILE FILE: "BASE MAPPING" of a file whose parts of code lie as far
# into the file as into its image.
base_of()
{
    "$cpprof" -raw -symbolize=none "$1" |
        awk -v file="$2" '/^Mappings/ { on = 1 }
            on && $3 ~ ("/" file "$") { sub(/:/, "", $1)
                split($2, at, "/"); print at[1] "-" at[3], "M=" $1 }'
}

# compare PROFILE BINARY BASE MAPPING
compare()
{
    named "$1.pb.gz" | awk -v m="$4" '$2 == m' >names
    as_addr2line "$2" "$3" "$4" <names >wanted
    alike names >names.alike
    alike wanted >wanted.alike
    check "$1, $2: has names" test -s names
    check "$1, $2: names and lines of addr2line" \
        diff names.alike wanted.alike
}

record pie
record fixed
read -r base mapping <<<"$(base_of pie.pb.gz pie)"
compare pie pie "$((base))" "$mapping"
read -r base mapping <<<"$(base_of pie.pb.gz libwork.so)"
compare pie libwork.so "$((base))" "$mapping"
read -r _ mapping <<<"$(base_of fixed.pb.gz fixed)"
compare fixed fixed 0 "$mapping"

# --- what -symbolize says ----------------------------------------------------

top()
{
    "$cpprof" -top "$@" 2>err
}

top pie.pb.gz >out
check "default: names" grep -q 'app::(anonymous namespace)::local_loop' out
check "default: inlined functions" grep -q 'twist (inline)' out
check "default: no warning" test ! -s err
top -symbolize=none pie.pb.gz >out
check "none: no names" test "$(grep -c local_loop out)" = 0
top -symbolize=fastlocal -lines pie.pb.gz >out
check "fastlocal: names without lines" grep -q 'local_loop$' out
top -symbolize=remote pie.pb.gz >out
check "remote: nothing local" test "$(grep -c local_loop out)" = 0
top -symbolize=local:demangle=full pie.pb.gz >out
check "demangle=full: parameters" grep -q 'local_loop(unsigned int)' out
top -symbolize=demangle=templates pie.pb.gz >out
check "demangle=templates: arguments, no parameters" \
    grep -q 'app::Table<.*>::run *\((inline)\)\?$' out
"$cpprof" -proto -symbolize=fastlocal -output=named.pb.gz pie.pb.gz 2>/dev/null
top -lines named.pb.gz >out
check "names are kept" grep -q 'local_loop$' out
top -symbolize=force -lines named.pb.gz >out
check "force: named anew" grep -q 'local_loop .*main.cc:' out
top -symbolize=sometimes pie.pb.gz >out
check "unknown word: warning" \
    grep -q '^cpprof: ignoring unrecognized symbolization option: sometimes' err
check "unknown word: and names" grep -q local_loop out

# --- binaries that are elsewhere ----------------------------------------------

build_id()
{
    readelf -n "$1" | awk '/Build ID/ { print $3 }'
}

pie_id=$(build_id pie)
lib_id=$(build_id libwork.so)
mkdir moved && mv pie libwork.so moved
top pie.pb.gz >out
check "missing: the report is there" grep -q '\[pie\]' out
check "missing: says which" grep -qF \
    "Local symbolization failed for pie (build ID $pie_id): stat $scratch/pie: no such file or directory" err
check "missing: says what to do, once" \
    test "$(grep -c 'Try setting PPROF_BINARY_PATH' err)" = 1
PPROF_BINARY_PATH=/none:$scratch/moved top pie.pb.gz >out
check "by name" grep -q local_loop out
check "by name: no warning" test ! -s err
mkdir -p "ids/$pie_id" "ids/${lib_id:0:2}"
cp moved/pie "ids/$pie_id/anything"
objcopy --only-keep-debug moved/libwork.so \
    "ids/${lib_id:0:2}/${lib_id:2}.debug" 2>/dev/null
PPROF_BINARY_PATH=$scratch/ids top -nodecount=100 -nodefraction=0 pie.pb.gz \
    >out
check "by build id" grep -q local_loop out
check "by build id, only debug information" grep -q shared::churn out
top moved/pie pie.pb.gz >out
check "as first word" grep -q local_loop out
mkdir -p home/pprof/binaries && cp moved/pie home/pprof/binaries
top pie.pb.gz >out
check "in ~/pprof/binaries" grep -q local_loop out
rm -r home
cp fixed pie
top pie.pb.gz >out
check "another program in its place is read, having no build id" \
    test "$(grep -c 'build ID mismatch' err)" = 0
g++ -O1 -o pie main.cc lib.cc $id
top pie.pb.gz >out
check "another build: not read" test "$(grep -c local_loop out)" = 0
check "another build: says so" grep -qF \
    "build ID mismatch, the file has $(build_id pie)" err

# --- split debug information --------------------------------------------------

cp moved/libwork.so .
mkdir split && g++ -O2 -gdwarf-4 -gsplit-dwarf -c main.cc -o split/main.o &&
    g++ -o split/program split/main.o -L. -lwork -Wl,-rpath,"$scratch" $id
"$cpprof" record -F 500 -symbolize none -o split.pb.gz -- split/program \
    >/dev/null 2>&1
top -symbolize=force split.pb.gz >out
check "split: inlined functions" grep -q 'twist (inline)' out
check "split: no warning" test ! -s err
mv split/main.dwo away.dwo
: >split/program.dwp
lost="cpprof: $scratch/split/program: inlined functions are missing:"
lost+=" split/main.dwo is not there, and $scratch/split/program.dwp is not"
lost+=" read; put the .dwo files beside it"
top split.pb.gz >out
check "split, .dwo lost: functions" grep -q local_loop out
check "split, .dwo lost: a report says so" same "$(cat err)" "$lost"
top -binary=split/program split.pb.gz >out
check "split, .dwo lost: with -binary, too" same "$(cat err)" "$lost"
"$cpprof" symbolize -o named.pb.gz split.pb.gz 2>err
check "split, .dwo lost: cpprof symbolize, too" grep -qxF "$lost" err
# Whether all lines are known is chance: a stub has none.
says_inlined()
{
    "$cpprof" -raw -symbolize=none "$1" | grep 'split/program' >mapping &&
        grep -q '\[FN\]' mapping && grep -c '\[IN\]' mapping
}
check "split, .dwo lost: the file does not say that it has inlined frames" \
    same "$(says_inlined named.pb.gz)" 0
"$cpprof" record -F 500 -o split2.pb.gz -- split/program >/dev/null 2>err
check "split, .dwo lost: nor does what cpprof record writes" \
    same "$("$cpprof" -raw -symbolize=none split2.pb.gz |
        grep 'split/program' | grep -c '\[IN\]')" 0
check "split, .dwo lost: cpprof record, too, once" \
    same "$(grep 'inlined' err)" "$lost"

# --- stripped programs --------------------------------------------------------

g++ -O2 -g -o full main.cc -L. -lwork -Wl,-rpath,"$scratch" $id
strip -o stripped full
cp stripped program
for n in 1 2; do
    "$cpprof" record -F 500 -o "stripped$n.pb.gz" -- ./program >/dev/null 2>&1
    top -nodefraction=0 "stripped$n.pb.gz" >"out$n"
    grep -o '\[program+0x[0-9a-f]*\]' "out$n" | sort >"names$n"
done
start_of=$(nm full | awk '/local_loop/ { sub(/^0*/, "", $1); print $1 }')
check "stripped: a function is named by its start" \
    grep -q "\[program+0x$start_of\]" out1
check "stripped: main is known" grep -q ' main$' out1
check "stripped: no address is left" \
    test "$(grep -c '\[program\]\|<0x' out1)" = 0
check "stripped: the same names in another run" \
    grep -qxF "$(head -1 names1)" names2
"$cpprof" -raw -symbolize=none stripped1.pb.gz >out
check "stripped: the file says that names are missing" \
    grep -q "/program [0-9a-f]* *\$" out
top -diff_base=stripped2.pb.gz stripped1.pb.gz >out
check "stripped: one build is compared by function" \
    test "$(grep -c "program+0x$start_of.*of" out)" = 0
cp full program
top stripped1.pb.gz >out
check "true names come in with the binary" grep -q local_loop out
check "and nothing stands in any more" test "$(grep -c 'program+' out)" = 0
"$cpprof" -proto -output=named.pb.gz stripped1.pb.gz 2>/dev/null
"$cpprof" -raw -symbolize=none named.pb.gz >out
check "and the mapping says so" grep -q '/program .*\[FN\]' out
if command -v go >/dev/null; then
    go tool pprof -top stripped1.pb.gz >out 2>err
    check "go tool pprof puts true names in, too" grep -q shared::mix out
    check "go tool pprof: nothing stands in any more" \
        test "$(grep -c 'program+' out)" = 0
fi
g++ -O1 -g -o full main.cc lib.cc $id && strip -o program full
"$cpprof" record -F 500 -o other.pb.gz -- ./program >/dev/null 2>&1
top -nodefraction=0 -nodecount=200 -diff_base=stripped1.pb.gz other.pb.gz >out
check "another build is not compared by address" \
    test "$(grep -c 'program+0x[0-9a-f]*\]' out)" = 0
check "but named with its build id" \
    grep -q "program+0x[0-9a-f]* of $(build_id full | cut -c1-8)\]" out

# --- programs that have some of their symbols ----------------------------------

cat >half.c <<'END'
static volatile unsigned long n;
#define LOUD __attribute__((noinline, noclone))
LOUD void hidden(void) { for (int i = 0; i < 1000; i++) n += i; }
LOUD void known(void) { for (int i = 0; i < 1000; i++) n += i * 2; hidden(); n++; }
int main(void) { for (long i = 0; i < 100000; i++) known(); }
END
gcc -O1 -o half.full half.c $id && strip -N hidden -o half half.full
"$cpprof" record -F 500 -o half.pb.gz -- ./half >/dev/null 2>&1
start_of=$(nm half.full | awk '/ hidden$/ { sub(/^0*/, "", $1); print $1 }')
top -nodefraction=0 half.pb.gz >out
check "a symbol without a size ends where another function begins" \
    grep -q "\[half+0x$start_of\]" out
check "and names nothing of that" test "$(grep -c frame_dummy out)" = 0
"$cpprof" -proto -symbolize=force -output=again.pb.gz half.pb.gz 2>/dev/null
"$cpprof" -raw -symbolize=none again.pb.gz >out
check "looked up again: the file says that names are missing" \
    test "$(grep -c '/half .*\[FN\]' out)" = 0
cp half.full half
top -nodefraction=0 again.pb.gz >out
check "and they come in with the binary" grep -q ' hidden$' out

# --- files that are none -------------------------------------------------------

for n in 1 2 3 4 5 6 7 8; do
    cp moved/pie pie
    for at in 16 18 24 32 40 54 56 58 60 62; do
        printf "\\x$(printf %02x $((n * 29 + at)))" |
            dd of=pie bs=1 seek=$((at + n % 2)) conv=notrunc 2>/dev/null
    done
    top pie.pb.gz >out
    check "damaged headers $n: a report" grep -q '^Type: cpu' out
done
head -c 3000 moved/pie >pie
top pie.pb.gz >out
check "cut off: a report" grep -q '^Type: cpu' out
printf '#!/bin/sh\n' >pie
top pie.pb.gz >out
check "a script: says so" grep -q 'unrecognized binary format' err
finish
