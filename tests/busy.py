"""A machine that has other work, too."""
import subprocess


class Beside:
    """Others that are at work, more than there are processors."""

    def __init__(self, n):
        self.n = n

    def __enter__(self):
        self.loops = [subprocess.Popen(["sh", "-c", "while :; do :; done"])
                      for _ in range(self.n)]

    def __exit__(self, *_):
        for loop in self.loops:
            loop.kill()
            loop.wait()
