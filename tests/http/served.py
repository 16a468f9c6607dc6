"""What the tests of this folder share: TAP, and a program that serves."""
import os
import subprocess
import sys
import threading

HOSTILE = "a'b<c>&\"d"  # one of the profiles of program.c


class Tap:
    def __init__(self):
        self.n = self.failed = 0

    def ok(self, name, good, *seen):
        self.n += 1
        self.failed += not good
        print("%sok %d - %s" % ("" if good else "not ", self.n, name))
        for text in seen if not good else ():
            print("# " + str(text)[:3000].replace("\n", "\n# "))
        sys.stdout.flush()
        return good

    def skip(self, name, why):
        self.n += 1
        print("ok %d - %s # SKIP %s" % (self.n, name, why), flush=True)

    def end(self):
        print("1..%d" % self.n)
        return self.failed != 0


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
