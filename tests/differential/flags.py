"""The flags under which both tools must print the same.

Each case is the words of a command line; FILE stands for the profile, which
comes last where the word is missing, and BASE for the one to compare with.

Not here, because the newer pprof, which cpprof follows, is not alike:
-noinlines (the older one ignores it with -raw), -showcolumns and -all_frames
(the older one has neither).
"""
BASE = "BASE"
FILE = "FILE"
MISSING = "/nonexistent/file"

GRANULARITIES = ["-functions", "-filefunctions", "-files", "-lines",
                 "-addresses"]

CASES = [
    [],
    # Names of functions, of files, of mappings; several at once.
    ["-focus=alloc"], ["-focus=main|run"], ["-focus=nosuch"], ["-focus=\\.cc$"],
    ["-focus=libdb"], ["-focus=^$"], ["-focus=(?i)MAIN"],
    ["-ignore=malloc"], ["-ignore=server"], ["-ignore=nosuch"], ["-ignore=."],
    ["-focus=run", "-ignore=leaf"],
    ["-hide=alloc"], ["-hide=a\\.c"], ["-hide=server"], ["-hide=."],
    ["-show=main|alloc|hash"], ["-show=libdb|a\\.c"], ["-show=nosuch"],
    ["-show=run|work", "-hide=work"],
    ["-show_from=run|main"], ["-show_from=server"], ["-show_from=nosuch"],
    ["-prune_from=alloc"], ["-prune_from=main|leaf"], ["-prune_from=nosuch"],
    ["-focus=a", "-ignore=q", "-hide=leaf", "-show=a|o", "-show_from=a",
     "-prune_from=b"],
    # Labels.
    ["-tagfocus=io"], ["-tagfocus=io,main"], ["-tagfocus=thread=io|main"],
    ["-tagfocus=thread=io,main"], ["-tagfocus=nosuch"],
    ["-tagfocus=16kb:4mb"], ["-tagfocus=:64kb"], ["-tagfocus=4kb:"],
    ["-tagfocus=4kb"], ["-tagfocus=bytes=1kb:2mb"], ["-tagfocus=latency=:1s"],
    ["-tagfocus=request=100"], ["-tagfocus=1ns:10ms"], ["-tagfocus=nosuch=1:"],
    ["-tagignore=io"], ["-tagignore=thread=main"], ["-tagignore=100:"],
    ["-tagignore=bytes=:4096b"], ["-tagfocus=io", "-tagignore=main"],
    ["-tagshow=thread"], ["-tagshow=t"], ["-tagshow=nosuch"],
    ["-taghide=bytes"], ["-taghide=."], ["-tagshow=t|b", "-taghide=request"],
    ["-tagroot=thread"], ["-tagleaf=bytes"], ["-tagroot=thread,bytes"],
    ["-tagleaf=latency,request", "-unit=us"], ["-tagroot=nosuch"],
    ["-tagroot=bytes", "-unit=kb"], ["-tagroot=bytes", "-unit=auto"],
    ["-tagroot=thread", "-tagleaf=bytes", "-focus=io"],
    ["-tagroot=alignment,thread,", "-show_from=io", "-taghide=bytes"],
    # Values.
    ["-sample_index=0"], ["-sample_index=1"], ["-sample_index=99"],
    ["-sample_index=-1"], ["-sample_index=cpu"], ["-sample_index=inuse_space"],
    ["-sample_index=inuse_samples"], ["-inuse_space"], ["-alloc_objects"],
    ["-contentions"], ["-total_delay"], ["-mean_delay"], ["-mean"],
    ["-divide_by=10"], ["-divide_by=0.5"], ["-divide_by=-1"], ["-divide_by=0"],
    ["-drop_negative"], ["-unit=ms"], ["-cum"], ["-relative_percentages"],
    ["-relative_percentages", "-focus=run"], ["-compact_labels"],
    ["-trim=false"], ["-nodecount=1", "-nodefraction=0.5"],
    ["-edgefraction=1"], ["-call_tree"],
    ["-add_comment=a comment"],
    # Granularities; alone and with a filter.
    *([flag] for flag in GRANULARITIES),
    *([flag, "-focus=a", "-hide=e"] for flag in GRANULARITIES),
    ["-lines", "-functions"],
    # Against another profile.
    ["-base", BASE], ["-diff_base", BASE], ["-base", FILE],
    ["-diff_base", FILE], ["-normalize"],
    ["-base", BASE, "-normalize"], ["-diff_base", BASE, "-normalize"],
    ["-base", BASE, "-diff_base", BASE], ["-diff_base", BASE, "-focus=a"],
    ["-base", BASE, "-sample_index=1", "-drop_negative"],
    ["-diff_base", BASE, "-tagfocus=pprof::base"],
    ["-base", BASE, "-tagroot=thread,bytes"],
    # Several sources.
    [FILE, FILE], [FILE, BASE], [BASE, FILE], [FILE, BASE, FILE, BASE],
    ["-base", BASE, FILE, FILE], ["-diff_base", BASE, FILE, BASE],
    [FILE, MISSING], [MISSING, BASE],
    ["-focus=a", "-tagignore=io", FILE, BASE],
    ["-buildid=feedbeef", FILE, FILE],
    # What is wrong with the words.
    ["-focus=("], ["-tagfocus=("], ["-hide=*"], ["-tagshow=["],
    ["-prune_from=a{9999}"], ["-show_from=(?P<x"],
]


def named_sources(case):
    """The words of a case that are profiles to read, not to subtract."""
    return [word for before, word in zip([""] + case, case)
            if word in (FILE, BASE, MISSING) and
            before not in ("-base", "-diff_base")]


def sources(case):
    """Those of them that are there."""
    return [word for word in named_sources(case) or [FILE] if word != MISSING]


def words(case, paths, base_paths):
    """The command line of a case, without the tool. The paths by their word, as
    profiles to read and as those to subtract."""
    out, before = ["-raw", "-symbolize=none"], ""
    for word in case if named_sources(case) else case + [FILE]:
        named = base_paths if before in ("-base", "-diff_base") else paths
        out.append(named.get(word, word))
        before = word
    return out
