"""mixed_stress.py SECONDS: code objects, modules, generators and threads that
come and go. Prints what it has found out, which is always the same."""
import importlib
import os
import sys
import tempfile
import threading
import time

seconds = float(sys.argv[1])
results = set()


def made(n):
    """Code that was not there before, in a name that is not ASCII."""
    space = {}
    exec("def gr\u00f6\u00dfe_%d(x):\n"
         "    def inner(y):\n"
         "        return y * x + sum(i for i in range(9))\n"
         "    return [inner(i) for i in range(5)]\n" % n, space)
    return sum(space["gr\u00f6\u00dfe_%d" % n](3))


def count(n):
    if n:
        yield from count(n - 1)
    yield n


def dropped():
    """A generator that is left in the midst."""
    g = count(20)
    return [next(g) for _ in range(5)][-1]


def deep(n):
    return n and 1 + deep(n - 1)


def raises(n):
    if not n:
        raise KeyError(n)
    try:
        return raises(n - 1)
    finally:
        str(n)


def caught():
    try:
        raises(30)
    except KeyError as error:
        return error.args[0]


def imported(folder, name):
    module = importlib.import_module(name)
    del sys.modules[name]
    return module.VALUE


def once(folder, name, n):
    return (made(n), dropped(), deep(200), caught(), imported(folder, name),
            sorted("cab", key=lambda c: -ord(c))[0])


def worker(folder, name):
    end, n = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        results.add(once(folder, name, n))
        n += 1
        if n % 16 == 0:
            short = threading.Thread(target=dropped)
            short.start()
            short.join()


sys.dont_write_bytecode = True
with tempfile.TemporaryDirectory() as folder:
    sys.path.insert(0, folder)
    names = ["stress_%d" % i for i in range(8)]
    for name in names:
        with open(os.path.join(folder, name + ".py"), "w") as file:
            file.write("def f(x):\n    return x + 1\nVALUE = f(6)\n")
    importlib.invalidate_caches()
    threads = [threading.Thread(target=worker, args=(folder, name))
               for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
print(results)
