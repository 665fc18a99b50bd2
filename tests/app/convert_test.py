# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
"""Networks of PyTorch as decks, by app/convert: convert_test.py CAROUSEL PROJECT.

Small networks that have every kind of call give PyTorch's outputs, and their state_dict comes back
to the bit; what decks cannot say is refused by its path. Skipped where no Python has torch;
convert_torchvision.py does the same with torchvision's classifiers.
"""

import contextlib
import importlib.util
import io
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SKIPPED = 125
if importlib.util.find_spec("torch") is None:
    other = os.environ.get("CAROUSEL_TORCH_PYTHON") or shutil.which("python3")
    has_torch = other and other != sys.executable and subprocess.run(
        [other, "-c", "import h5py, torch"], capture_output=True).returncode == 0
    if not has_torch:
        print("skipped: no torch")
        sys.exit(SKIPPED)
    os.execv(other, [other, *sys.argv])

import h5py
import numpy
import torch

CAROUSEL, PROJECT = sys.argv[1], pathlib.Path(sys.argv[2])
sys.dont_write_bytecode = True
spec = importlib.util.spec_from_file_location("convert", PROJECT / "app/convert/__main__.py")
program = importlib.util.module_from_spec(spec)
spec.loader.exec_module(program)
MAIN = program.main

NETS = '''from layers import WIDTH
import torch
from torch import nn
from torch.nn import functional as F

class Residual(nn.Module):
    """Layers in place change what others read, as torch has it."""
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding="same", bias=False)
        self.norm = nn.BatchNorm2d(8, eps=1e-3, momentum=0.3)
        self.act = nn.ReLU(inplace=True)
        self.conv = nn.Conv2d(8, 8, 3, padding=1, groups=4, dilation=1)
        self.gate = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(8, 4, 1), nn.SiLU(),
                                  nn.Conv2d(4, 8, 1), nn.Hardsigmoid())
        self.skip = nn.Identity()
        self.drop = nn.Dropout(0.2, inplace=True)
        self.head = nn.Linear(16, 5)
    def forward(self, x):
        x = self.norm(self.stem(x))
        before = x
        y = self.act(x)            # `before` is rectified, too
        y = self.conv(y)
        y = self.gate(y) * y
        y += self.skip(before)
        y = F.leaky_relu(y, 0.2)
        y = torch.cat([F.max_pool2d(y, 3, 2, 1, ceil_mode=True), F.avg_pool2d(y, 2, padding=1)], 1)
        y = self.drop(y) / 2 - 0.5 * y
        return self.head(torch.flatten(F.adaptive_avg_pool2d(y, (1, 1)), 1))

class Dense(nn.Module):
    def __init__(self):
        super().__init__()
        self.convs = nn.ModuleList(nn.Conv2d(3 + 4 * k, 4, 3, padding=1) for k in range(3))
        self.up = nn.ConvTranspose2d(15, 6, 2, 2)
        self.last = nn.Conv2d(6, 5, 1)
    def forward(self, x):
        kept = [x]
        for conv in self.convs:
            kept.append(F.gelu(conv(torch.cat(kept, 1)), approximate="tanh"))
        y = nn.functional.interpolate(torch.cat(kept, dim=1).tanh(), scale_factor=2, mode="bilinear")
        y = F.max_pool2d(y, 4)
        return self.last(self.up(y)).sigmoid()

class Signal(nn.Module):
    """One axis, and a group norm."""
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv1d(2, 8, 5, stride=2, padding=2), nn.GroupNorm(2, 8),
                                  nn.ELU(0.7), nn.MaxPool1d(2), nn.Conv1d(8, 12, 3), nn.Hardswish(),
                                  nn.BatchNorm1d(12))
        self.head = nn.Sequential(nn.Linear(12, 7), nn.Softplus(beta=2.0), nn.Linear(7, 5))
    def forward(self, x):
        return self.head(self.body(x).mean(dim=2))

class Volume(nn.Module):
    """Three axes, and joins of them."""
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv3d(2, 16, 3, padding=1)
        self.norm = nn.BatchNorm3d(16)
        self.down = nn.Conv3d(16, 16, 3, stride=2, padding=1, groups=2, bias=False)
        self.scaled = nn.InstanceNorm3d(16, affine=True)
        self.up = nn.ConvTranspose3d(16, 8, 2, 2)
        self.head = nn.Sequential(nn.AdaptiveAvgPool3d(2), nn.Flatten(), nn.Linear(8 * 26, 5))
    def forward(self, x):
        y = F.leaky_relu(self.norm(self.conv(x)), 0.3)
        z = self.up(self.scaled(self.down(y)))
        half = F.interpolate(F.avg_pool3d(x, 2), scale_factor=2, mode="trilinear")
        x = torch.cat([F.max_pool3d(y, 3, 1, 1), z, half], 1)
        return self.head(x * x.mean((2, 3, 4), keepdim=True))

class Table(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(6, 16), nn.LayerNorm(16), nn.GELU(),
                                    nn.Linear(16, 16, bias=False), nn.BatchNorm1d(16), nn.Tanh())
        self.head = nn.Linear(16, 5)
        self.scale = 0.5
    def forward(self, x):
        y = self.layers(x)
        return self.head(F.relu6(y.mul(self.scale)) + y)

class InPlace(nn.Module):
    """In place by name, by a flag, and not though its name ends so."""
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(6, 8), nn.Linear(8, 5)
        self.act_ = nn.Tanh()
    def forward(self, x):
        y = self.first(x)
        y = self.act_(y) + y
        z = torch.relu_(y) + y     # of which both are rectified
        return self.last(F.leaky_relu(z - 1.5 * y, 0.1, True) + z)

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(16, eps=1e-6), nn.LayerNorm(16, eps=1e-6)
        self.self_attention = nn.MultiheadAttention(16, 4, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Dropout(0.0), nn.Linear(32, 16))
    def forward(self, x):
        y = self.ln_1(x)
        y, _ = self.self_attention(y, y, y, need_weights=False)
        x = x + y
        return x + self.mlp(self.ln_2(x))

class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.pos_embedding = nn.Parameter(torch.randn(1, 17, 16))
        self.layers = nn.Sequential(Block(), Block())
    def forward(self, x):
        return self.layers(x + self.pos_embedding)

class Vision(nn.Module):
    """As torchvision's, in small."""
    def __init__(self):
        super().__init__()
        self.conv_proj = nn.Conv2d(3, 16, 4, 4)
        self.class_token = nn.Parameter(torch.randn(1, 1, 16))
        self.encoder = Encoder()
        self.head = nn.Linear(16, 5)
    def forward(self, x):
        n = x.shape[0]
        x = self.conv_proj(x).reshape(n, 16, 16).permute(0, 2, 1)
        x = torch.cat([self.class_token.expand(n, -1, -1), x], dim=1)
        return self.head(self.encoder(x)[:, 0])

class Wrapped(nn.Module):
    def __init__(self, *layers, forward=None):
        super().__init__()
        self.part = nn.Sequential(*layers)
        self.act = forward
    def forward(self, x):
        x = self.part(x)
        return x if self.act is None else self.act(x)

class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(6, 6), nn.Linear(6, 6)
        self.second.weight = self.first.weight
    def forward(self, x):
        return self.second(self.first(x))

class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(6, 6)
    def forward(self, x):
        return self.first(self.first(x))

class Unused(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.aux = nn.Linear(6, 6), nn.Linear(6, 6)
    def forward(self, x):
        return self.first(x)

class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(6, 6)
    def forward(self, x):
        return self.first(x), x

class Branching(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(6, 6)
    def forward(self, x):
        return self.first(x) if x.sum() > 0 else x

class Spread(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(6, 1)
    def forward(self, x):
        return self.first(x).expand(-1, 6)

class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.gamma = nn.Linear(6, 6), nn.Parameter(torch.ones(6))
    def forward(self, x):
        return self.gamma * self.first(x)

def hooked():
    net = Wrapped(nn.Linear(6, 6))
    net.part[0].register_forward_hook(lambda *_: None)
    return net

refused = {
    "rectangle": lambda: Wrapped(nn.Conv2d(3, 4, (1, 7))),
    "box": lambda: Wrapped(nn.Conv3d(2, 4, (1, 3, 3))),
    "slices": lambda: Wrapped(nn.Conv2d(2, 4, 3)),
    "one_slice": lambda: Wrapped(nn.Conv3d(2, 4, 3, padding=1)),
    "one_column": lambda: Wrapped(nn.Conv2d(2, 4, 3, padding=1)),
    "reflect": lambda: Wrapped(nn.Conv2d(3, 4, 3, padding=1, padding_mode="reflect")),
    "no_affine": lambda: Wrapped(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4, affine=False)),
    "shuffle": lambda: Wrapped(nn.Conv2d(3, 4, 3), nn.PixelShuffle(2)),
    "channel_dropout": lambda: Wrapped(nn.Conv2d(3, 4, 3), nn.Dropout2d(0.5)),
    "uncounted": lambda: Wrapped(nn.AvgPool2d(3, padding=1, count_include_pad=False)),
    "softmax": lambda: Wrapped(nn.Conv2d(3, 4, 3), forward=nn.Softmax(1)),
    "image_linear": lambda: Wrapped(nn.Linear(8, 4)),
}
for name, make in refused.items():
    globals()[name] = make
'''

IMAGE, LINE, FEATURES, VOLUME = (3, 16, 16), (2, 30), (6,), (2, 6, 8, 10)
# What is said of it, and where.
REFUSED = {
    "rectangle": (IMAGE, "part.0: kernel_size = (1, 7): windows must be square, of volumes cubes"),
    "box": (VOLUME, "part.0: kernel_size = (1, 3, 3): windows must be square, of volumes cubes"),
    "slices": (VOLUME, "part.0: "),
    "one_slice": ((2, 1, 8, 8), "part.0: volumes of one slice count as images; give --input C,H,W"),
    "one_column": ((2, 8, 1), "part.0: images one column wide count as samples of one axis"),
    "reflect": (IMAGE, "part.0: padding_mode = reflect"),
    "no_affine": (IMAGE, "part.1: it has no weight and bias"),
    "shuffle": (IMAGE, "part.1: Carousel has no layer for pixelshuffle.PixelShuffle"),
    "channel_dropout": (IMAGE, "part.1: Carousel has no layer for dropout.Dropout2d"),
    "uncounted": (IMAGE, "part.0: count_include_pad = False"),
    "softmax": (IMAGE, "act: Carousel has no layer for activation.Softmax"),
    "image_linear": ((3, 4, 8), "part.0: it works on axes chw of [3, 4, 8]"),
    "Tied": (FEATURES, "second.weight is tied to first.weight"),
    "Twice": (FEATURES, "first: its parameters are used twice, first as first"),
    "Unused": (FEATURES, "aux.weight: no layer of its forward pass has it"),
    "Two": (FEATURES, "in training it leaves no single tensor"),
    "Branching": (FEATURES, "torch.fx cannot trace it"),
    "Scaled": (FEATURES, "mul: a parameter is a factor"),
    "Spread": (FEATURES, "expand: it repeats numbers"),
    "hooked": (FEATURES, "part.0: it has hooks"),
    "nothing": (FEATURES, "AttributeError"),
    "Table": (IMAGE, "layers.0: "),
}


class Conversions(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        (self.folder / "nets.py").write_text(NETS)
        (self.folder / "layers.py").write_text("WIDTH = 6\n")

    def run_in_folder(self, *words, code=0):
        done = subprocess.run([str(word) for word in words], cwd=self.folder, text=True,
                              capture_output=True, timeout=100)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def convert(self, name, shape, *words, code=0):
        """In this process, since torch takes seconds to load. Returns what went to stderr."""
        errors = io.StringIO()
        with contextlib.chdir(self.folder), contextlib.redirect_stderr(errors), \
                contextlib.redirect_stdout(io.StringIO()):
            try:
                ended = MAIN([f"nets.py:{name}", "--input", ",".join(map(str, shape)), *words])
            except SystemExit as usage:
                ended = usage.code
        self.assertEqual(ended, code, errors.getvalue())
        return errors.getvalue()

    def made(self, name, shape):
        """A network of that name with random running statistics, and inputs."""
        torch.manual_seed(3)
        names = {}
        exec(NETS.split("\n", 1)[1], names)
        network = names[name]()
        for key, tensor in network.state_dict().items():
            if "running" in key:
                tensor.uniform_(0.5, 1.5)
        torch.save(network.state_dict(), self.folder / "state.pt")
        return network.eval(), torch.randn(4, *shape)

    def outputs(self, name, inputs, pixels=()):
        with h5py.File(self.folder / "data.h5", "w") as file:
            file["inputs"] = inputs.numpy()
            file["labels"] = numpy.zeros((len(inputs), *pixels), numpy.int64)
        deck = f"{name}/deck.toml"
        data = f'data.files="{self.folder}/data.h5"'
        self.run_in_folder(CAROUSEL, "import", "weights", f"{name}/weights.h5", deck, "start.h5",
                           data, "data.validation_fraction=0.5", "train.micro_batch_size=1",
                           "parallel.micro_batches=2", "parallel.stages=2", "--overwrite")
        self.run_in_folder(CAROUSEL, "predict", "start.h5", "data.h5", "out.h5", "--overwrite")
        self.run_in_folder(CAROUSEL, "export", "weights", "start.h5", "back.h5", "--overwrite")
        with h5py.File(self.folder / "out.h5") as file:
            return torch.from_numpy(file["outputs"][()]).float()

    def test_outputs_and_weights_are_pytorchs(self):
        for name, shape in (("Residual", IMAGE), ("Dense", IMAGE), ("Signal", LINE),
                            ("Table", FEATURES), ("InPlace", FEATURES),
                            ("Vision", IMAGE), ("Volume", VOLUME)):
            with self.subTest(name):
                network, inputs = self.made(name, shape)
                self.convert(name, shape, "--weights", "state.pt")
                with torch.no_grad():
                    expected = network(inputs)
                found = self.outputs(name, inputs, expected.shape[2:])
                self.assertEqual(found.shape, expected.shape)
                self.assertLess((found - expected).abs().max(), 1e-5 * expected.abs().max())
                with h5py.File(self.folder / "back.h5") as file:
                    back = {key: torch.from_numpy(file[key][()]).float() for key in file}
                network.load_state_dict(back)
                for key, value in torch.load(self.folder / "state.pt", weights_only=True).items():
                    if not key.endswith("batches_tracked"):
                        self.assertTrue(torch.equal(network.state_dict()[key], value), key)

    def test_a_list_has_no_copies(self):
        """What is joined step by step is joined once, and shapes cost nothing."""
        self.convert("Dense", IMAGE)
        lines = (self.folder / "Dense/network.toml").read_text()
        self.assertEqual(lines.count("concat ="), 3)
        self.convert("Residual", IMAGE)
        lines = (self.folder / "Residual/network.toml").read_text()
        self.assertIn("epsilon = 0.001, momentum = 0.3, name = \"norm\"", lines)
        self.assertNotIn("flatten", lines)
        self.assertIn("dropout = 0.2", lines)

    def test_what_decks_cannot_say_is_refused_by_its_path(self):
        for name, (shape, said) in REFUSED.items():
            with self.subTest(name):
                line = self.convert(name, shape, code=2)
                self.assertEqual(line.count("\n"), 1, line)
                self.assertIn(said, line)
                self.assertTrue(line.startswith(f"convert: nets.py:{name}"), line)
                self.assertFalse((self.folder / name).exists())

    def test_files(self):
        line = self.run_in_folder(sys.executable, "-B", PROJECT / "app/convert", "none.py:Net",
                                  "--input", "6", code=74).stderr
        self.assertIn("none.py: no such file", line)
        self.convert("Table", FEATURES)
        self.assertIn("--overwrite replaces it", self.convert("Table", FEATURES, code=2))
        self.convert("Table", FEATURES, "--overwrite")
        self.convert("Table", FEATURES, "--output", "another")
        self.assertIn("is none of C,D,H,W, C,H,W", self.convert("Table", (6, 0), code=2))
        # A pickle may hold anything, and nothing of it is executed.
        (self.folder / "bad.pt").write_bytes(b"cos\nsystem\n(S'touch executed'\ntR.")
        line = self.convert("Table", FEATURES, "--weights", "bad.pt", "--overwrite", code=65)
        self.assertEqual(line.count("\n"), 1, line)
        self.assertFalse((self.folder / "executed").exists())
        torch.save({"layers.0.weight": torch.zeros(3)}, self.folder / "few.pt")
        line = self.convert("Table", FEATURES, "--weights", "few.pt", "--overwrite", code=65)
        self.assertIn("Missing key(s)", line)
        self.convert("Table", FEATURES, "--weights", "none.pt", "--overwrite", code=74)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
