// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// What a link between two ranks really does, with all that MPI and the network add to the bytes:
// bench_message BYTES. Rank 0 sends several messages of that size, as many come back; it prints the
// median seconds of one message behind "done: ", as a training ends its output.

#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <vector>

int main(int argc, char** argv) {
  constexpr int warm = 1;      // turns left out, which make connections
  constexpr int turns = 5;     // each way and back
  constexpr int messages = 8;  // each way, so that a link lives on no burst it has saved
  const int bytes = argc == 2 ? std::atoi(argv[1]) : 0;
  int rank = 0;
  int ranks = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (bytes <= 0 || ranks != 2) {
    std::fprintf(stderr, "usage: mpiexec -n 2 bench_message BYTES\n");
    MPI_Abort(MPI_COMM_WORLD, 64);
  }

  std::vector<char> message(static_cast<std::size_t>(bytes));
  std::vector<double> seconds;
  const auto send = [&] {
    for (int k = 0; k < messages; ++k)
      MPI_Send(message.data(), bytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD);
  };
  const auto receive = [&] {
    for (int k = 0; k < messages; ++k)
      MPI_Recv(message.data(), bytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  };
  for (int k = -warm; k < turns; ++k) {
    const double begin = MPI_Wtime();
    if (rank == 0) send();
    receive();
    if (rank == 1) send();
    if (k >= 0) seconds.push_back((MPI_Wtime() - begin) / (2 * messages));
  }
  std::nth_element(seconds.begin(), seconds.begin() + turns / 2, seconds.end());
  if (rank == 0) {
    std::printf("done: %.6f s\n", seconds[turns / 2]);
    std::fflush(stdout);
  }
  MPI_Finalize();
}
