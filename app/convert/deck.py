# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
"""Writes a network as TOML, for `model.file`, and a deck that names it."""

import json

from .network import Network

# Between the axes of samples and the words that decks have for them.
DATA_AXES = {"c": "n c", "ch": "n c x", "chw": "n c y x", "cdhw": "n c z y x"}


def text_of(value):
    """A number, a word or a list as TOML has it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(text_of(each) for each in value) + "]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return repr(value)


def name_tensors(lines):
    """[line] the name of what it leaves, where a line other than the next one reads it, or joins it."""
    names = {}
    for number, line in enumerate(lines):
        for index, read in enumerate(line.inputs):
            if index > 0 or read != number - 1:
                names.setdefault(read, f"t{read}" if read >= 0 else "input")
    return names


def lines_of(lines):
    names = name_tensors(lines)
    if -1 in names:
        yield '{ save = "input" }'
    for number, line in enumerate(lines):
        keys = {}
        if line.inputs[0] != number - 1:
            keys["from"] = names[line.inputs[0]]
        joined = [names[read] for read in line.inputs[1:]]
        if joined:
            keys[line.word] = joined[0] if len(joined) == 1 else joined
        else:
            keys[line.word] = True if line.value is None else line.value
        keys.update(line.keys)
        if line.name:
            keys["name"] = line.name
        if number in names:
            keys["save"] = names[number]
        if keys == {line.word: True}:
            yield text_of(line.word)
        else:
            yield "{ " + ", ".join(f"{key} = {text_of(value)}" for key, value in keys.items()) + " }"


def network_text(source, shape, made):
    size = "x".join(str(each) for each in shape)
    text = f"# {source} for inputs of {size}, as python3 app/convert wrote it.\n\nlayers = [\n"
    return text + ",\n".join(f"  {line}" for line in lines_of(made.lines)) + " ]\n"


def deck_text(source, made: Network, output, network_file):
    """A deck to fill in: where data are is the user's to say."""
    labels = DATA_AXES[output.axes].replace(" c", "")
    return f"""# {source}: say below what data it learns from; `carousel help deck` has all keys.

[run]
name = {text_of(source.rpartition(":")[2])}
output = "runs/{source.rpartition(":")[2]}"

[model]
file = {text_of(network_file)}

[data]
files = "data.h5"
validation_fraction = 0.1

[data.input]
from = "inputs"
axes = "{DATA_AXES[made.input.axes]}"

[data.target]
from = "labels"
axes = "{labels}"
classes = {output.size("c")}

[parallel]
rule = "cdp-v2"
placement = "single"
micro_batches = 4
stages = 4

[train]
micro_batch_size = 16
epochs = 10

[train.optimizer]
name = "sgd"
learning_rate = 0.01
momentum = 0.9
"""
