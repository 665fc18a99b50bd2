// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// A Kokkos tool that makes a core look like several slow ones: every kernel sleeps until its time
// is over. Ranks that share cores then compute beside each other as if each had its own, and take
// as long in every run however busy the machine is, which is what a bench of communication needs.
// Loaded by KOKKOS_TOOLS_LIBS; the interface is that of Kokkos' own tools (C callbacks).
//
//   CAROUSEL_KERNEL_TIMES=FILE   seconds of every kernel of every region; where there is no such
//                                file, rank 0 writes one when it ends
//   CAROUSEL_STRETCH=12          without the file: times the least processor time seen so far
//   CAROUSEL_SLOW="2 1.3"        rank 2 takes 1.3 times as long
//   CAROUSEL_JITTER=0.3          every region takes 1 - 0.3 + 0.3 x as long, x exponential of
//                                mean 1, as in the simulator
//   CAROUSEL_JITTER_SEED=1       which x

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <utility>

namespace {

std::string file;
bool writes = false;
bool given = false;  // the times are those of the file
double stretch = 1;
double slowness = 1;
double jitter = 0;
double factor = 1;   // of the region in hand
std::string region;  // of an action of a stage; empty between them
int kernel = 0;      // in it
double begin_wall = 0;
double begin_processor = 0;
std::map<std::pair<std::string, int>, double> times;  // seconds by region and kernel
std::mt19937_64 generator;

double seconds(clockid_t clock) {
  timespec time = {};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

std::string setting(const char* name, const char* otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : text;
}

void begin() {
  begin_wall = seconds(CLOCK_MONOTONIC);
  begin_processor = seconds(CLOCK_THREAD_CPUTIME_ID);
}

void end() {
  if (region.empty()) return;
  const double used = stretch * (seconds(CLOCK_THREAD_CPUTIME_ID) - begin_processor);
  double& time = times.try_emplace({region, kernel++}, used).first->second;
  if (!given) time = std::min(time, used);
  const double until = begin_wall + time * slowness * factor;
  const double whole = std::floor(until);
  const timespec when{.tv_sec = static_cast<time_t>(whole),
                      .tv_nsec = static_cast<long>(1e9 * (until - whole))};
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, nullptr);
}

}  // namespace

extern "C" {

void kokkosp_init_library(int /*sequence*/, std::uint64_t /*version*/, std::uint32_t /*devices*/,
                          void* /*devices_info*/) {
  const int rank = std::atoi(setting("PMI_RANK", "0").c_str());
  stretch = std::stod(setting("CAROUSEL_STRETCH", "1"));
  jitter = std::stod(setting("CAROUSEL_JITTER", "0"));
  std::seed_seq seeds = {std::stoi(setting("CAROUSEL_JITTER_SEED", "0")), rank};
  generator.seed(seeds);
  const std::string slow = setting("CAROUSEL_SLOW", "-1 1");
  if (std::stoi(slow) == rank) slowness = std::stod(slow.substr(slow.find(' ')));
  file = setting("CAROUSEL_KERNEL_TIMES", "");
  std::ifstream in(file);
  given = in.good();
  writes = !given && !file.empty() && rank == 0;
  double time = 0;
  int number = 0;
  for (std::string name; in >> time >> number && std::getline(in >> std::ws, name);)
    times[{name, number}] = time;
}

void kokkosp_finalize_library() {
  if (!writes) return;
  std::ofstream out(file);
  for (const auto& [place, time] : times)
    out << time << ' ' << place.second << ' ' << place.first << '\n';
}

// The executor opens a region for every action that computes.
void kokkosp_push_profile_region(const char* name) {
  region = name;
  kernel = 0;
  factor = 1 - jitter + jitter * std::exponential_distribution<double>(1)(generator);
}
void kokkosp_pop_profile_region() {
  region.clear();
}

void kokkosp_begin_parallel_for(const char* /*name*/, std::uint32_t /*device*/,
                                std::uint64_t* /*kernel*/) {
  begin();
}
void kokkosp_end_parallel_for(std::uint64_t /*kernel*/) {
  end();
}
void kokkosp_begin_parallel_reduce(const char* /*name*/, std::uint32_t /*device*/,
                                   std::uint64_t* /*kernel*/) {
  begin();
}
void kokkosp_end_parallel_reduce(std::uint64_t /*kernel*/) {
  end();
}

}  // extern "C"
