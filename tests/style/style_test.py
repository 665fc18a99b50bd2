#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
"""Shows that the style checks can fail: each rule meets a small tree that breaks it."""

import tempfile
import unittest
from pathlib import Path

import check_includes
import check_text

HEAD = ("// SPDX-FileCopyrightText: 2026 The Carousel authors\n"
        "// SPDX-License-Identifier: Apache-2.0\n")
VIEW = HEAD + "#pragma once\n#include <Kokkos_Core.hpp>\n"


def complaints(check, tree):
    """What `check` says about a folder with the files of `tree`."""
    with tempfile.TemporaryDirectory() as root:
        for path, source in tree.items():
            file = Path(root) / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(source, encoding="utf-8")
        return check(Path(root))


class Includes(unittest.TestCase):
    def expect(self, word, tree):
        found = complaints(check_includes.check, tree)
        self.assertEqual(len(found), 1, found)
        self.assertIn(word, found[0])

    def test_accepts_the_table(self):
        tree = {"core/base/view.hpp": VIEW, "core/train/a.hpp": '#include "core/base/view.hpp"\n',
                "layers/b.cpp": '#include "core/base/view.hpp"\n',
                "comm/c.cpp": "#include <mpi.h>\n",
                "core/plan/placements/d.cpp": '#include "core/plan/e.hpp"\n',
                "core/plan/e.hpp": '#include "core/plan/placements/f.hpp"\n',
                "core/plan/placements/f.hpp": "",
                "core/record/g.cpp": '#include "core/train/records.hpp"\n',
                "core/train/records.hpp": "",
                "app/engine.cpp": '#include "core/train/a.hpp"\n'}
        self.assertEqual(complaints(check_includes.check, tree), [])

    def test_rooms(self):
        for here, there in (("core/plan/a.cpp", "app/b.hpp"), ("layers/a.cpp", "comm/b.hpp"),
                            ("comm/a.cpp", "layers/b.hpp"), ("core/plan/a.cpp", "layers/b.hpp"),
                            ("layers/a.cpp", "core/train/b.hpp"), ("app/a.cpp", "tests/b.hpp"),
                            ("core/plan/placements/a.cpp", "core/proof/b.hpp"),
                            ("core/train/a.cpp", "core/record/b.hpp")):
            self.expect("must not include", {here: f'#include "{there}"\n', there: ""})

    def test_unknown_room(self):
        self.expect("table of rooms", {"core/io/a.cpp": '#include "core/base/b.hpp"\n',
                                       "core/base/b.hpp": ""})

    def test_plain_structs_of_train(self):
        self.expect("plain structs", {"core/record/a.cpp": '#include "core/train/b.hpp"\n',
                                      "core/train/b.hpp": ""})

    def test_rooms_follow_those_they_include(self):
        above = set()
        for room, allowed in check_includes.ALLOWED.items():
            self.assertLessEqual(allowed - {room}, above)
            above.add(room)

    def test_missing_file(self):
        self.expect("no file", {"core/plan/a.cpp": '#include "plan/b.hpp"\n'})

    def test_own_header_first(self):
        for includes in "", "#include <vector>\n#include \"comm/a.hpp\"\n":
            self.expect("own header", {"comm/a.hpp": "", "comm/a.cpp": includes})

    def test_foreign_libraries(self):
        for path, name in (("core/plan/a.cpp", "mpi.h"), ("layers/a.cpp", "mpi.h"),
                           ("core/plan/a.cpp", "Kokkos_Core.hpp"), ("app/main.cpp", "hdf5.h"),
                           ("core/train/a.cpp", "cuda_runtime.h"), ("layers/a.cpp", "nccl.h")):
            self.expect("not for this file", {path: f"#include <{name}>\n"})

    def test_thinking_half(self):
        self.expect("only thinks",
                    {"core/base/view.hpp": VIEW,
                     "core/train/b.hpp": '#include "core/base/view.hpp"\n',
                     "app/plan_command.cpp": '#include "core/train/b.hpp"\n'})


class Text(unittest.TestCase):
    def expect(self, word, path, source):
        found = complaints(check_text.check, {path: source})
        self.assertEqual(len(found), 1, found)
        self.assertIn(word, found[0])

    def test_accepts_labels(self):
        source = HEAD + """
          Kokkos::parallel_for("carousel::layers::relu", range, kernel);
          Kokkos::parallel_reduce(label, range, kernel);
          Kokkos::parallel_for(Kokkos::TeamThreadRange(team, 3), [&](int i) { f(i); });
          Kokkos::View<int*> a(Kokkos::view_alloc(exec, "carousel::a"), 3);
          exec.fence("carousel::comm::send");  // not fence()
        """
        self.assertEqual(complaints(check_text.check, {"layers/a.cpp": source}), [])

    def test_labels(self):
        for call in ("Kokkos::parallel_for(range, kernel);", 'parallel_scan("scan", 3, kernel);',
                     "exec.fence();", 'Kokkos::view_alloc(exec, "mine");',
                     'Kokkos::View<int*, Space> a("mine", 3);'):
            self.expect("label", "layers/a.cpp", HEAD + call)

    def test_licence(self):
        self.expect("SPDX", "core/a.cpp", "int main() {}\n")
        self.expect("SPDX", "jobscripts/a.sh", "#!/usr/bin/env bash\necho\n")

    def test_pragma_once(self):
        self.expect("#pragma once", "core/a.hpp", HEAD + "int f();\n")

    def test_left_over(self):
        self.expect("finish it", "core/a.cpp", HEAD + "// " + "TO" + "DO: all\n")


if __name__ == "__main__":
    unittest.main()
