"""plain.py: knows nothing of a profiler. Prints what it was started with."""
import os
import subprocess
import sys
import time


def busy():
    end = time.thread_time() + 0.2
    while time.thread_time() < end:
        pass


busy()
print(os.environ.get("PYTHONPATH"), "CPPROF_PYTHONPATH" in os.environ,
      len([p for p in sys.path if "bindings" in p]),
      sys.modules["sitecustomize"].NAME, flush=True)
if len(sys.argv) > 1:
    subprocess.run(["sh", "-c", "echo $PYTHONPATH"], check=True)
