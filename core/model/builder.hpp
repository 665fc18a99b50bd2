// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Puts a model together layer by layer. What a layer is follows from its kind; which layers a
// network has is its own builder's business.

#include <string>
#include <string_view>

#include "core/model/arguments.hpp"
#include "core/model/model.hpp"
#include "core/model/op.hpp"

namespace carousel {

class ModelBuilder {
 public:
  /// A model of nothing yet, for samples of shape `input`.
  ModelBuilder(const std::string& name, const SampleShape& input, const TargetSpec& target);

  /// The next layer reads what `layer` left, not what the last one did; -1 stands for the images.
  ModelBuilder& from(int layer);

  /// Appends a layer of the kind of that name. Error(usage) where arguments and inputs do not fit.
  LayerSpec& add(std::string_view kind, const std::string& name = "",
                 const Arguments& arguments = {});
  /// The same of a layer that also reads what `second` left.
  LayerSpec& add_joining(std::string_view kind, const std::string& name, int second);
  /// A layer of a kind, with one or two inputs.
  LayerSpec& append(const Op& op, const std::string& name, const std::vector<int>& inputs,
                    const Arguments& arguments);

  /// Appends the loss of a task.
  LayerSpec& add_loss(const TaskConfig& task);

  /// The layer appended last; -1 when there is none.
  [[nodiscard]] int last() const { return static_cast<int>(model_.layers.size()) - 1; }
  /// The shape of what it left.
  [[nodiscard]] const SampleShape& shape() const;
  [[nodiscard]] const Model& model() const { return model_; }

 private:
  [[nodiscard]] LayerInput input_from(int layer) const;

  Model model_;
  int from_ = -1;
};

}  // namespace carousel
