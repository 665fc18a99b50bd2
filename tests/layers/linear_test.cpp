// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/linear/linear.hpp"
#include "core/model/op.hpp"

#include "tests/layers/device.hpp"
#include "tests/reference/layers.hpp"

namespace carousel {
namespace {

using test::Numbers;

struct Shape {
  int n;
  int in;
  int out;
};

class LinearLayer : public testing::TestWithParam<Shape> {
 protected:
  LinearLayer() {
    const auto [n, in, out] = GetParam();
    spec_.kind = &op_named("linear");
    spec_.name = "0";
    spec_.inputs = {{-1, {in}}};
    spec_.output = {out};
    spec_.parameters = {{"0.weight", {out, in}}, {"0.bias", {out}}};
    x_ = test::random_numbers(std::size_t(n) * in, "x");
    w_ = test::random_numbers(std::size_t(out) * in, "w");
    b_ = test::random_numbers(out, "b");
    d_y_ = test::random_numbers(std::size_t(n) * out, "d_y");
    Numbers parameters(w_);
    parameters.insert(parameters.end(), b_.begin(), b_.end());
    parameters_ = test::to_device(parameters);
  }

  LayerSpec spec_;
  Numbers x_, w_, b_, d_y_;
  test::Device<real> parameters_;
};

TEST_P(LinearLayer, Forward) {
  const auto [n, in, out] = GetParam();
  const auto x = test::to_device(x_);
  const test::Device<real> y("carousel::test::y", std::size_t(n) * out);
  Linear layer(spec_);
  layer.forward(ExecutionSpace(), {.input = {x.data(), n, spec_.input()},
                                   .output = {y.data(), n, spec_.output},
                                   .parameters = parameters_.data()});
  EXPECT_LE(test::relative_difference(test::to_host(y), reference::linear(x_, w_, b_, n)),
            test::rounding);
}

TEST_P(LinearLayer, Backward) {
  const auto [n, in, out] = GetParam();
  const auto x = test::to_device(x_);
  const auto d_y = test::to_device(d_y_);
  const test::Device<real> d_x("carousel::test::d_x", std::size_t(n) * in);
  const test::Device<real> d_parameters("carousel::test::d_parameters", parameters_.size());
  Kokkos::deep_copy(d_parameters, real(1e30));  // must be overwritten
  Linear layer(spec_);
  BackwardArguments arguments = {.input = {x.data(), n, spec_.input()},
                                 .output = {},
                                 .d_output = {d_y.data(), n, spec_.output},
                                 .d_input = {d_x.data(), n, spec_.input()},
                                 .parameters = parameters_.data(),
                                 .d_parameters = d_parameters.data()};
  layer.backward(ExecutionSpace(), arguments);
  const auto expected = reference::linear_gradients(x_, w_, d_y_, n);
  Numbers d_expected(expected.d_w);
  d_expected.insert(d_expected.end(), expected.d_b.begin(), expected.d_b.end());
  const Numbers with_input = test::to_host(d_parameters);
  EXPECT_LE(test::relative_difference(with_input, d_expected), test::rounding);
  EXPECT_LE(test::relative_difference(test::to_host(d_x), expected.d_x), test::rounding);

  arguments.adds_input = true;  // to what another layer left there
  layer.backward(ExecutionSpace(), arguments);
  Numbers twice = expected.d_x;
  for (auto& number : twice) number *= 2;
  EXPECT_LE(test::relative_difference(test::to_host(d_x), twice), test::rounding);

  arguments.d_input.data = nullptr;  // the first layer of a model
  layer.backward(ExecutionSpace(), arguments);
  EXPECT_EQ(test::to_host(d_parameters), with_input);
}

INSTANTIATE_TEST_SUITE_P(Shapes, LinearLayer,
                         testing::Values(Shape{1, 1, 1}, Shape{1, 64, 10}, Shape{16, 64, 64},
                                         Shape{7, 13, 5}, Shape{3, 2, 33}, Shape{29, 1, 17},
                                         Shape{128, 300, 100}, Shape{257, 61, 259}),
                         [](const auto& instance) {
                           return "n" + std::to_string(instance.param.n) + "in" +
                                  std::to_string(instance.param.in) + "out" +
                                  std::to_string(instance.param.out);
                         });

}  // namespace
}  // namespace carousel
