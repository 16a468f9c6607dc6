# SPDX-License-Identifier: MIT
"""Imported by an interpreter whose PYTHONPATH libcpprof.so has changed
(src/vm/load/modules.c): give the variable and the path back as they were, load
the module, which joins the profile, and import the sitecustomize that would
have been. A profiler is no reason for a program not to start."""
import os
import sys

# ORDER: modules.c
FORMER_VARIABLE = "CPPROF_PYTHONPATH"


def give_back():
    former = os.environ.pop(FORMER_VARIABLE, "")
    if former:
        os.environ["PYTHONPATH"] = former[1:]
    else:
        os.environ.pop("PYTHONPATH", None)


def load(folder):
    if sys.implementation.name != "cpython" or \
            sys.version_info[:2] != (3, 11):
        return
    # What importlib takes its names from: there already, where importlib.util
    # would take milliseconds, and be found imported by the program.
    import _frozen_importlib
    import _frozen_importlib_external as external

    path = os.path.join(folder, "cpprof" + external.EXTENSION_SUFFIXES[0])
    loader = external.ExtensionFileLoader("cpprof", path)
    spec = external.spec_from_file_location("cpprof", path, loader=loader)
    sys.modules["cpprof"] = _frozen_importlib.module_from_spec(spec)
    loader.exec_module(sys.modules["cpprof"])


def begin():
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [folder for folder in sys.path
                   if os.path.abspath(folder) != here]
    sys.path_importer_cache.pop(here, None)
    if FORMER_VARIABLE not in os.environ:
        return
    give_back()
    try:
        load(os.path.dirname(here))
    except Exception:
        sys.modules.pop("cpprof", None)


begin()
# Where there is no other the error is what site.py expects of none; to catch it
# here would leave importlib without the module that it has just loaded.
sys.modules.pop("sitecustomize", None)
import sitecustomize  # noqa: E402,F401
