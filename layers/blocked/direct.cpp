// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/blocked/direct.hpp"

#include "layers/blocked/direct_kernels.hpp"

namespace carousel::blocked {

template void pack_weights<FullProducts>(const ExecutionSpace&, const std::string&,
                                         const WeightStrides&, const real*, int, int, int, real*);
template void pack_weights<FullProducts>(const ExecutionSpace&, const std::string&,
                                         const WeightStrides&, const Bfloat16*, int, int, int,
                                         real*);
template void pack_weights<PairProducts>(const ExecutionSpace&, const std::string&,
                                         const WeightStrides&, const Bfloat16*, int, int, int,
                                         Bfloat16*);
template void pack_weights<TileProducts>(const ExecutionSpace&, const std::string&,
                                         const WeightStrides&, const Bfloat16*, int, int, int,
                                         Bfloat16*);

template void convolve<FullProducts>(const ExecutionSpace&, const std::string&, const Windows&,
                                     const BlockedInput<Plain>&, const real*, int,
                                     const Planes<real>&, const Beginning&);
template void convolve<FullProducts>(const ExecutionSpace&, const std::string&, const Windows&,
                                     const BlockedInput<NormRelu>&, const real*, int,
                                     const Planes<real>&, const Beginning&);
template void convolve<FullProducts>(const ExecutionSpace&, const std::string&, const Windows&,
                                     const ImageInput&, const real*, int, const Planes<real>&,
                                     const Beginning&);
template void convolve<FullProducts>(const ExecutionSpace&, const std::string&, const Windows&,
                                     const ImageInput&, const real*, int, const Planes<Bfloat16>&,
                                     const Beginning&);
template void convolve<PairProducts>(const ExecutionSpace&, const std::string&, const Windows&,
                                     const BlockedInput<Plain, Bfloat16>&, const Bfloat16*, int,
                                     const Planes<Bfloat16>&, const Beginning&);
template void convolve<PairProducts>(const ExecutionSpace&, const std::string&, const Windows&,
                                     const BlockedInput<NormRelu, Bfloat16>&, const Bfloat16*, int,
                                     const Planes<Bfloat16>&, const Beginning&);

template void convolve<TileProducts>(const ExecutionSpace&, const std::string&, const Windows&,
                                     const BlockedInput<Plain, Bfloat16>&, const Bfloat16*, int,
                                     const Planes<Bfloat16>&, const Beginning&);
template void convolve<TileProducts>(const ExecutionSpace&, const std::string&, const Windows&,
                                     const BlockedInput<NormRelu, Bfloat16>&, const Bfloat16*, int,
                                     const Planes<Bfloat16>&, const Beginning&);

}  // namespace carousel::blocked
