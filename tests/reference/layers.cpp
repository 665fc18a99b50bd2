// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/reference/layers.hpp"

#include <algorithm>
#include <cmath>

namespace carousel::reference {

Numbers linear(const Numbers& x, const Numbers& w, const Numbers& b, int n) {
  const std::size_t out = b.size();
  const std::size_t in = w.size() / out;
  Numbers y(n * out);
  for (int i = 0; i < n; ++i) {
    for (std::size_t o = 0; o < out; ++o) {
      double sum = b[o];
      for (std::size_t k = 0; k < in; ++k)
        sum += static_cast<double>(x[i * in + k]) * w[o * in + k];
      y[i * out + o] = static_cast<real>(sum);
    }
  }
  return y;
}

LinearGradients linear_gradients(const Numbers& x, const Numbers& w, const Numbers& d_y, int n) {
  const std::size_t in = x.size() / n;
  const std::size_t out = d_y.size() / n;
  std::vector<double> d_x(n * in), d_w(out * in), d_b(out);
  for (int i = 0; i < n; ++i) {
    for (std::size_t o = 0; o < out; ++o) {
      const double d = d_y[i * out + o];
      d_b[o] += d;
      for (std::size_t k = 0; k < in; ++k) {
        d_w[o * in + k] += d * x[i * in + k];
        d_x[i * in + k] += d * w[o * in + k];
      }
    }
  }
  return {{d_x.begin(), d_x.end()}, {d_w.begin(), d_w.end()}, {d_b.begin(), d_b.end()}};
}

Numbers relu(const Numbers& x) {
  Numbers y(x);
  for (real& value : y) value = std::max(value, real{0});
  return y;
}

Numbers relu_gradient(const Numbers& y, const Numbers& d_y) {
  Numbers d_x(y.size());
  for (std::size_t i = 0; i < y.size(); ++i) d_x[i] = y[i] > 0 ? d_y[i] : real{0};
  return d_x;
}

Numbers add(const Numbers& a, const Numbers& b) {
  Numbers sum(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) sum[i] = a[i] + b.at(i);
  return sum;
}

namespace {

double target(bool is_label, double smoothing, std::size_t classes) {
  return (is_label ? 1 - smoothing : 0) + smoothing / static_cast<double>(classes);
}

}  // namespace

Loss softmax_cross_entropy(const Numbers& logits, const std::vector<int>& labels,
                           double smoothing) {
  const std::size_t n = labels.size();
  const std::size_t classes = logits.size() / n;
  Loss loss;
  loss.probabilities.resize(logits.size());
  for (std::size_t i = 0; i < n; ++i) {
    const real* row = &logits[i * classes];
    const real* largest = std::max_element(row, row + classes);  // the first of equals
    double sum = 0;
    for (std::size_t c = 0; c < classes; ++c) sum += std::exp(double{row[c]} - *largest);
    for (std::size_t c = 0; c < classes; ++c) {
      const double above = double{row[c]} - *largest;
      const bool is_label = static_cast<int>(c) == labels[i];
      loss.probabilities[i * classes + c] = static_cast<real>(std::exp(above) / sum);
      loss.mean +=
          target(is_label, smoothing, classes) * (std::log(sum) - above) / static_cast<double>(n);
    }
    loss.correct += largest - row == labels[i] ? 1 : 0;
  }
  return loss;
}

Numbers softmax_cross_entropy_gradient(const Numbers& probabilities, const std::vector<int>& labels,
                                       double smoothing) {
  const std::size_t n = labels.size();
  const std::size_t classes = probabilities.size() / n;
  Numbers gradient(probabilities.size());
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    const bool is_label = static_cast<int>(i % classes) == labels[i / classes];
    gradient[i] = static_cast<real>((probabilities[i] - target(is_label, smoothing, classes)) /
                                    static_cast<double>(n));
  }
  return gradient;
}

}  // namespace carousel::reference
