# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
"""What each call of PyTorch is in Carousel. A function for each kind gets a `Call` of conversion.py and
returns the tensor that its lines leave; what has none, or says more than decks can, is refused."""

import operator

import torch
from torch import nn
from torch.nn import functional as F

from .network import AXES, Tensor

STOCHASTIC_DEPTH = "torchvision.ops.stochastic_depth.StochasticDepth"


def side(call, value, what):
    """Of a square, of a cube, or of the one axis that there is."""
    sides = set(value) if isinstance(value, (tuple, list)) else {value}
    call.require(len(sides) == 1, f"{what} = {tuple(value) if len(sides) > 1 else value}: windows "
                                  "must be square, of volumes cubes")
    only = sides.pop()
    call.require(isinstance(only, int), f"{what} = {only} is no whole number")
    return only


def image_axes(call):
    """What windows of its module move over, which must be what samples are."""
    kinds = {"1d": "ch", "2d": "chw", "3d": "cdhw"}
    axes, samples = kinds[type(call.module).__name__[-2:]], call.network.images
    hints = {("chw", "ch"): "images one column wide count as samples of one axis; give --input C,L "
                            "and layers of 1d",
             ("cdhw", "chw"): "volumes of one slice count as images; give --input C,H,W and layers "
                              "of 2d"}
    call.require(axes == samples, hints.get((axes, samples), f"its windows move over {axes[1:]}, and "
                                            f"samples are {samples}"))
    return call.reads_images().axes


def given(**keys):
    """Keys that are not at their defaults, which come as pairs (value, default)."""
    return {key: value for key, (value, otherwise) in keys.items() if value != otherwise}


# Layers with parameters.

def convolution(call):
    module = call.module
    axes = image_axes(call)
    call.require(module.padding_mode == "zeros", f"padding_mode = {module.padding_mode}")
    kernel = side(call, module.kernel_size, "kernel_size")
    dilation = side(call, module.dilation, "dilation")
    padding = module.padding
    if padding == "same":
        reach = dilation * (kernel - 1)
        call.require(reach % 2 == 0, "padding = same would need more on one side than on the other")
        padding = reach // 2
    padding = 0 if padding == "valid" else side(call, padding, "padding")
    is_transposed = "Transpose" in type(module).__name__
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
    if not isinstance(module, nn.BatchNorm1d) or call.tensor().axes != "c":
        image_axes(call)
    call.require(module.affine, "it has no weight and bias")
    call.require(module.track_running_stats, "it has no running statistics")
    call.require(module.momentum is not None, "its running statistics are means over all batches")
    return call.add("batch_norm", None, None, ("weight", "bias", "running_mean", "running_var"),
                    **given(epsilon=(module.eps, 1e-5), momentum=(module.momentum, 0.1)))


def group_norm(call):
    call.reads("c", "ch", "chw", "cdhw")
    call.require(call.module.affine, "it has no weight and bias")
    return call.add("group_norm", None, call.module.num_groups, ("weight", "bias"),
                    **given(epsilon=(call.module.eps, 1e-5)))


def instance_norm(call):
    module = call.module
    image_axes(call)
    call.require(not module.track_running_stats, "it has running statistics")
    return call.add("instance_norm", None, None, ("weight", "bias") if module.affine else (),
                    **given(affine=(module.affine, False), epsilon=(module.eps, 1e-5)))


def require_channels_alone(call):
    tensor, shape = call.reads("c", "hc"), tuple(call.module.normalized_shape)
    call.require(shape == (tensor.size("c"),), f"normalized_shape = {shape} is more than channels")


def layer_norm(call):
    module = call.module
    require_channels_alone(call)
    call.require(module.weight is not None, "it has no weight")
    biased = module.bias is not None
    return call.add("layer_norm", None, None, ("weight", "bias") if biased else ("weight",),
                    **given(bias=(biased, True), epsilon=(module.eps, 1e-5)))


def rms_norm(call):
    module = call.module
    require_channels_alone(call)
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
    """A function of one number; `numbers` are attributes of the module and their defaults, the main
    size first."""
    def convert(call):
        main, *rest = [(key, call.option(index, key, otherwise), otherwise)
                       for index, (key, otherwise) in enumerate(numbers.items(), 1)] or [(None,) * 3]
        return call.add(word, None, None if main[1] == main[2] else main[1],
                        in_place=call.is_in_place(1 + len(numbers)),
                        **given(**{key: (value, otherwise) for key, value, otherwise in rest}))
    return convert


def gelu(call):
    return call.add("gelu_tanh" if call.option(1, "approximate", "none") == "tanh" else "gelu")


def dropping(word):
    def convert(call):
        share = call.option(1, "p", 0.5)
        mode = getattr(call.module, "mode", "row")
        call.require(mode == "row", f"mode = {mode}")
        is_off = call.module is None and not call.get(2, "training", True)
        if share == 0 or is_off:
            return call.tensor()
        return call.add(word, None, share, in_place=call.is_in_place(3))
    return convert


def window(call):
    """Kernel, stride and padding of a pooling."""
    kernel = side(call, call.option(1, "kernel_size"), "kernel_size")
    stride = call.option(2, "stride")
    return (kernel, kernel if stride is None or stride == [] else side(call, stride, "stride"),
            side(call, call.option(3, "padding", 0), "padding"))


def max_pool(call):
    call.reads_images()
    kernel, stride, padding = window(call)
    call.require(side(call, call.option(4, "dilation", 1), "dilation") == 1, "it has a dilation")
    call.require(not call.option(6, "return_indices", False), "it returns indices")
    return call.add("max_pool", None, kernel,
                    **given(stride=(stride, kernel), padding=(padding, 0),
                            ceil_mode=(bool(call.option(5, "ceil_mode", False)), False)))


def avg_pool(call):
    tensor = call.reads_images()
    kernel, stride, padding = window(call)
    overhangs = any((tensor.size(axis) + 2 * padding - kernel) % stride for axis in tensor.axes[1:])
    call.require(not call.option(4, "ceil_mode", False) or not overhangs, "ceil_mode = True")
    call.require(padding == 0 or call.option(5, "count_include_pad", True),
                 "count_include_pad = False")
    call.require(call.option(6, "divisor_override") is None, "divisor_override is set")
    return call.add("avg_pool", None, kernel,
                    **given(stride=(stride, kernel), padding=(padding, 0)))


def adaptive_avg_pool(call):
    tensor = call.reads_images()
    size = side(call, call.option(1, "output_size"), "output_size")
    if all(tensor.size(axis) == size for axis in tensor.axes[1:]):
        return tensor
    if size == 1:
        return call.add("global_avg_pool")
    return call.add("adaptive_avg_pool", None, size)


def mean(call):
    tensor = call.reads("ch", "chw", "cdhw", "hc")
    dims = call.get(1, "dim")
    dims = [dims] if isinstance(dims, int) else list(dims or [])
    rank = len(tensor.axes) + 1
    over = {tensor.axes[each % rank - 1] for each in dims if each % rank > 0}
    call.require(over == set(tensor.axes) - {"c"} and len(over) == len(dims),
                 f"a mean over axes {dims} of {list(tensor.sizes)} is none over all pixels of each "
                 "channel")
    return call.add("global_avg_pool", tensor.axes if call.get(2, "keepdim", False) else "c")


def upsample(call):
    tensor = call.reads_images()
    mode, corners = call.option(3, "mode", "nearest"), call.option(4, "align_corners")
    words = {"nearest": "upsample_nearest", "bilinear": "upsample_linear",
             "linear": "upsample_linear", "trilinear": "upsample_linear"}
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
    pixels = tensor.size("d") * tensor.size("h") * tensor.size("w")
    if tensor.axes in ("cdhw", "chw", "ch") and wanted == (tensor.size("c") * pixels,):
        if pixels == 1:
            return Tensor(tensor.line, "c", wanted)
        return call.network.add("flatten", [tensor], "c", wanted, is_view=True)
    if tensor.axes == "hc" and tensor.size("h") == 1 and wanted == (tensor.size("c"),):
        return Tensor(tensor.line, "c", wanted)
    if tensor.axes == "c" and wanted[0] == tensor.size("c") and len(wanted) in AXES:
        return Tensor(tensor.line, AXES[len(wanted)], wanted)
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


def expand(call):
    """Of a class token, a token for each sample; of a tensor, nothing that layers do."""
    made = call.args[0]
    call.require(not isinstance(made, Tensor) or made.sizes == call.sizes, "it repeats numbers")
    return made


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
    known = network.joined
    done = next((k for k in range(len(tensors), 1, -1) if tuple(tensors[:k]) in known), 1)
    made = known.get(tuple(tensors[:done]), tensors[0])
    if done < len(tensors):
        made = network.add("concat", [made, *tensors[done:]], tensors[0].axes, call.sizes)
    known[tuple(tensors)] = made
    return made


MODULES = {
    nn.Linear: linear, nn.GroupNorm: group_norm, nn.LayerNorm: layer_norm,
    nn.MultiheadAttention: attention,
    nn.ReLU: by_number("relu"), nn.ReLU6: by_number("relu6"), nn.SiLU: by_number("silu"),
    nn.Sigmoid: by_number("sigmoid"), nn.Tanh: by_number("tanh"), nn.GELU: gelu,
    nn.Hardswish: by_number("hard_swish"), nn.Hardsigmoid: by_number("hard_sigmoid"),
    nn.ELU: by_number("elu", alpha=1.0), nn.LeakyReLU: by_number("leaky_relu", negative_slope=0.01),
    nn.Softplus: by_number("softplus", beta=1.0, threshold=20.0), nn.Dropout: dropping("dropout"),
    nn.Upsample: upsample, nn.UpsamplingNearest2d: upsample, nn.Flatten: reshape,
    nn.Identity: same,
}
for axes in ("1d", "2d", "3d"):
    MODULES |= {getattr(nn, name + axes): known for name, known in {
        "Conv": convolution, "ConvTranspose": convolution, "BatchNorm": batch_norm,
        "InstanceNorm": instance_norm, "MaxPool": max_pool, "AvgPool": avg_pool,
        "AdaptiveAvgPool": adaptive_avg_pool}.items()}
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
    F.interpolate: upsample, torch.mean: mean, torch.flatten: reshape, torch.reshape: reshape,
    torch.squeeze: reshape, torch.unsqueeze: reshape, torch.permute: permute,
    torch.transpose: transpose, operator.getitem: item, operator.add: add, torch.add: add,
    operator.iadd: lambda call: add(call, in_place=True),
    operator.sub: lambda call: add(call, sign=-1), torch.sub: lambda call: add(call, sign=-1),
    operator.mul: multiply, torch.mul: multiply,
    operator.imul: lambda call: multiply(call, in_place=True), operator.truediv: divide,
    torch.div: divide, torch.cat: concat, torch.concat: concat,
}
for axes in ("1d", "2d", "3d"):
    FUNCTIONS |= {getattr(F, name + axes): known for name, known in {
        "max_pool": max_pool, "avg_pool": avg_pool, "adaptive_avg_pool": adaptive_avg_pool}.items()}
METHODS = {
    "relu": by_number("relu"), "relu_": by_number("relu"), "sigmoid": by_number("sigmoid"),
    "tanh": by_number("tanh"), "mean": mean, "flatten": reshape, "view": reshape,
    "reshape": reshape, "squeeze": reshape, "unsqueeze": reshape, "permute": permute,
    "transpose": transpose, "expand": expand, "contiguous": same, "add": add, "mul": multiply, "div": divide,
    "add_": lambda call: add(call, in_place=True), "mul_": lambda call: multiply(call, in_place=True),
    "sub": lambda call: add(call, sign=-1),
}
LEAVES = set(NAMED)
