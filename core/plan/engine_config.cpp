// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/engine_config.hpp"

#include "core/deck/row.hpp"
#include "core/plan/placements/kinds.hpp"

namespace carousel {

std::vector<Row<EngineConfig>> EngineConfig::rows() {
  constexpr int most_queues = 64;  // streams that are of use to a GPU
  const KeyTraits resnet = only_with("model.name", {"resnet"});
  return {
      key("threads", &EngineConfig::threads, within(0, most_threads),
          "Threads of one process. 0 takes KOKKOS_NUM_THREADS or OMP_NUM_THREADS, or shares the "
          "cores among the ranks of a node. Each has a few MB of scratch memory for tiles, beyond "
          "what plans count."),
      key("device", &EngineConfig::device, within(0, 1023),
          "GPU of a process that no launcher has started, of those that it sees, counted from 0. "
          "Ranks take theirs by themselves.",
          optional_key),
      key("winograd", &EngineConfig::winograd, anything,
          "Whether 3x3 convolutions may use Winograd's algorithm, about twice as fast and a little "
          "less precise than direct sums.",
          bound(Bond::numbers, resnet)),
      key("recompute", &EngineConfig::recompute, one_of<Recompute>(),
          "What backward computes again instead of keeping it. cheap: norms and activation "
          "functions in front of convolutions, poolings and the linear layers of tokens. stage: "
          "also the whole forward of each stage, so that only what leaves the stage is kept. No "
          "choice changes the bits of a stage, but none may cut stages elsewhere."),
      key("vendor", &EngineConfig::vendor, one_of<VendorUse>(),
          "Kernels of layers that a vendor's libraries have, too. auto takes the vendor's where "
          "the build has them: in a build for GPUs cuBLASLt's for linear layers and cuDNN's for "
          "convolutions and, in bf16, attention."),
      key("queues", &EngineConfig::queues, within(1, most_queues),
          "Compute queues of a device, at most N: the passes of other micro-batches that are due "
          "at the same time may then run at the same time on a GPU. Each queue has scratch and "
          "workspace of its own. Results do not depend on it; CPUs run one pass after the other.",
          {.only_with = {{"parallel.rule", {"cdp-v1", "cdp-v2"}},
                         {"parallel.placement", placements_with(&PlacementTraits::one_device)}}}),
      key("precision", &EngineConfig::precision, one_of<DataType>(),
          "Type of activations and weights where they are kept and sent. bf16: both take half the "
          "memory, and so do messages that carry them; sums, gradients, biases, norms and what the "
          "optimizer updates, a further copy of the weights, stay fp32: it saves memory where "
          "activations are most of it. cuDNN's gradients of weights are rounded before they are "
          "summed. CPUs multiply bf16 where layers lie in blocks; see engine.products.",
          bound(Bond::numbers)),
      key("products", &EngineConfig::products, one_of<ProductOrder>(),
          "Order in which CPUs add products of bf16. pairs: that of Intel's and AMD's VDPBF16PS "
          "(AVX512_BF16). tiles: that of Intel's TDPBF16PS (AMX), several times as fast where "
          "processors have it, and several times as slow elsewhere. Processors without an "
          "instruction compute the same bits.",
          bound(Bond::numbers, only_with("engine.precision", {"bf16"}))),
  };
}

}  // namespace carousel
