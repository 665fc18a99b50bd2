// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// The products of pairs by VDPBF16PS. The build compiles this source for processors that have it,
// whatever the others are compiled for; has_dot_products() asks the one that runs.

#include "layers/blocked/attention_kernels.hpp"
#include "layers/blocked/direct_kernels.hpp"
#include "layers/blocked/direct_weights_kernels.hpp"

namespace carousel::blocked {

template void pack_weights<DotProducts>(const ExecutionSpace&, const std::string&,
                                        const WeightStrides&, const Bfloat16*, int, int, int,
                                        Bfloat16*);
template void convolve<DotProducts>(const ExecutionSpace&, const std::string&, const Windows&,
                                    const BlockedInput<Plain, Bfloat16>&, const Bfloat16*, int,
                                    const Planes<Bfloat16>&, const Beginning&);
template void convolve<DotProducts>(const ExecutionSpace&, const std::string&, const Windows&,
                                    const BlockedInput<NormRelu, Bfloat16>&, const Bfloat16*, int,
                                    const Planes<Bfloat16>&, const Beginning&);
template void weight_gradient<DotProducts>(const ExecutionSpace&, const std::string&,
                                           const Windows&, const BlockedInput<Plain, Bfloat16>&,
                                           const Planes<const Bfloat16>&, const WeightStrides&,
                                           real*, real*);
template void weight_gradient<DotProducts>(const ExecutionSpace&, const std::string&,
                                           const Windows&, const BlockedInput<NormRelu, Bfloat16>&,
                                           const Planes<const Bfloat16>&, const WeightStrides&,
                                           real*, real*);

template struct AttentionKernels<DotProducts, Bfloat16>;

}  // namespace carousel::blocked
