"""What a terminal shows: the lines that come out at its leading end."""
import os


def lines_of(leader):
    """All lines, until the other end is closed. Closes this end."""
    said = b""
    while True:
        try:
            some = os.read(leader, 65536)
        except OSError:  # the other end is closed
            break
        if not some:
            break
        said += some
    os.close(leader)
    return said.decode().replace("\r\n", "\n").splitlines()
