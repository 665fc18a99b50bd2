// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// network_numbers FILE writes all numbers that make_network_fixtures.py --compare FILE compares
// with PyTorch's: whole gradients, and whole states after training. Tests look at samples of the
// same.

#include <cstdio>

#include "core/base/check.hpp"
#include "core/base/hdf5.hpp"
#include "tests/layers/network_training.hpp"

namespace carousel {
namespace {

void write(hdf5::File& file, const std::string& group, const Model& model,
           std::vector<ParameterSpec> LayerSpec::*tensors, const test::Numbers& flat) {
  test::for_each_tensor(model, tensors, flat,
                        [&](const ParameterSpec& tensor, std::span<const real> values) {
                          file.write<real>(group + "/" + tensor.name, values,
                                           hdf5::Shape(tensor.shape.begin(), tensor.shape.end()));
                        });
}

void write_all(const std::string& path) {
  hdf5::File file = hdf5::File::create(path);
  const nlohmann::json models = reference::fixture("models", "networks.json");
  for (const auto& [name, fixture] : models.items()) {
    test::NetworkTraining training(fixture);
    for (int t = 0; t < fixture.at("steps"); ++t) {
      training.step(t);
      if (t == 0)
        write(file, name + "/gradients", training.model(), &LayerSpec::parameters,
              training.gradient());
    }
    if (fixture.at("steps") < 10) continue;
    write(file, name + "/parameters_after_10", training.model(), &LayerSpec::parameters,
          training.parameters());
    write(file, name + "/buffers_after_10", training.model(), &LayerSpec::buffers,
          training.buffers());
  }
  file.close();
}

}  // namespace
}  // namespace carousel

int main(int argc, char** argv) {
  const Kokkos::ScopeGuard kokkos(argc, argv);
  if (argc != 2) {
    std::fputs("network_numbers FILE\n", stderr);
    return 2;
  }
  try {
    carousel::write_all(argv[1]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 70;
  }
  return 0;
}
