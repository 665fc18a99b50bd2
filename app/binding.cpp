// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "app/binding.hpp"

#include <fmt/core.h>
#include <sched.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string_view>
#include <system_error>

#include "core/base/check.hpp"

namespace carousel {
namespace {

namespace fs = std::filesystem;

/// The k-th of `parts` equal pieces of a list, as whole elements.
template <class Element>
std::vector<Element> piece(const std::vector<Element>& all, int k, int parts) {
  const auto size = static_cast<int>(all.size());
  return {all.begin() + k * size / parts, all.begin() + (k + 1) * size / parts};
}

int domain_of(const Core& core) {
  return core.domain;
}

/// The one NUMA domain that all cores lie in; -1 if there are several.
int only_domain(const std::vector<Core>& cores) {
  if (cores.empty()) return -1;
  const int first = cores.front().domain;
  const bool same = std::ranges::all_of(
      cores, [&](int d) { return d == first; }, domain_of);
  return same ? first : -1;
}

int choose_gpu(const Launcher& launcher, const Node& node, int device) {
  const auto count = static_cast<int>(node.gpus.size());
  if (device >= count)
    fail(ExitCode::usage, "engine.device = {}: this process sees {} GPU{}, counted from 0", device,
         count, count == 1 ? "" : "s");
  if (device >= 0 || count == 0) return device;
  // A launcher that has put this rank into one domain means the GPU of that domain. Which one of
  // several it means, a rank cannot know of itself, and no GPU should have two.
  const int domain = node.whole ? -1 : only_domain(node.cores);
  if (domain >= 0 && std::ranges::count(node.gpus, domain) == 1)
    return static_cast<int>(std::ranges::find(node.gpus, domain) - node.gpus.begin());
  return launcher.local_rank % count;
}

/// Cores for a rank of a node where nobody has given them out.
std::vector<Core> share_of(const Launcher& launcher, const Node& node, int gpu) {
  std::vector<Core> cores = node.cores;
  std::ranges::stable_sort(cores, {}, domain_of);
  const int ranks = launcher.local_size;
  const auto count = static_cast<int>(node.gpus.size());
  const bool known =
      gpu >= 0 && ranks <= count && std::ranges::find(node.gpus, -1) == node.gpus.end();
  if (!known) return piece(cores, launcher.local_rank, ranks);
  // Ranks with GPUs of one domain share its cores.
  const int domain = node.gpus[static_cast<std::size_t>(gpu)];
  std::erase_if(cores, [&](const Core& core) { return core.domain != domain; });
  int before = 0;
  int sharing = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    if (node.gpus[static_cast<std::size_t>(rank)] != domain) continue;
    before += rank < launcher.local_rank ? 1 : 0;
    ++sharing;
  }
  return piece(cores, before, sharing);
}

std::string first_line(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

const fs::path devices = "/sys/devices/system";

/// The number at the beginning of a text of the system.
int number_in(const std::string& text, int otherwise) {
  const std::vector<int> numbers = from_ranges(text);
  return numbers.empty() ? otherwise : numbers.front();
}

/// The NUMA domain of each hardware thread that the system names one for.
int domain_of_thread(int thread) {
  std::error_code unknown;
  const fs::path folder = devices / fmt::format("cpu/cpu{}", thread);
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, unknown)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("node")) return number_in(name.substr(4), 0);
  }
  return 0;
}

/// Addresses of the node's GPUs on its bus, in the order in which CUDA counts equal ones.
std::set<std::string> addresses_of_gpus() {
  std::error_code none;
  std::set<std::string> addresses;
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc/driver/nvidia/gpus", none))
    addresses.insert(entry.path().filename().string());
  return addresses;
}

std::vector<int> domains_of_gpus(int gpus) {
  std::vector<int> domains;
  const fs::path bus = "/sys/bus/pci/devices";
  for (const std::string& address : addresses_of_gpus())
    domains.push_back(number_in(first_line(bus / address / "numa_node"), -1));
  // A process that sees some of them only may count them otherwise.
  if (std::ssize(domains) != gpus) domains.assign(static_cast<std::size_t>(gpus), -1);
  return domains;
}

}  // namespace

Binding choose_binding(const Launcher& launcher, const Node& node, int threads_per_rank,
                       int device) {
  Binding binding;
  binding.gpu = choose_gpu(launcher, node, device);
  const int ranks = launcher.local_size;
  const auto size = static_cast<int>(node.cores.size());
  if (ranks < 2 || launcher.binds || !node.whole || ranks > size) return binding;
  const std::vector<Core> share = share_of(launcher, node, binding.gpu);
  for (const Core& core : share)
    binding.threads.insert(binding.threads.end(), core.threads.begin(), core.threads.end());
  std::ranges::sort(binding.threads);
  // Ranks that take turns on too few cores are better off with all of them.
  if (threads_per_rank > std::ssize(binding.threads)) binding.threads.clear();
  return binding;
}

std::vector<int> allowed_threads() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> threads;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return threads;
  for (int k = 0; k < CPU_SETSIZE; ++k)
    if (CPU_ISSET(k, &set)) threads.push_back(k);
  return threads;
}

Node this_node(int gpus) {
  Node node;
  node.gpus = domains_of_gpus(gpus);
  const std::vector<int> allowed = allowed_threads();
  const std::vector<int> online = from_ranges(first_line(devices / "cpu/online"));
  node.whole = allowed == online;
  std::set<int> seen;
  for (const int thread : allowed) {
    if (!seen.insert(thread).second) continue;
    Core core{.domain = domain_of_thread(thread), .threads = {thread}};
    const fs::path siblings =
        devices / fmt::format("cpu/cpu{}/topology/thread_siblings_list", thread);
    for (const int sibling : from_ranges(first_line(siblings))) {
      const bool ours = std::ranges::binary_search(allowed, sibling);
      if (ours && seen.insert(sibling).second) core.threads.push_back(sibling);
    }
    node.cores.push_back(std::move(core));
  }
  return node;
}

int expected_gpus() {
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  if (visible == nullptr) return static_cast<int>(addresses_of_gpus().size());
  if (*visible == '\0') return 0;
  return 1 + static_cast<int>(std::ranges::count(std::string_view(visible), ','));
}

void bind_to(const std::vector<int>& threads) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int thread : threads) CPU_SET(static_cast<std::size_t>(thread), &set);
  sched_setaffinity(0, sizeof(set), &set);  // where that is not allowed, nothing is lost but speed
}

std::string describe_cores(const Node& node) {
  if (node.whole || node.cores.empty()) return "";
  std::vector<int> threads;
  std::set<int> domains;
  for (const Core& core : node.cores) {
    threads.insert(threads.end(), core.threads.begin(), core.threads.end());
    domains.insert(core.domain);
  }
  std::ranges::sort(threads);
  return fmt::format("core{} {}, NUMA domain{} {}", threads.size() == 1 ? "" : "s",
                     to_ranges(threads), domains.size() == 1 ? "" : "s",
                     to_ranges({domains.begin(), domains.end()}));
}

std::string to_ranges(const std::vector<int>& numbers) {
  std::string text;
  for (std::size_t k = 0; k < numbers.size();) {
    std::size_t end = k + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
    text += fmt::format("{}{}", text.empty() ? "" : ",", numbers[k]);
    if (end - k > 1) text += fmt::format("-{}", numbers[end - 1]);
    k = end;
  }
  return text;
}

std::vector<int> from_ranges(const std::string& text) {
  std::vector<int> numbers;
  const char* at = text.data();
  const char* end = at + text.size();
  while (at < end) {
    int first = 0;
    auto [next, error] = std::from_chars(at, end, first);
    if (error != std::errc{} || first < 0) break;
    int last = first;
    if (next < end && *next == '-') {
      const auto second = std::from_chars(next + 1, end, last);
      if (second.ec != std::errc{} || last - first > CPU_SETSIZE) break;
      next = second.ptr;
    }
    for (int k = first; k <= last; ++k) numbers.push_back(k);
    if (next < end && *next != ',') break;
    at = next + 1;
  }
  return numbers;
}

}  // namespace carousel
