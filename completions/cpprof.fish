# SPDX-License-Identifier: MIT
# Completion of cpprof for fish: the command itself knows what a word can become.

function __cpprof_complete
    set -l word (commandline -ct)
    set -l flag (string match -r '^-[^=]*=' -- $word)
    for line in (cpprof complete (commandline -opc)[2..] "$word" 2>/dev/null)
        switch $line
            case :commands
                __fish_complete_command
            case :files
                string replace -r '^' -- "$flag" \
                    (__fish_complete_path (string replace -- "$flag" '' $word))
            case '*'
                echo $line
        end
    end
end

complete -c cpprof -f -a '(__cpprof_complete)'
