#!/bin/bash
# What is installed is enough to build with, by pkg-config or by CMake, and runs
# wherever the tree is moved.
#
#     install.sh CPPROF BUILD-FOLDER
build=$(realpath "$2")
source=$(realpath "$(dirname "$0")/../..")
. "$(dirname "$0")/tap.sh"
start "$1"

run env DESTDIR="$scratch/root" meson install -C "$build" --no-rebuild
check "everything installs" test "$status" = 0
tree=$scratch/moved
mv "$scratch/root" "$tree"
pc=$(find "$tree" -name cpprof-profile.pc)
export PKG_CONFIG_PATH=${pc%/*}
libdir=${pc%/pkgconfig/*}
export LD_LIBRARY_PATH=$libdir

# Only a static library needs what others have to install.
run env PKG_CONFIG_LIBDIR="$PKG_CONFIG_PATH" PKG_CONFIG_PATH='' \
    pkg-config --cflags --libs cpprof cpprof-profile
check "pkg-config asks for no other package" test "$status" = 0

cat >read.c <<'EOF'
#include <cpprof/cpprof.h>
#include <cpprof/pprof/profile.h>
#include <cpprof/pprof/change.h>
#include <cpprof/recording.h>
#include <cpprof/pprof/report.h>
#include <stdio.h>

int
main(int argc, char **argv)
{
    struct cpprof_error error;
    struct cpprof_writer out;
    struct pprof_profile *p;

    if (pprof_read_path(argv[argc - 1], NULL, &p, &error)) {
        puts(error.text);
        return 1;
    }
    cpprof_writer_to_fd(1, &out);
    if (pprof_write(p, &out, PPROF_FORMAT_TEXT, NULL,
                           &error))
        return 1;
    pprof_free(p);
    return 0;
}
EOF
cp read.c read.cc
printf 'main;hog 7\nmain;other 3\n' >stacks.folded

# builds NAME COMPILER SOURCE FLAG...: it compiles, links and reads.
builds()
{
    local name=$1 compiler=$2 source=$3

    shift 3
    flags=$(pkg-config --cflags cpprof-profile)
    # shellcheck disable=SC2086,SC2048
    run $compiler -Wall -Werror "$source" -o read $flags $*
    check "$name: builds" test "$status" = 0
    run ./read stacks.folded
    check "$name: reads a profile" grep -q ' 7: ' out
}

builds "C, shared" cc read.c "$(pkg-config --libs cpprof-profile)"
builds "C++, shared" c++ read.cc "$(pkg-config --libs cpprof-profile)"
# The library itself; those that it needs may be shared.
builds "C, static" cc read.c "$libdir/libcpprof-profile.a" \
    "$(pkg-config --static --libs cpprof-profile | sed 's/-lcpprof-profile//')"
run ldd read
check "static: nothing of ours is loaded" \
    test "$status" = 0 -a -z "$(grep cpprof out)"

# A program that profiles itself, and has plug-ins find its names: by pkg-config,
# and by CMake, shared and static.
cat >hog.c <<'EOF'
#include <cpprof/cpprof.h>
#include <time.h>

static void __attribute__((noinline))
hog_of_time(void)
{
    clock_t end = clock() + CLOCKS_PER_SEC / 5;

    while (clock() < end)
        continue;
}

int
main(int argc, char **argv)
{
    struct cpprof_writer out;

    if (cpprof_writer_to_path(argv[argc - 1], &out, NULL) ||
        cpprof_cpu_start(&out, NULL, NULL))
        return 1;
    hog_of_time();
    return cpprof_cpu_stop(NULL) != CPPROF_OK;
}
EOF
cat >CMakeLists.txt <<'EOF'
cmake_minimum_required(VERSION 3.13)
project(hog C)
find_package(cpprof 0.1 REQUIRED)
if(TARGET cpprof::static_program)
  add_executable(whole hog.c)
  target_link_libraries(whole -static cpprof::static_program)
endif()
add_executable(shared hog.c)
target_link_libraries(shared cpprof::cpprof)
add_executable(static hog.c)
target_link_libraries(static cpprof::cpprof_static)
add_executable(reader read.c)
target_link_libraries(reader cpprof::profile)
add_executable(calls_nothing calls_nothing.c)
target_link_libraries(calls_nothing -Wl,--no-as-needed cpprof::cpprof)
EOF
cat >calls_nothing.c <<'EOF'
int
main(void)
{
    return 0;
}
EOF
command=$(find "$tree" -path '*/bin/cpprof')
run "$command" version -v
for part in "library  .*/libcpprof.so.1" "symbol: .*/cpprof/" "http: .*/cpprof/" \
    "push: .*/cpprof/" "re2: .*/cpprof/" "engine  *timer: yes"; do
    check "version -v: $part" grep -q "^  .*$part" out
done
check "version -v: of this tree alone" same "$(grep -c /moved/ out)" \
    "$(grep -cE '^  (command|library  *|module|plug-in)  *(/|.*: /)' out)"
run bash -c 'ulimit -i 9; exec "$0" version -v' "$command"
check "version -v: why there are no perf events" \
    grep -q '^  engine  *perf: no, .*(ulimit -i)' out

# profiles PROGRAM: it runs, and its profile has names.
profiles()
{
    run "$1" "$1.pb.gz"
    check "$1: runs" test "$status" = 0
    run "$command" top "$1.pb.gz"
    check "$1: its profile has names" grep -q hog_of_time out
}
# shellcheck disable=SC2046
run cc hog.c -o hog $(pkg-config --cflags --libs cpprof)
profiles ./hog

# needs PROGRAM: the loader brings the library, as CPPROF= wants it.
needs()
{
    readelf -d "$1" | grep -q 'NEEDED.*libcpprof\.so'
}
# shellcheck disable=SC2046
run cc -Wl,--as-needed calls_nothing.c -o calls_nothing \
    -Wl,--no-as-needed $(pkg-config --cflags --libs cpprof)
check "a program that calls nothing of the library can have it" \
    needs calls_nothing
if command -v cmake >/dev/null; then
    run cmake -S . -B with-cmake -DCMAKE_PREFIX_PATH="${command%/bin/*}"
    check "CMake finds the package" test "$status" = 0
    run cmake --build with-cmake
    check "CMake builds with it" test "$status" = 0
    (
        unset LD_LIBRARY_PATH
        profiles with-cmake/shared
        profiles with-cmake/static
        ! test -f "$libdir/cpprof/static.link" || profiles with-cmake/whole
        run with-cmake/reader stacks.folded
        check "CMake: reads a profile" grep -q ' 7: ' out
        check "CMake: a program that calls nothing can have the library" \
            needs with-cmake/calls_nothing
        echo "$n_checks $n_failed" >counts
    )
    read -r n_checks n_failed <counts
else
    skip "CMake" "no cmake"
fi

# A program that is linked statically with libc has the library in it: the names
# that are taken over, and what they are underneath. No name is found until its
# profile is read.
# shellcheck disable=SC2046
if ! pkg-config --exists cpprof-static || ! test -f "$libdir/cpprof/static.link"
then
    skip "a static program" "no libcpprof-static.a is built here"
else
    run cc -static -g -Wl,--fatal-warnings "$source/examples/static_program.c" \
        -o whole $(pkg-config --cflags --libs cpprof-static)
    check "a static program links" test "$status" = 0
    run readelf -lW whole
    check "and asks for no loader" test -z "$(grep INTERP out)"
    run env -i CPPROF=cpu,heap,block,out=%k.pb.gz ./whole
    check "it runs, without a word" test "$status" = 0 -a ! -s err
    run "$command" -collapsed cpu.pb.gz
    check "it has complete stacks of its thread" \
        grep -qE '^clone3;start_thread;work;burn_cpu' out
    check "and no others" test -z "$(grep 'unwind failed' out)"
    run "$command" top heap.pb.gz
    check "it has its memory" grep -qE '1[0-9].*MB.*100% .* keep_memory' out
    run "$command" -collapsed block.pb.gz
    check "it has its waits" grep -qE '^_start;.*;main;pthread_join [0-9]' out
    strip whole -o bare
    run "$command" record -o bare.pb.gz -- ./bare
    check "it is recorded, stripped too" test "$status" = 0 -a -s bare.pb.gz
fi

# The command finds the library, the library its plug-ins and modules.
unset LD_LIBRARY_PATH
cat >busy.c <<'EOF'
#include <time.h>

static void __attribute__((noinline))
hog_of_time(void)
{
    while (clock() < CLOCKS_PER_SEC / 3)
        continue;
}

int
main(void)
{
    hog_of_time();
    return 0;
}
EOF
cc busy.c -o busy
run "$command" record -o busy.pb.gz -- ./busy
check "the moved command records" test -s busy.pb.gz
run "$command" top busy.pb.gz
check "and has names" grep -q hog_of_time out

# Without any library of others that a plug-in needs only what needs it is lost,
# and that is said by a line. A file without bytes stands for what is missing.
mkdir none
needed()
{
    readelf -d "$@" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | sort -u
}
needed "$command" >ours
needed "$libdir"/cpprof/*.so | grep -vxF -f ours | grep -v libcpprof |
    while read -r name; do : >"none/$name"; done
check "plug-ins need libraries of others" test -e none/libdw.so.1
# without STATUS LINES WORD...
without()
{
    run env LD_LIBRARY_PATH=none timeout 20 "$command" "${@:3}"
    check "without libraries, $3: status" same "$status" "$1"
    check "without libraries, $3: lines" same "$(grep -c . err)" "$2"
}
without 0 2 record -o less.pb.gz -- ./busy
check "which say that there are no names" \
    grep -q '^cpprof: there are no names: symbol: .*lib' err
check "and what was recorded" grep -q '^cpprof: less.pb.gz: [0-9]* samples' err
without 0 0 top busy.pb.gz
check "a profile with names is shown" grep -q hog_of_time out
without 2 1 top -focus=hog busy.pb.gz
check "an expression is refused" grep -q '^cpprof: .*re2: ' err
without 2 1 http localhost:0 busy.pb.gz
: >none/libcurl-gnutls.so.4 # which serves as well
run env LD_LIBRARY_PATH=none "$command" top http://localhost:1/
check "without libcurl a line says that it is missing" \
    grep -q '^cpprof: .*libcurl' err

# Scripts, from where a path has a space, so the library is preloaded by a link.
cp -a "$tree" "with a space"
spaced="with a space${command#"$tree"}"
echo 'local e = os.clock() + 0.3; while os.clock() < e do end' >a.lua
printf 'import time\nwhile time.process_time() < .3: pass\n' >a.py
for words in "lua5.4 a.lua" "python3.11 a.py"; do
    module=$(find "$libdir/lua/5.4" "$libdir/cpprof/python" -name 'cpprof*.so' |
        grep "${words%%[35]*}")
    if ! command -v "${words% *}" >/dev/null || [ -z "$module" ]; then
        skip "scripts: $words" "not built or not there"
        continue
    fi
    # shellcheck disable=SC2086
    run "$spaced" record -scripts -o scripts.pb.gz -- $words
    run "$command" top -lines scripts.pb.gz
    check "scripts: $words" grep -q "${words#* }" out
done
cp busy python3.99
run "$command" record -scripts -o other.pb.gz -- ./python3.99
check "scripts: a Python that is not known is named" \
    grep -q '^cpprof: python3.99: there is no module ' err
check "and recorded" test -s other.pb.gz
if [ -n "${module:-}" ]; then
    run env PYTHONPATH="$(dirname "$(find "$tree" -name 'cpprof*.so' -type f \
        -path '*-packages*')")" python3.11 -c 'import cpprof; print(cpprof)'
    check "python3.11 imports the module" grep -q /moved/ out
    run env LUA_CPATH="$libdir/lua/5.4/?.so" lua5.4 -e 'require "cpprof"'
    check "lua5.4 loads the module" test "$status" = 0
fi

# loads_re2: the command's last run did, as LD_DEBUG=files tells.
loads_re2()
{
    grep -q 'calling init:.*libre2' err
}
run "$command" convert -o hog.pb.gz stacks.folded
run env LD_DEBUG=files "$command" raw hog.pb.gz
check "the command reads a profile" grep -q hog out
check "without an expression RE2 is not there" eval '! loads_re2'
run env LD_DEBUG=files "$command" top -focus='ho.$' hog.pb.gz
check "with one it matches" grep -q hog out
check "and RE2 was loaded for it" loads_re2
mkdir alone
cp "$command" alone
run env -u LD_LIBRARY_PATH alone/cpprof top -focus='ho.$' hog.pb.gz
check "without the plug-in: status 2" same "$status" 2
check "without the plug-in: a line that names it" \
    grep -q '^cpprof: re2: libcpprof-re2.so: ' err
mkfifo alone/libcpprof-re2.so
run env -u LD_LIBRARY_PATH timeout 20 alone/cpprof top -focus='ho.$' hog.pb.gz
check "a pipe of its name is not waited for" \
    grep -q '^cpprof: re2: .*alone/libcpprof-re2.so: not a file$' err
mkdir path
mv alone/libcpprof-re2.so path
run env LD_LIBRARY_PATH="$PWD/path" timeout 20 alone/cpprof top -focus='ho.$' \
    hog.pb.gz
check "nor by the loader" \
    grep -q '^cpprof: re2: .*path/libcpprof-re2.so: not a file$' err
cp "$(find "$tree" -name libcpprof-re2.so)" path/whole
mv path/whole path/libcpprof-re2.so
run env LD_LIBRARY_PATH="$PWD/path" alone/cpprof top -focus='ho.$' hog.pb.gz
check "a library in its path is loaded" grep -q hog out
echo nonsense >alone/libcpprof-re2.so
run env -u LD_LIBRARY_PATH alone/cpprof top -focus='ho.$' hog.pb.gz
check "one that is damaged is named" \
    grep -q '^cpprof: re2: .*alone/libcpprof-re2.so: file too short$' err
plug_in=$(find "$tree" -name libcpprof-re2.so)
head -c 4000 "$plug_in" >alone/libcpprof-re2.so
run env -u LD_LIBRARY_PATH alone/cpprof top -focus='ho.$' hog.pb.gz
check "one that was cut off is not loaded" grep -q \
    '^cpprof: re2: .*alone/libcpprof-re2.so: the end of the file is missing$' err
rm alone/libcpprof-re2.so
ln -s nowhere alone/libcpprof-re2.so
run env -u LD_LIBRARY_PATH alone/cpprof top -focus='ho.$' hog.pb.gz
check "a link that leads nowhere is named" grep -q \
    '^cpprof: re2: .*alone/libcpprof-re2.so: a link that leads nowhere$' err
finish
