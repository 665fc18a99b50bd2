# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
"""Makes a network of the calls of a traced module, one after the other, and checks that it is all of
the module. What each call becomes is not decided here.
"""

import torch

from . import layers
from .calls import BATCH, name_of, place_of
from .network import AXES, USAGE, Network, Refusal, Tensor


class Call:
    """A call with its arguments: tensors of the network, or numbers."""

    def __init__(self, network, node, module, args, kwargs):
        self.network, self.node, self.module = network, node, module
        self.args, self.kwargs = args, kwargs
        self.path = node.target if node.op == "call_module" else ""

    def refuse(self, why):
        raise Refusal(USAGE, f"{place_of(self.node)}: {why}")

    def require(self, holds, why):
        if not holds:
            self.refuse(why)

    def get(self, index, name, otherwise=None):
        return self.args[index] if index < len(self.args) else self.kwargs.get(name, otherwise)

    def option(self, index, name, otherwise=None):
        """What a module was made with, or a function is called with."""
        return getattr(self.module, name, otherwise) if self.module is not None else \
            self.get(index, name, otherwise)

    def is_in_place(self, index):
        """Whether it writes over its first tensor: `inplace`, or a name such as relu_."""
        if self.module is not None:
            return getattr(self.module, "inplace", False)
        word = getattr(self.node.target, "__name__", self.node.target)
        return word.endswith("_") or self.get(index, "inplace", False)

    def tensor(self, index=0, name="input"):
        found = self.get(index, name)
        self.require(isinstance(found, Tensor), "it works on something else than a tensor that "
                     "layers leave, as a parameter of its own")
        return found

    def reads(self, *axes):
        """The tensor that it works on, which must have such axes."""
        tensor = self.tensor()
        what = {"cdhw": "volumes", "chw": "images", "ch": "samples of one axis", "hc": "tokens",
                "c": "features"}
        self.require(tensor.axes in axes, f"it works on axes {tensor.axes or 'none'} of "
                     f"{list(tensor.sizes)}; known are "
                     + ", ".join(f"{what[each]} ({each})" for each in axes))
        return tensor

    def reads_images(self):
        """Likewise images, or volumes or samples of one axis where samples are such."""
        return self.reads(self.network.images)

    @property
    def sizes(self):
        """Of the axes of what it leaves, behind the batch."""
        left = self.node.meta["left"]
        self.require(isinstance(left, torch.Tensor), "it leaves no tensor")
        self.require(left.dim() > 1 and left.shape[0] == BATCH,
                     f"it leaves {list(left.shape)}, whose first axis is no batch")
        return tuple(left.shape[1:])

    def add(self, word, axes=None, value=None, parameters=(), in_place=False, **keys):
        """A line for it that works on its first tensor."""
        tensor = self.tensor()
        return self.network.add(word, [tensor], axes or tensor.axes, self.sizes, value, self.path,
                                parameters, in_place, **keys)


class Conversion:
    """Goes through the calls of a traced module."""

    def __init__(self, module, traced, shape):
        self.module, self.traced = module, traced
        self.modules = dict(module.named_modules(remove_duplicate=False))
        self.network = Network(Tensor(-1, AXES[len(shape)], tuple(shape)))
        self.made = {}  # node -> what it leaves
        self.users = {}  # id of a module with parameters -> the path it was called by

    def run(self):
        for node in self.traced.graph.nodes:
            if node.op == "output":
                self.finish(node)
            elif node.op == "placeholder":
                self.made[node] = self.network.input if not node.args else node.args[0]
            elif self.is_number(node):
                self.made[node] = node.meta["left"]
            elif node.op == "get_attr":
                self.made[node] = node.target  # a parameter, which few calls take
            else:
                self.made[node] = self.checked(node, self.convert(node))
        return self.network, self.output

    @staticmethod
    def is_number(node):
        """Whether nothing of what it leaves is a tensor."""
        found = []
        torch.fx.node.map_aggregate(
            node.meta["left"], lambda each: found.append(isinstance(each, torch.Tensor)))
        return node.op != "get_attr" and not any(found)

    def value(self, argument, node):
        def look_up(each):
            made = self.made[each]
            if not isinstance(made, Tensor):
                return made
            now = self.network.now(made)
            if now is None:
                raise Refusal(USAGE, f"{place_of(node)}: it reads what a layer in place has changed "
                                     "since, in another shape")
            return now
        return torch.fx.node.map_arg(argument, look_up)

    def convert(self, node):
        args = list(self.value(node.args, node))
        kwargs = dict(self.value(node.kwargs, node))
        module = self.modules.get(node.target) if node.op == "call_module" else None
        call = Call(self.network, node, module, args, kwargs)
        if node.op == "call_module":
            known = layers.MODULES.get(type(module)) or layers.NAMED.get(name_of(module))
            what = name_of(module).removeprefix("torch.nn.modules.")
            self.check_module(call)
        else:
            known = (layers.FUNCTIONS if node.op == "call_function"
                     else layers.METHODS).get(node.target)
            what = getattr(node.target, "__name__", str(node.target))
        call.require(known, f"Carousel has no layer for {what}")
        return known(call)

    def check_module(self, call):
        module = call.module
        hooks = (module._forward_hooks, module._forward_pre_hooks, module._backward_hooks)
        call.require(not any(hooks), "it has hooks, which are not converted")
        if not any(True for _ in module.parameters()):
            return
        other = self.users.setdefault(id(module), call.node)
        call.require(other is call.node, f"its parameters are used twice, first as {other.target}")

    @staticmethod
    def checked(node, made):
        """What is written down has the shape that PyTorch leaves."""
        if isinstance(made, Tensor) and made.sizes != tuple(node.meta["left"].shape[1:]):
            raise Refusal(USAGE, f"{place_of(node)}: it leaves {list(node.meta['left'].shape[1:])}, "
                                 f"where its layer leaves {list(made.sizes)}")
        return made

    def finish(self, node):
        output = self.value(node.args[0], node)
        if not isinstance(output, Tensor):
            raise Refusal(USAGE, "in training it leaves no single tensor; switch off further "
                                 "outputs, such as by --with aux_logits=False")
        if not self.network.lines:
            raise Refusal(USAGE, "it computes nothing")
        self.check_readers(output)
        if output.axes not in AXES.values():
            raise Refusal(USAGE, f"it leaves axes {output.axes} of {list(output.sizes)}; losses read "
                                 "channels first")
        self.output = output
        self.check_parameters()

    def check_readers(self, output):
        """Every layer is part of what the network leaves."""
        lines = self.network.lines
        read = {number for line in lines for number in line.inputs} | {output.line}
        for number, line in enumerate(lines):
            if number not in read:
                raise Refusal(USAGE, f"{line.name or line.word}: nothing reads what it leaves")
        if output.line != len(lines) - 1:
            raise Refusal(USAGE, "what it leaves is not what its last layer computes")

    def check_parameters(self):
        """All of the state_dict is in the network, and nothing else."""
        known = self.network.parameters()
        for name in self.module.state_dict():
            if name.rpartition(".")[2] != "num_batches_tracked" and name not in known:
                raise Refusal(USAGE, f"{name}: no layer of its forward pass has it")
        tied = {}
        for name, parameter in self.module.named_parameters(remove_duplicate=False):
            other = tied.setdefault(id(parameter), name)
            if other != name:
                raise Refusal(USAGE, f"{name} is tied to {other}; decks know no tied parameters")


def convert(module, traced, shape):
    """The network of a traced module, and what it leaves."""
    return Conversion(module, traced, shape).run()
