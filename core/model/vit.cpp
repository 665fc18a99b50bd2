// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// Vision transformers (Dosovitskiy et al. 2021, arXiv 2010.11929) as model descriptions, with the
// names and the first values of torchvision.models.VisionTransformer.

#include "core/base/check.hpp"
#include "core/model/builder.hpp"

namespace carousel {
namespace {

constexpr double layer_norm_epsilon = 1e-6;  // torchvision's, not torch.nn.LayerNorm's

class VitBuilder {
 public:
  VitBuilder(ModelBuilder& builder, const ModelConfig& config)
      : builder_(builder), config_(config), mlp_(config.mlp > 0 ? config.mlp : 4 * config.width) {}

  void embedding() {
    builder_.add("patch_embedding", "conv_proj",
                 {{"features", 1.0 * config_.width}, {"patch", 1.0 * config_.patch}});
    dropout("encoder.dropout");
  }

  void block(const std::string& name) {
    const int width = config_.width;
    half(name, "ln_1", [&] {
      const std::string attention = name + ".self_attention";
      linear(attention + ".in_proj", 3 * width, xavier_uniform(width, 3 * width), zeros());
      builder_.add("attention", attention, {{"heads", 1.0 * config_.heads}});
      linear(attention + ".out_proj", width, lecun_uniform(width), zeros());
      dropout(name + ".dropout");
    });
    half(name, "ln_2", [&] {
      const Initial weight = xavier_uniform(width, mlp_);
      linear(name + ".mlp.0", mlp_, weight, normal(1e-6));
      builder_.add("gelu", name + ".mlp.1");
      dropout(name + ".mlp.2");
      linear(name + ".mlp.3", width, weight, normal(1e-6));
      dropout(name + ".mlp.4");
    });
  }

  void head(const TargetSpec& target, const TaskConfig& task) {
    builder_.add("first_token");  // before the last norm, which would do it to all for nothing
    builder_.add("layer_norm", "encoder.ln", {{"epsilon", layer_norm_epsilon}});
    linear("heads.head", static_cast<int>(target.outputs().size()), zeros(), zeros());
    builder_.add_loss(task);
  }

 private:
  /// What it reads is added to what a norm and a branch make of it.
  template <class Branch>
  void half(const std::string& block, const std::string& norm, const Branch& branch) {
    const int input = builder_.last();
    builder_.add("layer_norm", block + "." + norm, {{"epsilon", layer_norm_epsilon}});
    branch();
    builder_.add_joining("add", block + (norm == "ln_1" ? ".attention" : ".mlp"), input);
  }
  void dropout(const std::string& name) {
    if (config_.dropout > 0) builder_.add("dropout", name, {{"probability", config_.dropout}});
  }
  void linear(const std::string& name, int features, const Initial& weight, const Initial& bias) {
    LayerSpec& layer = builder_.add("linear", name, {{"features", 1.0 * features}});
    layer.parameters[0].initial = weight;
    layer.parameters[1].initial = bias;
  }

  ModelBuilder& builder_;
  const ModelConfig& config_;
  int mlp_;
};

}  // namespace

void check_vit(const ModelConfig& config) {
  if (config.width % config.heads != 0)
    fail(ExitCode::usage, "model.width = {} is not a multiple of model.heads = {}", config.width,
         config.heads);
}

Model build_vit(const ModelConfig& config, const SampleShape& input, const TargetSpec& target,
                const TaskConfig& task) {
  check_vit(config);
  ModelBuilder builder(fmt::format("vit of {} blocks", config.depth), input, target);
  VitBuilder vit(builder, config);
  vit.embedding();
  for (int b = 0; b < config.depth; ++b)
    vit.block(fmt::format("encoder.layers.encoder_layer_{}", b));
  vit.head(target, task);
  return builder.model();
}

}  // namespace carousel
