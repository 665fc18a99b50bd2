// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/import/imagenet.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <unordered_map>

#include "core/base/check.hpp"
#include "core/base/text.hpp"

namespace carousel {
namespace {

namespace fs = std::filesystem;

/// "n01440764"
bool is_wordnet_id(std::string_view word) {
  return word.size() == 9 && word.front() == 'n' &&
         std::ranges::all_of(word.substr(1), [](char c) { return c >= '0' && c <= '9'; });
}

std::string name_of(const std::string& path) {
  return fs::path(path).filename().string();
}
std::string stem_of(const std::string& path) {
  return fs::path(path).stem().string();
}
std::string folder_of(const std::string& path) {
  return name_of(fs::path(path).parent_path().string());
}

/// A half, in whichever of the two forms is there.
std::unique_ptr<FileSource> open_half(const std::string& folder, const char* archive,
                                      const char* unpacked) {
  std::error_code unknown;  // open() says why it cannot be read
  for (const char* name : {archive, unpacked}) {
    const fs::path path = fs::path(folder) / name;
    if (fs::exists(path, unknown)) return FileSource::open(path.string());
  }
  fail(ExitCode::bad_data, "{}: has neither {} nor {}/", folder, archive, unpacked);
}

/// The numbers of pictures in the order of their names, whatever folders they lie in.
std::vector<std::size_t> order_of_names(const std::string& where,
                                        const std::vector<std::string>& paths) {
  std::vector<std::pair<std::string, std::size_t>> names;
  for (std::size_t k = 0; k < paths.size(); ++k) names.emplace_back(name_of(paths[k]), k);
  std::ranges::sort(names);
  std::vector<std::size_t> order;
  for (const auto& [name, number] : names) {
    if (!order.empty() && name == name_of(paths[order.back()]))
      fail(ExitCode::bad_data, "{}: {} and {} have the same name", where, paths[order.back()],
           paths[number]);
    order.push_back(number);
  }
  return order;
}

/// The class of each validation picture; `where` they are is for errors.
std::vector<std::string> read_labels(const std::string& list, const std::string& where,
                                     const std::vector<std::string>& paths) {
  std::ifstream file(list);
  if (!file) fail(ExitCode::input_output, "{}: cannot be read", list);
  std::vector<std::string> in_order;
  std::unordered_map<std::string, std::string> by_name;
  std::size_t number = 0;
  for (std::string line; std::getline(file, line);) {
    if (++number == 1 && line.starts_with(utf8_mark)) line.erase(0, utf8_mark.size());
    std::ranges::replace_if(
        line, [](char c) { return c == ',' || c == '\t' || c == '\r'; }, ' ');
    std::istringstream words(line);
    std::string first;
    std::string second;
    words >> first >> second;
    if (first.empty() || first == "ImageId") continue;  // as the head of a table
    if (is_wordnet_id(first) && !second.empty())
      fail(ExitCode::bad_data,
           "{}: line {} has more behind the class {}; give a class alone, in the order of the "
           "pictures' names, or first the name of a picture and then its class",
           list, number, first);
    const bool has_name = is_wordnet_id(second);
    if (has_name ? !in_order.empty() : is_wordnet_id(first) && !by_name.empty())
      fail(ExitCode::bad_data, "{}: line {} has {}, unlike those before it", list, number,
           has_name ? "the name of a picture" : "no name of a picture");
    if (is_wordnet_id(first)) {
      in_order.push_back(first);
    } else if (has_name) {
      const auto [known, is_new] = by_name.try_emplace(stem_of(first), second);
      if (!is_new && known->second != second)
        fail(ExitCode::bad_data, "{}: line {} has {} again, with another class", list, number,
             first);
    } else {
      fail(ExitCode::bad_data,
           "{}: line {} has no WordNet id such as n01440764; numbers mean different classes in "
           "different lists",
           list, number);
    }
  }
  if (by_name.empty()) {
    if (in_order.size() != paths.size())
      fail(ExitCode::bad_data, "{}: {} classes for {} validation pictures", list, in_order.size(),
           paths.size());
  }
  std::vector<std::string> classes(paths.size());
  std::size_t next = 0;
  for (const std::size_t k : order_of_names(where, paths)) {
    if (by_name.empty()) {
      classes[k] = in_order[next++];
    } else {
      const auto label = by_name.find(stem_of(paths[k]));
      if (label == by_name.end()) fail(ExitCode::bad_data, "{}: no class for {}", list, paths[k]);
      classes[k] = label->second;
    }
    const std::string folder = folder_of(paths[k]);
    if (is_wordnet_id(folder) && folder != classes[k])
      fail(ExitCode::bad_data, "{}: {} is of class {}, not of that of its folder", list, paths[k],
           classes[k]);
  }
  return classes;
}

class ImageNet final : public FileSource {
 public:
  ImageNet(const std::string& folder, const std::string& labels)
      : FileSource(folder),
        train_(open_half(folder, "ILSVRC2012_img_train.tar", "train")),
        validation_(open_half(folder, "ILSVRC2012_img_val.tar", "val")) {
    list_training();
    list_validation(labels);
    std::vector<ListedFile> found;
    for (const auto& [path, place] : places_) found.push_back({path, place.bytes, place.fault});
    keep(std::move(found));
    for (std::size_t k = 0; k < files_.size(); ++k) places_.at(files_[k]).number = k;
  }

  void read(const std::vector<bool>& wanted, const Take& take) const override {
    std::size_t left = 0;
    std::vector<bool> in_train(train_->files().size());
    std::vector<bool> in_validation(validation_->files().size());
    for (const auto& [path, place] : places_) {
      if (!wanted[place.number]) continue;
      (place.train ? in_train : in_validation)[place.file] = true;
      ++left;
    }
    const auto number_of = [&](const std::string& path) {
      const auto place = places_.find(path);
      return place == places_.end() ? wanted.size() : place->second.number;
    };
    const auto give = [&](const std::string& path, auto&& bytes) {
      const std::size_t number = number_of(path);
      if (number == wanted.size() || !wanted[number]) return;
      take(number, bytes());
      --left;
    };
    train_->read(in_train, [&](std::size_t file, std::vector<std::byte> bytes) {
      const std::string& path = train_->files()[file];
      if (!is_archive(path)) {
        give(place_of(path), [&] { return std::move(bytes); });
        return;
      }
      visit_tar(train_->path() + ": " + path, bytes,
                [&](const ListedFile& inner, const auto& read) {
                  give(place_in(path, inner.path), read);
                });
    });
    validation_->read(in_validation, [&](std::size_t file, std::vector<std::byte> bytes) {
      give(validation_paths_[file], [&] { return std::move(bytes); });
    });
    if (left != 0) fail(ExitCode::bad_data, "{}: it changed while it was read", path_);
  }

 private:
  struct Place {
    bool train = true;       // otherwise in the validation set
    std::size_t file = 0;    // of that half
    std::int64_t bytes = 0;  // of the picture
    std::string fault = {};  // likewise
    std::size_t number = 0;  // among all pictures
  };

  static bool is_archive(const std::string& path) {
    return path.ends_with(".tar") && is_wordnet_id(stem_of(path));
  }
  static std::string place_in(const std::string& archive, const std::string& picture) {
    return "train/" + stem_of(archive) + "/" + name_of(picture);
  }
  static std::string place_of(const std::string& picture) {
    return "train/" + folder_of(picture) + "/" + name_of(picture);
  }

  void list_training() {
    const std::vector<std::string>& files = train_->files();
    std::vector<bool> archives(files.size());
    for (std::size_t k = 0; k < files.size(); ++k) {
      archives[k] = is_archive(files[k]);
      if (archives[k] && !train_->fault(k).empty())
        fail(ExitCode::bad_data, "{}: {}: {}", train_->path(), files[k], train_->fault(k));
      if (is_wordnet_id(folder_of(files[k])))
        places_[place_of(files[k])] = {true, k, train_->bytes()[k], train_->fault(k)};
    }
    train_->read(archives, [&](std::size_t file, const std::vector<std::byte>& bytes) {
      visit_tar(
          train_->path() + ": " + files[file], bytes, [&](const ListedFile& inner, const auto&) {
            places_[place_in(files[file], inner.path)] = {true, file, inner.bytes, inner.fault};
          });
    });
    if (places_.empty())
      fail(ExitCode::bad_data, "{}: holds no class such as n01440764.tar or n01440764/",
           train_->path());
  }

  void list_validation(const std::string& labels) {
    const std::vector<std::string>& files = validation_->files();
    const std::vector<std::string> classes = read_labels(labels, validation_->path(), files);
    for (std::size_t k = 0; k < files.size(); ++k) {
      validation_paths_.push_back("val/" + classes[k] + "/" + name_of(files[k]));
      places_[validation_paths_.back()] = {false, k, validation_->bytes()[k],
                                           validation_->fault(k)};
    }
  }

  std::unique_ptr<FileSource> train_;
  std::unique_ptr<FileSource> validation_;
  std::unordered_map<std::string, Place> places_;
  std::vector<std::string> validation_paths_;  // of each of its files
};

}  // namespace

std::unique_ptr<FileSource> open_imagenet(const std::string& folder, const std::string& labels) {
  return std::make_unique<ImageNet>(folder, labels);
}

}  // namespace carousel
