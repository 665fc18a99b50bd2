// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ImageNet (ILSVRC 2012) as it is published: a tar of tars, one per class, for training, and a flat
// tar with a list of labels for validation. Both may have been unpacked.

#include <memory>
#include <string>

#include "core/import/file_source.hpp"

namespace carousel {

/// The pictures of a folder as if they lay in train/CLASS/FILE and val/CLASS/FILE, where a class
/// has the name of its WordNet id. The folder has ILSVRC2012_img_train.tar or train/, with an
/// archive CLASS.tar or a folder CLASS/ per class, and ILSVRC2012_img_val.tar or val/, where
/// pictures may lie in folders. Each line of the file `labels` is the class of a validation
/// picture, in the order of their names without folders, or each is the name of one, with or
/// without an ending, and its class, whatever follows; a folder CLASS/ must agree. An archive of a
/// class is held in memory while it is read. Throws Error(input_output) or, naming what is wrong,
/// Error(bad_data).
[[nodiscard]] std::unique_ptr<FileSource> open_imagenet(const std::string& folder,
                                                        const std::string& labels);

}  // namespace carousel
