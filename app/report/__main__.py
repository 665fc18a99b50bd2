#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
"""One page about one run or several: python3 app/report RUN [RUN ...] [--output PREFIX]

Writes report.png and report.svg into the folder of the first run, or PREFIX.png and PREFIX.svg.
Of a file that `carousel predict` wrote it draws outputs beside targets, OUT.png and OUT.svg.
With --tensorboard DIR instead DIR/RUN, events that TensorBoard shows, of any number of runs.
Exit codes: 0 done, 2 usage, 65 bad data, 74 input/output; each but 0 with one line on stderr.
"""

import argparse
import os
import pathlib
import sys

USAGE, INPUT_OUTPUT = 2, 74
LONGEST_NAME = 20  # characters


class Parser(argparse.ArgumentParser):
    def error(self, message):
        self.exit(USAGE, f"report: {message}; see python3 app/report --help\n")


def hold_descriptors():
    """Where standard input, output or error is closed, no file that is opened later gets its number
    and, with it, text of libraries."""
    while (number := os.open(os.devnull, os.O_RDWR)) < 3:
        pass
    os.close(number)


def parse(words):
    parser = Parser(prog="python3 app/report", description=__doc__.splitlines()[0],
                    formatter_class=argparse.RawDescriptionHelpFormatter,
                    epilog="\n".join(__doc__.splitlines()[2:]))
    parser.add_argument("runs", metavar="RUN", nargs="+", help="run folder; at most four")
    parser.add_argument("--output", metavar="PREFIX",
                        help="path of the pictures without .png and .svg")
    parser.add_argument("--tensorboard", metavar="DIR",
                        help="folder for TensorBoard's events; needs its package")
    return parser.parse_args(words)


def name_runs(runs, paths):
    """Calls each run by its folder, or by its path where folders have the same name; the end of a
    long one is enough."""
    names = [run.name for run in runs]
    for run, path in zip(runs, paths):
        name = path if names.count(run.name) > 1 else run.name
        run.name = name if len(name) <= LONGEST_NAME else "…" + name[1 - LONGEST_NAME:]


def say(line):
    """To whoever still listens: `head -1` goes away after a line, and the pictures are there."""
    try:
        print(line, flush=True)
    except BrokenPipeError:
        # Python flushes once more when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def write_events(runs, folder):
    try:
        import events
        import run_file
    except ModuleNotFoundError as error:
        print(f"report: --tensorboard needs {error.name} for this Python (pip install tensorboard)",
              file=sys.stderr)
        return USAGE
    try:
        for run in runs:
            say(events.write_events(run, folder))
    except run_file.Refusal as refusal:
        print(f"report: {refusal}", file=sys.stderr)
        return refusal.code
    return 0


def main(words):
    arguments = parse(words)
    if arguments.tensorboard:
        return write_events(arguments.runs, arguments.tensorboard)
    try:
        import page
        import palette
        import predictions
        import run_file
    except ModuleNotFoundError as error:
        print(f"report: needs {error.name} for this Python (Debian: python3-{error.name})",
              file=sys.stderr)
        return USAGE
    try:
        if len(arguments.runs) > palette.MOST_RUNS:
            raise run_file.Refusal(USAGE, f"{len(arguments.runs)} runs do not fit on one page; "
                                          f"name at most {palette.MOST_RUNS}")
        first = pathlib.Path(arguments.runs[0])
        if len(arguments.runs) == 1 and predictions.is_predictions(first):
            with page.style():
                figure = predictions.draw(first)
            prefix = arguments.output or str(first.with_suffix(""))
        else:
            runs = [run_file.read_run(path) for path in arguments.runs]
            name_runs(runs, arguments.runs)
            figure = page.draw_page(runs)
            prefix = arguments.output or str((first if first.is_dir() else first.parent) / "report")
        for path in (f"{prefix}.png", f"{prefix}.svg"):
            try:
                page.save(figure, path)
            except OSError as error:
                raise run_file.Refusal(INPUT_OUTPUT, f"{path}: cannot write it: "
                                                     f"{error.strerror}") from None
            say(path)
    except run_file.Refusal as refusal:
        print(f"report: {refusal}", file=sys.stderr)
        return refusal.code
    return 0


if __name__ == "__main__":
    hold_descriptors()
    sys.exit(main(sys.argv[1:]))
