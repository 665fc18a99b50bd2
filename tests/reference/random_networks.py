# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
"""Networks drawn at random, as decks list them, and what PyTorch makes of such lists."""
import random

import torch
from torch.nn import functional as F

# Layers without parameters, which change numbers one by one.
PLAIN = {"relu": F.relu, "relu6": F.relu6, "leaky_relu": F.leaky_relu, "elu": F.elu, "gelu": F.gelu,
         "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"), "silu": F.silu,
         "hard_swish": F.hardswish, "tanh": torch.tanh, "sigmoid": torch.sigmoid,
         "softplus": F.softplus}
KINKS = {"relu": (0,), "relu6": (0, 6), "leaky_relu": (0,), "hard_swish": (-3, 3)}


def axes_of(x):
    """Axes of space."""
    return x.dim() - 2


def of_axes(name, x):
    """torch's function for images or for volumes."""
    return getattr(F, f"{name}{axes_of(x)}d")


def flat(x, like):
    """Features as images, or volumes, of one pixel."""
    return x.flatten(1).reshape(x.shape[0], -1, *[1] * axes_of(like))


class Run:
    """Runs lists of layers on tensors [n, c, h, w] or [n, c, d, h, w]. `parameter(name, shape)`
    gives parameters.
    `margin` becomes how near to a kink of a rectifier, or to a tie in a window, it came."""

    def __init__(self, parameter):
        self.parameter = parameter
        self.saved = {}
        self.margin = float("inf")

    def all(self, layers, x):
        for layer in layers:
            x = self.one({layer: True} if isinstance(layer, str) else layer, x)
        return x

    def one(self, layer, x):
        word = next(iter(layer))
        value, name = layer[word], layer.get("name", "")
        if word == "residual":
            shortcut = self.all(layer.get("shortcut", []), x)
            x = self.all(value, x) + shortcut
        elif word == "branches":
            x = self.joined(layer.get("join", "concat"), [self.all(one, x) for one in value])
        elif word in ("concat", "add", "multiply"):
            x = self.joined(word, [x] + [self.saved[one] for one in value])
        elif word in PLAIN:
            for kink in KINKS.get(word, ()):
                self.near(x - kink)
            x = PLAIN[word](x)
        else:
            x = getattr(self, word)(value, {k: v for k, v in layer.items() if k != word}, name, x)
        if "save" in layer:
            self.saved[layer["save"]] = x
        return x

    def near(self, x):
        if x.numel():
            self.margin = min(self.margin, x.detach().abs().min().item())

    @staticmethod
    def joined(how, tensors):
        if how == "concat":
            return torch.cat(tensors, 1)
        result = tensors[0]
        for other in tensors[1:]:
            result = result + other if how == "add" else result * other
        return result

    def bias(self, given, name, channels):
        return self.parameter(f"{name}.bias", (channels,)) if given.get("bias", True) else None

    def conv(self, channels, given, name, x):
        kernel, groups = given["kernel"], given.get("groups", 1)
        weight = self.parameter(f"{name}.weight", (channels, x.shape[1] // groups,
                                                    *[kernel] * axes_of(x)))
        return of_axes("conv", x)(x, weight, self.bias(given, name, channels),
                                  given.get("stride", 1), given.get("padding", 0),
                                  given.get("dilation", 1), groups)

    def conv_transpose(self, channels, given, name, x):
        kernel, groups = given["kernel"], given.get("groups", 1)
        weight = self.parameter(f"{name}.weight", (x.shape[1], channels // groups,
                                                    *[kernel] * axes_of(x)))
        return of_axes("conv_transpose", x)(
            x, weight, self.bias(given, name, channels), given.get("stride", 1),
            given.get("padding", 0), given.get("output_padding", 0), groups,
            given.get("dilation", 1))

    def linear(self, features, given, name, x):
        weight = self.parameter(f"{name}.weight", (features, x.shape[1]))
        return flat(F.linear(x.flatten(1), weight, self.bias(given, name, features)), x)

    def affine(self, name, channels):
        return (self.parameter(f"{name}.weight", (channels,)),
                self.parameter(f"{name}.bias", (channels,)))

    def batch_norm(self, _, given, name, x):
        return F.batch_norm(x, None, None, *self.affine(name, x.shape[1]), True, 0.1,
                            given.get("epsilon", 1e-5))

    def group_norm(self, groups, given, name, x):
        return F.group_norm(x, groups, *self.affine(name, x.shape[1]), given.get("epsilon", 1e-5))

    def instance_norm(self, _, given, name, x):
        affine = self.affine(name, x.shape[1]) if given.get("affine") else (None, None)
        return F.instance_norm(x, None, None, *affine, eps=given.get("epsilon", 1e-5))

    def max_pool(self, kernel, given, _, x):
        stride, padding = given.get("stride", kernel), given.get("padding", 0)
        windows = F.pad(x, (padding,) * 2 * axes_of(x), value=-1e30)
        if kernel > 1:
            for axis in range(2, x.dim()):
                windows = windows.unfold(axis, kernel, stride)
            largest = windows.flatten(-axes_of(x)).topk(2).values
            self.near(largest[..., 0] - largest[..., 1])
        return of_axes("max_pool", x)(x, kernel, stride, padding,
                                      ceil_mode=given.get("ceil_mode", False))

    def avg_pool(self, kernel, given, _, x):
        return of_axes("avg_pool", x)(x, kernel, given.get("stride", kernel),
                                      given.get("padding", 0))

    def adaptive_avg_pool(self, size, _given, _name, x):
        return of_axes("adaptive_avg_pool", x)(x, size)

    def global_avg_pool(self, _, _given, _name, x):
        return x.mean(tuple(range(2, x.dim())), keepdim=True)

    def upsample_nearest(self, factor, _given, _name, x):
        return F.interpolate(x, scale_factor=factor, mode="nearest")

    def upsample_linear(self, factor, _given, _name, x):
        return F.interpolate(x, scale_factor=factor,
                             mode="trilinear" if axes_of(x) == 3 else "bilinear")

    def scale(self, factor, _given, _name, x):
        return factor * x

    def flatten(self, _, _given, _name, x):
        return flat(x, x)


def window(draw, rows):
    """Of a convolution or pooling that leaves something of so many rows."""
    kernel = draw.choice([1, 2, 3, 3, 3, 5])
    given = {"kernel": kernel, "padding": draw.choice([0, kernel // 2, kernel // 2])}
    if draw.random() < 0.3:
        given["stride"] = draw.choice([2, 3])
    reach = given.get("dilation", 1) * (kernel - 1)
    if rows + 2 * given["padding"] <= reach:
        given["padding"] = kernel // 2
    return given


class Drawn:
    """A network with its shapes, found by running it as it grows, of images or of volumes."""

    def __init__(self, seed, axes=2):
        self.draw = random.Random(seed)
        self.count = 0
        draw = self.draw
        most = 17 if axes == 2 else 9
        self.image = (draw.randint(1, 6), *[draw.randint(5, most) for _ in range(axes)])
        self.run = Run(lambda _, shape: torch.zeros(shape))
        self.skips = []
        self.layers = []
        x = torch.zeros(2, *self.image)
        for _ in range(draw.randint(3, 9)):
            x = self.grow(self.layers, x, 0)
        # What is saved is read.
        for skip in self.skips:
            if skip not in self.read:
                x = self.read_skip(self.layers, x, skip)
        if draw.random() < 0.5:
            self.add(self.layers, {"conv": draw.randint(2, 5), "kernel": 1}, x)
        else:
            x = self.add(self.layers, draw.choice(
                [{"global_avg_pool": True}, {"adaptive_avg_pool": 2}, {"scale": 0.5}]), x)
            x = self.add(self.layers, {"flatten": True}, x)
            self.add(self.layers, {"linear": draw.randint(2, 9)}, x)

    read = property(lambda self: {name for layer in self.layers
                                  for word in ("concat", "add", "multiply")
                                  for name in layer.get(word, [])})

    def add(self, layers, layer, x):
        layer = dict(layer)
        if next(iter(layer)) in ("conv", "conv_transpose", "linear", "batch_norm", "group_norm",
                                 "instance_norm"):
            layer["name"] = f"l{self.count}"
            self.count += 1
        x = self.run.one(layer, x)
        layers.append(layer)
        return x

    def convolution(self, x, channels=None):
        draw = self.draw
        out = channels or draw.choice([3, 4, 8, 16, 16, 24])
        kind = draw.random()
        layer = {"conv": out, **window(draw, min(x.shape[2:]))}
        if kind < 0.25 and channels is None:  # depthwise
            layer["conv"] = x.shape[1] * draw.choice([1, 1, 2])
            layer["groups"] = x.shape[1]
        elif kind < 0.35 and x.shape[1] % 2 == 0 and out % 2 == 0:
            layer["groups"] = 2
        if draw.random() < 0.15 and "stride" not in layer and layer["kernel"] == 3:
            layer |= {"dilation": 2, "padding": 2}
        if draw.random() < 0.4:
            layer["bias"] = False
        return layer

    def same(self, x, channels):
        """A convolution that keeps pixels."""
        kernel = self.draw.choice([1, 3])
        return {"conv": channels, "kernel": kernel, "padding": kernel // 2}

    def norm(self, x):
        draw, channels = self.draw, x.shape[1]
        kinds = [{"batch_norm": True}, {"batch_norm": True, "epsilon": 0.001},
                 {"group_norm": draw.choice([g for g in (1, 2, 3, 4) if channels % g == 0])}]
        if x[0, 0].numel() > 3:
            kinds += [{"instance_norm": True}, {"instance_norm": True, "affine": True}]
        kind = draw.choice(kinds)
        # Of a group of one number, nothing is left, and Carousel refuses it.
        alone = x[0].numel() == kind.get("group_norm")
        return {"batch_norm": True} if alone else kind

    def activation(self):
        return {self.draw.choice(list(PLAIN)): True}

    def pooling(self, x):
        draw, rows = self.draw, min(x.shape[2:])
        if rows < 4:
            return self.activation()
        kernel = draw.choice([2, 3])
        given = {"padding": draw.choice([0, kernel // 2]), "stride": draw.choice([1, 2, 3])}
        if draw.random() < 0.6:
            if draw.random() < 0.3 and given["padding"] == 0:
                given["ceil_mode"] = True
            return {"max_pool": kernel, **given}
        return {"avg_pool": kernel, **given}

    def upsampling(self, x):
        draw = self.draw
        if max(x.shape[2:]) > 12:
            return self.activation()
        return draw.choice([
            {"upsample_nearest": 2}, {"upsample_linear": 2},
            {"conv_transpose": draw.choice([3, 8, 16]), "kernel": 2, "stride": 2},
            {"conv_transpose": 8, "kernel": 3, "stride": 2, "padding": 1, "output_padding": 1},
            {"conv_transpose": x.shape[1], "kernel": 3, "groups": x.shape[1], "padding": 1}])

    def sequence(self, x, channels=None):
        """Convolution, norm, activation: some of them."""
        layers = []
        x = self.add(layers, self.same(x, channels) if channels else self.convolution(x), x)
        if self.draw.random() < 0.5:
            x = self.add(layers, self.norm(x), x)
        if self.draw.random() < 0.7:
            x = self.add(layers, self.activation(), x)
        return layers, x

    def put(self, layers, layer, x):
        """A layer whose parts have run already."""
        layers.append(layer)
        return x

    def grow(self, layers, x, depth):
        draw = self.draw
        kind = draw.random()
        if kind < 0.35 or depth > 1:
            more, x = self.sequence(x)
            layers += more
            return x
        if kind < 0.45:
            return self.add(layers, self.pooling(x), x)
        if kind < 0.52:
            return self.add(layers, self.upsampling(x), x)
        if kind < 0.64:
            inner = []
            y = x
            for _ in range(draw.randint(1, 2)):
                more, y = self.sequence(y, x.shape[1])
                inner += more
            layer = {"residual": inner}
            if draw.random() < 0.4:
                layer["shortcut"], _ = self.sequence(x, x.shape[1])
            return self.put(layers, layer, x if "shortcut" not in layer else y)
        if kind < 0.76:
            return self.branches(layers, x)
        if kind < 0.84:  # squeeze and excitation
            inner = []
            y = self.add(inner, {"global_avg_pool": True}, x)
            y = self.add(inner, {"conv": draw.choice([4, 8]), "kernel": 1}, y)
            y = self.add(inner, self.activation(), y)
            y = self.add(inner, {"conv": x.shape[1], "kernel": 1}, y)
            self.add(inner, {"sigmoid": True}, y)
            return self.put(layers, {"branches": [[], inner], "join": "multiply"}, x)
        if kind < 0.92 and layers is self.layers and layers:
            name = f"skip{len(self.skips)}"
            if "save" not in layers[-1]:
                layers[-1]["save"] = name
                self.run.saved[name] = x
                self.skips.append(name)
            more, x = self.sequence(x)
            layers += more
            return x
        if self.skips and layers is self.layers:
            return self.read_skip(layers, x, draw.choice(self.skips))
        return self.add(layers, self.norm(x), x)

    def branches(self, layers, x):
        draw = self.draw
        parts, ends = [], []
        how = draw.choice(["concat", "concat", "add", "multiply"])
        for _ in range(draw.randint(2, 3)):
            if draw.random() < 0.2 and [] not in parts:
                parts.append([])
                ends.append(x)
                continue
            width = x.shape[1] if how != "concat" else draw.choice([3, 8, 16])
            part, end = self.sequence(x, width)
            parts.append(part)
            ends.append(end)
        layer = {"branches": parts}
        if how != "concat" or draw.random() < 0.5:
            layer["join"] = how
        return self.put(layers, layer, self.run.joined(how, ends))

    def read_skip(self, layers, x, name):
        """With what makes its shape that of the skip, or the skip's shape its own."""
        skip = self.run.saved[name]
        if skip.shape[2:] != x.shape[2:]:
            if skip.shape[1] != x.shape[1]:
                x = self.add(layers, {"conv": skip.shape[1], "kernel": 1}, x)
            x = self.add(layers, {"global_avg_pool": True}, x)
            return self.add(layers, {"multiply": [name]}, x)
        word = self.draw.choice(["concat", "add", "multiply"])
        if word != "concat" and skip.shape[1] != x.shape[1]:
            x = self.add(layers, {"conv": skip.shape[1], "kernel": 1}, x)
        return self.add(layers, {word: [name]}, x)


def toml(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, list):
        return "[ " + ", ".join(map(toml, value)) + " ]" if value else "[]"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {toml(part)}" for key, part in value.items()) + " }"
    return str(value)
