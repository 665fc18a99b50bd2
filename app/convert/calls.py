# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
"""What a module of PyTorch does with a batch, call by call, by torch.fx: the way it is trained.

Which calls Carousel has layers for is not decided here.
"""

import importlib
import importlib.util
import logging
import pathlib
import sys

import torch
import torch.fx
from torch._subclasses.fake_tensor import FakeTensorMode

from .network import INPUT_OUTPUT, USAGE, Refusal

BATCH = 2  # samples; batch norms refuse one


def name_of(module):
    return f"{type(module).__module__}.{type(module).__qualname__}"


def first_line(error):
    return str(error).strip().split("\n")[0] or type(error).__name__


def make_module(source, arguments):
    """Of "package.module:NAME" or "file.py:NAME" the module, or what the class or function of that
    name makes."""
    place, _, name = source.rpartition(":")
    if not place or not name:
        raise Refusal(USAGE, f"{source}: name a module and what makes the network, as in "
                             "torchvision.models:resnet18 or net.py:Net")
    try:
        if place.endswith(".py"):
            path = pathlib.Path(place)
            if not path.is_file():
                raise Refusal(INPUT_OUTPUT, f"{place}: no such file")
            sys.path.insert(0, str(path.parent.resolve()))
            spec = importlib.util.spec_from_file_location(path.stem, path)
            code = importlib.util.module_from_spec(spec)
            sys.modules[path.stem] = code
            spec.loader.exec_module(code)
        else:
            sys.path.insert(0, "")
            code = importlib.import_module(place)
        made = code
        for part in name.split("."):
            made = getattr(made, part)
        if not isinstance(made, torch.nn.Module):
            made = made(**arguments)
        elif arguments:
            raise Refusal(USAGE, f"{source} is a network already, which takes no --with")
    except Refusal:
        raise
    except Exception as error:  # whatever a user's code may raise
        raise Refusal(USAGE, f"{source}: {type(error).__name__}: {first_line(error)}") from error
    if not isinstance(made, torch.nn.Module):
        raise Refusal(USAGE, f"{source} makes a {type(made).__name__}, no torch.nn.Module")
    return made


class Tracer(torch.fx.Tracer):
    """Goes into all modules but those of torch.nn and `leaves`, which are names of classes."""

    def __init__(self, leaves):
        super().__init__()
        self.leaves = leaves

    def is_leaf_module(self, module, path):
        return name_of(module) in self.leaves or super().is_leaf_module(module, path)


class Shapes(torch.fx.Interpreter):
    """Runs the calls on tensors without numbers and notes what each leaves: such a tensor, or a
    number, which is then the same for all inputs of that shape."""

    def run_node(self, node):
        try:
            node.meta["left"] = super().run_node(node)
        except Refusal:
            raise
        except Exception as error:
            raise Refusal(USAGE, f"{place_of(node)}: {first_line(error)}; does --input fit?") \
                from error
        return node.meta["left"]


def place_of(node):
    """The path of the module that makes a call, for people."""
    if node.op == "call_module":
        return node.target
    stack = node.meta.get("nn_module_stack") or {}
    inner = list(stack.values())[-1:] or [("", None)]
    path = inner[0][0] if isinstance(inner[0], tuple) else ""
    word = getattr(node.target, "__name__", str(node.target))
    return f"{path}: {word}" if path else word


def trace(module, shape, leaves):
    """The calls that a forward pass makes in training, each with what it leaves in meta["left"]."""
    module.train()
    try:
        graph = Tracer(leaves).trace(module)
    except Exception as error:
        raise Refusal(USAGE, f"torch.fx cannot trace it: {first_line(error)}") from error
    traced = torch.fx.GraphModule(module, graph)
    inputs = [node for node in graph.nodes if node.op == "placeholder"]
    if len([node for node in inputs if not node.args]) != 1:
        names = ", ".join(node.name for node in inputs)
        raise Refusal(USAGE, f"it takes {names}; Carousel's networks read one tensor")
    # Batch norms of one pixel refuse to be trained by few samples, which does not matter here.
    traced.eval()
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    logging.disable(logging.ERROR)  # where shapes do not fit, one line tells
    try:
        with mode, torch.no_grad():
            Shapes(traced).run(torch.empty(BATCH, *shape))
    except Refusal as refusal:  # which the interpreter has added lines to
        raise Refusal(refusal.code, first_line(refusal)) from None
    finally:
        logging.disable(logging.NOTSET)
    return traced
