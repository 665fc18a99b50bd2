// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What `carousel sample` is asked for, and how the front end tells the engine.

#include <cstdint>
#include <string>
#include <vector>

namespace carousel {

struct SampleArguments {
  std::string checkpoint;  // or a run folder, for its newest one
  std::string tokens;      // a file of tokens, whose tokenizer it is; empty: the training's
  std::string prompt;
  std::int64_t count = 200;  // tokens behind the prompt
  double temperature = 1;    // 0: always the likeliest token
  int top_k = 0;             // only the likeliest so many; 0: all
  std::uint64_t seed = 1;
  bool without_ema = false;  // as in EvalArguments

  /// Words for the engine, and the way back: whether a word is one of them.
  [[nodiscard]] std::vector<std::string> words() const;
  [[nodiscard]] bool take(const std::string& word);
};

}  // namespace carousel
