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
#include <map>
#include <set>
#include <sstream>
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

/// Cores for a rank of a node where nobody has given them out. The others are as this one, so that
/// each takes the GPU of its number.
std::vector<Core> share_of(const Launcher& launcher, const Node& node) {
  std::vector<Core> cores = node.cores;
  std::ranges::stable_sort(cores, {}, domain_of);
  const int ranks = launcher.local_size;
  const bool known = ranks <= std::ssize(node.gpus) &&
                     std::ranges::find(node.gpus, -1, &Gpu::domain) == node.gpus.end();
  if (!known) return piece(cores, launcher.local_rank, ranks);
  // Ranks with GPUs of one domain share its cores.
  const auto domain_of_rank = [&](int rank) {
    return node.gpus[static_cast<std::size_t>(rank)].domain;
  };
  const int domain = domain_of_rank(launcher.local_rank);
  std::erase_if(cores, [&](const Core& core) { return core.domain != domain; });
  int before = 0;
  int sharing = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    if (domain_of_rank(rank) != domain) continue;
    before += rank < launcher.local_rank ? 1 : 0;
    ++sharing;
  }
  return piece(cores, before, sharing);
}

/// Gives GPUs to ranks that have none yet, at most one rank to each: augmenting paths (Kuhn 1955).
class GpuRound {
 public:
  GpuRound(const std::vector<GpuSeeker>& ranks, std::vector<int>& chosen)
      : ranks_(ranks), chosen_(chosen) {}

  /// Whether anybody was given one.
  bool give() {
    bool gave = false;
    for (const bool near : {true, false}) {
      for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
        std::set<std::string> asked;
        if (chosen_[rank] < 0 && find(rank, near, asked)) gave = true;
      }
    }
    return gave;
  }

 private:
  /// Finds one for a rank, next to its cores or anywhere: a free one, or one whose rank finds
  /// another.
  bool find(std::size_t rank, bool near, std::set<std::string>& asked) {
    const GpuSeeker& seeker = ranks_[rank];
    for (const bool is_free : {true, false}) {
      for (std::size_t k = 0; k < seeker.gpus.size(); ++k) {
        const std::size_t gpu = (rank + k) % seeker.gpus.size();  // in turn
        if (near && (seeker.domain < 0 || seeker.gpus[gpu].domain != seeker.domain)) continue;
        const std::string name = name_of(seeker, gpu);
        const auto owner = owners_.find(name);
        if (is_free != (owner == owners_.end())) continue;
        if (!is_free && (!asked.insert(name).second || !find(owner->second, near, asked))) continue;
        owners_[name] = rank;
        chosen_[rank] = static_cast<int>(gpu);
        return true;
      }
    }
    return false;
  }

  static std::string name_of(const GpuSeeker& seeker, std::size_t gpu) {
    const std::string& address = seeker.gpus[gpu].address;
    return address.empty() ? std::to_string(gpu) : address;
  }

  const std::vector<GpuSeeker>& ranks_;
  std::vector<int>& chosen_;
  std::map<std::string, std::size_t> owners_;  // of this round
};

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

/// Next to which NUMA domain it is.
int domain_of_gpu(const std::string& address) {
  if (address.empty()) return -1;
  return number_in(first_line(fs::path("/sys/bus/pci/devices") / address / "numa_node"), -1);
}

}  // namespace

std::vector<int> choose_threads(const Launcher& launcher, const Node& node, int threads_per_rank) {
  const int ranks = launcher.local_size;
  if (ranks < 2 || launcher.binds || !node.whole || ranks > std::ssize(node.cores)) return {};
  std::vector<int> threads;
  for (const Core& core : share_of(launcher, node))
    threads.insert(threads.end(), core.threads.begin(), core.threads.end());
  std::ranges::sort(threads);
  // Ranks that take turns on too few cores are better off with all of them.
  if (threads_per_rank > std::ssize(threads)) threads.clear();
  return threads;
}

GpuSeeker seeker_of(const Node& node, int device) {
  GpuSeeker seeker{.domain = node.whole ? -1 : only_domain(node.cores), .gpus = node.gpus};
  if (device < 0) return seeker;
  seeker.gpus.clear();
  if (device < std::ssize(node.gpus)) seeker.gpus = {node.gpus[static_cast<std::size_t>(device)]};
  return seeker;
}

std::string to_text(const GpuSeeker& seeker) {
  std::string text = std::to_string(seeker.domain);
  for (const Gpu& gpu : seeker.gpus) text += fmt::format(" {}={}", gpu.address, gpu.domain);
  return text;
}

GpuSeeker seeker_from(const std::string& text) {
  std::istringstream words(text);
  GpuSeeker seeker;
  words >> seeker.domain;
  for (std::string word; words >> word;) {
    const std::size_t equals = word.find('=');
    seeker.gpus.push_back({std::stoi(word.substr(equals + 1)), word.substr(0, equals)});
  }
  return seeker;
}

std::vector<int> share_gpus(const std::vector<GpuSeeker>& ranks) {
  std::vector<int> chosen(ranks.size(), -1);
  // Where ranks outnumber GPUs, each has one more in the next round.
  while (GpuRound(ranks, chosen).give()) {
  }
  return chosen;
}

int choose_gpu(const Node& node, int device, const std::vector<GpuSeeker>& ranks, int own) {
  const auto count = std::ssize(node.gpus);
  if (device >= count)
    fail(ExitCode::usage, "engine.device = {}: this process sees {} GPU{}, counted from 0", device,
         count, count == 1 ? "" : "s");
  return device >= 0 ? device : share_gpus(ranks)[static_cast<std::size_t>(own)];
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

Node this_node(const std::vector<std::string>& gpus) {
  Node node;
  for (const std::string& address : gpus) node.gpus.push_back({domain_of_gpu(address), address});
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

std::vector<std::string> expected_gpus() {
  const std::set<std::string> all = addresses_of_gpus();
  std::vector<std::string> addresses(all.begin(), all.end());
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  if (visible == nullptr) return addresses;
  const std::string_view list(visible);
  const std::size_t count =
      list.empty() ? 0 : 1 + static_cast<std::size_t>(std::ranges::count(list, ','));
  // A process that sees some of them only may count them otherwise.
  if (count != addresses.size()) addresses.assign(count, "");
  return addresses;
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
