// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/import/picture_layout.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <set>
#include <string_view>

#include "core/base/check.hpp"
#include "core/base/random.hpp"

namespace carousel {
namespace {

/// A picture's path, cut at the folders.
struct Place {
  std::size_t file = 0;
  std::vector<std::string_view> parts;
};

std::vector<std::string_view> parts_of(std::string_view path) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t slash = path.find('/');
    if (slash != 0) parts.push_back(path.substr(0, slash));
    if (slash == std::string_view::npos) return parts;
    path.remove_prefix(slash + 1);
  }
}

/// Where a picture lies below the folders that are taken away.
std::string path_of(const Place& place) {
  std::string path;
  for (const std::string_view part : place.parts) path.append(path.empty() ? "" : "/").append(part);
  return path;
}

std::string lower(std::string_view text) {
  std::string small(text);
  std::ranges::transform(small, small.begin(), [](unsigned char c) { return std::tolower(c); });
  return small;
}

/// What other formats are called counts as well, so that nobody misses them without a word.
bool is_picture(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  if (dot == 0 || dot == std::string_view::npos) return false;
  const std::string ending = lower(name.substr(dot + 1));
  constexpr std::array known = {"jpg", "jpeg", "png", "bmp",  "gif",
                                "pgm", "ppm",  "tif", "tiff", "webp"};
  return std::ranges::find(known, ending) != known.end();
}

bool is_train(std::string_view folder) {
  const std::string name = lower(folder);
  return name == "train" || name == "training";
}
bool is_test(std::string_view folder) {
  return lower(folder) == "test";
}
bool is_validation(std::string_view folder) {
  const std::string name = lower(folder);
  return name == "val" || name == "valid" || name == "validation";
}
bool is_half(std::string_view folder) {
  return is_train(folder) || is_test(folder) || is_validation(folder);
}

/// Takes away the folders around all pictures, as archives have them.
void enter_only_folder(std::vector<Place>& places) {
  while (!places.empty()) {
    const std::string_view first = places.front().parts.front();
    const bool common = std::ranges::all_of(places, [&](const Place& place) {
      return place.parts.size() > 2 && place.parts.front() == first;
    });
    if (!common || is_half(first)) return;
    for (Place& place : places) place.parts.erase(place.parts.begin());
  }
}

class Reader {
 public:
  Reader(const std::string& where, const std::vector<std::string>& paths,
         const LayoutOptions& options)
      : where_(where), paths_(paths), options_(options) {}

  PictureLayout read() {
    std::vector<Place> places;
    for (std::size_t k = 0; k < paths_.size(); ++k) {
      Place place = {k, parts_of(paths_[k])};
      if (!place.parts.empty() && is_picture(place.parts.back()))
        places.push_back(std::move(place));
      else
        ++layout_.others;
    }
    if (places.empty())
      fail(ExitCode::bad_data, "{}: no pictures in it; they end in .jpg, .jpeg or .png", where_);
    enter_only_folder(places);
    divide(places);
    return std::move(layout_);
  }

 private:
  /// Sorts pictures into halves, by folders or by chance.
  void divide(std::vector<Place>& places) {
    const auto has = [&](auto is) {
      return std::ranges::any_of(places, [&](const Place& p) { return is(p.parts.front()); });
    };
    if (!has(is_train)) {
      if (has(is_test) || has(is_validation))
        fail(ExitCode::bad_data, "{}: there is no folder train beside those for tests", where_);
      name_classes(places);
      return choose(places);
    }
    const bool test = has(is_test);
    const bool validation = has(is_validation);
    std::array<std::vector<Place>, 2> halves;
    for (Place& place : places) {
      const std::string_view folder = place.parts.front();
      const bool tests = test ? is_test(folder) : is_validation(folder);
      if (!is_train(folder) && !tests) {
        layout_.left_out.push_back(paths_[place.file]);
        continue;
      }
      place.parts.erase(place.parts.begin());
      halves[tests ? 1 : 0].push_back(std::move(place));
    }
    name_classes(halves[0]);
    if (!test && !validation) return choose(halves[0]);
    if (options_.test_fraction > 0)
      fail(ExitCode::usage, "{}: it has a folder {} already; leave --test-fraction away", where_,
           test ? "test" : "val");
    for (const Half half : both_halves) {
      for (const Place& place : halves[index_of(half)]) put(half, place);
    }
  }

  std::string_view class_of(const Place& place) const {
    if (place.parts.size() < 2)
      fail(ExitCode::bad_data, "{}: {} lies in no folder of a class", where_, paths_[place.file]);
    return place.parts.front();
  }

  void name_classes(const std::vector<Place>& places) {
    layout_.class_names = options_.classes;
    if (layout_.class_names.empty()) {
      std::set<std::string> found;
      for (const Place& place : places) found.emplace(class_of(place));
      layout_.class_names.assign(found.begin(), found.end());
    }
    for (std::size_t k = 0; k < layout_.class_names.size(); ++k)
      labels_[layout_.class_names[k]] = static_cast<int>(k);
  }

  void put(Half half, const Place& place) {
    const auto label = labels_.find(class_of(place));
    if (label == labels_.end())
      fail(ExitCode::bad_data, "{}: {} is of a class that {} does not have", where_,
           paths_[place.file], options_.classes.empty() ? "train" : "the list of classes");
    layout_.halves[index_of(half)].push_back({place.file, label->second});
  }

  /// The pictures with the smallest draws are for tests; a draw belongs to a path, so that a few
  /// more pictures change little, and to no folder around the classes, which an archive may lack.
  void choose(const std::vector<Place>& places) {
    if (options_.test_fraction <= 0)
      fail(ExitCode::usage,
           "{}: no folder in it is for tests (test or val); give --test-fraction 0.1, for example",
           where_);
    const std::uint64_t key = random_key(options_.seed, "test split");
    std::vector<double> draws;
    for (const Place& place : places) draws.push_back(uniform01(key, hash_name(path_of(place)), 0));
    std::vector<double> sorted = draws;
    std::ranges::sort(sorted);
    const auto tests = static_cast<std::size_t>(
        std::llround(options_.test_fraction * static_cast<double>(sorted.size())));
    for (std::size_t k = 0; k < places.size(); ++k)
      put(tests == sorted.size() || draws[k] < sorted[tests] ? Half::test : Half::train, places[k]);
  }

  const std::string& where_;
  const std::vector<std::string>& paths_;
  const LayoutOptions& options_;
  PictureLayout layout_;
  std::map<std::string, int, std::less<>> labels_;
};

}  // namespace

PictureLayout picture_layout(const std::string& where, const std::vector<std::string>& paths,
                             const LayoutOptions& options) {
  PictureLayout layout = Reader(where, paths, options).read();
  for (const Half half : both_halves) {
    if (layout.half(half).empty())
      fail(ExitCode::usage, "{}: no picture is left for {}; take another --test-fraction", where,
           half == Half::train ? "training" : "tests");
  }
  return layout;
}

}  // namespace carousel
