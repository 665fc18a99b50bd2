#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
"""Checks the text of the sources: check_text.py [ROOT]. Licence lines, include guards, no
left-overs, and a label of the project on every kernel, fence, region and allocation."""

import re
import sys

from sources import files, line_of, report, text

COPYRIGHT = "SPDX-FileCopyrightText: "
LICENCE = "SPDX-License-Identifier: Apache-2.0"
LEFT_OVER = re.compile(r"\b(TODO|FIXME|XXX)\b")

# Calls that show up in profiles. What runs inside a team has no label of its own.
LABELLED = re.compile(r"\b(?:parallel_(?:for|reduce|scan)|view_alloc|fence|ScopedRegion"
                      r"|pushRegion)\s*(?:\w+\s*)?\(")
NESTED = re.compile(r"(?:Kokkos::)?(?:Team|Thread)\w*Range\s*\(")
ALLOCATED = re.compile(r'\bView<[^;{}()]*>\s*\w*\s*[({]\s*(?:std::string\()?"(?!carousel::)')
LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"')
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


def check(root):
    complaints = []
    for path in files(root, ".cpp", ".hpp", ".in", ".py", ".sh", ".cmake", "CMakeLists.txt"):
        source = text(root, path)
        complaints += licence(path, source)
        if path.endswith((".cpp", ".hpp")):
            complaints += code(path, source)
            if not path.startswith("tests/"):
                complaints += labels(path, source)
    return complaints


def licence(path, source):
    lines = [line for line in source.split("\n")[:3] if not line.startswith("#!")]
    if len(lines) < 2 or COPYRIGHT not in lines[0] or LICENCE not in lines[1]:
        return [f"{path}:1: the SPDX lines come first"]
    return []


def code(path, source):
    complaints = []
    if path.endswith(".hpp") and source.split("\n")[2:3] != ["#pragma once"]:
        complaints.append(f"{path}:3: #pragma once follows the SPDX lines")
    for match in LEFT_OVER.finditer(source):
        where = line_of(source, match.start())
        complaints.append(f"{path}:{where}: {match.group()}: finish it, or open an issue")
    return complaints


def arguments(source, start):
    """The text between the parenthesis that opens before `start` and its partner."""
    depth = 1
    for position in range(start, len(source)):
        depth += {"(": 1, ")": -1}.get(source[position], 0)
        if depth == 0:
            return source[start:position]
    return source[start:]


def labels(path, source):
    # Blanked, not cut, so that line numbers stay.
    source = COMMENT.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), source)
    complaints = []
    for match in LABELLED.finditer(source):
        inside = arguments(source, match.end()).lstrip()
        if not NESTED.match(inside) and not has_label(match.group(), inside):
            where = line_of(source, match.start())
            complaints.append(f'{path}:{where}: give {match.group()}...) a label "carousel::..."')
    for match in ALLOCATED.finditer(source):
        where = line_of(source, match.start())
        complaints.append(f'{path}:{where}: the label of a View starts with "carousel::"')
    return complaints


def has_label(call, inside):
    """Whether the label is a literal of the project, or named `label` and handed on by a caller."""
    find = re.search if call.startswith("view_alloc") else re.match
    literal = find(LITERAL, inside)
    if literal:
        return literal.group(1).startswith("carousel::")
    return find(r"\b(\w+_)?label_?\b", inside) is not None


if __name__ == "__main__":
    sys.exit(report(check))
