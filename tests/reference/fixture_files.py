# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
"""What scripts that write fixtures of networks share: ways in which PyTorch computes, and the text."""
import json

import torch


def ways_of_single_precision():
    """Sets each of several ways of computing, one after the other: with one and two threads, with and
    without oneDNN. One way comes near to double precision by chance."""
    for threads in (1, 2):
        for onednn in (True, False):
            torch.set_num_threads(threads)
            with torch.backends.mkldnn.flags(enabled=onednn):
                yield
    torch.set_num_threads(1)


def text(fixtures):
    """JSON with one tensor in a line."""
    def lines(value, depth):
        if isinstance(value, dict) and "sample" not in value:
            body = ",\n".join(f"{' ' * depth}{json.dumps(key)}: {lines(part, depth + 1)}"
                              for key, part in value.items())
            return f"{{\n{body}\n{' ' * (depth - 1)}}}"
        return json.dumps(value, separators=(",", ":"))
    return lines(fixtures, 1) + "\n"
