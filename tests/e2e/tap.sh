# What the end-to-end tests share: a scratch folder, one run of the command,
# and checks that print TAP. Source it with the words of the test:
#
#     . "$(dirname "$0")/tap.sh"; start "$@"     # CPPROF VICTIM
#
# shellcheck shell=bash
set -u

n_checks=0
n_failed=0

start()
{
    cpprof=$(realpath "$1")
    victim=${2:+$(realpath "$2")}
    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
    cd "$scratch" || exit 99
    # Sample files go where the test can see that nothing stays, and where
    # other users get to, without which root goes elsewhere.
    export XDG_RUNTIME_DIR=$scratch/run
    chmod 755 .
    mkdir -m 755 run
    unset LD_PRELOAD CPPROF
    ulimit -c 0
}

# Words that are no result.
comment()
{
    sed 's/^/#   /'
}

# check NAME COMMAND...: one TAP line.
check()
{
    local name=$1

    shift
    n_checks=$((n_checks + 1))
    if "$@"; then
        echo "ok $n_checks - ${name//#/}"
    else
        n_failed=$((n_failed + 1))
        echo "not ok $n_checks - ${name//#/}"
        echo "failed: $*" | comment
        sed 's/^/err: /' err 2>/dev/null | comment
    fi
}

skip()
{
    n_checks=$((n_checks + 1))
    echo "ok $n_checks - $1 # SKIP $2"
}

finish()
{
    echo "1..$n_checks"
    [ "$n_failed" = 0 ]
    exit
}

# run COMMAND...: its words go into out and err, its status into $status.
run()
{
    "$@" >out 2>err </dev/null
    status=$?
}

# Two texts are the same; says both when they are not.
same()
{
    [ "$1" = "$2" ] || {
        printf 'got:    %s\nwanted: %s\n' "$1" "$2" | comment
        return 1
    }
}

# One line in file, and pattern (grep -E) matches all of it.
one_line()
{
    same "$(wc -l <"$1")" 1 && grep -qxE -- "$2" "$1"
}

# Nothing that matches the pattern of names is there.
none()
{
    ! compgen -G "$1" >/dev/null
}
