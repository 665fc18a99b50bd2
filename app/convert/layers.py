# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
"""What each call of PyTorch is in Carousel. A function for each kind gets a `Call` and returns the
tensor that its lines leave; what has none, or says more than decks can, is refused by its path."""

import operator

import torch
from torch import nn
from torch.nn import functional as F

from .network import USAGE, Network, Refusal, Tensor
from .calls import BATCH, name_of, place_of

STOCHASTIC_DEPTH = "torchvision.ops.stochastic_depth.StochasticDepth"


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

    def tensor(self, index=0, name="input"):
        found = self.get(index, name)
        self.require(isinstance(found, Tensor), "it works on something else than a tensor that "
                     "layers leave, as a parameter of its own")
        return found

    def reads(self, *axes):
        """The tensor that it works on, which must have such axes."""
        tensor = self.tensor()
        what = {"chw": "images", "ch": "samples of one axis", "hc": "tokens", "c": "features"}
        self.require(tensor.axes in axes, f"it works on axes {tensor.axes or 'none'} of "
                     f"{list(tensor.sizes)}; known are "
                     + ", ".join(f"{what[each]} ({each})" for each in axes))
        return tensor

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


def side(call, value, what):
    """Of a square, or of the one axis that there is."""
    sides = set(value) if isinstance(value, (tuple, list)) else {value}
    call.require(len(sides) == 1, f"{what} = {tuple(value) if len(sides) > 1 else value}: windows "
                                  "must be square")
    only = sides.pop()
    call.require(isinstance(only, int), f"{what} = {only} is no whole number")
    return only


def image_axes(call, is_flat):
    """What windows move over."""
    if is_flat:
        return call.reads("ch").axes
    call.require(not call.network.has_one_axis, "images one column wide count as samples of one "
                                                "axis; give --input C,L and layers of 1d")
    return call.reads("chw").axes


def given(**keys):
    """Keys that are not at their defaults, which come as pairs (value, default)."""
    return {key: value for key, (value, otherwise) in keys.items() if value != otherwise}


# Layers with parameters.

def convolution(call):
    module = call.module
    axes = image_axes(call, isinstance(module, (nn.Conv1d, nn.ConvTranspose1d)))
    call.require(module.padding_mode == "zeros", f"padding_mode = {module.padding_mode}")
    kernel = side(call, module.kernel_size, "kernel_size")
    dilation = side(call, module.dilation, "dilation")
    padding = module.padding
    if padding == "same":
        reach = dilation * (kernel - 1)
        call.require(reach % 2 == 0, "padding = same would need more on one side than on the other")
        padding = reach // 2
    padding = 0 if padding == "valid" else side(call, padding, "padding")
    is_transposed = isinstance(module, (nn.ConvTranspose1d, nn.ConvTranspose2d))
    more = side(call, module.output_padding, "output_padding") if is_transposed else 0
    has_bias = module.bias is not None
    return call.add("conv_transpose" if is_transposed else "conv", axes, module.out_channels,
                    ("weight", "bias") if has_bias else ("weight",), kernel=kernel,
                    **given(stride=(side(call, module.stride, "stride"), 1), padding=(padding, 0),
                            dilation=(dilation, 1), groups=(module.groups, 1),
                            output_padding=(more, 0), bias=(has_bias, True)))


def linear(call):
    module = call.module
    call.reads("c", "hc")
    call.require(not call.path.endswith("in_proj"), "decks keep the name in_proj for the products "
                 "of torch.nn.MultiheadAttention; give it another one")
    has_bias = module.bias is not None
    return call.add("linear", None, module.out_features,
                    ("weight", "bias") if has_bias else ("weight",),
                    **given(bias=(has_bias, True)))


def batch_norm(call):
    module = call.module
    call.reads("c") if isinstance(module, nn.BatchNorm1d) and call.tensor().axes == "c" else \
        image_axes(call, isinstance(module, nn.BatchNorm1d))
    call.require(module.affine, "it has no weight and bias")
    call.require(module.track_running_stats, "it has no running statistics")
    call.require(module.momentum is not None, "its running statistics are means over all batches")
    return call.add("batch_norm", None, None, ("weight", "bias", "running_mean", "running_var"),
                    **given(epsilon=(module.eps, 1e-5), momentum=(module.momentum, 0.1)))


def group_norm(call):
    call.reads("c", "ch", "chw")
    call.require(call.module.affine, "it has no weight and bias")
    return call.add("group_norm", None, call.module.num_groups, ("weight", "bias"),
                    **given(epsilon=(call.module.eps, 1e-5)))


def instance_norm(call):
    module = call.module
    image_axes(call, isinstance(module, nn.InstanceNorm1d))
    call.require(not module.track_running_stats, "it has running statistics")
    return call.add("instance_norm", None, None, ("weight", "bias") if module.affine else (),
                    **given(affine=(module.affine, False), epsilon=(module.eps, 1e-5)))


def layer_norm(call):
    module, tensor = call.module, call.reads("c", "hc")
    call.require(tuple(module.normalized_shape) == (tensor.size("c"),),
                 f"normalized_shape = {tuple(module.normalized_shape)} is more than channels")
    call.require(module.weight is not None and getattr(module, "bias", None) is not None,
                 "it has no weight or no bias")
    return call.add("layer_norm", None, None, ("weight", "bias"),
                    **given(epsilon=(module.eps, 1e-5)))


def rms_norm(call):
    module, tensor = call.module, call.reads("c", "hc")
    call.require(tuple(module.normalized_shape) == (tensor.size("c"),),
                 f"normalized_shape = {tuple(module.normalized_shape)} is more than channels")
    call.require(module.weight is not None, "it has no weight")
    epsilon = torch.finfo(module.weight.dtype).eps if module.eps is None else module.eps
    return call.add("rms_norm", None, None, ("weight",), **given(epsilon=(epsilon, 1e-6)))


def attention(call):
    module = call.module
    tensor = call.get(0, "query")
    call.require(isinstance(tensor, Tensor) and tensor == call.get(1, "key")
                 and tensor == call.get(2, "value"), "query, key and value are not the same")
    call.require(tensor.axes == "hc" and module.batch_first, "it wants batch_first = True")
    call.require(module.in_proj_weight is not None and module.bias_k is None
                 and not module.add_zero_attn, "kdim, vdim, add_bias_kv or add_zero_attn is set")
    call.require(module.dropout == 0, f"dropout = {module.dropout} of its scores")
    for index, name in ((3, "key_padding_mask"), (5, "attn_mask")):
        call.require(call.get(index, name) is None, f"it has {name}")
    call.require(not call.get(7, "is_causal", False), "it is causal")
    call.require(not any(len(node.users) and node.args[1] != 0 for node in call.node.users),
                 "its scores are read")
    width, has_bias = module.embed_dim, module.in_proj_bias is not None
    tokens = tensor.size("h")

    def product(read, features, name, separator):
        parameters = [f"{separator}weight"] + [f"{separator}bias"] * has_bias
        line = call.network.add("linear", [read], "hc", (tokens, features), features,
                                f"{call.path}.{name}", ("weight",), **given(bias=(has_bias, True)))
        call.network.lines[-1].parameters = [f"{call.path}.{name}{each}" for each in parameters]
        return line

    made = product(tensor, 3 * width, "in_proj", "_")
    made = call.network.add("attention", [made], "hc", (tokens, width), module.num_heads)
    return [product(made, width, "out_proj", "."), None]


# Layers without.

def by_number(word, **numbers):
    """A function of one number; `numbers` are attributes of the module and their defaults."""
    def convert(call):
        of = {key: getattr(call.module, key) if call.module is not None else
              call.get(index, key, otherwise)
              for index, (key, otherwise) in enumerate(numbers.items(), 1)}
        in_place = getattr(call.module, "inplace", False) or call.kwargs.get("inplace", False) \
            or str(call.node.target).endswith("_")
        main = next(iter(of.values()), None)
        rest = {key: (value, numbers[key]) for key, value in list(of.items())[1:]}
        if main == next(iter(numbers.values()), None):
            main = None
        return call.add(word, None, main, in_place=in_place, **given(**rest))
    return convert


def gelu(call):
    how = call.module.approximate if call.module is not None else call.get(1, "approximate", "none")
    return call.add("gelu_tanh" if how == "tanh" else "gelu")


def dropping(word):
    def convert(call):
        module = call.module
        if module is None:
            call.require(call.node.target is F.dropout, "it is known as a module alone")
            if not call.get(2, "training", True):
                return call.tensor()
        share = module.p if module is not None else call.get(1, "p", 0.5)
        if getattr(module, "mode", "row") != "row":
            call.refuse(f"mode = {module.mode}")
        if share == 0:
            return call.tensor()
        return call.add(word, None, share, in_place=getattr(module, "inplace", False))
    return convert


def max_pool(call):
    def of(index, name, otherwise):
        return getattr(call.module, name) if call.module is not None else \
            call.get(index, name, otherwise)
    call.reads("ch" if call.network.has_one_axis else "chw")
    kernel = side(call, of(1, "kernel_size", None), "kernel_size")
    stride = of(2, "stride", None)
    stride = kernel if stride is None or stride == [] else side(call, stride, "stride")
    call.require(side(call, of(4, "dilation", 1), "dilation") == 1, "it has a dilation")
    call.require(not of(6, "return_indices", False), "it returns indices")
    return call.add("max_pool", None, kernel,
                    **given(stride=(stride, kernel),
                            padding=(side(call, of(3, "padding", 0), "padding"), 0),
                            ceil_mode=(bool(of(5, "ceil_mode", False)), False)))


def avg_pool(call):
    def of(index, name, otherwise):
        return getattr(call.module, name, otherwise) if call.module is not None else \
            call.get(index, name, otherwise)
    call.reads("ch" if call.network.has_one_axis else "chw")
    kernel = side(call, of(1, "kernel_size", None), "kernel_size")
    stride = of(2, "stride", None)
    stride = kernel if stride is None or stride == [] else side(call, stride, "stride")
    padding = side(call, of(3, "padding", 0), "padding")
    tensor = call.tensor()
    overhangs = any((tensor.size(axis) + 2 * padding - kernel) % stride for axis in tensor.axes[1:])
    call.require(not of(4, "ceil_mode", False) or not overhangs, "ceil_mode = True")
    call.require(padding == 0 or of(5, "count_include_pad", True), "count_include_pad = False")
    call.require(of(6, "divisor_override", None) is None, "divisor_override is set")
    return call.add("avg_pool", None, kernel,
                    **given(stride=(stride, kernel), padding=(padding, 0)))


def adaptive_avg_pool(call):
    tensor = call.reads("ch" if call.network.has_one_axis else "chw")
    wanted = call.module.output_size if call.module is not None else call.get(1, "output_size")
    size = side(call, wanted, "output_size")
    if all(tensor.size(axis) == size for axis in tensor.axes[1:]):
        return tensor
    if size == 1:
        return call.add("global_avg_pool")
    return call.add("adaptive_avg_pool", None, size)


def mean(call):
    tensor = call.reads("ch", "chw", "hc")
    dims = call.get(1, "dim")
    dims = [dims] if isinstance(dims, int) else list(dims or [])
    rank = len(tensor.axes) + 1
    over = {tensor.axes[each % rank - 1] for each in dims if each % rank > 0}
    call.require(over == set(tensor.axes) - {"c"} and len(over) == len(dims),
                 f"a mean over axes {dims} of {list(tensor.sizes)} is none over all pixels of each "
                 "channel")
    return call.add("global_avg_pool", tensor.axes if call.get(2, "keepdim", False) else "c")


def upsample(call):
    module = call.module
    tensor = call.reads("ch" if call.network.has_one_axis else "chw")
    mode = module.mode if module is not None else call.get(3, "mode", "nearest")
    corners = module.align_corners if module is not None else call.get(4, "align_corners")
    words = {"nearest": "upsample_nearest", "bilinear": "upsample_linear",
             "linear": "upsample_linear"}
    call.require(mode in words and not corners, f"mode = {mode}, align_corners = {corners}")
    factors = {now / before for now, before in zip(call.sizes[1:], tensor.sizes[1:])}
    factor = factors.pop()
    call.require(not factors and factor == int(factor), f"it makes {list(call.sizes[1:])} of "
                                                        f"{list(tensor.sizes[1:])}")
    return call.add(words[mode], None, int(factor))


# Shapes. Nothing is computed, and where the order of the numbers stays, there is no line either.

def reshape(call):
    tensor, wanted = call.tensor(), call.sizes
    if wanted == tensor.sizes:
        return tensor
    pixels = tensor.size("h") * tensor.size("w")
    if tensor.axes in ("chw", "ch") and wanted == (tensor.size("c") * pixels,):
        if pixels == 1:
            return Tensor(tensor.line, "c", wanted)
        return call.network.add("flatten", [tensor], "c", wanted, is_view=True)
    if tensor.axes == "hc" and tensor.size("h") == 1 and wanted == (tensor.size("c"),):
        return Tensor(tensor.line, "c", wanted)
    if tensor.axes == "c" and wanted[0] == tensor.size("c") and len(wanted) < 4:
        return Tensor(tensor.line, "chw"[:len(wanted)], wanted)
    if tensor.axes == "chw" and wanted == (tensor.size("c"), pixels):
        return Tensor(tensor.line, "cs", wanted)
    return call.refuse(f"no layer makes {list(wanted)} of {list(tensor.sizes)}"
                       + ("" if tensor.axes[0] == "c" else f" whose axes are {tensor.axes}"))


def permute(call):
    tensor, rank = call.tensor(), len(call.sizes) + 1
    dims = call.get(1, "dims")
    dims = list(call.args[1:]) if isinstance(dims, int) else list(dims)
    dims = [each % rank for each in dims]
    call.require(dims[0] == 0, "it moves the batch")
    return Tensor(tensor.line, "".join(tensor.axes[each - 1] for each in dims[1:]), call.sizes)


def transpose(call):
    tensor, rank = call.tensor(), len(call.sizes) + 1
    first, second = call.get(1, "dim0") % rank, call.get(2, "dim1") % rank
    call.require(first > 0 and second > 0, "it moves the batch")
    axes = list(tensor.axes)
    axes[first - 1], axes[second - 1] = axes[second - 1], axes[first - 1]
    return Tensor(tensor.line, "".join(axes), call.sizes)


def item(call):
    """One of several that a call left, or the first token."""
    if isinstance(call.args[0], (list, tuple)):
        return call.args[0][call.args[1]]
    tensor = call.tensor()
    if tensor.axes == "hc" and call.args[1] == (slice(None), 0):
        return call.add("first_token", "c")
    return call.refuse(f"parts of {list(tensor.sizes)} are taken")


def same(call):
    return call.tensor()


# What joins tensors.

def nearest_first(tensors):
    """A line changes what the one before it left, where it may."""
    return sorted(tensors, key=lambda tensor: -tensor.line)


def joining(word, call, in_place):
    tensors = [call.args[0], call.get(1, "other")]
    call.require(len({tensor.axes for tensor in tensors}) == 1,
                 f"it joins axes {tensors[0].axes} of {list(tensors[0].sizes)} and "
                 f"{tensors[1].axes} of {list(tensors[1].sizes)}")
    if word == "add":
        call.require(tensors[0].sizes == tensors[1].sizes, "it repeats the smaller tensor")
    ordered = tensors if in_place else nearest_first(tensors)
    return call.network.add(word, ordered, ordered[0].axes, call.sizes, in_place=in_place)


def positions(call):
    """torchvision's vision transformers put the class token in front and add positions: one layer
    with the convolution before."""
    tokens = call.args[0]
    line = call.network.lines[tokens.line]
    is_known = (str(call.args[1]) == "encoder.pos_embedding" and tokens.line ==
                len(call.network.lines) - 1 and line.word == "conv" and line.inputs == [-1]
                and line.keys.get("stride", 1) == line.keys["kernel"]
                and set(line.keys) == {"kernel", "stride"})
    call.require(is_known, "tokens of images are known as torchvision's VisionTransformer makes "
                           "them alone")
    line.word, line.keys = "patch_embedding", {"patch": line.keys["kernel"]}
    line.parameters += ["class_token", "encoder.pos_embedding"]
    return Tensor(tokens.line, "hc", call.sizes)


def add(call, sign=1, in_place=False):
    first, second = call.args[0], call.get(1, "other")
    call.require(call.kwargs.get("alpha", 1) == 1, "alpha is set")
    if isinstance(first, Tensor) and first.axes == "tc":
        return positions(call)
    call.require(isinstance(first, Tensor) and isinstance(second, Tensor),
                 "numbers or parameters are added; no layer does that")
    if sign < 0:
        call.args[1] = call.network.add("scale", [second], second.axes, second.sizes, -1.0)
    return joining("add", call, in_place)


def multiply(call, in_place=False):
    first, second = call.args[0], call.get(1, "other")
    if isinstance(first, Tensor) and isinstance(second, Tensor):
        return joining("multiply", call, in_place)
    if not isinstance(first, Tensor):
        call.args = [second, first]
    factor = call.args[1]
    call.require(isinstance(factor, (int, float)), "a parameter is a factor; no layer has that")
    return call.add("scale", None, float(factor), in_place=in_place)


def divide(call):
    call.require(isinstance(call.get(1, "other"), (int, float)), "it divides by a tensor")
    return call.add("scale", None, 1 / call.get(1, "other"))


def concat(call):
    tensors = call.get(0, "tensors")
    if len(tensors) == 2 and tensors[0] == "class_token" and tensors[1].axes == "sc":
        return Tensor(tensors[1].line, "tc", call.sizes)
    axis = call.get(1, "dim", call.kwargs.get("axis", 0)) % (len(call.sizes) + 1)
    call.require(all(isinstance(each, Tensor) for each in tensors)
                 and len({each.axes for each in tensors}) == 1, "it joins unlike axes")
    call.require(axis > 0 and tensors[0].axes[axis - 1] == "c", f"it joins along axis {axis}, which "
                                                                "are no channels")
    # What is joined step by step is not joined again from its beginning.
    network = call.network
    known = network.__dict__.setdefault("joined", {})
    done = next((k for k in range(len(tensors), 1, -1) if tuple(tensors[:k]) in known), 1)
    made = known.get(tuple(tensors[:done]), tensors[0])
    if done < len(tensors):
        made = network.add("concat", [made, *tensors[done:]], tensors[0].axes, call.sizes)
    known[tuple(tensors)] = made
    return made


MODULES = {
    nn.Conv1d: convolution, nn.Conv2d: convolution, nn.ConvTranspose1d: convolution,
    nn.ConvTranspose2d: convolution, nn.Linear: linear, nn.BatchNorm1d: batch_norm,
    nn.BatchNorm2d: batch_norm, nn.GroupNorm: group_norm, nn.InstanceNorm1d: instance_norm,
    nn.InstanceNorm2d: instance_norm, nn.LayerNorm: layer_norm, nn.MultiheadAttention: attention,
    nn.ReLU: by_number("relu"), nn.ReLU6: by_number("relu6"), nn.SiLU: by_number("silu"),
    nn.Sigmoid: by_number("sigmoid"), nn.Tanh: by_number("tanh"), nn.GELU: gelu,
    nn.Hardswish: by_number("hard_swish"), nn.Hardsigmoid: by_number("hard_sigmoid"),
    nn.ELU: by_number("elu", alpha=1.0), nn.LeakyReLU: by_number("leaky_relu", negative_slope=0.01),
    nn.Softplus: by_number("softplus", beta=1.0, threshold=20.0), nn.Dropout: dropping("dropout"),
    nn.MaxPool1d: max_pool, nn.MaxPool2d: max_pool, nn.AvgPool1d: avg_pool, nn.AvgPool2d: avg_pool,
    nn.AdaptiveAvgPool1d: adaptive_avg_pool, nn.AdaptiveAvgPool2d: adaptive_avg_pool,
    nn.Upsample: upsample, nn.UpsamplingNearest2d: upsample, nn.Flatten: reshape,
    nn.Identity: same,
}
if hasattr(nn, "RMSNorm"):
    MODULES[nn.RMSNorm] = rms_norm
# By the names of their classes, since nobody needs torchvision for networks without it.
NAMED = {STOCHASTIC_DEPTH: dropping("stochastic_depth")}

FUNCTIONS = {
    F.relu: by_number("relu"), torch.relu: by_number("relu"), torch.relu_: by_number("relu"),
    F.relu6: by_number("relu6"), F.silu: by_number("silu"), torch.sigmoid: by_number("sigmoid"),
    F.sigmoid: by_number("sigmoid"), torch.tanh: by_number("tanh"), F.tanh: by_number("tanh"),
    F.gelu: gelu, F.hardswish: by_number("hard_swish"), F.hardsigmoid: by_number("hard_sigmoid"),
    F.elu: by_number("elu", alpha=1.0), F.leaky_relu: by_number("leaky_relu", negative_slope=0.01),
    F.softplus: by_number("softplus", beta=1.0, threshold=20.0), F.dropout: dropping("dropout"),
    F.max_pool1d: max_pool, F.max_pool2d: max_pool, F.avg_pool1d: avg_pool, F.avg_pool2d: avg_pool,
    F.adaptive_avg_pool1d: adaptive_avg_pool, F.adaptive_avg_pool2d: adaptive_avg_pool,
    F.interpolate: upsample, torch.mean: mean, torch.flatten: reshape, torch.reshape: reshape,
    torch.squeeze: reshape, torch.unsqueeze: reshape, torch.permute: permute,
    torch.transpose: transpose, operator.getitem: item, operator.add: add, torch.add: add,
    operator.iadd: lambda call: add(call, in_place=True),
    operator.sub: lambda call: add(call, sign=-1), torch.sub: lambda call: add(call, sign=-1),
    operator.mul: multiply, torch.mul: multiply,
    operator.imul: lambda call: multiply(call, in_place=True), operator.truediv: divide,
    torch.div: divide, torch.cat: concat, torch.concat: concat,
}
METHODS = {
    "relu": by_number("relu"), "relu_": by_number("relu"), "sigmoid": by_number("sigmoid"),
    "tanh": by_number("tanh"), "mean": mean, "flatten": reshape, "view": reshape,
    "reshape": reshape, "squeeze": reshape, "unsqueeze": reshape, "permute": permute,
    "transpose": transpose, "contiguous": same, "add": add, "mul": multiply, "div": divide,
    "add_": lambda call: add(call, in_place=True), "mul_": lambda call: multiply(call, in_place=True),
    "sub": lambda call: add(call, sign=-1),
}
LEAVES = set(NAMED)


class Conversion:
    """Goes through the calls of a traced module."""

    def __init__(self, module, traced, shape):
        self.module, self.traced = module, traced
        self.modules = dict(module.named_modules(remove_duplicate=False))
        self.network = Network(Tensor(-1, "chw"[:len(shape)], tuple(shape)))
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
            elif node.op == "call_method" and node.target == "expand":
                self.made[node] = self.value(node.args[0], node)  # a class token
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
            known = MODULES.get(type(module)) or NAMED.get(name_of(module))
            what = name_of(module).removeprefix("torch.nn.modules.")
            self.check_module(call)
        else:
            known = (FUNCTIONS if node.op == "call_function" else METHODS).get(node.target)
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
        if output.axes not in ("c", "ch", "chw"):
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
