# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
"""The files that the style checks read, and how a check ends. No rule of style is written here."""

import re
import sys
from pathlib import Path

ROOMS = ("app", "core", "layers", "comm", "tests", "inputs", "jobscripts")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)


def files(root, *suffixes):
    """All files of the rooms with these suffixes, as paths relative to `root`, in order."""
    found = []
    for room in ROOMS:
        for path in (Path(root) / room).rglob("*"):
            if path.is_file() and path.name.endswith(suffixes):
                found.append(path.relative_to(root).as_posix())
    return sorted(found)


def text(root, path):
    return (Path(root) / path).read_text(encoding="utf-8")


def line_of(source, position):
    return source.count("\n", 0, position) + 1


def report(check):
    """Prints the complaints of `check` about the folder on the command line; the exit code."""
    complaints = check(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
    for complaint in complaints:
        print(complaint)
    print(f"{len(complaints)} complaints")
    return 1 if complaints else 0
