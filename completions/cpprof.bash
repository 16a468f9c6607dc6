# SPDX-License-Identifier: MIT
# Completion of cpprof for bash.
# shellcheck shell=bash disable=SC2207

_cpprof()
{
    local formats='top text tree traces tags comments raw dot svg png gif ps
        pdf web gv evince eog callgrind kcachegrind proto topproto collapsed
        flamegraph json'
    local searches='peek list disasm weblist'
    local bools='functions filefunctions files lines addresses flat cum
        noinlines showcolumns call_tree compact_labels drop_negative mean
        normalize relative_percentages trim intel_syntax all_frames
        inuse_space inuse_objects alloc_space alloc_objects total_delay
        contentions mean_delay help'
    local values='focus ignore hide show show_from prune_from tagfocus
        tagignore tagshow taghide tagroot tagleaf nodecount nodefraction
        edgefraction divide_by unit sample_index symbolize buildid
        add_comment seconds timeout granularity sort'
    local files='output base diff_base tools source_path trim_path
        tls_cert tls_key tls_ca'
    local commands="$formats $searches record leaks merge convert
        help version"
    local topics='formats sources comparing lines values size filters names
        shell environment flags report record leaks
        convert'
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
    local flag=

    # "=" is a word of its own where it breaks words.
    if [ "$word" = = ]; then
        flag=$before
        word=
    elif [ "$before" = = ]; then
        flag=${COMP_WORDS[COMP_CWORD - 2]}
    elif [[ $word == -*=* ]]; then
        flag=${word%%=*}
        word=${word#*=}
    fi
    case ${flag#-} in
    '') ;;
    -symbolize | symbolize)
        COMPREPLY=($(compgen -W 'none local fastlocal remote force
            demangle=none demangle=full demangle=templates
            demangle=default' -- "$word"))
        return
        ;;
    -sample_index | sample_index)
        COMPREPLY=($(compgen -W 'cpu samples inuse_space inuse_objects
            alloc_space alloc_objects contentions delay' -- "$word"))
        return
        ;;
    -to | to)
        COMPREPLY=($(compgen -W 'pprof collapsed perf-script text' \
            -- "$word"))
        return
        ;;
    -unit | unit)
        COMPREPLY=($(compgen -W 'minimum auto ns us ms s B kB MB GB' \
            -- "$word"))
        return
        ;;
    -granularity | granularity)
        COMPREPLY=($(compgen -W 'functions filefunctions files lines
            addresses' -- "$word"))
        return
        ;;
    -sort | sort)
        COMPREPLY=($(compgen -W 'flat cum' -- "$word"))
        return
        ;;
    -trim | trim)
        COMPREPLY=($(compgen -W 'true false' -- "$word"))
        return
        ;;
    *)
        COMPREPLY=($(compgen -f -- "$word"))
        compopt -o filenames 2>/dev/null
        return
        ;;
    esac
    if [ "$COMP_CWORD" = 2 ] && [ "$before" = help ]; then
        COMPREPLY=($(compgen -W "$topics" -- "$word"))
    elif [ "${COMP_WORDS[1]}" = record ] && [ "$before" = -t ]; then
        COMPREPLY=($(compgen -W "cpu heap block mutex wall offcpu
            cpu,heap block,mutex cpu,heap,block,mutex,wall" -- "$word"))
    elif [ "${COMP_WORDS[1]}" = record ] && [[ $word == -* ]]; then
        COMPREPLY=($(compgen -W "-t -o -duration -symbolize -legacy -F -e
            -depth -heap -peak -labels -block -mutex -wall --" -- "$word"))
    elif [ "${COMP_WORDS[1]}" = leaks ] && [[ $word == -* ]]; then
        COMPREPLY=($(compgen -W "-min -ignore -n -o -heap --" -- "$word"))
    elif [ "${COMP_WORDS[1]}" = convert ] && [[ $word == -* ]]; then
        COMPREPLY=($(compgen -W "-to= -o -sample_index=" -- "$word"))
        [[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null
    elif [[ ${COMP_WORDS[1]} =~ ^(record|leaks)$ ]] && [ "$COMP_CWORD" -gt 1 ]; then
        COMPREPLY=($(compgen -c -- "$word") $(compgen -f -- "$word"))
    elif [[ $word == -* ]]; then
        local f list=
        for f in $formats $bools; do list+=" -$f"; done
        for f in $searches $values $files; do list+=" -$f="; done
        COMPREPLY=($(compgen -W "$list" -- "$word"))
        [[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null
    else
        COMPREPLY=($(compgen -f -- "$word"))
        [ "$COMP_CWORD" = 1 ] &&
            COMPREPLY+=($(compgen -W "$commands" -- "$word"))
        compopt -o filenames 2>/dev/null
    fi
}

complete -F _cpprof cpprof
