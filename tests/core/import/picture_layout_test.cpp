// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// What paths of pictures are taken for.

#include "core/import/picture_layout.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/core/support.hpp"

namespace carousel {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// "cat/a.png 0" for every picture of a half.
std::vector<std::string> half(const PictureLayout& layout, Half which,
                              const std::vector<std::string>& paths) {
  std::vector<std::string> texts;
  for (const auto& [file, label] : layout.half(which))
    texts.push_back(fmt::format("{} {}", paths[file], label));
  return texts;
}

std::string refusal(ExitCode code, const std::vector<std::string>& paths,
                    const LayoutOptions& options = {}) {
  return testing::failure(code, [&] { (void)picture_layout("set.tar", paths, options); });
}

TEST(PictureLayout, TakesHalvesAndClassesFromFolders) {
  const std::vector<std::string> paths = {"set/README.txt",        "set/test/dog/z.JPEG",
                                          "set/train/cat/a.png",   "set/train/cat/b/c.jpg",
                                          "set/train/dog/.hidden", "set/train/dog/a.jpg",
                                          "set/val/cat/v.png"};
  const PictureLayout layout = picture_layout("set", paths, {});
  EXPECT_THAT(layout.class_names, ElementsAre("cat", "dog"));
  EXPECT_THAT(
      half(layout, Half::train, paths),
      ElementsAre("set/train/cat/a.png 0", "set/train/cat/b/c.jpg 0", "set/train/dog/a.jpg 1"));
  EXPECT_THAT(half(layout, Half::test, paths), ElementsAre("set/test/dog/z.JPEG 1"));
  EXPECT_THAT(layout.left_out, ElementsAre("set/val/cat/v.png"));
  EXPECT_THAT(layout.others, ElementsAre("set/README.txt"));
  EXPECT_THAT(layout.service, ElementsAre("set/train/dog/.hidden"));
}

TEST(PictureLayout, TestsOnWhatIsForValidationWhereNothingElseIs) {
  const std::vector<std::string> paths = {"train/cat/a.png", "val/cat/b.png"};
  const PictureLayout layout = picture_layout("set", paths, {});
  EXPECT_THAT(half(layout, Half::test, paths), ElementsAre("val/cat/b.png 0"));
}

TEST(PictureLayout, ChoosesTestsBySeedAndPath) {
  std::vector<std::string> paths;
  for (int k = 0; k < 100; ++k) paths.push_back(fmt::format("{}/{:02}.png", k / 50, k));
  const LayoutOptions options = {.test_fraction = 0.2, .seed = 7};
  const PictureLayout layout = picture_layout("set", paths, options);
  EXPECT_EQ(layout.half(Half::test).size(), 20);
  EXPECT_EQ(layout.half(Half::train).size(), 80);
  EXPECT_EQ(half(layout, Half::test, paths),
            half(picture_layout("set", paths, options), Half::test, paths));
  EXPECT_NE(
      half(layout, Half::test, paths),
      half(picture_layout("set", paths, {.test_fraction = 0.2, .seed = 8}), Half::test, paths));
  // All but one stay where they were when a picture is added.
  std::vector<std::string> more = paths;
  more.emplace_back("1/new.png");
  const auto before = half(layout, Half::test, paths);
  int moved = 0;
  for (const std::string& text : half(picture_layout("set", more, options), Half::test, more))
    moved += std::ranges::find(before, text) == before.end() ? 1 : 0;
  EXPECT_LE(moved, 1);
}

TEST(PictureLayout, ChoosesTheSameTestsInWhateverFolder) {
  std::vector<std::string> paths;
  for (int k = 0; k < 100; ++k) paths.push_back(fmt::format("{}/{:02}.png", k / 50, k));
  const auto tests_below = [&](const std::string& folder) {
    std::vector<std::string> below;
    for (const std::string& path : paths) below.push_back(folder + path);
    const PictureLayout layout = picture_layout("set", below, {.test_fraction = 0.2, .seed = 7});
    return half(layout, Half::test, paths);
  };
  const auto tests = tests_below("");
  EXPECT_EQ(tests.size(), 20);
  for (const std::string folder : {"set/", "a/set/", "train/", "set/train/"})
    EXPECT_EQ(tests_below(folder), tests) << folder;
}

TEST(PictureLayout, KnowsHalvesInCapitals) {
  const std::vector<std::string> paths = {"TEST/cat/b.png", "Train/cat/a.png", "Val/cat/c.png"};
  const PictureLayout layout = picture_layout("set", paths, {});
  EXPECT_THAT(half(layout, Half::train, paths), ElementsAre("Train/cat/a.png 0"));
  EXPECT_THAT(half(layout, Half::test, paths), ElementsAre("TEST/cat/b.png 0"));
  EXPECT_THAT(layout.left_out, ElementsAre("Val/cat/c.png"));
  EXPECT_THAT(refusal(ExitCode::bad_data, {"Test/a/1.png", "VALID/a/1.png"}),
              HasSubstr("no folder train"));
}

TEST(PictureLayout, TakesClassesInTheOrderOfAList) {
  const std::vector<std::string> paths = {"train/a/1.png", "train/b/1.png", "val/a/1.png"};
  const PictureLayout layout = picture_layout("set", paths, {.classes = {"b", "c", "a"}});
  EXPECT_THAT(layout.class_names, ElementsAre("b", "c", "a"));
  EXPECT_THAT(half(layout, Half::train, paths), ElementsAre("train/a/1.png 2", "train/b/1.png 0"));
  EXPECT_THAT(refusal(ExitCode::bad_data, paths, {.classes = {"a"}}),
              HasSubstr("set.tar: train/b/1.png is of a class that the list of classes does not"));
}

TEST(PictureLayout, LetsNoStrayPictureNameAClass) {
  const std::vector<std::string> paths = {"flowers/daisy/1.png", "flowers/daisy/2.png",
                                          "flowers/overview.png", "flowers/rose/1.png",
                                          "flowers/rose/2.png"};
  EXPECT_THAT(refusal(ExitCode::bad_data, paths, {.test_fraction = 0.5}),
              HasSubstr("flowers/overview.png lies in no folder of a class"));
  const PictureLayout layout =
      picture_layout("set", paths, {.test_fraction = 0.5, .skip_strays = true});
  EXPECT_THAT(layout.class_names, ElementsAre("daisy", "rose"));
  EXPECT_THAT(layout.strays, ElementsAre("flowers/overview.png"));
  // Beside halves, and beside the classes of one.
  for (const std::string stray : {"set/logo.png", "set/train/logo.png", "set/test/logo.png"}) {
    const std::vector<std::string> all = {stray, "set/test/a/1.png", "set/train/a/1.png"};
    EXPECT_THAT(refusal(ExitCode::bad_data, all), HasSubstr(stray));
    const PictureLayout rest = picture_layout("set", all, {.skip_strays = true});
    EXPECT_THAT(rest.class_names, ElementsAre("a"));
    EXPECT_THAT(half(rest, Half::train, all), ElementsAre("set/train/a/1.png 0"));
  }
  // A folder between that of a half and those of classes.
  EXPECT_THAT(refusal(ExitCode::bad_data, {"test/set/a/1.png", "train/set/a/1.png"}),
              HasSubstr("all pictures would be of one class, set"));
}

TEST(PictureLayout, PassesOverWhatSystemsLeave) {
  const std::vector<std::string> paths = {
      ".ipynb_checkpoints/a.png", "@eaDir/a.png",         "__MACOSX/set/cat/._a.png",
      "lost+found/a.png",         "set/.DS_Store",        "set/cat/a.png",
      "set/cat/._a.png",          "set/dog/@eaDir/b.png", "set/dog/b.png"};
  const PictureLayout layout = picture_layout("set", paths, {.test_fraction = 0.5});
  EXPECT_THAT(layout.class_names, ElementsAre("cat", "dog"));
  EXPECT_EQ(layout.half(Half::train).size() + layout.half(Half::test).size(), 2);
  EXPECT_EQ(layout.service.size(), 7);
}

TEST(PictureLayout, TakesPicturesByWhatTheyAre) {
  for (const char* name : {"a/b.jfif", "b.JPE", "b.JPG", "a/b.webp"})
    EXPECT_TRUE(is_picture_name(name)) << name;
  for (const char* name : {"a/b.txt", "jpg", "a.jpg/b", ".jpg", "b.jpg_large"})
    EXPECT_FALSE(is_picture_name(name)) << name;
  const auto head = [](std::string_view bytes) {
    return is_picture_head(std::as_bytes(std::span(bytes)));
  };
  EXPECT_TRUE(head("\xff\xd8\xff\xe0 a JPEG"));
  EXPECT_TRUE(head("\x89PNG\r\n\x1a\n a PNG"));
  EXPECT_TRUE(head("RIFF1234WEBPVP8 "));
  EXPECT_FALSE(head("RIFF1234WAVEfmt "));
  EXPECT_FALSE(head("# a text"));
  EXPECT_FALSE(head(""));
  const std::vector<std::string> paths = {"cat/1", "cat/2.jpg_large", "cat/notes", "dog/1.jpg"};
  const PictureLayout layout =
      picture_layout("set", paths, {.test_fraction = 0.5}, {true, true, false, false});
  EXPECT_EQ(layout.half(Half::train).size() + layout.half(Half::test).size(), 3);
  EXPECT_THAT(layout.others, ElementsAre("cat/notes"));
}

TEST(PictureLayout, ClassesMayBeCalledAsHalvesAre) {
  const std::vector<std::string> vehicles = {"bus/1.png", "car/1.png", "train/1.png"};
  EXPECT_THAT(refusal(ExitCode::usage, {"bus/a/1.png", "train/a/1.png"}, {.test_fraction = 0.5}),
              HasSubstr("--halves none"));
  PictureLayout layout =
      picture_layout("set", vehicles, {.test_fraction = 0.4, .only_classes = true});
  EXPECT_THAT(layout.class_names, ElementsAre("bus", "car", "train"));
  EXPECT_THAT(refusal(ExitCode::bad_data, {"control/1.png", "test/1.png"}, {.test_fraction = 0.5}),
              HasSubstr("--halves none"));
  const std::vector<std::string> halves = {"fit/test/1.png", "fit/train/1.png", "held/train/1.png"};
  layout = picture_layout("set", halves, {.halves = HalfNames{"fit", "held"}});
  EXPECT_THAT(layout.class_names, ElementsAre("test", "train"));
  EXPECT_THAT(half(layout, Half::test, halves), ElementsAre("held/train/1.png 1"));
  EXPECT_THAT(refusal(ExitCode::usage, halves, {.halves = HalfNames{"fit", "hold"}}),
              HasSubstr("there is no folder hold in it"));
}

TEST(PictureLayout, SaysWhatIsWrong) {
  EXPECT_THAT(refusal(ExitCode::bad_data, {"a.txt", "b"}), HasSubstr("no pictures in it"));
  EXPECT_THAT(refusal(ExitCode::bad_data, {}), HasSubstr("no pictures in it"));
  EXPECT_THAT(refusal(ExitCode::usage, {"a/1.png", "b/1.png"}), HasSubstr("--test-fraction 0.1"));
  EXPECT_THAT(refusal(ExitCode::usage, {"train/a/1.png"}), HasSubstr("--test-fraction"));
  EXPECT_THAT(refusal(ExitCode::usage, {"test/a/1.png", "train/a/1.png"}, {.test_fraction = 0.5}),
              HasSubstr("leave --test-fraction away"));
  EXPECT_THAT(refusal(ExitCode::usage, {"a/1.png", "a/2.png"}, {.test_fraction = 0.1}),
              HasSubstr("no picture is left for tests"));
  EXPECT_THAT(refusal(ExitCode::usage, {"a/1.png", "a/2.png"}, {.test_fraction = 1}),
              HasSubstr("no picture is left for training"));
  EXPECT_THAT(refusal(ExitCode::bad_data, {"test/a/1.png", "val/a/1.png"}),
              HasSubstr("no folder train"));
  EXPECT_THAT(refusal(ExitCode::usage, {"test/a/1.png", "train/1.png"}),
              HasSubstr("train/1.png lies in a half, but in no folder of a class"));
  EXPECT_THAT(refusal(ExitCode::bad_data, {"test/b/1.png", "train/a/1.png"}),
              HasSubstr("test/b/1.png is of a class that train does not have"));
}

}  // namespace
}  // namespace carousel
