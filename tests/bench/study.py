# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
"""What the studies of this folder share: their words, and a folder of runs that they go on with."""
import argparse
import json
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]


def numbers(text):
    """Whole numbers above zero, each once, with commas between them."""
    found = [int(word) for word in text.split(",")]
    if min(found) < 1 or len(set(found)) < len(found):
        raise ValueError(text)
    return found


def existing_file(text):
    """By the one path that it has from everywhere."""
    path = pathlib.Path(text).resolve()
    if not path.is_file():
        raise argparse.ArgumentTypeError(f"there is no {path}")
    return path


def parser(description):
    """Of a study that keeps runs in a folder."""
    made = argparse.ArgumentParser(description=description.splitlines()[0])
    made.add_argument("folder", type=pathlib.Path, metavar="FOLDER")
    made.add_argument("--build", default="build/release", help="the build whose program runs")
    made.add_argument("--report", action="store_true", help="run nothing")
    return made


def parse(made, *more, check=lambda arguments: None):
    """FOLDER, options and keys in any order. Ends the program where there is nothing to run or to
    report, and where FOLDER has runs of other keys, or of other options named in `more`. FOLDER is
    theirs from the first words that `check`, too, lets pass."""
    made.add_argument("keys", metavar="key=value", nargs="*", default=[])
    arguments = made.parse_intermixed_args()
    for word in arguments.keys:
        if "=" not in word:
            made.error(f"'{word}' is no key=value")
    arguments.program = ROOT / arguments.build / "carousel"
    if arguments.report and not arguments.folder.is_dir():
        made.error(f"there is no {arguments.folder}")
    if not arguments.report and not arguments.program.is_file():
        made.error(f"there is no {arguments.program}; build it first")
    check(arguments)
    file = arguments.folder / "asked.json"
    asked = [f"--{name}={getattr(arguments, name)}" for name in more] + arguments.keys
    if file.exists():
        before = json.loads(file.read_text())
        if before != asked:
            made.error(f"{arguments.folder} has runs of '{' '.join(before)}', not of"
                       f" '{' '.join(asked)}'; name another folder")
    elif arguments.folder.is_dir() and any(arguments.folder.iterdir()):
        made.error(f"{arguments.folder} has files, but no {file.name} that says of what")
    if not arguments.report:
        arguments.folder.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(asked))
    return arguments
