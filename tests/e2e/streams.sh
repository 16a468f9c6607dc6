#!/bin/bash
# What stands at standard input, output and error: nothing, or a device that is
# full or has no end. What is not written is told, and no file gets what was
# meant for them.
#
#     streams.sh CPPROF
fixtures=$(realpath "$(dirname "$0")/../fixtures")
. "$(dirname "$0")/tap.sh"
start "$1"
profile=$fixtures/go.cpu.pb.gz

# fails WORDS COMMAND: of a shell, with 2 and a last line that ends in the words.
fails()
{
    run bash -c "$2"
    same "$status" 2 && same "$(tail -n 1 err | grep -o "$1\$")" "$1"
}

words="help version"
for format in top tree traces raw dot flamegraph json collapsed proto; do
    words+=" -$format"
done
if command -v dot >/dev/null; then
    words+=" -svg -png"
fi
export cpprof profile
for word in $words; do
    file="\"$profile\""
    [ "${word#-}" != "$word" ] || file=
    check "$word: a full device is told" \
        fails "No space left on device" "\"\$cpprof\" $word $file >/dev/full"
    check "$word: so is a descriptor that is closed" \
        fails "Bad file descriptor" "\"\$cpprof\" $word $file >&-"
done

for command in merge symbolize; do
    check "$command: so is one that is named and closed" fails "directory" \
        "\"\$cpprof\" $command -output=/dev/stdout \"\$profile\" >&-"
done

nothing_else_is_in_the_file()
{
    run "$cpprof" "$1" -output=whole "$profile"
    "$cpprof" "$1" -output=file "$profile" <&- >&- 2>&-
    same "$?" 0 && cmp whole file
}
for word in -top -proto -collapsed; do
    check "$word: a file has no line that is for standard error" \
        nothing_else_is_in_the_file "$word"
done

a_command_has_what_is_given()
{
    run bash -c "\"\$cpprof\" record -o r.pb.gz -- \
        sh -c 'test ! -e /proc/self/fd/1' >&-"
    same "$status" 0
}
check "record: what is closed is closed for the command, too" \
    a_command_has_what_is_given

for command in '-top /dev/zero' 'convert </dev/zero' '-top - < <(cat /dev/zero)'; do
    check "$command: what has no end is refused at 1 GiB" \
        fails "file of more than 1073741824 bytes" "\"\$cpprof\" $command"
done
finish
