#!/bin/bash
# What is installed is enough to build with, by pkg-config alone.
#
#     install.sh CPPROF BUILD-FOLDER
build=$(realpath "$2")
. "$(dirname "$0")/tap.sh"
start "$1"

run env DESTDIR="$scratch/root" meson install -C "$build" --no-rebuild
check "everything installs" test "$status" = 0
pc=$(find "$scratch/root" -name cpprof-profile.pc)
export PKG_CONFIG_PATH=${pc%/*} PKG_CONFIG_SYSROOT_DIR=$scratch/root
libdir=${pc%/pkgconfig/*}
export LD_LIBRARY_PATH=$libdir

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
    # shellcheck disable=SC2046
    run "$compiler" -Wall -Werror "$source" -o read \
        $(pkg-config --cflags cpprof-profile) "$@"
    check "$name: builds" test "$status" = 0
    run ./read stacks.folded
    check "$name: reads a profile" grep -q ' 7: ' out
}

# shellcheck disable=SC2046
builds "C, shared" cc read.c $(pkg-config --libs cpprof-profile)
# shellcheck disable=SC2046
builds "C++, shared" c++ read.cc $(pkg-config --libs cpprof-profile)
# The library itself; those that it needs may be shared.
# shellcheck disable=SC2046
builds "C, static" cc read.c "$libdir/libcpprof-profile.a" \
    $(pkg-config --static --libs cpprof-profile | sed 's/-lcpprof-profile//')
run ldd read
check "static: nothing of ours is loaded" \
    test "$status" = 0 -a -z "$(grep cpprof out)"

# loads_re2: the command's last run did, as LD_DEBUG=files tells.
loads_re2()
{
    grep -q 'calling init:.*libre2' err
}
command=$(find "$scratch/root" -path '*/bin/cpprof')
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
rm alone/libcpprof-re2.so
echo nonsense >alone/libcpprof-re2.so
run env -u LD_LIBRARY_PATH alone/cpprof top -focus='ho.$' hog.pb.gz
check "one that is damaged is named" \
    grep -q '^cpprof: re2: .*alone/libcpprof-re2.so: file too short$' err
plug_in=$(find "$scratch/root" -name libcpprof-re2.so)
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
