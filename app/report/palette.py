# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
"""Colours, line styles and units. The colours are those of Okabe and Ito, which people with any
kind of colour vision tell apart; lightness or dashes say the same in grey."""

from matplotlib import colors

BLACK, INK, GREY, PALE = "#000000", "#333333", "#8c8c8c", "#d4d4d4"
BLUE, ORANGE, GREEN, PURPLE = "#0072B2", "#E69F00", "#009E73", "#CC79A7"
SKY, VERMILLION, YELLOW = "#56B4E9", "#D55E00", "#F0E442"

MICRO_BATCHES = (BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILLION, YELLOW)
RUNS = ((BLACK, "-"), (VERMILLION, (0, (6, 1.2))), (SKY, "-"), (GREEN, (0, (2, 1))))
MESSAGES = {"gradient": (INK, "-"), "total": (INK, "-"), "parameters": (VERMILLION, (0, (4, 2))),
            "token": (GREY, (0, (1, 2)))}
RUN_WIDTHS = (2.2, 1.7, 1.2, 0.7)  # points; what lies above leaves what lies below to be seen
MOST_RUNS = len(RUNS)


def backward(micro_batch):
    """Full colour; a forward has the same one, paler."""
    return MICRO_BATCHES[micro_batch % len(MICRO_BATCHES)]


def forward(micro_batch):
    return tuple(1 - 0.42 * (1 - part) for part in colors.to_rgb(backward(micro_batch)))


def ink_on(colour):
    """Black or white, whichever can be read on a colour."""
    red, green, blue = colors.to_rgb(colour)
    return BLACK if 0.3 * red + 0.59 * green + 0.11 * blue > 0.45 else "#ffffff"


def message(kind):
    return MESSAGES.get(kind, (INK, "-"))


def byte_unit(largest):
    """Name and size of the binary unit for values up to `largest` bytes."""
    names = ("B", "KiB", "MiB", "GiB", "TiB")
    k = 0
    while k + 1 < len(names) and largest >= 1024 ** (k + 1):
        k += 1
    return names[k], 1024 ** k


def human_bytes(value):
    """With a space at which no line breaks."""
    name, size = byte_unit(value)
    return f"{value:.0f}\N{NO-BREAK SPACE}B" if size == 1 \
        else f"{value / size:.1f}\N{NO-BREAK SPACE}{name}"


def second_unit(longest):
    """Name and size of the unit for durations up to `longest` seconds."""
    for name, size in (("s", 1.0), ("ms", 1e-3)):
        if longest >= size:
            return name, size
    return "µs", 1e-6


def human_seconds(value):
    name, size = second_unit(value)
    return f"{value / size:.3g} {name}"
