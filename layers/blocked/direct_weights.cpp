// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/blocked/direct_weights.hpp"

#include "layers/blocked/direct_weights_kernels.hpp"

namespace carousel::blocked {

template void weight_gradient<FullProducts>(const ExecutionSpace&, const std::string&,
                                            const Windows&, const BlockedInput<Plain>&,
                                            const Planes<const real>&, const WeightStrides&, real*,
                                            real*);
template void weight_gradient<FullProducts>(const ExecutionSpace&, const std::string&,
                                            const Windows&, const BlockedInput<NormRelu>&,
                                            const Planes<const real>&, const WeightStrides&, real*,
                                            real*);
template void weight_gradient<FullProducts>(const ExecutionSpace&, const std::string&,
                                            const Windows&, const ImageInput&,
                                            const Planes<const real>&, const WeightStrides&, real*,
                                            real*);
template void weight_gradient<FullProducts>(const ExecutionSpace&, const std::string&,
                                            const Windows&, const ImageInput&,
                                            const Planes<const Bfloat16>&, const WeightStrides&,
                                            real*, real*);
template void weight_gradient<PairProducts>(const ExecutionSpace&, const std::string&,
                                            const Windows&, const BlockedInput<Plain, Bfloat16>&,
                                            const Planes<const Bfloat16>&, const WeightStrides&,
                                            real*, real*);
template void weight_gradient<PairProducts>(const ExecutionSpace&, const std::string&,
                                            const Windows&, const BlockedInput<NormRelu, Bfloat16>&,
                                            const Planes<const Bfloat16>&, const WeightStrides&,
                                            real*, real*);

template void weight_gradient<TileProducts>(const ExecutionSpace&, const std::string&,
                                            const Windows&, const BlockedInput<Plain, Bfloat16>&,
                                            const Planes<const Bfloat16>&, const WeightStrides&,
                                            real*, real*);
template void weight_gradient<TileProducts>(const ExecutionSpace&, const std::string&,
                                            const Windows&, const BlockedInput<NormRelu, Bfloat16>&,
                                            const Planes<const Bfloat16>&, const WeightStrides&,
                                            real*, real*);

}  // namespace carousel::blocked
