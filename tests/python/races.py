"""races.py: profiles start and stop in several threads at once, in signal
handlers and finalizers. Ends, or raises."""
import signal
import threading
import time

import cpprof

ALLOWED = "profiler already running", "profiler is starting or stopping"


def once(mode):
    try:
        cpprof.start(mode=mode, hz=1000, out="race%d.pb.gz" %
                     threading.get_native_id())
    except RuntimeError as error:
        assert str(error) in ALLOWED, error
    time.sleep(0.001)
    cpprof.stop()


def run(mode):
    for _ in range(100):
        once(mode)


def on_alarm(*signal):
    once("tick")


def together(*modes):
    threads = [threading.Thread(target=run, args=(m,), daemon=True)
               for m in modes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive(), "hangs"


signal.signal(signal.SIGALRM, on_alarm)
signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
together("tick", "tick")
together("tick", "span", "cpu")
signal.setitimer(signal.ITIMER_REAL, 0)
cpprof.stop()
