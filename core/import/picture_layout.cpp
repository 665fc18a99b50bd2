// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/import/picture_layout.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <iterator>
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

bool begins_with(std::span<const std::byte> head, std::string_view text) {
  const auto equal = [](std::byte byte, char letter) {
    return byte == static_cast<std::byte>(letter);
  };
  return head.size() >= text.size() && std::ranges::equal(head.first(text.size()), text, equal);
}

/// What no camera and no user puts beside pictures: hidden names, and what systems leave.
bool is_service_name(std::string_view name) {
  constexpr std::array<std::string_view, 9> known = {"__MACOSX",
                                                     "@eaDir",
                                                     "#recycle",
                                                     "@Recycle",
                                                     "$RECYCLE.BIN",
                                                     "lost+found",
                                                     "System Volume Information",
                                                     "__pycache__",
                                                     "Thumbs.db"};
  const bool is_hidden = name.starts_with('.') && name != "." && name != "..";
  return is_hidden || std::ranges::find(known, name) != known.end();
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
class Reader {
 public:
  Reader(const std::string& where, const std::vector<std::string>& paths,
         const LayoutOptions& options)
      : where_(where), paths_(paths), options_(options) {}

  PictureLayout read(const std::vector<bool>& unnamed, const std::vector<std::string>& folders) {
    std::vector<Place> places;
    for (std::size_t k = 0; k < paths_.size(); ++k) {
      Place place = {k, parts_of(paths_[k])};
      if (std::ranges::any_of(place.parts, is_service_name))
        layout_.service.push_back(paths_[k]);
      else if (is_picture_name(paths_[k]) || (!unnamed.empty() && unnamed[k]))
        places.push_back(std::move(place));
      else
        layout_.others.push_back(paths_[k]);
    }
    if (places.empty()) refuse_nothing(folders);
    enter_only_folder(places);
    divide(places);
    find_empty(folders);
    return std::move(layout_);
  }

 private:
  [[noreturn]] void refuse_nothing(const std::vector<std::string>& folders) const {
    std::vector<std::string> hidden = layout_.service;
    for (const std::string& folder : folders)
      if (is_service_path(folder)) hidden.push_back(folder + "/");
    if (hidden.empty()) fail(ExitCode::bad_data, "{}: no pictures in it", where_);
    fail(ExitCode::bad_data, "{}: no pictures in it but for what is hidden or a system's own, {}",
         where_, *std::ranges::min_element(hidden));
  }

  [[nodiscard]] bool is_train_half(std::string_view folder) const {
    if (options_.only_classes) return false;
    return options_.halves ? folder == options_.halves->train : is_train(folder);
  }
  [[nodiscard]] bool is_test_half(std::string_view folder) const {
    if (options_.only_classes) return false;
    return options_.halves ? folder == options_.halves->test : is_test(folder);
  }
  [[nodiscard]] bool is_validation_half(std::string_view folder) const {
    return !options_.only_classes && !options_.halves && is_validation(folder);
  }

  /// Takes away the folders around all pictures, as archives have them. A picture beside the last
  /// of these belongs to no class.
  void enter_only_folder(std::vector<Place>& places) {
    while (true) {
      const std::string_view first = places.front().parts.front();
      const auto is_half = [&](std::string_view name) {
        return is_train_half(name) || is_test_half(name) || is_validation_half(name);
      };
      const bool common =
          std::ranges::all_of(places, [&](const Place& p) { return p.parts.front() == first; });
      const auto is_deep = [](const Place& place) { return place.parts.size() > 2; };
      if (!common || is_half(first) || std::ranges::none_of(places, is_deep)) return;
      take_strays(places, [&](const Place& place) { return !is_deep(place); });
      for (Place& place : places) place.parts.erase(place.parts.begin());
    }
  }

  /// Refuses pictures that are in no folder of a class, or leaves them out.
  template <class IsStray>
  void take_strays(std::vector<Place>& places, const IsStray& is_stray) {
    for (const Place& place : places) {
      if (!is_stray(place)) continue;
      const std::string& path = paths_[place.file];
      if (!options_.skip_strays)
        fail(ExitCode::bad_data,
             "{}: {} lies in no folder of a class, beside folders that hold pictures; move it "
             "away, or leave it out with --skip-bad",
             where_, path);
      layout_.strays.push_back(path);
    }
    std::erase_if(places, is_stray);
  }

  /// Sorts pictures into halves, by folders or by chance.
  void divide(std::vector<Place>& places) {
    take_strays(places, [](const Place& place) { return place.parts.size() < 2; });
    const auto has = [&](auto is) {
      return std::ranges::any_of(places, [&](const Place& p) { return is(p.parts.front()); });
    };
    const auto trains = [this](std::string_view name) { return is_train_half(name); };
    const auto tests_of = [this](std::string_view name) { return is_test_half(name); };
    const auto validates = [this](std::string_view name) { return is_validation_half(name); };
    if (!has(trains)) {
      if (options_.halves)
        fail(ExitCode::usage, "{}: there is no folder {} in it, which --halves names", where_,
             options_.halves->train);
      if (has(tests_of) || has(validates))
        fail(ExitCode::bad_data,
             "{}: there is no folder train beside those for tests; if all folders are classes, say "
             "--halves none",
             where_);
      name_classes(places);
      return choose(places);
    }
    const bool test = has(tests_of);
    const bool validation = has(validates);
    if (options_.halves && !test)
      fail(ExitCode::usage, "{}: there is no folder {} in it, which --halves names", where_,
           options_.halves->test);
    std::array<std::vector<Place>, 2> halves;
    for (Place& place : places) {
      const std::string_view folder = place.parts.front();
      const bool tests = test ? tests_of(folder) : validates(folder);
      if (!trains(folder) && !tests) {
        layout_.left_out.push_back(paths_[place.file]);
        continue;
      }
      place.parts.erase(place.parts.begin());
      halves[tests ? 1 : 0].push_back(std::move(place));
    }
    if (!test && !validation && !layout_.left_out.empty())
      fail(ExitCode::usage,
           "{}: beside the folder {} are others, beginning with {}; if all are classes, say "
           "--halves none, otherwise --halves TRAIN,TEST",
           where_, paths_[halves[0].front().file].substr(0, folder_end(halves[0].front())),
           layout_.left_out.front());
    if (std::ranges::all_of(halves[0], [](const Place& place) { return place.parts.size() < 2; }))
      fail(ExitCode::usage,
           "{}: {} lies in a half, but in no folder of a class; if all folders are classes, say "
           "--halves none",
           where_, paths_[halves[0].front().file]);
    for (std::vector<Place>& half : halves)
      take_strays(half, [](const Place& place) { return place.parts.size() < 2; });
    name_classes(halves[0]);
    if (!test && !validation) return choose(halves[0]);
    if (options_.test_fraction > 0)
      fail(ExitCode::usage, "{}: it has a folder {} already; leave --test-fraction away", where_,
           options_.halves ? options_.halves->test.c_str() : (test ? "test" : "val"));
    for (const Half half : both_halves) {
      for (const Place& place : halves[index_of(half)]) put(half, place);
    }
  }

  /// Where the path of a picture goes on behind the folder of its half.
  [[nodiscard]] std::size_t folder_end(const Place& place) const {
    return paths_[place.file].size() - path_of(place).size() - 1;
  }

  static std::string_view class_of(const Place& place) { return place.parts.front(); }

  void name_classes(const std::vector<Place>& places) {
    layout_.class_names = options_.classes;
    if (layout_.class_names.empty()) {
      std::set<std::string> found;
      for (const Place& place : places) found.emplace(class_of(place));
      layout_.class_names.assign(found.begin(), found.end());
      const auto is_deep = [](const Place& place) { return place.parts.size() > 2; };
      if (found.size() == 1 && std::ranges::any_of(places, is_deep))
        fail(
            ExitCode::bad_data,
            "{}: all pictures would be of one class, {}, but lie in folders inside of it; give the "
            "folder that holds those of the classes",
            where_, *found.begin());
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
    const std::string_view name = class_of(place);  // a part of the path
    class_folders_.emplace(paths_[place.file].data(), name.data() + name.size());
  }

  /// Folders beside those of classes that hold no picture, though some would be classes if their
  /// files were of a kind that is known.
  void find_empty(const std::vector<std::string>& folders) {
    std::set<std::string> around;
    for (const std::string& folder : class_folders_)
      around.insert(folder.substr(0, folder.rfind('/') + 1));  // nothing, if there is no folder
    std::set<std::string> found;
    const auto look_at = [&](const std::string& path) {
      if (is_service_path(path)) return;
      for (const std::string& outer : around) {
        const std::size_t end = path.find('/', outer.size());
        if (path.starts_with(outer) && end != std::string::npos) found.insert(path.substr(0, end));
      }
    };
    for (const std::string& other : layout_.others) look_at(other);
    const std::vector<std::string> files = layout_.service;  // sorted
    for (const std::string& folder : folders) {
      const std::string below = folder + "/";
      look_at(below);
      const auto first = std::ranges::lower_bound(files, below);
      const bool has_files = first != files.end() && first->starts_with(below);
      if (is_service_path(folder) && !has_files) layout_.service.push_back(below);
    }
    std::ranges::sort(layout_.service);
    std::ranges::set_difference(found, class_folders_, std::back_inserter(layout_.empty));
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
  std::set<std::string> class_folders_;  // paths of those that pictures were taken from
};

}  // namespace

bool is_service_path(std::string_view path) {
  return std::ranges::any_of(parts_of(path), is_service_name);
}

bool is_picture_name(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  const std::size_t dot = name.rfind('.');
  if (dot == 0 || dot == std::string_view::npos) return false;
  const std::string ending = lower(name.substr(dot + 1));
  constexpr std::array known = {"jpg", "jpeg", "jpe", "jfif", "png",  "bmp",
                                "gif", "pgm",  "ppm", "tif",  "tiff", "webp"};
  return std::ranges::find(known, ending) != known.end();
}

bool is_picture_head(std::span<const std::byte> head) {
  using namespace std::string_view_literals;
  // JPEG, PNG, GIF, TIFF of either byte order, WebP, HEIF.
  for (const std::string_view begin :
       {"\xff\xd8\xff"sv, "\x89PNG\r\n\x1a\n"sv, "GIF87a"sv, "GIF89a"sv, "II*\0"sv, "MM\0*"sv}) {
    if (begins_with(head, begin)) return true;
  }
  if (begins_with(head, "RIFF") && head.size() >= 12) return begins_with(head.subspan(8), "WEBP");
  return head.size() >= 12 && begins_with(head.subspan(4), "ftyphei");
}

PictureLayout picture_layout(const std::string& where, const std::vector<std::string>& paths,
                             const LayoutOptions& options, const std::vector<bool>& unnamed,
                             const std::vector<std::string>& folders) {
  PictureLayout layout = Reader(where, paths, options).read(unnamed, folders);
  for (const Half half : both_halves) {
    if (layout.half(half).empty())
      fail(ExitCode::usage, "{}: no picture is left for {}; take another --test-fraction", where,
           half == Half::train ? "training" : "tests");
  }
  return layout;
}

}  // namespace carousel
