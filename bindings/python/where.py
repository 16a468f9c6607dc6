#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Where this interpreter looks for modules below a prefix, from there, and how
their files end, run by it: where.py PREFIX. Below other prefixes than its own
they stand where PYTHONPATH may name them."""
import os
import sys
import sysconfig

prefix = sys.argv[1]
folders = [os.path.relpath(folder, prefix) for folder in sys.path
           if folder.endswith("-packages")]
folders = [folder for folder in folders if folder.startswith("lib")]
folders.append(os.path.relpath(
    sysconfig.get_path("platlib", "posix_prefix",
                       {"base": prefix, "platbase": prefix}), prefix))
print(folders[0])
print(sysconfig.get_config_var("EXT_SUFFIX").lstrip("."))
