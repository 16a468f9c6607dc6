#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The way from one folder to another, for parts of an installation that find
each other wherever it is moved: way.py FROM TO."""
import os
import sys

print(os.path.relpath(sys.argv[2], sys.argv[1]))
