// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/gemm.hpp"

#include "tests/layers/device.hpp"

namespace carousel {
namespace {

using test::Device;
using test::Numbers;

/// One product with its factors in either order of memory.
struct Case {
  GemmShape shape;
  bool a_transposed;
  bool b_transposed;
};

class Product {
 public:
  explicit Product(const Case& c)
      : shape_(c.shape),
        a_host_(test::random_numbers(std::size_t(c.shape.m) * c.shape.k, "a")),
        b_host_(test::random_numbers(std::size_t(c.shape.k) * c.shape.n, "b")),
        bias_host_(test::random_numbers(c.shape.n, "bias")),
        a_(test::to_device(a_host_)),
        b_(test::to_device(b_host_)),
        bias_(test::to_device(bias_host_)),
        c_("carousel::test::product", std::size_t(c.shape.m) * c.shape.n),
        a_strides_(c.a_transposed ? ConstMatrix{nullptr, 1, c.shape.m}
                                  : ConstMatrix{nullptr, c.shape.k, 1}),
        b_strides_(c.b_transposed ? ConstMatrix{nullptr, 1, c.shape.k}
                                  : ConstMatrix{nullptr, c.shape.n, 1}) {
    Kokkos::deep_copy(c_, real(-1e30));  // numbers that are not overwritten show
  }

  [[nodiscard]] ConstMatrix a() const {
    return {a_.data(), a_strides_.row_stride, a_strides_.column_stride};
  }
  [[nodiscard]] ConstMatrix b() const {
    return {b_.data(), b_strides_.row_stride, b_strides_.column_stride};
  }
  [[nodiscard]] Matrix c() const { return {c_.data(), shape_.n}; }
  [[nodiscard]] AddToColumns epilogue() const { return {bias_.data()}; }
  [[nodiscard]] Numbers result() const { return test::to_host(c_); }

  [[nodiscard]] Numbers expected() const {
    Numbers result;
    for (int i = 0; i < shape_.m; ++i) {
      for (int j = 0; j < shape_.n; ++j) {
        double sum = bias_host_[j];
        for (int k = 0; k < shape_.k; ++k)
          sum += double{a_host_[i * a_strides_.row_stride + k * a_strides_.column_stride]} *
                 b_host_[k * b_strides_.row_stride + j * b_strides_.column_stride];
        result.push_back(static_cast<real>(sum));
      }
    }
    return result;
  }

 private:
  GemmShape shape_;
  Numbers a_host_, b_host_, bias_host_;
  Device<real> a_, b_, bias_, c_;
  ConstMatrix a_strides_, b_strides_;
};

const std::string label = "carousel::test::gemm";

class Gemm : public testing::TestWithParam<Case> {};

TEST_P(Gemm, EqualsPlainLoops) {
  const Product product(GetParam());
  gemm(ExecutionSpace(), label, GetParam().shape, product.a(), product.b(), product.c(),
       product.epilogue());
  EXPECT_LE(test::relative_difference(product.result(), product.expected()), test::rounding);
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const GemmShape shape :
       {GemmShape{1, 1, 1}, GemmShape{1, 1, 300}, GemmShape{1, 10, 64}, GemmShape{6, 16, 1},
        GemmShape{7, 17, 3}, GemmShape{5, 31, 257}, GemmShape{16, 64, 64}, GemmShape{64, 64, 16},
        GemmShape{13, 1, 11}, GemmShape{129, 67, 131}, GemmShape{251, 521, 19},
        GemmShape{3, 1030, 517}, GemmShape{490, 33, 515}})
    for (const bool a : {false, true})
      for (const bool b : {false, true}) all.push_back({shape, a, b});
  return all;
}
INSTANTIATE_TEST_SUITE_P(Shapes, Gemm, testing::ValuesIn(cases()), [](const auto& instance) {
  const Case& c = instance.param;
  return fmt::format("m{}n{}k{}{}{}", c.shape.m, c.shape.n, c.shape.k, c.a_transposed ? "T" : "N",
                     c.b_transposed ? "T" : "N");
});

TEST(GemmTile, KeepsAllThreadsBusy) {
  for (const int concurrency : {1, 2, 3, 8, 64}) {
    for (const GemmShape shape : {GemmShape{1, 1, 1}, GemmShape{16, 64, 64},
                                  GemmShape{512, 512, 512}, GemmShape{2048, 1000, 512}}) {
      const detail::GemmTile tile = detail::host_tile(shape, concurrency);
      EXPECT_EQ(tile.m % detail::HostTiles::panel_m, 0);
      EXPECT_EQ(tile.n % detail::HostTiles::panel_n, 0);
      EXPECT_GE(tile.m, detail::HostTiles::panel_m);
      EXPECT_GE(tile.n, detail::HostTiles::panel_n);
      if (shape.m >= 512) {
        const int tiles = ((shape.m - 1) / tile.m + 1) * ((shape.n - 1) / tile.n + 1);
        const int rounds = (tiles - 1) / concurrency + 1;
        EXPECT_GE(tiles, 0.9 * rounds * concurrency);
      }
    }
  }
}

/// The kernel with tiles of a given size; only hosts can run with teams of one.
template <class Tiles>
Numbers product_with(const Case& c, const detail::GemmTile& tile) {
  const Product product(c);
  const ConstMatrix a = product.a();
  const ConstMatrix b = product.b();
  const detail::GemmKernel<Tiles, Vectors, Vectors, AddToColumns> kernel(
      c.shape, tile, {a.data, a.row_stride, a.column_stride},
      {b.data, b.column_stride, b.row_stride}, product.c(), product.epilogue());
  kernel.launch(ExecutionSpace(), label);
  return product.result();
}

TEST(GemmBits, DependOnNeitherTilesNorBlocks) {
  if constexpr (runs_on_host) {
    using Host = detail::HostTiles;
    using Device = detail::DeviceTiles<4, 1>;  // the path of GPUs, one thread per team
    const Case c = {{100, 77, 600}, true, false};
    const Numbers whole = product_with<Host>(c, {102, 80 / Host::panel_n * Host::panel_n});
    EXPECT_EQ(product_with<Host>(c, {Host::panel_m, Host::panel_n}), whole);
    EXPECT_EQ(product_with<Host>(c, {4 * Host::panel_m, 2 * Host::panel_n}), whole);
    EXPECT_EQ(product_with<Device>(c, {Device::panel_m, Device::panel_n}), whole);
  }
}

}  // namespace
}  // namespace carousel
