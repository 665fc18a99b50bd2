# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
"""Nothing can pass by the counter of messages: whatever comm/ calls of MPI is counted, or moves no
message.

Usage: mpi_calls_test.py PROJECT
"""

import pathlib
import re
import sys
import unittest

PROJECT = pathlib.Path(sys.argv[1])

# Neither sends nor receives, or only where MPI starts and ends and communicators are made.
SILENT = set("""
    Abort Cancel Comm_create_group Comm_free Comm_group Comm_rank Comm_set_errhandler Comm_size
    Comm_split_type Error_string Finalize Get_count Group_free Group_incl Init_thread Request_free
    Testsome""".split())


def calls_in(text):
    return set(re.findall(r"\bP?MPI_([A-Z][a-z]\w*)\s*\(", text))


def counted_in(text):
    return (set(re.findall(r"^int MPI_(\w+)\(", text, re.MULTILINE))
            | set(re.findall(r"^CAROUSEL_COUNT_OTHER\((\w+)", text, re.MULTILINE)))


class Calls(unittest.TestCase):
    def test_all_are_counted(self):
        called = set().union(*(calls_in(path.read_text())
                               for path in (PROJECT / "comm").glob("*.[ch]pp")))
        counted = counted_in((PROJECT / "tests/comm/message_counter.cpp").read_text())
        self.assertLessEqual({"Isend", "Irecv", "Iallreduce", "Testsome"}, called)
        self.assertEqual(called - counted - SILENT, set())
        self.assertEqual(SILENT & counted, set())
        self.assertEqual(SILENT - called, set(), "no longer called")

    def test_finds_calls(self):
        self.assertEqual(calls_in("check(MPI_Sendrecv(a, b)); MPI_Comm c; PMPI_Put (x);"),
                         {"Sendrecv", "Put"})
        self.assertEqual(counted_in("int MPI_Isend(int a) {\nCAROUSEL_COUNT_OTHER(Send, (a))"),
                         {"Isend", "Send"})


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
