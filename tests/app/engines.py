# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
"""Finds the engines that a test has started."""

import pathlib


def engines_in(folder):
    """Processes of engines that work in a folder."""
    found = []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if ((process / "exe").resolve().name == "carousel-engine"
                    and (process / "cwd").resolve() == folder.resolve()):
                found.append(int(process.name))
        except OSError:  # it has ended
            pass
    return found
