// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/data/token_set.hpp"

#include <cstring>
#include <optional>
#include <string_view>

#include "core/base/check.hpp"
#include "core/base/digest.hpp"
#include "core/base/random.hpp"
#include "core/base/text.hpp"

namespace carousel {
namespace {

/// A window on its way.
struct OpenWindow {
  std::vector<std::int64_t> tokens;
  std::vector<std::byte> stored;  // at most as many bytes

  explicit OpenWindow(int context)
      : tokens(static_cast<std::size_t>(context)), stored(tokens.size() * sizeof(std::int64_t)) {}
  [[nodiscard]] static std::int64_t bytes(int context) {
    return 2 * std::int64_t{context} * std::int64_t{sizeof(std::int64_t)};
  }
};

class TokenReader final : public SourceReader {
 public:
  TokenReader(const TokenSet& set, int context, std::uint64_t seed, const Reads& reads)
      : set_(set), context_(context), seed_(seed) {
    if (reads.inputs) input_.emplace(context);
    if (reads.targets) target_.emplace(context);
  }

  [[nodiscard]] ShownPart read_input(Pass pass, std::int64_t epoch, std::int64_t index,
                                     std::span<std::byte> input) override {
    read<real>(pass, first_of(pass, epoch, index), input_.value(), input);
    return {};
  }
  void read_target(Pass pass, std::int64_t epoch, std::int64_t index,
                   std::span<std::byte> target) override {
    read<std::int32_t>(pass, first_of(pass, epoch, index) + 1, target_.value(), target);
  }

 private:
  [[nodiscard]] std::int64_t first_of(Pass pass, std::int64_t epoch, std::int64_t index) const {
    return (pass == Pass::training ? first_window(seed_, epoch, static_cast<int>(context_)) : 0) +
           index * context_;
  }
  template <class Number>
  void read(Pass pass, std::int64_t first, OpenWindow& window, std::span<std::byte> to) const {
    CAROUSEL_CHECK(to.size() == window.tokens.size() * sizeof(Number), "{} bytes for {} tokens",
                   to.size(), window.tokens.size());
    set_.row(pass).read(first, window.tokens, window.stored);
    for (std::size_t k = 0; k < window.tokens.size(); ++k) {
      const auto number = static_cast<Number>(window.tokens[k]);
      std::memcpy(to.data() + k * sizeof number, &number, sizeof number);
    }
  }

  const TokenSet& set_;
  std::int64_t context_;
  std::uint64_t seed_;
  std::optional<OpenWindow> input_;
  std::optional<OpenWindow> target_;
};

class TokenSource final : public Source {
 public:
  TokenSource(const TokenSet& set, SourceSpec spec, std::uint64_t seed)
      : set_(set), spec_(std::move(spec)), seed_(seed) {}

  [[nodiscard]] const SourceSpec& spec() const override { return spec_; }
  [[nodiscard]] std::int64_t samples(Pass pass) const override { return set_.samples(pass); }
  [[nodiscard]] std::unique_ptr<SourceReader> reader(const Reads& reads) const override {
    return std::make_unique<TokenReader>(set_, spec_.shown.height, seed_, reads);
  }

 private:
  const TokenSet& set_;
  SourceSpec spec_;
  std::uint64_t seed_;
};

std::uint64_t digest_of_pieces(const TokenFile& file) {
  std::uint64_t sum = 0;
  std::uint64_t count = 0;
  const auto add = [&](std::uint64_t value) { sum += digest_term(count++, value); };
  add(static_cast<std::uint64_t>(file.vocabulary()));
  for (const std::string& piece : file.tokenizer().pieces()) {
    add(piece.size());
    for (const char byte : piece) add(static_cast<unsigned char>(byte));
  }
  return sum;
}

SplitName evaluated_split(const TokenFile& file, const DataConfig& config) {
  const auto has = [&](SplitName name) { return file.row(name) != nullptr; };
  if (!config.evaluated) {
    if (has(SplitName::validation)) return SplitName::validation;
    return has(SplitName::test) ? SplitName::test : SplitName::train;
  }
  if (!has(*config.evaluated))
    fail(ExitCode::usage, "{}: has no /{}/tokens", file.path(), to_string(*config.evaluated));
  return *config.evaluated;
}

}  // namespace

std::int64_t first_window(std::uint64_t seed, std::int64_t epoch, int context) {
  const double u = uniform01(random_key(seed, "windows"), static_cast<std::uint64_t>(epoch), 0);
  return static_cast<std::int64_t>(u * context);
}

std::string name_of_tokens(const TokenFile& file) {
  return fmt::format("{} tokens, {} {:016x}", file.vocabulary(), to_string(file.tokenizer().kind()),
                     digest_of_pieces(file));
}

TokenSet::TokenSet(const DataConfig& config)
    : file_(config.tokens), context_(config.context), evaluated_(evaluated_split(file_, config)) {
  for (const Pass pass : {Pass::training, Pass::evaluation}) {
    const std::int64_t needed = pass == Pass::training ? 2 * std::int64_t{context_} : context_ + 1;
    if (samples(pass) < 1)
      fail(ExitCode::usage, "data.context = {}: /{}/tokens of {} are {}; {} are needed", context_,
           to_string(pass == Pass::training ? SplitName::train : evaluated_), file_.path(),
           human_count(row(pass).size()), human_count(needed));
  }
}

const TokenRow& TokenSet::row(Pass pass) const {
  return *file_.row(pass == Pass::training ? SplitName::train : evaluated_);
}

std::int64_t TokenSet::samples(Pass pass) const {
  const std::int64_t tokens = row(pass).size();
  return (pass == Pass::training ? tokens - context_ : tokens - 1) / context_;
}

std::uint64_t TokenSet::fingerprint() const {
  std::uint64_t sum = 0;
  std::uint64_t count = 0;
  const auto add = [&](std::uint64_t value) { sum += digest_term(count++, value); };
  add(digest_of_pieces(file_));
  for (const SplitName name : {SplitName::train, SplitName::validation, SplitName::test}) {
    const TokenRow* const row = file_.row(name);
    if (row == nullptr) continue;
    add(static_cast<std::uint64_t>(row->size()));
    for (const std::uint64_t checksum : row->checksums()) add(checksum);
  }
  return sum;
}

std::vector<std::string> TokenSet::class_names() const {
  return {name_of_tokens(file_)};
}

DataRemarks TokenSet::remarks() const {
  DataRemarks remarks;
  remarks.targets =
      fmt::format("{} tokens of {}, in windows of {}", human_count(row(Pass::training).size()),
                  human_count(file_.vocabulary()), context_);
  if (evaluated_ == SplitName::train)
    remarks.warnings.push_back(
        fmt::format("{}: has neither /validation/tokens nor /test/tokens; evaluations look at what "
                    "the training has seen",
                    file_.path()));
  return remarks;
}

TargetSpec TokenSet::target(const DataConfig& /*config*/) const {
  return TargetSpec::of_pixels(file_.vocabulary(), {1, context_, 1});
}

SourceSpec TokenSet::source_spec(const DataConfig& /*config*/) const {
  const SampleShape window = {1, context_, 1};
  return {.input = {full_numbers(), window},
          .target = {NumberType::int32, window},
          .shown = window,
          .reader_bytes = OpenWindow::bytes(context_),
          .target_reader_bytes = OpenWindow::bytes(context_)};
}

DataStatistics TokenSet::statistics(const DataConfig& /*config*/) const {
  return {.mean = {0}, .std = {1}};
}

std::unique_ptr<Source> TokenSet::source(const DataConfig& config, std::uint64_t seed) const {
  return std::make_unique<TokenSource>(*this, source_spec(config), seed);
}

}  // namespace carousel
