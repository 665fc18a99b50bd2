// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/reference/token_layers.hpp"

#include <cmath>
#include <numbers>

namespace carousel::reference {
namespace {

/// Where feature c of token t of sample i is.
std::size_t at(const SampleShape& shape, int i, int c, int t) {
  return (static_cast<std::size_t>(i) * shape.channels + c) * shape.height + t;
}

/// The features of a token, normalised, and one divided by their deviation.
struct Normalised {
  std::vector<double> z;
  double inverse = 0;

  Normalised(const SampleShape& shape, const Numbers& x, int i, int t) : z(shape.channels) {
    double mean = 0;
    double variance = 0;
    for (int c = 0; c < shape.channels; ++c) mean += x[at(shape, i, c, t)] / double(shape.channels);
    for (int c = 0; c < shape.channels; ++c)
      variance += std::pow(x[at(shape, i, c, t)] - mean, 2) / shape.channels;
    inverse = 1 / std::sqrt(variance + layer_norm_epsilon);
    for (int c = 0; c < shape.channels; ++c) z[c] = (x[at(shape, i, c, t)] - mean) * inverse;
  }
};

/// Of the mean square of a token's features.
double root_of_square(const SampleShape& shape, double epsilon, const Numbers& x, int i, int t) {
  double mean = 0;
  for (int c = 0; c < shape.channels; ++c)
    mean += std::pow(x[at(shape, i, c, t)], 2) / double(shape.channels);
  return std::sqrt(mean + epsilon);
}

double distribution(double x) {
  return std::erfc(-x / std::numbers::sqrt2) / 2;
}

/// One head of one sample: the probabilities [tokens, tokens], query by query.
class Head {
 public:
  Head(const SampleShape& shape, const op::Attention& attributes, const Numbers& x, int i, int head)
      : shape_(shape),
        x_(x),
        i_(i),
        first_(shape.channels / attributes.heads * head),
        size_(shape.channels / attributes.heads) {
    for (int q = 0; q < shape.height; ++q) {
      double sum = 0;
      for (int k = 0; k < shape.height; ++k) {
        double score = 0;
        for (int c = 0; c < size_; ++c) score += query(c, q) * key(c, k);
        const bool reads = !attributes.causal || k <= q;
        probabilities_.push_back(reads ? std::exp(score / std::sqrt(size_)) : 0);
        sum += probabilities_.back();
      }
      for (int k = 0; k < shape.height; ++k) probabilities_[q * shape.height + k] /= sum;
    }
  }

  [[nodiscard]] int size() const { return size_; }
  [[nodiscard]] int first() const { return first_; }
  [[nodiscard]] double p(int q, int k) const { return probabilities_[q * shape_.height + k]; }
  [[nodiscard]] double query(int c, int t) const { return x_[input(0, c, t)]; }
  [[nodiscard]] double key(int c, int t) const { return x_[input(1, c, t)]; }
  [[nodiscard]] double value(int c, int t) const { return x_[input(2, c, t)]; }
  /// Where channel c of queries, keys or values is in x.
  [[nodiscard]] std::size_t input(int part, int c, int t) const {
    return at({3 * shape_.channels, shape_.height}, i_, part * shape_.channels + first_ + c, t);
  }
  [[nodiscard]] std::size_t output(int c, int t) const { return at(shape_, i_, first_ + c, t); }

 private:
  const SampleShape& shape_;
  const Numbers& x_;
  int i_;
  int first_;
  int size_;
  std::vector<double> probabilities_;
};

}  // namespace

Numbers layer_norm(int n, const SampleShape& shape, const Numbers& x, const Numbers& w,
                   const Numbers& b) {
  Numbers y(x.size());
  for (int i = 0; i < n; ++i) {
    for (int t = 0; t < shape.height; ++t) {
      const Normalised token(shape, x, i, t);
      for (int c = 0; c < shape.channels; ++c)
        y[at(shape, i, c, t)] = static_cast<real>(token.z[c] * w[c] + b[c]);
    }
  }
  return y;
}

LayerNormGradients layer_norm_gradients(int n, const SampleShape& shape, const Numbers& x,
                                        const Numbers& w, const Numbers& d_y) {
  std::vector<double> d_w(shape.channels);
  std::vector<double> d_b(shape.channels);
  Numbers d_x(x.size());
  for (int i = 0; i < n; ++i) {
    for (int t = 0; t < shape.height; ++t) {
      const Normalised token(shape, x, i, t);
      double mean = 0;
      double mean_z = 0;
      for (int c = 0; c < shape.channels; ++c) {
        const double d = d_y[at(shape, i, c, t)];
        d_w[c] += d * token.z[c];
        d_b[c] += d;
        mean += d * w[c] / shape.channels;
        mean_z += d * w[c] * token.z[c] / shape.channels;
      }
      for (int c = 0; c < shape.channels; ++c)
        d_x[at(shape, i, c, t)] = static_cast<real>(
            (double{d_y[at(shape, i, c, t)]} * w[c] - mean - token.z[c] * mean_z) * token.inverse);
    }
  }
  return {d_x, {d_w.begin(), d_w.end()}, {d_b.begin(), d_b.end()}};
}

Numbers rms_norm(int n, const SampleShape& shape, double epsilon, const Numbers& x,
                 const Numbers& w) {
  Numbers y(x.size());
  for (int i = 0; i < n; ++i) {
    for (int t = 0; t < shape.height; ++t) {
      const double root = root_of_square(shape, epsilon, x, i, t);
      for (int c = 0; c < shape.channels; ++c)
        y[at(shape, i, c, t)] = static_cast<real>(x[at(shape, i, c, t)] / root * w[c]);
    }
  }
  return y;
}

RmsNormGradients rms_norm_gradients(int n, const SampleShape& shape, double epsilon,
                                    const Numbers& x, const Numbers& w, const Numbers& d_y) {
  std::vector<double> d_w(shape.channels);
  Numbers d_x(x.size());
  for (int i = 0; i < n; ++i) {
    for (int t = 0; t < shape.height; ++t) {
      const double root = root_of_square(shape, epsilon, x, i, t);
      double mean = 0;
      for (int c = 0; c < shape.channels; ++c) {
        const std::size_t k = at(shape, i, c, t);
        d_w[c] += double{d_y[k]} * x[k] / root;
        mean += double{d_y[k]} * w[c] * x[k] / root / shape.channels;
      }
      for (int c = 0; c < shape.channels; ++c) {
        const std::size_t k = at(shape, i, c, t);
        d_x[k] = static_cast<real>((double{d_y[k]} * w[c] - x[k] / root * mean) / root);
      }
    }
  }
  return {d_x, {d_w.begin(), d_w.end()}};
}

Numbers gelu(const Numbers& x) {
  Numbers y;
  for (const real value : x) y.push_back(static_cast<real>(value * distribution(value)));
  return y;
}

Numbers gelu_gradient(const Numbers& x, const Numbers& d_y) {
  Numbers d_x;
  for (std::size_t k = 0; k < x.size(); ++k) {
    const double v = x[k];
    const double density = std::exp(-v * v / 2) / std::sqrt(2 * std::numbers::pi);
    d_x.push_back(static_cast<real>(d_y[k] * (distribution(v) + v * density)));
  }
  return d_x;
}

Numbers attention(int n, const SampleShape& shape, const op::Attention& attributes,
                  const Numbers& x) {
  Numbers y(n * shape.size());
  for (int i = 0; i < n; ++i) {
    for (int h = 0; h < attributes.heads; ++h) {
      const Head head(shape, attributes, x, i, h);
      for (int q = 0; q < shape.height; ++q) {
        for (int c = 0; c < head.size(); ++c) {
          double sum = 0;
          for (int k = 0; k < shape.height; ++k) sum += head.p(q, k) * head.value(c, k);
          y[head.output(c, q)] = static_cast<real>(sum);
        }
      }
    }
  }
  return y;
}

Numbers attention_gradient(int n, const SampleShape& shape, const op::Attention& attributes,
                           const Numbers& x, const Numbers& d_y) {
  std::vector<double> d_x(x.size());
  for (int i = 0; i < n; ++i) {
    for (int h = 0; h < attributes.heads; ++h) {
      const Head head(shape, attributes, x, i, h);
      for (int q = 0; q < shape.height; ++q) {
        std::vector<double> d_p(shape.height);
        double mean = 0;
        for (int k = 0; k < shape.height; ++k) {
          for (int c = 0; c < head.size(); ++c) d_p[k] += d_y[head.output(c, q)] * head.value(c, k);
          mean += d_p[k] * head.p(q, k);
        }
        for (int k = 0; k < shape.height; ++k) {
          const double d_score = head.p(q, k) * (d_p[k] - mean) / std::sqrt(head.size());
          for (int c = 0; c < head.size(); ++c) {
            d_x[head.input(0, c, q)] += d_score * head.key(c, k);
            d_x[head.input(1, c, k)] += d_score * head.query(c, q);
            d_x[head.input(2, c, k)] += head.p(q, k) * d_y[head.output(c, q)];
          }
        }
      }
    }
  }
  return {d_x.begin(), d_x.end()};
}

Numbers with_positions(int n, const SampleShape& shape, const Numbers& patches,
                       const Numbers& class_token, const Numbers& positions) {
  const SampleShape of_patches = {shape.channels, shape.height - 1};
  Numbers y(n * shape.size());
  for (int i = 0; i < n; ++i) {
    for (int c = 0; c < shape.channels; ++c) {
      for (int t = 0; t < shape.height; ++t) {
        const real token = t == 0 ? class_token[c] : patches[at(of_patches, i, c, t - 1)];
        y[at(shape, i, c, t)] = token + positions[t * shape.channels + c];
      }
    }
  }
  return y;
}

PositionGradients position_gradients(int n, const SampleShape& shape, const Numbers& d_y) {
  const SampleShape of_patches = {shape.channels, shape.height - 1};
  std::vector<double> d_positions(shape.size());
  PositionGradients result;
  result.d_patches.resize(n * of_patches.size());
  for (int i = 0; i < n; ++i) {
    for (int c = 0; c < shape.channels; ++c) {
      for (int t = 0; t < shape.height; ++t) {
        const real d = d_y[at(shape, i, c, t)];
        d_positions[t * shape.channels + c] += d;
        if (t > 0) result.d_patches[at(of_patches, i, c, t - 1)] = d;
      }
    }
  }
  result.d_positions.assign(d_positions.begin(), d_positions.end());
  result.d_class_token.assign(d_positions.begin(), d_positions.begin() + shape.channels);
  return result;
}

Numbers first_token(int n, const SampleShape& shape, const Numbers& x) {
  Numbers y;
  for (int i = 0; i < n; ++i) {
    for (int c = 0; c < shape.channels; ++c) y.push_back(x[at(shape, i, c, 0)]);
  }
  return y;
}

Numbers first_token_gradient(int n, const SampleShape& shape, const Numbers& d_y) {
  Numbers d_x(n * shape.size());
  for (int i = 0; i < n; ++i) {
    for (int c = 0; c < shape.channels; ++c) d_x[at(shape, i, c, 0)] = d_y[i * shape.channels + c];
  }
  return d_x;
}

}  // namespace carousel::reference
