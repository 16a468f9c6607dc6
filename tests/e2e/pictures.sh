#!/bin/bash
# Pictures and pages: -svg and its like, viewers, -flamegraph in a browser.
#
#     pictures.sh CPPROF
tests=$(realpath "$(dirname "$0")/..")
fixtures=$tests/fixtures
. "$(dirname "$0")/tap.sh"
start "$1"
profile=$fixtures/go.cpu.pb.gz

begins_with()
{
    [ "$(head -c ${#2} "$1")" = "$2" ]
}

# The names of dot's own words are not looked for without it.
no_dot_says_what_to_install()
{
    run env PATH=/nonexistent "$cpprof" -svg "$profile"
    same "$status" 2 && grep -q "Is Graphviz installed?" err &&
        grep -q "apt install graphviz" err && [ ! -s out ]
}
check "without dot a message says what to install" no_dot_says_what_to_install

# A viewer that shows what it is given.
viewer_gets_file()
{
    printf '#!/bin/sh\necho "$1" >"%s/shown"\ncp "$2" "%s/copy.svg"\n' \
        "$scratch" "$scratch" >viewer
    chmod +x viewer
    run env TMPDIR="$scratch" BROWSER="$scratch/viewer --new" "$cpprof" -web \
        "$profile"
    same "$status" 0 && same "$(cat shown)" --new && grep -q "<svg" copy.svg
}

# However it ends: with the viewer, with the shell, or with a report of it.
viewer_files_are_removed()
{
    mkdir -p temporary
    printf '#!/bin/sh\nls "%s/temporary" >>"%s/seen"\n' "$scratch" \
        "$scratch" >lister
    chmod +x lister
    export TMPDIR=$scratch/temporary BROWSER=$scratch/lister
    rm -f seen
    run "$cpprof" -weblist=. -output= "$profile" # into a pipe: no file
    run "$cpprof" -web "$profile"
    same "$status" 0 && same "$(wc -l <seen)" 1 || return 1
    printf 'web\nweblist .\n' | "$cpprof" "$profile" >out 2>err
    same "$(wc -l <seen)" 4 && same "$(ls temporary)" "" &&
        same "$(sort -u seen | wc -l)" 3
    unset TMPDIR BROWSER
}

viewer_that_fails_is_told()
{
    run env TMPDIR="$scratch" BROWSER=false "$cpprof" -web "$profile"
    same "$status" 2 && grep -q "the viewer has failed: false" err
}

kcachegrind_gets_callgrind()
{
    mkdir -p bin
    printf '#!/bin/sh\ncp "$1" "%s/grind"\n' "$scratch" >bin/kcachegrind
    chmod +x bin/kcachegrind
    run env TMPDIR="$scratch" PATH="$scratch/bin:$PATH" "$cpprof" \
        -kcachegrind "$profile"
    same "$status" 0 && begins_with grind "positions: instr line"
}
check "kcachegrind gets the callgrind file" kcachegrind_gets_callgrind

svg_can_be_moved()
{
    run "$cpprof" -svg "$profile"
    same "$status" 0 && grep -q '<g id="viewport">' out &&
        same "$(grep -c '<svg' out)" 1 && same "$(tail -n 1 out)" "</svg>" &&
        python3 -c 'import sys, xml.dom.minidom as m; m.parse(sys.argv[1])' out
}

picture_begins_with()
{
    run "$cpprof" "-$1" -output="picture.$1" "$profile"
    same "$status" 0 && grep -qa "^$2" "picture.$1"
}

# Nodes that all call each other: what Graphviz takes minutes for.
dense_graph_is_drawn_in_a_moment()
{
    python3 - >dense.folded <<'PY'
for i in range(70):
    for j in range(70):
        if i != j:
            print(f"main;f{i};f{j};f{(i * 7 + j) % 70} {i * j + 1}")
PY
    run timeout 60 "$cpprof" -svg -nodefraction=0 -edgefraction=0 dense.folded
    same "$status" 0 && grep -q "Left out [0-9]* of [0-9]* edges" err &&
        grep -q "<svg" out
}

# A profile whose names, labels and units are as bad as $1, in its file $2.
make_profile_of()
{
    PYTHONPATH=$tests python3 - "$1" >"$2" <<'PY'
import sys
from protobuf import chunk, varint
bad = sys.argv[1].encode()
texts = [b"", b"t" + bad, b"count" + bad, b"/bin/" + bad, b"f" + bad,
         b"/src/" + bad, b"k" + bad, b"v" + bad, b"bytes", b"u" + bad]
def field(n, value):
    return varint(n << 3) + varint(value)
labels = (chunk(3, field(1, 6) + field(2, 7)) +
          chunk(3, field(1, 8) + field(3, 5) + field(4, 9)))
sys.stdout.buffer.write(
    chunk(1, field(1, 1) + field(2, 2)) +
    chunk(2, field(1, 1) + field(2, 10) + labels) +
    chunk(3, field(1, 1) + field(2, 4096) + field(3, 8192) + field(5, 3)) +
    chunk(4, field(1, 1) + field(2, 1) + field(3, 4097) +
          chunk(4, field(1, 1) + field(2, 3))) +
    chunk(5, field(1, 1) + field(2, 4) + field(4, 5)) +
    b"".join(chunk(6, text) for text in texts))
PY
}

# Every name, key, label, unit, type and file of a profile is only text.
names_stay_text()
{
    local bad lines

    for bad in 'a" URL="javascript:alert(1)" b="' \
        'a" image="/etc/hostname" shapefile="/x.png' 'select "x" from t' \
        'C:\dir\' 'x" ] } //' $'two\nlines\\' '\G \N "'; do
        make_profile_of "$bad" bad.pb || return 1
        for lines in -functions -lines -files -addresses; do
            run "$cpprof" -svg "$lines" -symbolize=none bad.pb
            same "$status" 0 && same "$(cat err)" "" &&
                grep -q "<svg" out && ! grep -qE 'href="|<image' out ||
                return 1
        done
    done
}

# XML has no characters for some.
svg_is_xml()
{
    make_profile_of $'a\x01\x1b\x7f\t\xef\xbf\xbe\xef\xbf\xbf\xef\xbf\xbdz' \
        control.pb || return 1
    run "$cpprof" -svg -symbolize=none control.pb
    same "$status" 0 && python3 - <<'PY'
import xml.dom.minidom
text = xml.dom.minidom.parse("out").documentElement.toxml()
assert "a??\x7f\t\ufffd\ufffd\ufffdz" in text, text
PY
}

# Graphviz crashes at some, and needs seconds for others.
long_texts_are_cut()
{
    make_profile_of "$(head -c 60000 /dev/zero | tr '\0' x)" long.pb ||
        return 1
    run timeout 60 "$cpprof" -svg -symbolize=none long.pb
    same "$status" 0 && grep -q 'xxx\.\.\.' out && [ "$(wc -c <out)" -lt 60000 ] &&
        [ "$("$cpprof" -dot -symbolize=none long.pb | wc -c)" -gt 60000 ]
}

# As another user where root is the one who tests, who may do all.
file_in_closed_folder_is_written()
{
    local as=()

    [ "$(id -u)" = 0 ] && as=(setpriv --reuid=65534 --clear-groups)
    mkdir -p closed
    echo before >closed/file
    chmod 666 closed/file
    chmod 755 . # of the scratch folder
    chmod 555 closed
    run "${as[@]}" "$cpprof" -top -symbolize=none -output=closed/file \
        "$profile"
    chmod 755 closed
    same "$status" 0 && grep -q accounting closed/file &&
        ! grep -q before closed/file && same "$(ls closed)" file
}
if [ "$(id -u)" != 0 ] || setpriv --reuid=65534 --clear-groups \
    "$cpprof" version >out 2>&1; then
    check "a file in a closed folder is written" \
        file_in_closed_folder_is_written
else
    skip "a file in a closed folder is written" "no other user here"
fi

# A name cannot make lines of its own.
callgrind_lines_stay_lines()
{
    make_profile_of $'x\nfn=(1) y\r\ncalls=1 1\n' lines.pb || return 1
    run "$cpprof" -callgrind -symbolize=none lines.pb
    same "$status" 0 && same "$(grep -c '^fn=' out)" 1 &&
        same "$(grep -cE '^(calls|positions|events)' out)" 2 &&
        ! grep -q $'\r' out
}
check "a name is one line of callgrind" callgrind_lines_stay_lines

# dot draws the character that an entity means.
entities_of_names_are_drawn_as_they_are()
{
    PYTHONPATH=$tests python3 - <<'PY' >entities
import sys
from protobuf import chunk, varint
number = lambda field, value: varint(field << 3) + varint(value)
names = [b"&copy;x", b"a&&b"]
sys.stdout.buffer.write(
    chunk(1, number(1, 1) + number(2, 2)) +
    chunk(2, chunk(1, varint(1) + varint(2)) + chunk(2, varint(7))) +
    b"".join(chunk(4, number(1, k) + chunk(4, number(1, k))) +
             chunk(5, number(1, k) + number(2, k + 2)) for k in (1, 2)) +
    b"".join(chunk(6, text) for text in [b"", b"cpu", b"count"] + names))
PY
    run "$cpprof" -symbolize=none -svg -output=entities.svg entities
    same "$status" 0 && python3 - <<'PY'
import xml.etree.ElementTree as tree
root = tree.parse("entities.svg").getroot()
texts = [e.text for e in root.iter("{http://www.w3.org/2000/svg}text")]
tips = " ".join(v for e in root.iter() for k, v in e.attrib.items()
                if k.endswith("title"))
assert "&copy;x" in texts and "a&&b" in texts, texts
assert "&copy;x (" in tips and "a&&b (" in tips, tips
PY
}

if command -v dot >/dev/null; then
    check "names and labels of a profile stay text" names_stay_text
    check "names of any character are XML" svg_is_xml
    check "long names and labels are cut" long_texts_are_cut
    check "svg is one document with a group to move" svg_can_be_moved
    check "png is a PNG" picture_begins_with png $'\x89PNG'
    check "pdf is a PDF" picture_begins_with pdf %PDF
    check "ps is PostScript" picture_begins_with ps %!PS
    check "browser gets a picture" viewer_gets_file
    check "entities of names are drawn as they are" \
        entities_of_names_are_drawn_as_they_are
    check "files of viewers are removed" viewer_files_are_removed
    check "a viewer that fails is told of" viewer_that_fails_is_told
    check "dense graph is drawn in a moment" dense_graph_is_drawn_in_a_moment
else
    skip "pictures" "no dot here: apt install graphviz"
fi

# The page as a browser shows it: its scripts run, and no name has become HTML.
page_is_drawn()
{
    printf '%s\n' 'main;<b id=bad>x</b></script><script>alert(1)</script> 5' \
        'main;plain 7' >names.folded
    run "$cpprof" -flamegraph -output=page.html names.folded
    same "$status" 0 || return 1
    timeout 60 "$browser" --headless --no-sandbox --disable-gpu \
        --virtual-time-budget=2000 --dump-dom "file://$PWD/page.html" \
        >dom 2>/dev/null
    same "$(grep -o '<canvas' dom | wc -l)" 1 &&
        ! grep -q '<b id="*bad' dom && grep -q '>root   12 (100.00%)' dom
}
browser=$(command -v chromium-headless-shell || command -v chromium)
if [ -n "$browser" ]; then
    check "flame graph is drawn by a browser" page_is_drawn
else
    skip "flame graph is drawn by a browser" "no chromium here"
fi

json_is_valid()
{
    run "$cpprof" -json "$profile"
    same "$status" 0 && python3 - <<'PY'
import json
d = json.load(open("out"))
total = sum(s["values"][d["shown"]] for s in d["stacks"])
assert total == d["total"], (total, d["total"])
assert all(f < len(d["frames"]) for s in d["stacks"] for f in s["frames"])
PY
}
check "json is valid and adds up" json_is_valid
finish
