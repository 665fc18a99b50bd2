// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/reference/image_layers.hpp"

#include <cmath>

#include "layers/batch_norm/op.hpp"

namespace carousel::reference {
namespace {

std::size_t index(const SampleShape& shape, int image, int channel, int row, int column) {
  const std::size_t plane = std::size_t(image) * shape.channels + channel;
  return (plane * shape.height + row) * shape.width + column;
}

/// Calls visit(image, channel, row, column) for every number of n images.
template <class Visit>
void for_each(int n, const SampleShape& shape, const Visit& visit) {
  for (int i = 0; i < n; ++i)
    for (int c = 0; c < shape.channels; ++c)
      for (int row = 0; row < shape.height; ++row)
        for (int column = 0; column < shape.width; ++column) visit(i, c, row, column);
}

/// Calls visit(u, v, row, column) for every element (u, v) of the window of output (oy, ox) that
/// lies on the pixel (row, column) and not on padding.
template <class Visit>
void for_each_pixel(const Windows& windows, int oy, int ox, const Visit& visit) {
  const auto& [n, input, output, window] = windows;
  const int height = window.kernel > 0 ? window.kernel : input.height;
  const int width = window.kernel > 0 ? window.kernel : input.width;
  for (int u = 0; u < height; ++u) {
    for (int v = 0; v < width; ++v) {
      const int row = window.stride * oy + u - window.padding;
      const int column = window.stride * ox + v - window.padding;
      if (row >= 0 && row < input.height && column >= 0 && column < input.width)
        visit(u, v, row, column);
    }
  }
}

/// Where the largest pixel of a window is in x.
std::size_t largest(const Windows& windows, const Numbers& x, int i, int c, int oy, int ox) {
  std::size_t best = x.size();
  for_each_pixel(windows, oy, ox, [&](int, int, int row, int column) {
    const std::size_t at = index(windows.input, i, c, row, column);
    const bool first = best == x.size();
    if (first || x[at] > x[best] || (std::isnan(x[at]) && !std::isnan(x[best]))) best = at;
  });
  return best;
}

double pixels_per_window(const Windows& windows) {
  const int kernel = windows.window.kernel;
  return kernel > 0 ? kernel * kernel : windows.input.height * windows.input.width;
}

std::size_t weight_index(const Windows& windows, int o, int c, int u, int v) {
  const int kernel = windows.window.kernel;
  return ((std::size_t(o) * windows.input.channels + c) * kernel + u) * kernel + v;
}

Numbers rounded(const std::vector<double>& numbers) {
  return {numbers.begin(), numbers.end()};
}

}  // namespace

Numbers convolution(const Windows& windows, const Numbers& x, const Numbers& w, const Numbers& b) {
  const auto& [n, input, output, window] = windows;
  Numbers y(n * output.size());
  for_each(n, output, [&](int i, int o, int oy, int ox) {
    double sum = b.empty() ? 0 : b[o];
    for (int c = 0; c < windows.input.channels; ++c) {
      for_each_pixel(windows, oy, ox, [&](int u, int v, int row, int column) {
        sum += double{w[weight_index(windows, o, c, u, v)]} *
               x[index(windows.input, i, c, row, column)];
      });
    }
    y[index(windows.output, i, o, oy, ox)] = static_cast<real>(sum);
  });
  return y;
}

ConvolutionGradients convolution_gradients(const Windows& windows, const Numbers& x,
                                           const Numbers& w, const Numbers& d_y) {
  std::vector<double> d_x(x.size()), d_w(w.size()), d_b(windows.output.channels);
  for_each(windows.n, windows.output, [&](int i, int o, int oy, int ox) {
    const double d = d_y[index(windows.output, i, o, oy, ox)];
    d_b[o] += d;
    for (int c = 0; c < windows.input.channels; ++c) {
      for_each_pixel(windows, oy, ox, [&](int u, int v, int row, int column) {
        const std::size_t pixel = index(windows.input, i, c, row, column);
        const std::size_t weight = weight_index(windows, o, c, u, v);
        d_w[weight] += d * x[pixel];
        d_x[pixel] += d * w[weight];
      });
    }
  });
  return {rounded(d_x), rounded(d_w), rounded(d_b)};
}

Numbers max_pool(const Windows& windows, const Numbers& x) {
  Numbers y(windows.n * windows.output.size());
  for_each(windows.n, windows.output, [&](int i, int c, int oy, int ox) {
    y[index(windows.output, i, c, oy, ox)] = x[largest(windows, x, i, c, oy, ox)];
  });
  return y;
}

Numbers max_pool_gradient(const Windows& windows, const Numbers& x, const Numbers& d_y) {
  std::vector<double> d_x(x.size());
  for_each(windows.n, windows.output, [&](int i, int c, int oy, int ox) {
    d_x[largest(windows, x, i, c, oy, ox)] += d_y[index(windows.output, i, c, oy, ox)];
  });
  return rounded(d_x);
}

Numbers average_pool(const Windows& windows, const Numbers& x) {
  Numbers y(windows.n * windows.output.size());
  for_each(windows.n, windows.output, [&](int i, int c, int oy, int ox) {
    double sum = 0;
    for_each_pixel(windows, oy, ox, [&](int, int, int row, int column) {
      sum += x[index(windows.input, i, c, row, column)];
    });
    y[index(windows.output, i, c, oy, ox)] = static_cast<real>(sum / pixels_per_window(windows));
  });
  return y;
}

Numbers average_pool_gradient(const Windows& windows, const Numbers& d_y) {
  std::vector<double> d_x(windows.n * windows.input.size());
  for_each(windows.n, windows.output, [&](int i, int c, int oy, int ox) {
    const double d = d_y[index(windows.output, i, c, oy, ox)] / pixels_per_window(windows);
    for_each_pixel(windows, oy, ox, [&](int, int, int row, int column) {
      d_x[index(windows.input, i, c, row, column)] += d;
    });
  });
  return rounded(d_x);
}

Statistics statistics(int n, const SampleShape& shape, const Numbers& x) {
  const double count = static_cast<double>(n) * shape.height * shape.width;
  const std::vector<double> zeros(shape.channels);
  Statistics result{zeros, zeros, zeros};
  for_each(n, shape, [&](int i, int c, int row, int column) {
    result.mean[c] += x[index(shape, i, c, row, column)] / count;
  });
  for_each(n, shape, [&](int i, int c, int row, int column) {
    const double d = x[index(shape, i, c, row, column)] - result.mean[c];
    result.variance[c] += d * d / count;
    result.unbiased[c] += d * d / (count - 1);
  });
  return result;
}

Numbers batch_norm(int n, const SampleShape& shape, const Numbers& x, const Statistics& statistics,
                   const Numbers& w, const Numbers& b) {
  Numbers y(x.size());
  for_each(n, shape, [&](int i, int c, int row, int column) {
    const std::size_t at = index(shape, i, c, row, column);
    const double deviation = std::sqrt(statistics.variance[c] + op::BatchNorm{}.epsilon);
    y[at] = static_cast<real>((x[at] - statistics.mean[c]) / deviation * w[c] + b[c]);
  });
  return y;
}

BatchNormGradients batch_norm_gradients(int n, const SampleShape& shape, const Numbers& x,
                                        const Numbers& w, const Numbers& d_y) {
  const double count = static_cast<double>(n) * shape.height * shape.width;
  const Statistics of_x = statistics(n, shape, x);
  const auto normalised = [&](std::size_t at, int c) {
    return (x[at] - of_x.mean[c]) / std::sqrt(of_x.variance[c] + op::BatchNorm{}.epsilon);
  };
  std::vector<double> d_w(shape.channels), d_b(shape.channels);
  for_each(n, shape, [&](int i, int c, int row, int column) {
    const std::size_t at = index(shape, i, c, row, column);
    d_w[c] += d_y[at] * normalised(at, c);
    d_b[c] += d_y[at];
  });
  Numbers d_x(x.size());
  for_each(n, shape, [&](int i, int c, int row, int column) {
    const std::size_t at = index(shape, i, c, row, column);
    const double d = d_y[at] - d_b[c] / count - normalised(at, c) * d_w[c] / count;
    d_x[at] = static_cast<real>(d * w[c] / std::sqrt(of_x.variance[c] + op::BatchNorm{}.epsilon));
  });
  return {d_x, rounded(d_w), rounded(d_b)};
}

}  // namespace carousel::reference
