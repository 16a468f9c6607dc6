# SPDX-License-Identifier: MIT
# Completion of cpprof for bash: the command itself knows what a word can become.
# shellcheck shell=bash disable=SC2207

_cpprof()
{
    local word=${COMP_WORDS[COMP_CWORD]} found

    COMPREPLY=()
    while IFS=$'\t' read -r found _; do
        case $found in
        :commands) COMPREPLY+=($(compgen -c -- "${word#=}")) ;;
        :files)
            COMPREPLY+=($(compgen -f -- "${word#=}"))
            compopt -o filenames 2>/dev/null
            ;;
        *) COMPREPLY+=("$found") ;;
        esac
    done < <("${COMP_WORDS[0]}" complete \
        "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
    [[ ${COMPREPLY[0]} != *= ]] || compopt -o nospace 2>/dev/null
}

complete -F _cpprof cpprof
