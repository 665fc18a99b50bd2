// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// `carousel sample`: a text, token by token. Each is drawn from what the network gives for the last
// window, all of it computed again.

#include <fmt/core.h>

#include <Kokkos_Core.hpp>
#include <algorithm>
#include <cmath>
#include <numeric>

#include "app/complaint.hpp"
#include "app/engine.hpp"
#include "app/evaluated_run.hpp"
#include "app/input_rules.hpp"
#include "app/requested_run.hpp"
#include "app/state_files.hpp"
#include "core/base/descriptor.hpp"
#include "core/base/random.hpp"
#include "core/base/vectors.hpp"
#include "core/data/token_set.hpp"
#include "core/train/predictor.hpp"
#include "layers/factory.hpp"
#include "layers/vendor/vendor.hpp"

namespace carousel {
namespace {

/// Draws a token from scores of all: of the `top_k` largest, with the probabilities of scores that
/// are divided by the temperature, by a number of [0, 1).
Token draw(std::span<const double> scores, const SampleArguments& arguments, double number) {
  const auto largest = static_cast<Token>(std::ranges::max_element(scores) - scores.begin());
  if (arguments.temperature == 0) return largest;
  std::vector<Token> tokens(scores.size());
  std::iota(tokens.begin(), tokens.end(), Token{0});
  if (arguments.top_k > 0 && arguments.top_k < std::ssize(tokens)) {
    // Of equal scores, the smaller token.
    std::ranges::nth_element(tokens, tokens.begin() + arguments.top_k, [&](Token a, Token b) {
      return scores[a] != scores[b] ? scores[a] > scores[b] : a < b;
    });
    tokens.resize(static_cast<std::size_t>(arguments.top_k));
    std::ranges::sort(tokens);
  }
  const auto weight = [&](Token token) {
    return std::exp((scores[token] - scores[largest]) / arguments.temperature);
  };
  double sum = 0;
  for (const Token token : tokens) sum += weight(token);
  double left = number * sum;
  for (const Token token : tokens) {
    left -= weight(token);
    if (left < 0) return token;
  }
  return largest;  // where rounding has left something
}

/// What a text begins with that nobody has begun.
std::vector<Token> first_tokens(const Tokenizer& tokenizer, const std::string& prompt) {
  std::vector<Token> tokens;
  try {
    tokenizer.encode(prompt.empty() && tokenizer.end_of_text_token() < 0 ? "\n" : prompt, tokens);
  } catch (const Error& error) {
    fail(ExitCode::usage, "--prompt: {}{}", error.what(),
         prompt.empty() ? "; a text has to begin with something" : "");
  }
  if (tokens.empty()) tokens.push_back(static_cast<Token>(tokenizer.end_of_text_token()));
  return tokens;
}

}  // namespace

ExitCode sample(const SampleArguments& arguments) {
  const Checkpoint checkpoint(arguments.checkpoint);
  RunConfig config = evaluated_run(checkpoint, arguments.tokens, "");
  if (config.data.kind != DataKind::tokens || !checkpoint.inputs())
    fail(ExitCode::usage, "{}: has learned from {}, not from tokens of a text",
         arguments.checkpoint, to_string(config.data.kind));
  const TokenSet set(config.data);
  const Tokenizer& tokenizer = set.file().tokenizer();
  check_inputs(inputs_of(config, set), checkpoint, set.name(),
               "give --tokens FILE of the same text");
  if (tokenizer.kind() == TokenizerKind::none)
    fail(ExitCode::usage,
         "{}: says not what text its tokens stand for; import it with --bpe TOKENS,PAIRS",
         set.name());
  const std::vector<Token> prompt = first_tokens(tokenizer, arguments.prompt);
  const SourceSpec source = set.source_spec(config.data);
  const PlanBasis basis{.source = source,
                        .target = set.target(config.data),
                        .block = vector_block,
                        .vendor = vendor_for(config.engine)};
  const Model model = prepare_model(planned_deck(config, TransportKind::local), basis);

  const Kokkos::ScopeGuard kokkos(kokkos_settings(config.engine, Launcher(), nullptr));
  const ExecutionSpace exec;
  check_threads(exec);
  Predictor predictor(
      exec, {.model = model,
             .source = source,
             .largest_batch = 1,
             .state = used_state(checkpoint, config.train.optimizer, arguments.without_ema),
             .layers = make_layer,
             .vendor = vendor::handles_for(basis.vendor)});
  const auto context = static_cast<std::size_t>(config.data.context);
  const auto vocabulary = static_cast<std::size_t>(set.file().vocabulary());
  std::vector<Token> tokens = prompt;
  std::vector<real> window(context);
  std::vector<real> outputs(vocabulary * context);
  std::vector<double> scores(vocabulary);
  const std::uint64_t key = random_key(arguments.seed, "sample");
  fmt::print("{}", arguments.prompt);
  for (std::int64_t k = 0; k < arguments.count; ++k) {
    // What stands behind the last token no token before it reads.
    const std::size_t used = std::min(context, tokens.size());
    std::ranges::fill(window, real(0));
    std::copy(tokens.end() - static_cast<std::ptrdiff_t>(used), tokens.end(), window.begin());
    Batch batch;
    batch.request.count = 1;
    batch.inputs = std::as_bytes(std::span(window));
    predictor.predict(batch, outputs);
    for (std::size_t c = 0; c < vocabulary; ++c) scores[c] = outputs[c * context + used - 1];
    if (!std::ranges::all_of(scores, [](double score) { return std::isfinite(score); }))
      fail(ExitCode::diverged, "{}: what it gives is no finite number; its training diverged",
           arguments.checkpoint);
    const Token next = draw(scores, arguments, uniform01(key, 0, static_cast<std::uint64_t>(k)));
    if (next == tokenizer.end_of_text_token()) break;
    tokens.push_back(next);
    fmt::print("{}", tokenizer.pieces()[next]);
    flush_output();
  }
  fmt::print("\n");
  return ExitCode::done;
}

}  // namespace carousel
