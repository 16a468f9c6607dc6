"""pprof as the peer of a test: built out of the copy that Go carries
(cmd/vendor), and one process that does many command lines.

A process for each command line would spend most of its time on its start. What
pprof keeps between command lines is its settings, which are set back
(MENDED).
"""
import atexit
import base64
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import threading

# File, what is there, what must be there instead. The first is a fault that
# would hide most of -weblist.
MENDED = (
    ("internal/report/source.go",
     "m.Start-begin >= expand", "begin-m.Start >= expand"),
    ("internal/driver/driver.go",
     "func PProf(eo *plugin.Options) error {\n",
     "func PProf(eo *plugin.Options) error {\n"
     "\tsetCurrentConfig(defaultConfig())\n"),
)
MAIN = """package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/google/pprof/driver"
)

type order struct {
	Words []string
	Path  string
}

type answer struct {
	Status    int
	Out, Said []byte
}

// catch has what is written to a file of this process.
func catch(file **os.File, into *[]byte) func() {
	old := *file
	reader, writer, err := os.Pipe()
	if err != nil {
		panic(err)
	}
	done := make(chan bool)
	go func() {
		*into, _ = io.ReadAll(reader)
		done <- true
	}()
	*file = writer
	return func() {
		*file = old
		writer.Close()
		<-done
		reader.Close()
	}
}

func do(o order) (a answer) {
	os.Setenv("PATH", o.Path)
	os.Args = append([]string{"pprof"}, o.Words...)
	flag.CommandLine = flag.NewFlagSet("pprof", flag.PanicOnError)
	defer catch(&os.Stdout, &a.Out)()
	defer catch(&os.Stderr, &a.Said)()
	a.Status = 2
	defer func() {
		if wrong := recover(); wrong != nil {
			fmt.Fprintf(os.Stderr, "pprof: %v\\n", wrong)
		}
	}()
	if err := driver.PProf(&driver.Options{}); err != nil {
		fmt.Fprintf(os.Stderr, "pprof: %v\\n", err)
		return
	}
	a.Status = 0
	return
}

func main() {
	orders, answers := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var o order
		if orders.Decode(&o) != nil {
			return
		}
		a := do(o)
		answers.Encode(&a)
	}
}
"""
VENDOR = "src/cmd/vendor/github.com"
PACKAGES = ("google/pprof", "ianlancetaylor/demangle")
TIMEOUT = 60  # seconds for a command line


def go(folder, words, where):
    environment = dict(os.environ, GO111MODULE="off", GOFLAGS="",
                       GOPATH=os.path.join(folder, "go"),
                       GOCACHE=os.path.join(folder, "cache"))
    return subprocess.run(["go"] + words, cwd=where, env=environment,
                          capture_output=True, check=False).returncode == 0


def said_by_go(*words):
    try:
        return subprocess.run(["go"] + list(words), capture_output=True,
                              check=False, text=True).stdout.strip()
    except OSError:
        return ""


def build(folder):
    """The program, in a folder for its sources, or None."""
    root = os.path.join(said_by_go("env", "GOROOT"), VENDOR)
    sources = os.path.join(folder, "go/src/github.com")
    command = os.path.join(folder, "go/src/peer")
    try:
        for name in PACKAGES:
            shutil.copytree(os.path.join(root, name),
                            os.path.join(sources, name))
        for name, old, new in MENDED:
            path = os.path.join(sources, "google/pprof", name)
            with open(path, encoding="utf-8") as file:
                text = file.read()
            if old not in text:
                return None
            with open(path, "w", encoding="utf-8") as file:
                file.write(text.replace(old, new))
        os.makedirs(command)
        with open(os.path.join(command, "main.go"), "w",
                  encoding="utf-8") as file:
            file.write(MAIN)
    except OSError:
        return None
    target = os.path.join(folder, "peer")
    return target if go(folder, ["build", "-p", "2", "-o", target, "."],
                        command) else None


def kept(folder, scratch):
    """The program in a folder where it stays, built there once for each Go and
    each form of this file; or None. scratch is for its sources."""
    with open(os.path.abspath(__file__), "rb") as file:
        key = hashlib.sha256(file.read() + said_by_go("version").encode())
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "pprof-" + key.hexdigest()[:16])
    with open(os.path.join(folder, "pprof.lock"), "w",
              encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.exists(path):
            built = build(scratch)
            if not built:
                return None
            shutil.copy(built, path + ".new")
            os.rename(path + ".new", path)
    return path


class Peer:
    """One process of it for each thread that asks."""

    def __init__(self, path, environment):
        self.path = path
        self.environment = environment
        self.mine = threading.local()
        self.all = []
        atexit.register(self.close)

    def process(self):
        process = getattr(self.mine, "process", None)
        if process is None or process.poll() is not None:
            self.mine.process = process = subprocess.Popen(
                [self.path], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=dict(self.environment, GOGC="200"))
            self.all.append(process)
        return process

    def close(self):
        """Each ends with its input, and is waited for."""
        for process in self.all:
            process.stdin.close()
        for process in self.all:
            process.wait()

    def run(self, words, path):
        """Its status, output, and what it said. path is where tools are."""
        process = self.process()
        watch = threading.Timer(TIMEOUT, process.kill)
        watch.daemon = True
        watch.start()
        try:
            process.stdin.write(json.dumps({
                "Words": words, "Path": path}).encode() + b"\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except OSError:
            line = b""
        finally:
            watch.cancel()
        if not line:
            process.kill()
            return process.wait(), b"", b"it takes too long, or has crashed"
        answer = json.loads(line)
        return (answer["Status"], base64.b64decode(answer["Out"] or b""),
                base64.b64decode(answer["Said"] or b""))
