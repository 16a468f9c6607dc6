"""What /proc tells of processes that tests begin."""
import glob
import os


def read(path):
    """What a file of a process holds, that may be gone: nothing then."""
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError:
        return ""


def children(pid):
    """Of all of its threads, also of one that has ended."""
    return [int(child)
            for path in glob.glob("/proc/%d/task/*/children" % pid)
            for child in read(path).split()]


def innermost(pid):
    """The only child of the only child, and so on."""
    while children(pid):
        pid = children(pid)[0]
    return pid


def own_threads(pid):
    """The threads of ours in it."""
    return [int(path.split("/")[4])
            for path in glob.glob("/proc/%d/task/*/comm" % pid)
            if read(path).startswith("cpprof")]


def descriptors(pid):
    return sorted(os.listdir("/proc/%d/fd" % pid))
