# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
"""A network as decks list it: a line for each layer, and what each of them reads.

Which layers those are is not decided here.
"""

from dataclasses import dataclass, field

USAGE, BAD_DATA, INPUT_OUTPUT = 2, 65, 74


class Refusal(Exception):
    """One line for the user, and the exit code that goes with it."""

    def __init__(self, code, line):
        super().__init__(line)
        self.code = code


# Of samples, by how many they have.
AXES = {1: "c", 2: "ch", 3: "chw", 4: "cdhw"}


@dataclass(frozen=True)
class Tensor:
    """What a line leaves behind for each sample, with the axes that PyTorch gives it behind the
    batch, from Carousel's channels, depth, height and width: "chw" are images, "cdhw" volumes, "hc"
    tokens. "s" stands for height and width as one axis, "t" for that behind a class token: both only
    on the way to tokens."""

    line: int  # -1: the inputs
    axes: str
    sizes: tuple  # of these axes

    def size(self, axis):
        return self.sizes[self.axes.index(axis)] if axis in self.axes else 1


@dataclass
class Line:
    """A layer: { word = value, further keys, name }."""

    word: str
    value: object  # None: it has no main size
    keys: dict
    name: str  # of the module, where it has parameters; others are counted
    inputs: list  # numbers of lines; the first one is what it works on, the others are joined
    parameters: list  # entries of the state_dict that it has


@dataclass
class Network:
    input: Tensor
    lines: list = field(default_factory=list)
    memory: list = field(default_factory=list)  # [line] the tensor in whose memory PyTorch has it
    newest: dict = field(default_factory=dict)  # memory -> the line that was written there last
    joined: dict = field(default_factory=dict)  # tensors -> the one that has them all, as channels

    @property
    def images(self):
        """The axes that windows move over, as Carousel finds them from the shape of samples."""
        if self.input.size("d") > 1:
            return "cdhw"
        return "ch" if self.input.size("h") > 1 and self.input.size("w") == 1 else "chw"

    def add(self, word, inputs, axes, sizes, value=None, name="", parameters=(), in_place=False,
            is_view=False, **keys):
        """Appends a line that reads tensors. PyTorch writes what it leaves over the first one if
        `in_place`, and lets both share memory if `is_view`."""
        first = inputs[0]
        self.lines.append(Line(word, value, keys, name if parameters else "",
                               [each.line for each in inputs],
                               [f"{name}.{each}" for each in parameters]))
        number = len(self.lines) - 1
        shares = in_place or is_view
        self.memory.append(self._memory_of(first.line) if shares else number)
        if in_place:
            self.newest[self.memory[number]] = number
        return Tensor(number, axes, tuple(sizes))

    def now(self, tensor):
        """What PyTorch would read there now, behind layers that work in place; None where that has
        another shape."""
        number = self.newest.get(self._memory_of(tensor.line), tensor.line)
        if number == tensor.line:
            return tensor
        if self._is_flat(number) != self._is_flat(tensor.line):
            return None
        return Tensor(number, tensor.axes, tensor.sizes)

    def parameters(self):
        return [name for line in self.lines for name in line.parameters]

    def _memory_of(self, line):
        return self.memory[line] if line >= 0 else -1

    def _is_flat(self, line):
        """Whether a flatten lies between a line and what its memory held first."""
        while line >= 0 and self.memory[line] != line:
            if self.lines[line].word == "flatten":
                return True
            line = self.lines[line].inputs[0]
        return False
