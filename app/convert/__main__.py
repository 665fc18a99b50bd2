#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
"""A deck and weights from a network of PyTorch: python3 app/convert MODULE:NAME --input C,H,W

MODULE:NAME is a class, a function that makes a network, or a network: torchvision.models:resnet18,
net.py:Net. Writes NAME/network.toml, the layers for `model.file`; NAME/deck.toml, to say there what
data it learns from; and NAME/weights.h5, its weights under PyTorch's names. The network is the one
that trains. What layers of decks cannot say is refused, with the path of the module.
Exit codes: 0 done, 2 usage, 65 bad data, 74 input/output; each but 0 with one line on stderr.
"""

import argparse
import ast
import importlib
import importlib.util
import pathlib
import sys

USAGE, INPUT_OUTPUT = 2, 74
PACKAGE = "carousel_convert"


class Parser(argparse.ArgumentParser):
    def error(self, message):
        self.exit(USAGE, f"convert: {message}; see python3 app/convert --help\n")


def shape_of(text):
    try:
        shape = tuple(int(each) for each in text.split(","))
    except ValueError:
        shape = ()
    if not 1 <= len(shape) <= 4 or min(shape) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is none of C,D,H,W, C,H,W, C,L and C")
    return shape


def argument_of(text):
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise argparse.ArgumentTypeError(f"'{text}' is not KEY=VALUE")
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return name, value


def parse(words):
    parser = Parser(prog="python3 app/convert", description=__doc__.splitlines()[0],
                    formatter_class=argparse.RawDescriptionHelpFormatter,
                    epilog="\n".join(__doc__.splitlines()[2:]))
    parser.add_argument("source", metavar="MODULE:NAME", help="what makes the network")
    parser.add_argument("--input", metavar="C,H,W", type=shape_of, required=True,
                        help="shape of a sample; C,D,H,W with more axes, C,L or C with fewer")
    parser.add_argument("--with", metavar="KEY=VALUE", dest="arguments", type=argument_of,
                        action="append", default=[], help="an argument for NAME; may be repeated")
    parser.add_argument("--weights", metavar="FILE",
                        help="a state_dict to fill it with, .pt, .pth or .safetensors")
    parser.add_argument("--output", metavar="FOLDER", help="in place of NAME")
    parser.add_argument("--overwrite", action="store_true", help="replace files that are there")
    return parser.parse_args(words)


def load_package():
    """What is beside this file, under a name that no module of a user has: his own `layers` is
    found."""
    folder = pathlib.Path(__file__).resolve().parent
    sys.path[:] = [each for each in sys.path if pathlib.Path(each or ".").resolve() != folder]
    spec = importlib.util.spec_from_file_location(PACKAGE, folder / "__init__.py",
                                                  submodule_search_locations=[str(folder)])
    sys.modules[PACKAGE] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules[PACKAGE])
    names = ("network", "calls", "weights", "layers", "conversion", "deck")
    return [importlib.import_module(f"{PACKAGE}.{name}") for name in names]


def write(folder, texts, overwrite, network):
    """Files by name; a function writes one itself, to the path that it is given."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in texts:
            if (folder / name).exists() and not overwrite:
                raise network.Refusal(USAGE, f"{folder / name} exists; --overwrite replaces it, "
                                             "--output names another folder")
        for name, content in texts.items():
            unfinished = folder / f"{name}.part"
            if callable(content):
                content(unfinished)
            else:
                unfinished.write_text(content, encoding="utf-8")
            unfinished.replace(folder / name)
    except OSError as error:
        raise network.Refusal(INPUT_OUTPUT, f"{folder}: {error.strerror or error}") from error


def convert(arguments, network, calls, weights, layers, conversion, deck):
    module = calls.make_module(arguments.source, dict(arguments.arguments))
    if arguments.weights:
        weights.load(module, arguments.weights)
    traced = calls.trace(module, arguments.input, layers.LEAVES)
    made, output = conversion.convert(module, traced, arguments.input)
    folder = pathlib.Path(arguments.output or arguments.source.rpartition(":")[2])
    state = weights.learned(module)
    write(folder, {
        "network.toml": deck.network_text(arguments.source, arguments.input, made),
        "deck.toml": deck.deck_text(arguments.source, made, output, "network.toml"),
        "weights.h5": lambda path: weights.write(path, state),
    }, arguments.overwrite, network)
    numbers = sum(tensor.numel() for tensor in state.values())
    print(f"{folder}: {len(made.lines)} layers, {len(state)} tensors of {numbers:,} numbers\n"
          f"Say in {folder}/deck.toml what data it learns from. Then its weights are where a "
          "training starts:\n"
          f"  carousel import weights {folder}/weights.h5 {folder}/deck.toml {folder}/start.h5\n"
          f"  carousel train {folder}/deck.toml train.start={folder}/start.h5")


def main(words):
    arguments = parse(words)
    try:
        network, *others = load_package()
    except ModuleNotFoundError as error:
        print(f"convert: needs {error.name} for this Python (pip install torch h5py)",
              file=sys.stderr)
        return USAGE
    try:
        convert(arguments, network, *others)
    except network.Refusal as refusal:
        print(f"convert: {arguments.source}: {refusal}", file=sys.stderr)
        return refusal.code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
