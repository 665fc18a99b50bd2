// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What every transport must do, written once: each behaviour starts operations at all ends that
// live in this process and finishes them together. It does not know what carries the messages.

#include <atomic>
#include <chrono>
#include <map>
#include <numeric>
#include <thread>

#include "core/base/check.hpp"
#include "core/engine/transport.hpp"
#include "tests/layers/device.hpp"

namespace carousel::test {

/// The devices of a test, some or all of them in this process.
struct Ends {
  int devices = 0;
  std::map<int, std::unique_ptr<Transport>> here;
  std::atomic<double> now = 0;  // what the transports' clock shows, to threads of theirs, too

  [[nodiscard]] bool all_here() const { return std::ssize(here) == devices; }
  [[nodiscard]] int after(int device) const { return (device + 1) % devices; }
  [[nodiscard]] int before(int device) const { return (device + devices - 1) % devices; }
};

/// Operations pending at one end.
struct Pending {
  Transport* transport;
  Request request;
};

/// Looks, and says when an operation was complete.
[[nodiscard]] inline std::optional<double> look(Transport& transport, Request request) {
  transport.progress();
  return transport.test(request);
}

/// Looks until everything is complete.
inline void finish(std::vector<Pending>& pending) {
  while (!pending.empty())
    std::erase_if(pending, [](const Pending& p) { return look(*p.transport, p.request); });
}

template <class T>
[[nodiscard]] Message message(int peer, int tag, const Device<T>& data) {
  return {peer, tag, reinterpret_cast<std::byte*>(data.data()), data.size() * sizeof(T)};
}

/// The number that device `from` sends as message `k` of `tag`.
[[nodiscard]] inline int number(int from, int tag, int k) {
  return 1000 * from + 100 * tag + k;
}

/// Two tags around the ring, receives posted tag by tag, sends in turn: order holds per tag.
inline void expect_order_per_tag(const Ends& ends) {
  constexpr int count = 5;
  std::vector<Pending> pending;
  std::vector<Device<int>> sent;
  std::map<int, std::vector<Device<int>>> landed;
  for (const auto& [device, end] : ends.here) {
    for (int tag = 0; tag < 2; ++tag) {
      for (int k = 0; k < count; ++k) {
        landed[device].push_back(to_device(std::vector<int>{-1}));
        const Message post = message(ends.before(device), tag, landed[device].back());
        pending.push_back({end.get(), end->post(post)});
      }
    }
  }
  for (const auto& [device, end] : ends.here) {
    for (int k = 0; k < count; ++k) {
      for (int tag = 1; tag >= 0; --tag) {
        sent.push_back(to_device(std::vector<int>{number(device, tag, k)}));
        const Message send = message(ends.after(device), tag, sent.back());
        pending.push_back({end.get(), end->send(send)});
      }
    }
  }
  finish(pending);
  for (const auto& [device, views] : landed) {
    for (int m = 0; m < 2 * count; ++m)
      EXPECT_EQ(to_host(views[m])[0], number(ends.before(device), m / count, m % count));
  }
}

/// Messages larger than any eager limit, both ways between neighbours, before either is finished.
inline void expect_large_messages_both_ways(const Ends& ends) {
  constexpr std::size_t size = 1 << 20;
  std::vector<Pending> pending;
  std::map<int, std::vector<Device<int>>> buffers;
  for (const auto& [device, end] : ends.here) {
    std::vector<Device<int>>& mine = buffers[device];
    mine.assign({to_device(std::vector<int>(size, -1)), to_device(std::vector<int>(size, -1))});
    for (const int tag : {0, 1})
      mine.push_back(to_device(std::vector<int>(size, number(device, tag, 0))));
    // Tag 0 goes up the ring, tag 1 down.
    pending.push_back({end.get(), end->send(message(ends.after(device), 0, mine[2]))});
    pending.push_back({end.get(), end->send(message(ends.before(device), 1, mine[3]))});
    pending.push_back({end.get(), end->post(message(ends.before(device), 0, mine[0]))});
    pending.push_back({end.get(), end->post(message(ends.after(device), 1, mine[1]))});
  }
  finish(pending);
  for (const auto& [device, mine] : buffers) {
    EXPECT_EQ(to_host(mine[0]), std::vector<int>(size, number(ends.before(device), 0, 0)));
    EXPECT_EQ(to_host(mine[1]), std::vector<int>(size, number(ends.after(device), 1, 0)));
  }
}

/// A token has no bytes, yet arrives only when it was sent.
inline void expect_tokens_wait(const Ends& ends) {
  std::vector<Pending> pending;
  for (const auto& [device, end] : ends.here) {
    const Request posted = end->post({.peer = ends.before(device), .tag = 3});
    EXPECT_FALSE(ends.all_here() && look(*end, posted));
    pending.push_back({end.get(), posted});
  }
  for (const auto& [device, end] : ends.here)
    pending.push_back({end.get(), end->send({.peer = ends.after(device), .tag = 3})});
  finish(pending);
}

/// Operations tell when they were complete, not when they were asked for it.
inline void expect_times_of_completion(Ends& ends) {
  std::vector<Pending> pending;
  if (!ends.all_here()) ends.now = 1;  // others may send before this process does
  for (const auto& [device, end] : ends.here)
    pending.push_back({end.get(), end->post({.peer = ends.before(device), .tag = 3})});
  ends.now = 1;
  for (const auto& [device, end] : ends.here)
    pending.push_back({end.get(), end->send({.peer = ends.after(device), .tag = 3})});
  for (int k = 0; k < 200 && !ends.all_here(); ++k) {  // other processes need time
    for (const auto& [device, end] : ends.here) end->progress();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ends.now = 2;
  for (const Pending& p : pending) EXPECT_EQ(p.transport->test(p.request), 1);
}

/// The groups of these tests: all devices, the even ones, and all but the first, the last in front.
[[nodiscard]] inline std::vector<std::vector<int>> groups_of(int devices) {
  std::vector<std::vector<int>> groups(3);
  for (int d = 0; d < devices; ++d) {
    groups[0].push_back(d);
    if (d % 2 == 0) groups[1].push_back(d);
    if (d > 0) groups[2].insert(groups[2].begin(), d);
  }
  return groups;
}

/// A broadcast and a reduce in every group of two devices or more, all at once.
inline void expect_collectives_of_groups(const Ends& ends) {
  constexpr std::size_t size = 1000;
  using Kind = Collective::Kind;
  std::vector<Pending> pending;
  std::map<std::pair<int, std::size_t>, std::vector<Device<real>>> buffers;  // device and group
  const std::vector<std::vector<int>> groups = groups_of(ends.devices);
  for (std::size_t g = 0; g < groups.size(); ++g) {
    if (groups[g].size() < 2) continue;
    for (const int device : groups[g]) {
      const auto end = ends.here.find(device);
      if (end == ends.here.end()) continue;
      for (const Kind kind : {Kind::broadcast, Kind::reduce}) {
        const Device<real> data =
            to_device(std::vector<real>(size, static_cast<real>(1 << device)));
        const Collective collective{.kind = kind,
                                    .group = static_cast<int>(g),
                                    .root = groups[g].back(),
                                    .data = data.data(),
                                    .count = size};
        pending.push_back({end->second.get(), end->second->join(collective)});
        buffers[{device, g}].push_back(data);
      }
    }
  }
  finish(pending);
  for (const auto& [key, mine] : buffers) {
    const std::vector<int>& group = groups[key.second];
    int sum = 0;
    for (const int device : group) sum += 1 << device;
    const auto all = [](int value) { return std::vector<real>(size, static_cast<real>(value)); };
    EXPECT_EQ(to_host(mine[0]), all(1 << group.back()));
    if (key.first == group.back()) {
      EXPECT_EQ(to_host(mine[1]), all(sum));
    }
  }
}

/// A reduce-scatter and an all-gather in every group, whose members have parts of one size or of
/// all sizes, some of none.
inline void expect_parts_of_groups(const Ends& ends, bool equal) {
  using Kind = Collective::Kind;
  const std::vector<std::vector<int>> groups = groups_of(ends.devices);
  std::vector<std::vector<int>> numbers(groups.size()), bytes(groups.size());
  std::vector<Pending> pending;
  struct Ours {
    std::size_t group;
    std::size_t member;
    Device<real> sum;
    Device<real> gathered;
    Device<real> from;
  };
  std::vector<Ours> ours;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    if (groups[g].size() < 2) continue;
    for (std::size_t k = 0; k < groups[g].size(); ++k) {
      numbers[g].push_back(equal ? 100 : k == 1 ? 0 : 100 * static_cast<int>(k + 1));
      bytes[g].push_back(numbers[g].back() * static_cast<int>(sizeof(real)));
    }
    const auto all = std::accumulate(numbers[g].begin(), numbers[g].end(), std::size_t{0});
    std::size_t at = 0;
    for (std::size_t k = 0; k < groups[g].size(); ++k) {
      const auto part = static_cast<std::size_t>(numbers[g][k]);
      const auto end = ends.here.find(groups[g][k]);
      if (end != ends.here.end()) {
        std::vector<real> from(all), own(all, real{-1});
        for (std::size_t i = 0; i < all; ++i) from[i] = static_cast<real>(i * (k + 1));
        for (std::size_t i = at; i < at + part; ++i) own[i] = static_cast<real>(1000 * k + i);
        ours.push_back(
            {g, k, Device<real>("carousel::test::sum", part), to_device(own), to_device(from)});
        const Collective sum{.kind = Kind::reduce_scatter,
                             .group = static_cast<int>(g),
                             .data = ours.back().sum.data(),
                             .count = all,
                             .from = ours.back().from.data(),
                             .own = part,
                             .parts = numbers[g]};
        const Collective gather{.kind = Kind::all_gather,
                                .group = static_cast<int>(g),
                                .data = ours.back().gathered.data(),
                                .count = all * sizeof(real),
                                .parts = bytes[g]};
        pending.push_back({end->second.get(), end->second->join(sum)});
        pending.push_back({end->second.get(), end->second->join(gather)});
      }
      at += part;
    }
  }
  finish(pending);
  for (const Ours& mine : ours) {
    const std::vector<int>& parts = numbers[mine.group];
    const auto members = static_cast<int>(parts.size());
    const int shares = members * (members + 1) / 2;
    std::vector<real> gathered;
    std::vector<real> sum;
    for (std::size_t k = 0; k < parts.size(); ++k) {
      for (int i = 0; i < parts[k]; ++i) {
        const auto index = gathered.size();
        gathered.push_back(static_cast<real>(1000 * k + index));
        if (k == mine.member) sum.push_back(static_cast<real>(index) * static_cast<real>(shares));
      }
    }
    EXPECT_EQ(to_host(mine.sum), sum);
    EXPECT_EQ(to_host(mine.gathered), gathered);
  }
}

/// Several sums at once, each over all devices.
inline void expect_sums(const Ends& ends) {
  std::vector<Pending> pending;
  std::map<int, std::vector<Device<real>>> buffers;
  for (const auto& [device, end] : ends.here)
    for (int k = 1; k <= 3; ++k)
      buffers[device].push_back(
          to_device(std::vector<real>(1000 * k, static_cast<real>(k * (device + 1)))));
  for (std::size_t k = 0; k < 3; ++k)
    for (const auto& [device, end] : ends.here) {
      const Device<real>& data = buffers[device][k];
      pending.push_back({end.get(), end->join({.data = data.data(), .count = data.size()})});
    }
  finish(pending);
  const int sum = ends.devices * (ends.devices + 1) / 2;
  for (const auto& [device, mine] : buffers) {
    for (std::size_t k = 0; k < 3; ++k)
      EXPECT_EQ(to_host(mine[k]),
                std::vector<real>(mine[k].size(), static_cast<real>((k + 1) * sum)));
  }
}

/// A receive of another size than its send ends the run at its end, too small or too large.
inline void expect_wrong_sizes_refused(const Ends& ends) {
  for (const std::size_t size : {16, 64}) {
    const Device<int> sent("carousel::test::sent", 32);
    const Device<int> landed("carousel::test::landed", size);
    const auto exchange = [&] {
      std::vector<Pending> receives, sends;
      for (const auto& [device, end] : ends.here)
        if (device == 0) receives.push_back({end.get(), end->post(message(1, 7, landed))});
      for (const auto& [device, end] : ends.here)
        if (device == 1) sends.push_back({end.get(), end->send(message(0, 7, sent))});
      finish(receives);
      finish(sends);
    };
    if (ends.here.contains(0))
      EXPECT_THROW(exchange(), Error) << size;
    else
      EXPECT_NO_THROW(exchange()) << size;
  }
}

/// More operations than were asked for, and requests that do not exist, are bugs with a message.
inline void expect_misuse_refused(const Ends& ends, int requests) {
  const auto& [device, end] = *ends.here.begin();
  EXPECT_THROW((void)end->test(0), Error);
  const int peer = ends.after(device);
  for (int k = 0; k < requests; ++k) (void)end->post({.peer = peer, .tag = 9});
  EXPECT_THROW((void)end->post({.peer = peer, .tag = 9}), Error);
}

}  // namespace carousel::test
