# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
"""File systems that lack something, paths that no deck can tell, and files that are not what they
should be: what can be done is done, all else is refused with its reason before anything is trained.

Usage: files_test.py CAROUSEL COMPILER PROJECT. Calls that a file system may lack fail by a library
that is loaded first.
"""

import json
import os
import pathlib
import pickle
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

import h5py
import numpy

from drawn import png

CAROUSEL, COMPILER, PROJECT = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
DECK, DIGITS = PROJECT / "inputs/digits.toml", PROJECT / "inputs/digits.h5"

# LACKS names what there is not: "symlink", "flock", "fsync", "fsync_of_folders".
LACKING = """#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
static int lacks(const char* what) {
  const char* all = getenv("LACKS");
  return all != NULL && strcmp(all, what) == 0;
}
static int fail(int error) {
  errno = error;
  return -1;
}
int symlink(const char* target, const char* path) {
  if (lacks("symlink")) return fail(EPERM);
  return (int)syscall(SYS_symlink, target, path);
}
int flock(int file, int what) {
  if (lacks("flock")) return fail(ENOLCK);
  if (lacks("flock_at_all")) return fail(ENOSYS);
  return (int)syscall(SYS_flock, file, what);
}
int fsync(int file) {
  struct stat status;
  if (lacks("fsync")) return fail(ENOSYS);
  if (lacks("fsync_of_folders") && fstat(file, &status) == 0 && S_ISDIR(status.st_mode))
    return fail(EOPNOTSUPP);
  return (int)syscall(SYS_fsync, file);
}
"""


class Files(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.libraries = pathlib.Path(tempfile.mkdtemp())
        (cls.libraries / "lacking.c").write_text(LACKING)
        subprocess.run([COMPILER, "-shared", "-fPIC", cls.libraries / "lacking.c", "-o",
                        cls.libraries / "lacking.so"], check=True)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.libraries)

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, os.fsencode(self.folder))

    def carousel(self, *words, code=0, lacks=None, **variables):
        environment = {**os.environ, **variables}
        if lacks:
            environment |= {"LACKS": lacks, "LD_PRELOAD": str(self.libraries / "lacking.so")}
        words = [word if isinstance(word, bytes) else str(word) for word in words]
        result = subprocess.run([CAROUSEL, *words], cwd=self.folder, capture_output=True, timeout=100,
                                env=environment, check=False)
        told = (result.stdout + result.stderr).decode(errors="replace")
        self.assertEqual(result.returncode, code, (words, told))
        return told

    def train(self, *words, **keywords):
        deck = [] if words and words[0] == "run" else [DECK]
        if deck and not any(str(word).startswith("run.output=") for word in words):
            deck += ["run.output=run"]
        return self.carousel("train", *deck, *words, "engine.threads=1", **keywords)

    def test_without_symbolic_links(self):
        best = ["checkpoint.keep=1", "checkpoint.keep_best=true"]
        self.train("--validate", lacks="symlink")
        self.train("train.epochs=3", *best, lacks="symlink")
        folder = self.folder / "run/checkpoints"
        last = folder / "last.h5"
        self.assertFalse(last.is_symlink())
        self.assertLess(last.stat().st_size, 8192)
        self.assertEqual(max(folder.glob("step-*")).name, "step-00000066.h5")
        # All that reads a checkpoint reads it by this name, h5py as well.
        self.assertIn("step 66, ", self.carousel("eval", "run", DIGITS))
        self.assertIn("66 steps done", self.carousel("inspect", last))
        self.carousel("export", "weights", last, "w.h5")
        with h5py.File(last) as link, h5py.File(folder / "step-00000066.h5") as file:
            numpy.testing.assert_array_equal(link["parameters/0.weight"], file["parameters/0.weight"])
            self.assertEqual(link["info"].attrs["deck"], file["info"].attrs["deck"])
        self.assertIn("All checks passed", self.carousel("verify", "run"))
        # And a run goes on with its best one kept, from either kind of link to the other.
        for epochs, lacks in ((4, "symlink"), (5, None), (6, "symlink")):
            self.train("run", f"train.epochs={epochs}", lacks=lacks)
            self.assertIn("All checks passed", self.carousel("verify", "run"))
            self.assertIn(f"{22 * epochs} steps done", self.carousel("inspect", last))
            kept = {path.name for path in folder.glob("step-*")}
            self.assertLessEqual(len(kept), 2)
            with h5py.File(self.folder / "run/run.h5") as file:
                row = int(numpy.argmax(file["evaluations/accuracy"][:]))
                wanted = int(file["evaluations/step"][row])
            self.assertIn(f"step-{wanted:08}.h5", kept)
            self.assertIn(f"{wanted} steps done", self.carousel("inspect", folder / "best.h5"))
        self.train("train.epochs=2", f"run.resume={folder}/best.h5", "run.output=other")
        # What is behind a link is what is not written to.
        line = self.carousel("export", "weights", last, folder / "step-00000132.h5", "--overwrite",
                             code=2)
        self.assertIn("is the checkpoint, which would be lost", line)
        (folder / "step-00000132.h5").unlink()
        self.assertIn("step-00000132.h5: cannot open: No such file",
                      self.carousel("inspect", last, code=74).replace(f"{folder}/", ""))

    def test_without_fsync(self):
        for lacks in ("fsync", "fsync_of_folders"):
            self.train("train.epochs=1", "--overwrite", lacks=lacks)
            self.assertIn("All checks passed", self.carousel("verify", "run"))

    def test_without_locks(self):
        # Who only reads may do without, and is told how; what is made is known to nobody else.
        line = self.train("--validate", lacks="flock", code=74)
        self.assertRegex(line, "digits.h5: cannot open it: its file system has no locks .*"
                               "set HDF5_USE_FILE_LOCKING=FALSE in the environment")
        for lacks in ("flock", "flock_at_all"):
            self.train("train.epochs=1", "--overwrite", lacks=lacks, HDF5_USE_FILE_LOCKING="FALSE")
        self.carousel("verify", "run")
        for k in range(4):
            path = self.folder / f"set/{'ab'[k % 2]}/{k}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(png(numpy.full((4, 4, 3), 40 * k, numpy.uint8)))
        words = ["import", "images", "set", "--test-fraction", "0.5"]
        self.carousel(*words, "locked.h5")
        self.carousel(*words, "free.h5", lacks="flock")
        self.assertEqual((self.folder / "free.h5").read_bytes(),
                         (self.folder / "locked.h5").read_bytes())

    def test_paths_that_no_deck_can_tell(self):
        odd = os.fsencode(self.folder) + b"/odd\xff"
        os.makedirs(odd)
        for path in (DECK, DIGITS):
            shutil.copy(path, odd + b"/" + os.fsencode(path.name))
        digits = f"data.file={DIGITS}"
        for words, key in (([odd + b"/digits.toml"], "data.file"),
                           ([DECK, b"run.output=" + odd], "run.output"),
                           ([DECK, b"data.file=" + odd + b"/digits.h5"], "data.file"),
                           ([DECK, b"train.start=" + odd + b"/c.h5"], "train.start"),
                           ([DECK, b"run.resume=" + odd + b"/c.h5"], "run.resume"),
                           ([DECK, b"run.name=\xed\xa0\x80"], "run.name"),
                           ([DECK, b"run.output=\xc0\xaf"], "run.output")):
            for extra in (["--validate"], []):
                line = self.carousel("train", *words, *extra, code=2)
                self.assertIn(f"{key} = ", line)
                self.assertIn("is not UTF-8", line)
        self.assertEqual(sorted(os.listdir(os.fsencode(self.folder))), [b"odd\xff"])
        # Only what is stored must be text.
        self.carousel("train", odd + b"/digits.toml", digits, "run.output=run", "train.epochs=1",
                      "engine.threads=1")
        self.assertIn("All checks passed", self.carousel("verify", "run"))
        self.carousel("train", "run", "train.epochs=2")
        for name in ("größer ☃ 𝄞", "a'b", 'a"b', "a\\b"):
            self.train("train.epochs=1", f"run.output={name}", f"run.name={name}")
            self.assertIn("All checks passed", self.carousel("verify", name))
            self.carousel("train", name, "train.epochs=2")
        # A folder that was moved to such a place is gone on with inside.
        os.rename(self.folder / "run", odd + b"/run")
        self.assertIn("run.output = ", self.carousel("train", odd + b"/run", code=2))
        self.assertIn("All checks passed", self.carousel("verify", odd + b"/run"))

    def test_files_that_are_something_else(self):
        def refused(path, code=65, **keywords):
            return self.carousel("plan", DECK, f"data.file={path}", code=code, **keywords)

        with h5py.File(DIGITS) as file:
            values = {f"{half}/{name}": file[f"{half}/{name}"][:]
                      for half in ("train", "test") for name in ("images", "labels")}
            attributes = dict(file.attrs)

        def data(name, left_out=None, **keywords):
            file = h5py.File(self.folder / name, "w", **keywords)
            file.attrs.update(attributes)
            for key, numbers in values.items():
                if key != left_out:
                    file[key] = numbers
            return file

        images = values["train/images"]
        data("whole.h5").close()
        self.carousel("plan", DECK, "data.file=whole.h5")

        # Numbers that lie elsewhere.
        with data("virtual.h5", "train/images") as file:
            layout = h5py.VirtualLayout(images.shape, "u1")
            layout[:] = h5py.VirtualSource("whole.h5", "train/images", images.shape)
            file.create_virtual_dataset("train/images", layout)
        self.assertIn("/train/images is a virtual data set, whose numbers lie in other files",
                      refused("virtual.h5"))
        with data("external.h5", "train/images") as file:
            kept = file.create_dataset("train/images", images.shape, "u1",
                                       external=[(self.folder / "raw", 0, images.size)])
            kept[...] = images
        self.assertIn("/train/images has its numbers in another file (external raw storage)",
                      refused("external.h5"))
        with data("linked.h5", "train/images") as file:
            file["train/images"] = h5py.ExternalLink("whole.h5", "/train/images")
        self.assertIn("lies in another file", refused("linked.h5"))
        with data("filtered.h5", "train/images") as file:
            file.create_dataset("train/images", data=images, compression="lzf")
        self.assertIn("compressed in a way that this program does not know", refused("filtered.h5"))

        # Open elsewhere.
        with h5py.File(self.folder / "whole.h5", "r+"):
            line = refused("whole.h5", code=74)
            self.assertIn("whole.h5: cannot open it: another program has it open to write", line)
        with data("left.h5", libver="latest") as file:
            file.flush()
            shutil.copy(self.folder / "left.h5", self.folder / "open.h5")
        self.assertIn("h5clear -s makes the file readable", refused("open.h5"))

        # Of a later version, or damaged: nobody can tell.
        later = bytearray((self.folder / "left.h5").read_bytes())
        later[8] = 9  # of the superblock
        (self.folder / "later.h5").write_bytes(later)
        self.assertIn("damaged, or of a newer HDF5 than this program's HDF5 1.", refused("later.h5"))
        self.assertNotIn("damaged", refused("whole.h5/x", code=74))

        # No HDF5 at all.
        (self.folder / "folder.h5").mkdir()
        self.assertIn("folder.h5: cannot open: Is a directory", refused("folder.h5", code=74))
        (self.folder / "empty.h5").touch()
        self.assertIn("empty.h5: is no HDF5 file; it is empty", refused("empty.h5"))
        (self.folder / "text.h5").write_text("hello")
        self.assertIn("text.h5: is no HDF5 file; ", refused("text.h5"))
        with zipfile.ZipFile(self.folder / "w.pth", "w") as archive:
            archive.writestr("archive/data.pkl", b"")
        (self.folder / "old.pth").write_bytes(pickle.dumps({}, 2))
        (self.folder / "w.safetensors").write_bytes(b'\2\0\0\0\0\0\0\0{}{"a":1}')
        numpy.save(self.folder / "w.npy", numpy.zeros(3))
        for name, words in (("w.pth", "zip archive, as torch.save and numpy.savez write"),
                            ("old.pth", "it is a pickle, as torch.save wrote"),
                            ("w.npy", "an array of numpy.save")):
            line = self.carousel("import", "weights", name, DECK, "c.h5", code=65)
            self.assertIn(f"{name}: is no HDF5 file; it is a", line)
            self.assertIn(words, line)
            self.assertIn(f"{name}: is no HDF5 file", self.carousel("inspect", name, code=65))
            self.assertIn(f"{name}: is no HDF5 file",
                          self.carousel("eval", name, DIGITS, code=65))
        # A block of the user's may come first.
        block = bytes(512) + (self.folder / "whole.h5").read_bytes()
        (self.folder / "block.h5").write_bytes(block[:2000])
        self.assertNotIn("is no HDF5 file", refused("block.h5"))
        if os.getuid() != 0:
            (self.folder / "whole.h5").chmod(0)
            self.assertIn("Permission denied", refused("whole.h5", code=74))

    def test_a_data_set_that_is_not_there(self):
        def told(deck, *words):
            return self.carousel("train", deck, *words, "--validate", code=74)

        line = told(PROJECT / "inputs/resnet20_cifar10.toml", "data.file=none/cifar10.h5")
        self.assertIn('command line: data.file = "none/cifar10.h5": no such file', line)
        self.assertIn("`carousel import cifar10 ARCHIVE none/cifar10.h5` makes", line)
        self.assertIn("import images FOLDER own.h5", told(DECK, "data.file=own.h5"))
        self.assertIn("import imagenet FOLDER ImageNet.h5 --labels", told(DECK, "data.file=ImageNet.h5"))
        # A project that has moved.
        (self.folder / "project").mkdir()
        for path in (DECK, DIGITS):
            shutil.copy(path, self.folder / "project")
        self.carousel("train", "project/digits.toml", "run.output=project/run", "train.epochs=1",
                      "engine.threads=1")
        (self.folder / "project").rename(self.folder / "moved")
        line = self.carousel("train", "moved/run", "train.epochs=2", code=74)
        self.assertRegex(line, r"moved/run/run.h5, deck:\d+:1: data.file = \"/\S+/project/digits.h5\": no "
                               "such file; if it has moved, give data.file=PATH")
        self.carousel("train", "moved/run", "train.epochs=2", "data.file=moved/digits.h5")
        self.assertIn("All checks passed", self.carousel("verify", "moved/run"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
