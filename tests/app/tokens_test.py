# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
"""From a text to a trained network: tokens as another implementation finds them, files of llm.c and
nanoGPT, and one trajectory in all placements.

Usage: tokens_test.py CAROUSEL MPIEXEC PROJECT. Everything happens in a temporary folder.
"""

import json
import os
import pathlib
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unicodedata
import unittest

import h5py
import numpy

CAROUSEL, MPIEXEC, PROJECT = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
ONE = {"OMP_NUM_THREADS": "1"}
TEXT = "In the room the women come and go\nTalking of Michelangelo.\n\n  Do I dare? It's 1917, they'll say.\n"

DECK = """
[run]
name = "text"
output = "run"
[model]
file = "NETWORK"
let = { vocabulary = 256, width = 32, depth = 2, heads = 2, dropout = 0.1 }
[data]
tokens = "text.h5"
context = 16
[parallel]
rule = "cdp-v2"
placement = "single"
micro_batches = 4
stages = 4
[train]
micro_batch_size = 4
steps = 30
evaluate_steps = 12
[train.optimizer]
name = "adamw"
learning_rate = 5e-3
[checkpoint]
every_steps = 10
[profile]
steps = "::1"
"""


def printed_bytes():
    """The character that GPT-2 prints each byte as (encoder.py)."""
    seen = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = iter(range(256, 512))
    return {byte: chr(byte if byte in seen else next(others)) for byte in range(256)}


class Pairs:
    """Byte-level pairs, learned from a text, and their application as GPT-2's encoder.py has it: by
    a table of ranks, word by word."""

    def __init__(self, text, count):
        letters, numbers = (self.category(first) for first in "LN")
        blanks = "".join(chr(c) for c in range(0x3001) if chr(c).isspace() and not 0x1C <= c <= 0x1F)
        self.words = re.compile(
            f"'s|'t|'re|'ve|'m|'ll|'d| ?[{letters}]+| ?[{numbers}]+| ?[^{blanks}{letters}{numbers}]+"
            f"|[{blanks}]+(?![^{blanks}])|[{blanks}]+")
        self.ranks = {}
        self.printed = printed_bytes()
        words = [[bytes([b]) for b in word.encode()] for word in self.words.findall(text)]
        while len(self.ranks) < count:
            pairs = {}
            for word in words:
                for pair in zip(word, word[1:]):
                    pairs[pair] = pairs.get(pair, 0) + 1
            joined = {a + b for a, b in self.ranks}
            best = max((p for p in pairs if p[0] + p[1] not in joined), key=lambda p: (pairs[p], p))
            self.ranks[best] = len(self.ranks)
            words = [self.join(word, best) for word in words]
        pieces = [bytes([b]) for b in range(256)] + [a + b for a, b in self.ranks]
        self.tokens = {piece: k for k, piece in enumerate(pieces)}

    @staticmethod
    def category(first):
        ranges, begin = [], None
        for code in range(0x20000):
            inside = unicodedata.category(chr(code))[0] == first
            if inside and begin is None:
                begin = code
            if not inside and begin is not None:
                ranges.append(f"{re.escape(chr(begin))}-{re.escape(chr(code - 1))}")
                begin = None
        return "".join(ranges)

    @staticmethod
    def join(word, pair):
        result, k = [], 0
        while k < len(word):
            both = k + 1 < len(word) and (word[k], word[k + 1]) == pair
            result.append(word[k] + word[k + 1] if both else word[k])
            k += 2 if both else 1
        return result

    def encode(self, text):
        tokens = []
        for word in self.words.findall(text):
            parts = [bytes([b]) for b in word.encode()]
            while len(parts) > 1:
                best = min(zip(parts, parts[1:]), key=lambda p: self.ranks.get(p, 1 << 30))
                if best not in self.ranks:
                    break
                parts = self.join(parts, best)
            tokens += [self.tokens[part] for part in parts]
        return tokens

    def write(self, folder):
        show = lambda piece: "".join(self.printed[b] for b in piece)
        listed = {show(piece): k for piece, k in self.tokens.items()} | {
            "<|endoftext|>": len(self.tokens)}
        (folder / "encoder.json").write_text(json.dumps(listed))
        (folder / "vocab.bpe").write_text("#version: 0.2\n" + "".join(
            f"{show(a)} {show(b)}\n" for a, b in self.ranks), encoding="utf-8")


class Tokens(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def carousel(self, *words, ranks=1, code=0, **variables):
        before = [MPIEXEC, "-n", str(ranks)] if ranks > 1 else []
        result = subprocess.run([*before, CAROUSEL, *map(str, words)], cwd=self.folder, text=True,
                                env=os.environ | variables, capture_output=True, timeout=200)
        if ranks == 1 or code == 0:
            self.assertEqual(result.returncode, code, result.stderr)
        return result

    def refused(self, code, word, *words):
        line = self.carousel(*words, code=code).stderr
        self.assertEqual(line.count("\n"), 1, line)
        self.assertIn(word, line)
        self.assertFalse([*self.folder.glob("*partial*")])

    def imported(self, *words):
        said = self.carousel("import", "tokens", *words, "out.h5", "--overwrite").stdout
        with h5py.File(self.folder / "out.h5") as file:
            return said, {name: file[name]["tokens"][()] for name in ("train", "validation")
                          if name in file}

    def test_bytes_and_characters(self):
        text = TEXT * 20 + "é€\n" * 9
        (self.folder / "a.txt").write_text(text, encoding="utf-8")
        said, found = self.imported("a.txt")
        data = text.encode()
        self.assertEqual(bytes(found["train"].astype("u1")) + bytes(found["validation"].astype("u1")),
                         data)
        self.assertEqual(found["train"].dtype, numpy.uint16)
        self.assertLessEqual(abs(len(found["train"]) - 0.9 * len(data)), 3)
        self.assertIn(f"{len(found['train']):,} tokens for training", said)
        letters = sorted(set(text))
        _, found = self.imported("a.txt", "--as", "characters", "--validation-fraction", "0.02")
        joined = numpy.concatenate([found["train"], found["validation"]])
        self.assertEqual("".join(letters[k] for k in joined), text)
        shown = self.carousel("inspect", "out.h5").stdout
        self.assertRegex(shown, rf"vocabulary +{len(letters)}\n")
        self.assertEqual(json.loads(self.carousel("inspect", "out.h5", "--json").stdout)[0]["train"],
                         len(found["train"]))
        (self.folder / "b.txt").write_bytes(b"abc\xff")
        self.refused(65, "byte 3 is not UTF-8", "import", "tokens", "b.txt", "no.h5", "--as",
                     "characters")
        self.refused(2, "would be lost", "import", "tokens", "b.txt", "b.txt", "--overwrite")

    def test_pairs(self):
        draw = random.Random(4)
        pairs = Pairs(TEXT * 3 + "é ü 中文 ", 60)
        pairs.write(self.folder)
        bpe = ("--as", "gpt2", "--bpe", "encoder.json,vocab.bpe")
        letters = "abehinot  \n\n\t'sltr.,!?0123éüñ½² \u00a0\u2003中日_-A"
        text = TEXT + "".join(draw.choice(letters) for _ in range(20000))
        (self.folder / "a.txt").write_text(text, encoding="utf-8")
        _, found = self.imported("a.txt", *bpe, "--validation-fraction", "0")
        self.assertEqual(found["train"].tolist(), pairs.encode(text))
        # Larger than what is read at once, and of several files.
        (self.folder / "b.txt").write_text(TEXT * 50000)
        (self.folder / "c.txt").write_text("The end <|endoftext|> here")
        _, found = self.imported("[bc].txt", *bpe, "--validation", "a.txt")
        end = len(pairs.tokens)
        expected = [*pairs.encode(TEXT) * 50000, end, *pairs.encode("The end "), end,
                    *pairs.encode(" here")]
        self.assertEqual(found["validation"].tolist(), pairs.encode(text))
        self.assertEqual(found["train"].tolist(), expected)
        self.refused(2, "not for --as bytes", "import", "tokens", "a.txt", "no.h5", *bpe[2:])
        self.refused(2, "needs the files of its tokenizer", "import", "tokens", "a.txt", "no.h5",
                     "--as", "gpt2")

    def test_tokens_of_others(self):
        tokens = numpy.random.default_rng(1).integers(0, 50257, 1000)
        header = numpy.zeros(256, "i4")
        header[:3] = 20240520, 1, 1000
        (self.folder / "a.bin").write_bytes(header.tobytes() + tokens.astype("u2").tobytes())
        header[:2] = 20240801, 7
        (self.folder / "b.bin").write_bytes(header.tobytes() + (tokens + 70000).astype("u4").tobytes())
        (self.folder / "c.bin").write_bytes(tokens.astype("u2").tobytes())
        as_tokens = ("--as", "tokens", "--vocabulary")
        for name, plus in (("a", 0), ("b", 70000), ("c", 0)):
            _, found = self.imported(f"{name}.bin", *as_tokens, 128256 if plus else 50257)
            self.assertEqual(found["train"].tolist() + found["validation"].tolist(),
                             (tokens + plus).tolist())
            self.assertEqual(len(found["train"]), 900)
        self.refused(65, "and the vocabulary has 100", "import", "tokens", "a.bin", "no.h5", *as_tokens,
                     100)
        content = (self.folder / "a.bin").read_bytes()
        for wrong in (content[:-2], content + b"\0\0", content[:1024],
                      struct.pack("<3i", 20240520, 2, 0) + content[12:]):
            (self.folder / "wrong.bin").write_bytes(wrong)
            self.refused(65, "wrong.bin: ", "import", "tokens", "wrong.bin", "no.h5", *as_tokens, 50257)
        (self.folder / "wrong.bin").write_bytes(b"123")
        self.refused(65, "no whole number of tokens", "import", "tokens", "wrong.bin", "no.h5",
                     *as_tokens, 50257)

    def test_a_text_is_learned_alike_everywhere(self):
        (self.folder / "a.txt").write_text(TEXT * 40)
        self.carousel("import", "tokens", "a.txt", "text.h5")
        network = PROJECT / "inputs/networks/gpt.toml"
        (self.folder / "text.toml").write_text(DECK.replace("NETWORK", str(network)))
        for rule in ("dp", "cdp-v1", "cdp-v2"):
            self.carousel("train", "text.toml", f"run.output={rule} one", f"parallel.rule={rule}",
                          **ONE)
            for placement, ranks in (("replicated", 4), ("pipeline", 4), ("model", 1), ("sharded", 1)):
                name = f"{rule} {placement}"
                self.carousel("train", "text.toml", f"run.output={name}", f"parallel.rule={rule}",
                              f"parallel.placement={placement}", ranks=ranks, **ONE)
                self.carousel("diff", f"{rule} one", name)
                self.assertIn("All checks passed", self.carousel("verify", name).stdout)
        # In the middle of an epoch, into another placement.
        self.carousel("train", "text.toml", "run.output=parts", "train.steps=10", **ONE)
        self.carousel("train", "text.toml", "run.output=parts", "run.resume=auto",
                      "parallel.placement=pipeline", ranks=4, **ONE)
        self.carousel("diff", "parts", "cdp-v2 one")
        rows = self.carousel("inspect", "cdp-v2 one", "--csv", "steps").stdout.splitlines()
        losses = [float(row.split(",")[rows[0].split(",").index("loss")]) for row in rows[1:]]
        self.assertLess(losses[-1], losses[0] - 2)
        rows = self.carousel("inspect", "cdp-v2 one", "--csv", "evaluations").stdout.splitlines()
        self.assertEqual([row.split(",")[0] for row in rows], ["step", "12", "24", "30"])
        said = self.carousel("eval", "cdp-v2 one", **ONE).stdout
        self.assertIn("24 samples, loss", said)
        loss, perplexity, bits = (float(re.search(rf"{word}", said)[1]) for word in
                                  (r"loss ([\d.]+)", r"perplexity ([\d.]+)", r"([\d.]+) bits per byte"))
        self.assertAlmostEqual(perplexity, numpy.exp(loss), delta=1e-3 * perplexity)
        self.assertAlmostEqual(bits, loss / numpy.log(2), delta=1e-3)  # a token is a byte
        self.carousel("predict", "cdp-v2 one", "text.h5", "outputs.h5", **ONE)
        with h5py.File(self.folder / "outputs.h5") as file:
            self.assertEqual(file["outputs"].shape, (24, 256, 16))
            self.assertEqual(file["labels"].shape, (24, 16))

    def test_what_does_not_fit_is_refused(self):
        (self.folder / "a.txt").write_text(TEXT * 40)
        self.carousel("import", "tokens", "a.txt", "text.h5")
        network = PROJECT / "inputs/networks/gpt.toml"
        (self.folder / "text.toml").write_text(DECK.replace("NETWORK", str(network)))
        for words, said in ((["data.context=4000"], "data.context = 4000: /train/tokens of"),
                            (["data.context="], "data.context is missing"),
                            (["model.let.vocabulary=99"], "and the data set has 256 classes for each"),
                            (["data.tokens=no.h5"], "`carousel import tokens TEXT"),
                            (["data.augment.flip=0.5"], "data.augment.flip")):
            line = self.carousel("train", "--validate", "text.toml", *words, code=(
                74 if "no.h5" in words[0] else 2)).stderr
            self.assertIn(said, line)
        shutil.copy(self.folder / "text.h5", self.folder / "other.h5")
        with h5py.File(self.folder / "text.h5", "r+") as file:
            file["train/tokens"][100] = 256
            del file["checksums"]
        self.assertIn("/train/tokens[", self.carousel("train", "text.toml", code=65, **ONE).stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
