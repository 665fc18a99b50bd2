# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
"""Data sets from pictures and from CIFAR-10's batches, and what is refused on the way.

Usage: import_test.py CAROUSEL. All files are made here; no engine is needed.
"""

import bz2
import gzip
import io
import itertools
import lzma
import os
import pathlib
import pickle
import pty
import resource
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest
import zipfile

import h5py
import numpy

from drawn import png

CAROUSEL = sys.argv[1]
NAMES = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]


def pictures(seed=1):
    """PATH: pixels [5, 7, 3], of two classes, the last of each a grey one."""
    random = numpy.random.default_rng(seed)
    found = {}
    for name in ("cat", "dog"):
        for k in range(12):
            pixels = random.integers(0, 256, (5, 7, 3), numpy.uint8)
            found[f"{name}/{k:02}.png"] = pixels if k < 11 else pixels[:, :, 0]
    return found


def cifar10():
    """Labels and images of six batches, far fewer than in the real ones."""
    random = numpy.random.default_rng(2)
    return [(random.integers(0, 10, 20), random.integers(0, 256, (20, 3072), numpy.uint8))
            for _ in range(6)]


BATCHES = [*(f"data_batch_{k}" for k in range(1, 6)), "test_batch"]


def python_files():
    files = {f"cifar-10-batches-py/{name}": pickle.dumps(
        {"labels": [int(k) for k in labels], "data": images}, protocol=2)
        for name, (labels, images) in zip(BATCHES, cifar10())}
    return {**files, "cifar-10-batches-py/batches.meta": pickle.dumps({"label_names": NAMES}, 2)}


def binary_files():
    files = {f"cifar-10-batches-bin/{name}.bin": numpy.concatenate(
        [labels.astype(numpy.uint8)[:, None], images], 1).tobytes()
        for name, (labels, images) in zip(BATCHES, cifar10())}
    return {**files, "cifar-10-batches-bin/batches.meta.txt": "\n".join([*NAMES, "", ""]).encode()}


class Import(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def carousel(self, *arguments):
        return subprocess.run([CAROUSEL, *arguments], cwd=self.folder, text=True,
                              capture_output=True, timeout=60)

    def imported(self, *arguments):
        """Imports into a.h5 and returns all arrays and attributes."""
        result = self.carousel("import", *arguments, "a.h5", "--overwrite")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("a.h5: ", result.stdout)
        with h5py.File(self.folder / "a.h5") as file:
            arrays = {f"{half}/{what}": file[f"{half}/{what}"][:]
                      for half in ("train", "test") for what in ("images", "labels")}
            return {**arrays, **file.attrs}

    def refused(self, *arguments, code=65):
        """Expects a line of complaint and no data set; returns standard error."""
        result = self.carousel("import", *arguments)
        self.assertEqual(result.returncode, code, result.stderr)
        self.assertEqual(result.stdout, "")
        self.assertEqual(result.stderr.count("carousel: "), 1, result.stderr)
        self.assertEqual([*self.folder.glob("*.partial"), *self.folder.glob("new.h5")], [])
        return result.stderr

    def tree(self, name, files):
        for path, data in files.items():
            (self.folder / name / path).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / name / path).write_bytes(data)
        return name

    def tar(self, name, files, mode="w"):
        with tarfile.open(self.folder / name, mode) as archive:
            for path, data in files.items():
                entry = tarfile.TarInfo(path)
                entry.size = len(data)
                archive.addfile(entry, io.BytesIO(data))
        return name

    def equal(self, a, b):
        self.assertEqual(a.keys(), b.keys())
        for name, values in a.items():
            if name != "source":
                numpy.testing.assert_array_equal(values, b[name], name)

    def test_pictures_of_a_tree(self):
        found = pictures()
        halves = {f"{'test' if '3' in path else 'train'}/{path}": pixels
                  for path, pixels in found.items()}
        got = self.imported("images", self.tree("set", {k: png(v) for k, v in halves.items()}),
                            "--source", "drawn", "--licence", "free")
        for half in ("train", "test"):
            paths = sorted(path for path in halves if path.startswith(half))
            expected = [numpy.broadcast_to(halves[path].T, (3, 7, 5)).swapaxes(1, 2)
                        for path in paths]
            numpy.testing.assert_array_equal(got[f"{half}/images"], expected)
            self.assertEqual(got[f"{half}/labels"].tolist(), ["dog" in path for path in paths])
        values = got["train/images"] / 255
        numpy.testing.assert_allclose(got["mean"], values.mean((0, 2, 3)), rtol=1e-12)
        numpy.testing.assert_allclose(got["std"], values.std((0, 2, 3)), rtol=1e-9)
        self.assertEqual(got["class_names"].tolist(), [b"cat", b"dog"])
        self.assertEqual((got["source"], got["licence"]), (b"drawn", b"free"))

    def test_a_tar_in_any_order_is_its_tree(self):
        files = {path: png(pixels) for path, pixels in pictures().items()}
        tree = self.imported("images", self.tree("set", files), "--test-fraction", "0.25",
                             "--workers", "1")
        self.assertEqual(len(tree["test/labels"]), 6)
        backwards = dict(reversed(files.items()))
        self.equal(tree, self.imported("images", self.tar("a.tar", backwards),
                                       "--test-fraction", "0.25", "--workers", "7"))
        self.equal(tree, self.imported("images", self.tar("a.tar.gz", backwards, "w:gz"),
                                       "--test-fraction", "0.25"))
        below = {f"all/set/{path}": data for path, data in files.items()}
        self.equal(tree, self.imported("images", self.tar("below.tar", below),
                                       "--test-fraction", "0.25"))
        other = self.imported("images", "set", "--test-fraction", "0.25", "--seed", "2")
        self.assertNotEqual(tree["test/images"].tolist(), other["test/images"].tolist())

    def test_bad_pictures_are_named_and_may_be_left_out(self):
        good = {path: png(pixels) for path, pixels in pictures().items()}
        first = next(iter(good.values()))
        bad = {"cat/05b.png": b"", "cat/zz.jpg": b"words", "dog/cut.png": first[:-40],
               "dog/deep.png": png(numpy.zeros((5, 7), ">u2"), 16),
               "dog/wide.png": png(numpy.zeros((5, 8, 3), numpy.uint8))}
        path = self.tar("bad.tar", good | bad)
        words = ["--test-fraction", "0.25", "--keep", "pixels"]
        complaint = self.refused("images", path, "new.h5", *words)
        for name, reason in (("cat/05b.png", "empty"), ("cat/zz.jpg", "neither JPEG nor PNG"),
                             ("dog/cut.png", "a damaged PNG"), ("dog/deep.png", "16 bits"),
                             ("dog/wide.png", "8 x 5 pixels, not 7 x 5")):
            self.assertRegex(complaint, f"bad: {name}: .*{reason}")
        self.assertIn("5 bad pictures", complaint)
        left = self.imported("images", path, *words, "--skip-bad")
        self.assertEqual(len(left["train/labels"]) + len(left["test/labels"]), len(good))
        chosen = {bytes(image) for half in ("train", "test") for image in left[f"{half}/images"]}
        self.assertEqual(len(chosen), len(good))

    def test_links_are_bad_pictures(self):
        files = {path: png(pixels) for path, pixels in pictures().items()}
        whole = self.imported("images", self.tree("set", files), "--test-fraction", "0.25")
        (self.folder / "set/cat/00a.png").symlink_to("nowhere.png")
        (self.folder / "set/words").symlink_to("nowhere")
        (self.folder / "set/dog/alias.png").symlink_to("00.png")
        complaint = self.refused("images", "set", "new.h5", "--test-fraction", "0.25")
        self.assertIn("bad: cat/00a.png: a link that leads nowhere", complaint)
        self.assertIn("set: 1 bad pictures", complaint)
        for name in ("cat/00a.png", "words"):
            (self.folder / "set" / name).unlink()
        (self.folder / "set/cat/hard.png").hardlink_to(self.folder / "set/cat/00.png")
        followed = ["-h", "--hard-dereference"]
        for options in ([], ["-z"], followed):
            subprocess.run(["tar", "-cf", "a.tar", *options, "--sort=name", "set"],
                           cwd=self.folder, check=True)
            if options != followed:
                complaint = self.refused("images", "a.tar", "new.h5", "--test-fraction", "0.25")
                for name in ("cat/hard.png", "dog/alias.png"):
                    self.assertIn(f"bad: set/{name}: a link inside the archive; pack it anew with "
                                  "tar -h --hard-dereference", complaint)
            got = self.imported("images", "a.tar", "--test-fraction", "0.25",
                                *([] if options == followed else ["--skip-bad"]))
            self.assertEqual(sum(len(got[f"{half}/labels"]) for half in ("train", "test")),
                             len(files) + 2 * (options == followed))
        # A file that is packed twice is a link to itself, not another picture.
        subprocess.run(["tar", "-cf", "a.tar", "cat", "dog/", "cat/00.png"], check=True,
                       cwd=self.folder / self.tree("again", files))
        self.equal(whole, self.imported("images", "again/a.tar", "--test-fraction", "0.25"))

    def test_an_archive_cut_between_files_is_refused(self):
        files = {path: png(pixels) for path, pixels in pictures().items()}
        whole = (self.folder / self.tar("whole.tar", files)).read_bytes()
        with tarfile.open(self.folder / "whole.tar") as archive:
            begins = [entry.offset for entry in archive][1:] + [archive.offset]
        for begin in (begins[10], begins[-1]):
            (self.folder / "cut.tar").write_bytes(whole[:begin])
            complaint = self.refused("images", "cut.tar", "new.h5", "--test-fraction", "0.25")
            self.assertIn(f"cut.tar: is cut off after {begin} bytes; copy it again", complaint)
            (self.folder / "cut.tar.gz").write_bytes(gzip.compress(whole[:begin]))
            self.assertIn("cut.tar.gz: is cut off after", self.refused(
                "images", "cut.tar.gz", "new.h5", "--test-fraction", "0.25"))
        (self.folder / "cut.tar").write_bytes(whole[:begins[-1] + 1024])
        self.equal(self.imported("images", "whole.tar", "--test-fraction", "0.25"),
                   self.imported("images", "cut.tar", "--test-fraction", "0.25"))

    def test_pictures_of_several_sizes_are_kept_as_files(self):
        random = numpy.random.default_rng(5)
        drawn = {f"{half}/{name}/{k}.png":
                 random.integers(0, 256, (*random.integers(3, 90, 2), 3), numpy.uint8)
                 for half in ("train", "test") for name in ("cat", "dog") for k in range(9)}
        files = {path: png(pixels) for path, pixels in drawn.items()}
        bad = {"train/cat/none.png": b"", "test/dog/words.jpg": b"words"}
        got = self.imported("images", self.tree("set", files), "--workers", "3")
        with h5py.File(self.folder / "a.h5") as file:
            for half in ("train", "test"):
                paths = sorted(path for path in files if path.startswith(half))
                offsets = file[f"{half}/offsets"][:]
                for k, path in enumerate(paths):
                    stored = got[f"{half}/images"][offsets[k]:offsets[k + 1]].tobytes()
                    self.assertEqual(stored, files[path], path)
                self.assertEqual(offsets[-1], len(got[f"{half}/images"]))
                self.assertEqual(file[f"{half}/sizes"][:].tolist(),
                                 [list(drawn[path].shape[:2]) for path in paths])
        values = numpy.concatenate([pixels.reshape(-1, 3) for path, pixels in drawn.items()
                                    if path.startswith("train")]) / 255
        numpy.testing.assert_allclose(got["mean"], values.mean(0), rtol=1e-12)
        numpy.testing.assert_allclose(got["std"], values.std(0), rtol=1e-9)
        archive = self.tar("a.tar", files | bad)
        self.assertIn("2 bad pictures", self.refused("images", archive, "new.h5"))
        self.equal(got, self.imported("images", archive, "--skip-bad"))
        self.assertIn("several sizes", self.carousel("inspect", "a.h5").stdout)
        one = {path: png(pixels) for path, pixels in pictures().items()}
        got = self.imported("images", self.tree("one", one), "--test-fraction", "0.5", "--keep",
                            "files")
        self.assertEqual(got["train/images"].ndim, 1)

    def test_progress_tells_no_rate_at_once(self):
        # An archive that takes a while to be listed, before its few pictures are read.
        files = {"a/words": bytes(1 << 27)} | {path: png(pixels)
                                         for path, pixels in pictures().items()}
        self.tar("slow.tar.gz", files, "w:gz")
        ours, theirs = pty.openpty()
        with subprocess.Popen([CAROUSEL, "import", "images", "slow.tar.gz", "a.h5",
                               "--test-fraction", "0.25"], cwd=self.folder, stderr=theirs,
                              stdout=subprocess.DEVNULL,
                              env={**os.environ, "TERM": "xterm"}) as process:
            self.assertEqual(process.wait(60), 0)
        os.close(theirs)
        shown = os.read(ours, 1 << 16).decode()
        os.close(ours)
        self.assertIn("1 of 24 images", shown)
        self.assertNotRegex(shown, "1 of 24 images.*left")

    def halves(self, got):
        """Images of each class, in both halves together."""
        labels = [*got["train/labels"], *got["test/labels"]]
        return {name.decode(): labels.count(k) for k, name in enumerate(got["class_names"])}

    def test_what_is_no_class_and_no_picture(self):
        files = {path: png(pixels) for path, pixels in pictures().items()}
        strange = {"set/overview.png": png(numpy.zeros((5, 7, 3), numpy.uint8))}
        beside = {"__MACOSX/set/cat/._00.png": b"\0\5\26\7Mac OS X", "set/.DS_Store": b"x",
                  "set/.ipynb_checkpoints/a.png": strange["set/overview.png"],
                  "set/README.txt": b"about", "set/dog/@eaDir/00.png": b"thumbnail"}
        files = {f"set/{path}": data for path, data in files.items()} | beside
        for source in (self.tree("tree", files), self.tar("set.tar", files)):
            got = self.imported("images", source, "--test-fraction", "0.25")
            self.assertEqual(self.halves(got), {"cat": 12, "dog": 12})
        result = self.carousel("import", "images", "tree", "b.h5", "--test-fraction", "0.25")
        self.assertIn("note: 4 files that are hidden or a system's own are left out, beginning "
                      "with __MACOSX/\n", result.stderr)
        self.assertIn("note: 1 file that is no picture is left out, beginning with set/README.txt",
                      result.stderr)
        self.assertRegex(result.stdout, r"b.h5: 18 images for training, 6 for tests, 3x5x7; "
                                        r"2 classes(, from \d+ \(| of 9 each)")
        for source in (self.tree("tree", strange), self.tar("stray.tar", files | strange)):
            self.assertIn("set/overview.png lies in no folder of a class", self.refused(
                "images", source, "new.h5", "--test-fraction", "0.25"))
            got = self.imported("images", source, "--test-fraction", "0.25", "--skip-bad")
            self.assertEqual(self.halves(got), {"cat": 12, "dog": 12})

    def test_pictures_are_known_by_what_they_are(self):
        endings = {"cat": ".jfif", "dog": "", "emu": ".JPG_large", "owl": ".png"}
        data = png(numpy.zeros((5, 7, 3), numpy.uint8))
        files = {f"{name}/{k}{end}": data for name, end in endings.items() for k in range(4)}
        for source in (self.tree("tree", files), self.tar("set.tar.gz", files, "w:gz")):
            got = self.imported("images", source, "--test-fraction", "0.25")
            self.assertEqual(self.halves(got), dict.fromkeys(endings, 4))

    def test_archives_put_together(self):
        files = {path: png(pixels) for path, pixels in pictures().items()}
        parts = [{p: d for p, d in files.items() if p.startswith(name)} for name in ("cat", "dog")]
        for kind in ("", ":gz", ":bz2", ":xz"):
            whole = b""
            for part in parts:
                whole += (self.folder / self.tar("part", part, f"w{kind}")).read_bytes()
            (self.folder / "both").write_bytes(whole)
            got = self.imported("images", "both", "--test-fraction", "0.25")
            self.assertEqual(self.halves(got), {"cat": 12, "dog": 12}, kind)

    def test_archives_with_something_else_behind_them(self):
        files = {path: png(pixels) for path, pixels in pictures().items()}
        cat = (self.folder / self.tar("cat", files)).read_bytes()
        dog = (self.folder / self.tar("dog", {"owl/0.png": files["cat/00.png"]})).read_bytes()
        forms = {"tar": lambda data: data, "gz": gzip.compress, "bz2": bz2.compress,
                 "xz": lzma.compress}
        for first, second in itertools.permutations(forms, 2):
            with self.subTest(f"{first} + {second}"):
                (self.folder / "both").write_bytes(forms[first](cat) + forms[second](dog))
                self.refused("images", "both", "new.h5", "--test-fraction", "0.25")
        whole = self.imported("images", "cat", "--test-fraction", "0.25")
        for form, pack in forms.items():  # as tapes fill up with zeros
            (self.folder / "filled").write_bytes(pack(cat) + bytes(10240))
            if form != "bz2":
                self.equal(whole, self.imported("images", "filled", "--test-fraction", "0.25"))
        (self.folder / "both").write_bytes(gzip.compress(cat) + bytes(512) + gzip.compress(dog))
        got = self.imported("images", "both", "--test-fraction", "0.25")
        self.assertEqual(self.halves(got), {"cat": 12, "dog": 12, "owl": 1})

    def test_archives_inside_of_compressed_ones(self):
        files = {path: png(pixels) for path, pixels in pictures().items()}
        cat = (self.folder / self.tar("cat", files)).read_bytes()
        owl = (self.folder / self.tar("owl", {"owl/0.png": files["cat/00.png"]})).read_bytes()
        for pack in (gzip.compress, bz2.compress, lzma.compress):
            (self.folder / "both").write_bytes(gzip.compress(pack(cat) + owl))
            self.refused("images", "both", "new.h5", "--test-fraction", "0.25")

    def test_names_in_archives(self):
        self.tree("tree/set", {path: png(pixels) for path, pixels in pictures().items()})
        (self.folder / "tree/inner").mkdir()
        (self.folder / "tree/set/owl").symlink_to("../other")
        subprocess.run(["tar", "-cf", "dot.tar", "-C", "set", "cat", "dog", "."], check=True,
                       cwd=self.folder / "tree")
        subprocess.run(["tar", "-Pcf", "../up.tar", "../set"], check=True,
                       cwd=self.folder / "tree/inner")
        for name in ("dot.tar", "up.tar"):
            result = self.carousel("import", "images", f"tree/{name}", "a.h5", "--overwrite",
                                   "--test-fraction", "0.25")
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertNotIn("hidden", result.stderr)
            self.assertNotIn("without a picture", result.stderr)
            self.assertRegex(result.stderr, r"note: \S*owl: a link inside the archive; pack it anew")
        (self.folder / "tree/set").rename(self.folder / "tree/.set")
        self.assertIn("no pictures in it but for what is hidden or a system's own, .set/",
                      self.refused("images", "tree", "new.h5", "--test-fraction", "0.25"))

    def test_damaged_archives(self):
        files = {path: png(pixels) for path, pixels in pictures().items()}
        whole = (self.folder / self.tar("whole.tar", files)).read_bytes()
        with tarfile.open(self.folder / "whole.tar") as archive:
            begins = [entry.offset for entry in archive]
        for at, change in ((3, lambda data: data ^ 1), (124, lambda _: ord("x"))):
            damaged = bytearray(whole)
            damaged[begins[10] + at] = change(damaged[begins[10] + at])
            for pack in (bytes, gzip.compress, lzma.compress):
                (self.folder / "damaged").write_bytes(pack(damaged))
                self.assertIn("damaged: neither a folder nor a whole tar archive", self.refused(
                    "images", "damaged", "new.h5", "--test-fraction", "0.25"))
        no_header = bytearray(whole)
        no_header[begins[10]:begins[10] + 512] = bytes(512)
        (self.folder / "damaged").write_bytes(no_header)
        self.refused("images", "damaged", "new.h5", "--test-fraction", "0.25")
        # Bytes that were changed behind the back of gzip's checksum, and the checksum itself.
        stored = gzip.compress(whole, compresslevel=0)
        for at in (stored.find(files["dog/00.png"][-30:]), len(stored) - 8):
            damaged = bytearray(stored)
            damaged[at] ^= 1
            (self.folder / "a.tar.gz").write_bytes(damaged)
            self.assertIn("a.tar.gz: is damaged (incorrect data check); copy it again", self.refused(
                "images", "a.tar.gz", "new.h5", "--test-fraction", "0.25"))
        (self.folder / "a.tar.gz").write_bytes(stored[:-4])
        self.assertIn("a.tar.gz: is cut off after", self.refused(
            "images", "a.tar.gz", "new.h5", "--test-fraction", "0.25"))

    def test_folders_without_pictures_are_told(self):
        files = {f"set/{path}": png(pixels) for path, pixels in pictures().items()}
        other = {"set/owl/0.avif": bytes(4) + b"ftypavif" + bytes(20), "set/read/me.txt": b"me"}
        self.tree("tree", files | other)
        (self.folder / "tree/set/elk").mkdir()
        (self.folder / "tree/set/cat/inside").mkdir()
        (self.folder / "tree/set/.git").mkdir()
        subprocess.run(["tar", "-cf", "tree.tar", "-C", "tree", "set"], check=True,
                       cwd=self.folder)
        for source in ("tree", "tree.tar"):
            result = self.carousel("import", "images", source, "a.h5", "--overwrite",
                                   "--test-fraction", "0.25")
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("note: 3 folders without a picture are left out, beginning with "
                          "set/elk\n", result.stderr)
            self.assertIn("note: 2 files that are no pictures are left out", result.stderr)

    def test_hidden_folders_are_not_entered(self):
        files = {f"set/{path}": png(pixels) for path, pixels in pictures().items()}
        self.tree("tree", files)
        (self.folder / "tree/set/.loop").symlink_to("..")
        result = self.carousel("import", "images", "tree", "a.h5", "--test-fraction", "0.25")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("note: 1 file that is hidden or a system's own is left out, beginning with "
                      "set/.loop/\n", result.stderr)

    def test_an_import_that_is_interrupted(self):
        files = {path: png(pixels) for path, pixels in pictures().items()}
        data = png(numpy.random.default_rng(2).integers(0, 256, (900, 900, 3), numpy.uint8))
        self.tree("set", files | {f"owl/{k}.png": data for k in range(200)})
        for stop in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            process = subprocess.Popen(
                [CAROUSEL, "import", "images", "set", "new.h5", "--test-fraction", "0.25",
                 "--workers", "1", "--keep", "files"], cwd=self.folder, text=True,
                stderr=subprocess.PIPE, stdout=subprocess.PIPE)
            with process:
                while not [*self.folder.glob("new.h5*.partial")] and process.poll() is None:
                    time.sleep(0.001)
                time.sleep(0.2)
                process.send_signal(stop)
                self.assertEqual(process.wait(60), -stop)
                self.assertIn("note: new.h5: interrupted; nothing was written",
                              process.stderr.read())
            self.assertEqual([*self.folder.glob("new.h5*")], [])

    def test_classes_called_as_halves(self):
        data = png(numpy.zeros((5, 7, 3), numpy.uint8))
        self.tree("vehicles", {f"{name}/{k}.png": data for name in ("bus", "test", "train")
                               for k in range(4)})
        self.assertIn("say --halves none", self.refused("images", "vehicles", "new.h5",
                                                        "--test-fraction", "0.25", code=2))
        got = self.imported("images", "vehicles", "--halves", "none", "--test-fraction", "0.25")
        self.assertEqual(self.halves(got), {"bus": 4, "test": 4, "train": 4})
        self.tree("set", {f"{half}/{name}/{k}.png": data for half in ("fit", "held")
                          for name in ("test", "train") for k in range(2)})
        got = self.imported("images", "set", "--halves", "fit,held")
        self.assertEqual(got["train/labels"].tolist(), [0, 0, 1, 1])
        self.assertIn("TRAIN,TEST, or none",
                      self.refused("images", "set", "new.h5", "--halves", "fit", code=2))

    def test_classes_without_pictures_are_told(self):
        files = {path: png(pixels) for path, pixels in pictures().items()}
        (self.folder / "names").write_bytes(b"\xef\xbb\xbfcat\ndog\nowl\n")
        result = self.carousel("import", "images", self.tree("set", files), "b.h5",
                               "--test-fraction", "0.5", "--classes", "names")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("note: 1 of 3 classes has no samples for training, beginning with owl",
                      result.stderr)
        self.assertIn("3 classes, from 0 (owl) to ", result.stdout)

    def test_folders_that_cannot_be_listed(self):
        files = {path: png(pixels) for path, pixels in pictures().items()}
        self.tree("set", files)
        self.folder.chmod(0o755)
        locked = self.folder / "set/dog"
        locked.chmod(0)
        command = [CAROUSEL, "import", "images", "set", "new.h5", "--test-fraction", "0.5"]
        result = subprocess.run(command, cwd=self.folder, text=True, capture_output=True,
                                check=False, user=65534 if os.getuid() == 0 else None)
        locked.chmod(0o755)
        self.assertEqual(result.returncode, 74, result.stderr)
        self.assertIn("set/dog: Permission denied", result.stderr)
        (self.folder / "set/cat/again").symlink_to("..")
        self.assertIn("set/cat/again: is set/ again, by a link; remove it",
                      self.refused("images", "set", "new.h5", "--test-fraction", "0.5"))

    def test_nothing_but_data_sets_is_replaced(self):
        files = {path: png(pixels) for path, pixels in pictures().items()}
        self.tree("set", files)
        self.tar("set.tar", files)
        (self.folder / "names").write_text("cat\ndog\n")
        (self.folder / "link.h5").symlink_to("set.tar")
        os.link(self.folder / "set.tar", self.folder / "hard.h5")
        words = ("--test-fraction", "0.5", "--overwrite")
        for source, output, reason in (
                ("set.tar", "set.tar", "is what is imported, which would be lost"),
                ("set.tar", "link.h5", "is what is imported, which would be lost"),
                ("set.tar", "hard.h5", "is what is imported, which would be lost"),
                ("set", "names", "is the list of classes, which would be lost"),
                ("set", "set/cat/00.png", "is no HDF5 file, and so nothing to replace")):
            with self.subTest(output=output):
                before = (self.folder / output).read_bytes()
                self.assertIn(reason, self.refused("images", source, output, *words, "--classes",
                                                   "names", code=2))
                self.assertEqual((self.folder / output).read_bytes(), before)

    def test_files_that_may_not_grow(self):
        random = numpy.random.default_rng(1)
        files = {f"{name}/{k}.png": png(random.integers(0, 256, (64, 64, 3), numpy.uint8))
                 for name in ("cat", "dog") for k in range(8)}
        for keep in ("pixels", "files"):
            result = subprocess.run(
                [CAROUSEL, "import", "images", self.tree("set", files), "new.h5",
                 "--test-fraction", "0.5", "--keep", keep], cwd=self.folder, text=True,
                capture_output=True, check=False, preexec_fn=lambda: resource.setrlimit(
                    resource.RLIMIT_FSIZE, (50_000, 50_000)))
            self.assertEqual(result.returncode, 74, result.stderr)
            self.assertRegex(result.stderr, r"carousel: new.h5.*File too large")
            self.assertEqual(sorted(p.name for p in self.folder.iterdir()), ["set"])

    def test_pictures_larger_than_memory(self):
        # Black lines deflate well: a file of a few hundred KB whose pixels need 510 MB.
        files = {f"{half}/{name}/0.png": png(numpy.zeros((5, 7, 3), numpy.uint8))
                 for half in ("train", "test") for name in ("cat", "dog")}
        files["train/cat/1.png"] = png(numpy.zeros((13_000, 13_000), numpy.uint8))
        words = [CAROUSEL, "import", "images", self.tree("set", files), "new.h5", "--workers", "1",
                 "--keep", "files"]

        def run(*more):
            return subprocess.run([*words, *more], cwd=self.folder, text=True, capture_output=True,
                                  check=False, preexec_fn=lambda: resource.setrlimit(
                                      resource.RLIMIT_AS, (500 << 20, 500 << 20)))
        result = run()
        self.assertEqual(result.returncode, 65, result.stderr)
        self.assertIn("bad: train/cat/1.png: 13000 x 13000 pixels are more than there is memory for",
                      result.stderr)
        result = run("--skip-bad")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("2 images for training, 2 for tests", result.stdout)

    def test_classes_of_a_list(self):
        files = {path: png(pixels) for path, pixels in pictures().items()}
        (self.folder / "names").write_text("owl\r\ndog\r\ncat\r\n")
        got = self.imported("images", self.tree("set", files), "--test-fraction", "0.5",
                            "--classes", "names")
        self.assertEqual(got["class_names"].tolist(), [b"owl", b"dog", b"cat"])
        self.assertEqual(set(got["train/labels"]) | set(got["test/labels"]), {1, 2})
        (self.folder / "twice").write_text("dog\ncat\ndog\n")
        self.assertIn("dog is in it twice", self.refused(
            "images", "set", "new.h5", "--test-fraction", "0.5", "--classes", "twice", code=2))

    def test_cifar10_in_all_forms(self):
        batches = cifar10()
        got = self.imported("cifar10", self.tar("python.tar.gz", python_files(), "w:gz"))
        for half, parts in (("train", batches[:5]), ("test", batches[5:])):
            numpy.testing.assert_array_equal(got[f"{half}/labels"],
                                             numpy.concatenate([part[0] for part in parts]))
            numpy.testing.assert_array_equal(
                got[f"{half}/images"],
                numpy.concatenate([part[1] for part in parts]).reshape(-1, 3, 32, 32))
        self.assertEqual(got["class_names"].tolist(), [name.encode() for name in NAMES])
        self.equal(got, self.imported("cifar10", self.tree("python", python_files())))
        self.equal(got, self.imported("cifar10", self.tar("binary.tar", binary_files())))
        folders = {f"cifar10/{half}/{NAMES[label]}/{number:04}.png":
                   png(image.reshape(3, 32, 32).transpose(1, 2, 0).copy())
                   for half, parts in (("train", batches[:5]), ("test", batches[5:]))
                   for number, (label, image) in enumerate(
                       (label, image) for part in parts for label, image in zip(*part))}
        drawn = self.imported("cifar10", self.tar("folders.tar.xz", folders, "w:xz"))
        self.assertEqual(sorted(map(bytes, drawn["train/images"])),
                         sorted(map(bytes, got["train/images"])))

    def test_cifar10_of_which_there_are_two(self):
        files = python_files()
        expected = self.imported("cifar10", self.tree("one", files))
        stale = {path: data for path, data in files.items() if path.endswith("data_batch_3")}
        self.tree("hidden", files | {f".trash/{path}": data[::-1] for path, data in files.items()})
        self.equal(expected, self.imported("cifar10", "hidden"))
        self.tree("two", files | {f"backup/{path}": data for path, data in stale.items()})
        self.assertIn("two: has backup/cifar-10-batches-py/data_batch_3 and "
                      "cifar-10-batches-py/data_batch_3; give the folder that holds one of them",
                      self.refused("cifar10", "two", "new.h5"))

    def test_imagenet_as_published_is_its_tree(self):
        random = numpy.random.default_rng(8)
        ids = ["n01440764", "n01514859", "n02000000"]
        drawn = {(wnid, k): png(random.integers(0, 256, (*random.integers(5, 40, 2), 3),
                                                numpy.uint8)) for wnid in ids for k in range(6)}
        training = {(wnid, k): data for (wnid, k), data in drawn.items() if k < 4}
        order = sorted((k, wnid) for wnid, k in drawn if k >= 4)  # of validation, classes mixed
        names = {f"ILSVRC2012_val_{number:08}.JPEG": (wnid, k)
                 for number, (k, wnid) in enumerate(order, 1)}
        tree = {f"train/{wnid}/{wnid}_{k}.JPEG": data for (wnid, k), data in training.items()}
        tree |= {f"val/{names[name][0]}/{name}": drawn[names[name]] for name in names}
        wanted = self.imported("images", self.tree("tree", tree))
        (self.folder / "published").mkdir()
        inner = {}
        for wnid in reversed(ids):
            name = self.tar("inner.tar", {f"{wnid}_{k}.JPEG": data for (other, k), data
                                          in training.items() if other == wnid})
            inner[f"{wnid}.tar"] = (self.folder / name).read_bytes()
        self.tar("published/ILSVRC2012_img_train.tar", inner)
        self.tar("published/ILSVRC2012_img_val.tar",
                 {name: drawn[names[name]] for name in reversed(names)})
        (self.folder / "in_order").write_text(  # as programs of Windows write it
            "\ufeff" + "".join(f"{names[name][0]}\n" for name in names))
        (self.folder / "by_name").write_text("ImageId,PredictionString\n" + "".join(
            f"{pathlib.Path(name).stem},{names[name][0]} 1 2 3 4\n" for name in reversed(names)))
        (self.folder / "numbers").write_text("1\n" * len(names))
        (self.folder / "few").write_text("n01440764\n")
        (self.folder / "id_first").write_text("".join(
            f"{names[name][0]} {name}\n" for name in names))
        mixed = ["n01440764\n", *(f"{name} {names[name][0]}\n" for name in [*names][1:])]
        (self.folder / "mixed").write_text("".join(mixed))
        (self.folder / "mixed_late").write_text("".join(mixed[1:] + mixed[:1]))
        (self.folder / "twice").write_text("a.png n01440764\na.png n01514859\n")
        for labels in ("in_order", "by_name"):
            self.equal(wanted, self.imported("imagenet", "published", "--labels", labels))
        train = self.folder / "published/ILSVRC2012_img_train.tar"
        whole = train.read_bytes()
        for path, data in inner.items():
            with tarfile.open(fileobj=io.BytesIO(data)) as archive:
                cut = archive.getmembers()[1].offset
            self.tar("published/ILSVRC2012_img_train.tar", {path: data[:cut]})
            self.assertIn(f"_train.tar: {path}: is cut off after {cut} bytes", self.refused(
                "imagenet", "published", "new.h5", "--labels", "in_order"))
        link = tarfile.TarInfo("link.png")
        link.type, link.linkname = tarfile.SYMTYPE, "n01440764_0.JPEG"
        (self.folder / "inner.tar").write_bytes(inner["n01440764.tar"])
        with tarfile.open(self.folder / "inner.tar", "a") as archive:
            archive.addfile(link)
        linked = (self.folder / "inner.tar").read_bytes()
        self.tar("published/ILSVRC2012_img_train.tar", {**inner, "n01440764.tar": linked})
        self.assertIn("bad: train/n01440764/link.png: a link inside", self.refused(
            "imagenet", "published", "new.h5", "--labels", "in_order"))
        self.equal(wanted, self.imported("imagenet", "published", "--labels", "in_order",
                                         "--skip-bad"))
        train.write_bytes(whole)
        for half in ("train", "val"):
            archive = f"published/ILSVRC2012_img_{half}.tar"
            with tarfile.open(self.folder / archive) as tar:
                tar.extractall(self.folder / f"published/{half}")
            (self.folder / archive).unlink()
            self.equal(wanted, self.imported("imagenet", "published", "--labels", "in_order"))
        for name in inner:  # the archives of classes unpacked, too
            with tarfile.open(self.folder / "published/train" / name) as tar:
                tar.extractall(self.folder / "published/train" / name[:-4])
            (self.folder / "published/train" / name).unlink()
        self.equal(wanted, self.imported("imagenet", "published", "--labels", "in_order"))
        for labels, reason in (("numbers", "line 1 has no WordNet id"),
                               ("few", "1 classes for 6 validation pictures"),
                               ("id_first", "id_first: line 1 has more behind the class n01440764"),
                               ("mixed", "mixed: line 2 has the name of a picture, unlike"),
                               ("mixed_late", "mixed_late: line 6 has no name of a picture"),
                               ("twice", "twice: line 2 has a.png again, with another class")):
            self.assertIn(reason, self.refused("imagenet", "published", "new.h5", "--labels",
                                               labels))
        # Validation pictures in folders: of any names, and of classes.
        shutil.rmtree(self.folder / "published/val")
        self.tree("published/val", {f"{k % 2}/{name}": drawn[names[name]]
                                    for k, name in enumerate(names)})
        self.equal(wanted, self.imported("imagenet", "published", "--labels", "in_order"))
        first = next(iter(names))
        self.tree("published/val", {f"1/{first}": b""})
        self.assertIn(f"published/val: 0/{first} and 1/{first} have the same name", self.refused(
            "imagenet", "published", "new.h5", "--labels", "by_name"))
        shutil.rmtree(self.folder / "published/val")
        self.tree("published/val", {f"{names[name][0]}/{name}": drawn[names[name]]
                                    for name in names})
        for labels in ("in_order", "by_name"):
            self.equal(wanted, self.imported("imagenet", "published", "--labels", labels))
        (self.folder / "sorted").write_text("".join(sorted(f"{names[name][0]}\n" for name in names)))
        self.assertRegex(self.refused("imagenet", "published", "new.h5", "--labels", "sorted"),
                         r"sorted: n\d+/ILSVRC2012_val_\d+.JPEG is of class n\d+, not of")
        self.assertIn("has neither ILSVRC2012_img_train.tar nor train/", self.refused(
            "imagenet", "published/val", "new.h5", "--labels", "few"))

    def test_bad_batches(self):
        def batch(labels, dtype=numpy.uint8):
            return pickle.dumps({"labels": labels, "data": cifar10()[0][1][:1].astype(dtype)}, 2)
        files = python_files()
        name = "cifar-10-batches-py/data_batch_3"
        for change, reason in ((files[name][:500], "ends too early"), (b"", "ends too early"),
                               (pickle.dumps({"labels": [10], "data": cifar10()[0][1][:1]}, 2),
                                "a label outside 0..9"),
                               (pickle.dumps({"labels": [1, 2], "data": cifar10()[0][1][:1]}, 2),
                                "3072 bytes of images for 2 labels"),
                               (batch([1.0]), "that data sets lack"),
                               (batch(["1"]), "'labels' are no list of integers"),
                               (batch([numpy.int64(1)]), "'labels' are no list of integers"),
                               (batch(numpy.array([1])), "'labels' are no list of integers"),
                               (batch([1], numpy.int8), "type i1, not u1"),
                               (batch([1], numpy.bool_), "type b1, not u1"),
                               (batch([1], numpy.float32), "type f4, not u1"),
                               (pickle.dumps({"labels": [1]}, 2), "without 'data'")):
            complaint = self.refused("cifar10", self.tar("a.tar", {**files, name: change}), "new.h5")
            self.assertIn(f"a.tar: {name}: ", complaint)
            self.assertIn(reason, complaint)
        del files[name]
        with tarfile.open(self.folder / self.tar("a.tar", files), "a") as archive:
            link = tarfile.TarInfo(name)
            link.type, link.linkname = tarfile.SYMTYPE, "data_batch_1"
            archive.addfile(link)
        self.assertIn(f"a.tar: {name}: a link inside the archive",
                      self.refused("cifar10", "a.tar", "new.h5"))
        self.assertIn("a.tar: data_batch_3 is missing",
                      self.refused("cifar10", self.tar("a.tar", files), "new.h5"))

    def test_what_is_no_source(self):
        self.assertIn("nothing: cannot open: No such file",
                      self.refused("images", "nothing", "new.h5", code=74))
        self.tree(".", {"words": b"not an archive", "set/cat/a.png": png(pictures()["cat/00.png"])})
        self.assertIn("words: neither a folder nor a whole tar archive",
                      self.refused("images", "words", "new.h5"))
        self.assertIn("give --test-fraction", self.refused("images", "set", "new.h5", code=2))
        with zipfile.ZipFile(self.folder / "set.zip", "w") as archive:
            archive.writestr("cat/a.png", b"a")
        self.assertIn("set.zip: is a zip archive; unpack it and give the folder",
                      self.refused("images", "set.zip", "new.h5"))
        archive = self.tar("a.tar", {"cat/a.png": bytes(50_000)})
        (self.folder / "cut.tar").write_bytes((self.folder / archive).read_bytes()[:20_000])
        self.assertIn("cut.tar: neither a folder nor a whole tar",
                      self.refused("images", "cut.tar", "new.h5", "--test-fraction", "0.5"))
        nameless = {"cat/a.png": png(pictures()["cat/00.png"]), "": b"x", "cat/b.png": b"y"}
        self.assertIn("a file in it has no name", self.refused(
            "images", self.tar("nameless.tar", nameless), "new.h5", "--test-fraction", "0.5"))
        self.assertIn("set: is a folder", self.refused("images", "set", "set", code=2))
        (self.folder / "set/loop").symlink_to("loop")
        self.assertIn("set/loop: ", self.refused("images", "set", "new.h5", code=74))
        (self.folder / "set/loop").unlink()
        words = {f"{half}/a/{k}.png": b"words" for half in ("train", "test") for k in range(3)}
        self.assertIn("no picture for training can be decoded, beginning with train/a/0.png",
                      self.refused("images", self.tar("words.tar", words), "new.h5"))
        (self.folder / "old.h5").touch()
        self.assertIn("give --overwrite", self.refused("images", "set", "old.h5", code=2))
        self.assertIn("no/new.h5", self.refused("cifar10", self.tar("b.tar", binary_files()),
                                                "no/new.h5", code=74))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
