"""What the tests of this folder share: TAP, and a program that serves."""
import os
import subprocess
import sys
import threading

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                ".."))
from tap import Tap  # noqa: E402

HOSTILE = "a'b<c>&\"d"  # one of the profiles of program.c


class Server:
    """A program that says "OK HOST:PORT" and ends with its standard input."""

    def __init__(self, *command, **variables):
        environment = {k: v for k, v in os.environ.items()
                       if not k.startswith("CPPROF")}
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env=dict(environment, **variables))
        clock = threading.Timer(60, self.process.kill)
        clock.start()
        self.said = self.process.stdout.readline().decode().strip()
        clock.cancel()
        if not self.said.startswith("OK "):
            self.end()
            raise RuntimeError("%s says: %r" % (command[0], self.said))
        self.address = self.said[3:]
        host, _, port = self.address.rpartition(":")
        self.host, self.port = host, int(port) if port.isdigit() else 0
        self.url = "http://%s/debug/pprof/" % self.address

    def end(self):
        self.process.stdin.close()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
