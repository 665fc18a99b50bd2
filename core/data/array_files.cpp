// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/data/array_files.hpp"

#include <glob.h>

#include <memory>

#include "core/base/check.hpp"
#include "core/base/text.hpp"

namespace carousel {
namespace {

std::string absolute_name(const std::string& array) {
  return array.starts_with('/') ? array : "/" + array;
}

DataArray open_array(const hdf5::File& file, const std::string& key, const std::string& name,
                     const std::string& axes) {
  const std::string array = absolute_name(name);
  if (!file.contains(array))
    fail(ExitCode::bad_data, "{}: {} is missing, which {} names", file.path(), array, key);
  if (file.is_group(array))
    fail(ExitCode::bad_data, "{}: {} is a group, and {} names arrays", file.path(), array, key);
  const hdf5::Shape shape = file.info(array).shape;
  const std::string table = key.substr(0, key.rfind('.'));
  return {file, array, read_axes(table + ".axes", axes, file.path() + ": " + array, shape)};
}

std::vector<DataArray> open_arrays(const hdf5::File& file, const std::string& table,
                                   const ArrayConfig& config) {
  std::vector<DataArray> arrays;
  for (const std::string& name : config.from)
    arrays.push_back(open_array(file, table + ".from", name, config.axes));
  return arrays;
}

/// Refuses arrays of another extent than the first one along an axis.
void check_extent(const std::string& path, const DataArray& first, const DataArray& other,
                  ArrayAxis axis, const char* what) {
  if (first.extent(axis) == other.extent(axis) && first.has(axis) == other.has(axis)) return;
  fail(ExitCode::bad_data, "{}: {} has {} {}, and {} has {}", path, other.name(),
       other.extent(axis), what, first.name(), first.extent(axis));
}

void check_space(const std::string& path, const DataArray& first, const DataArray& other) {
  check_extent(path, first, other, ArrayAxis::z, "slices");
  check_extent(path, first, other, ArrayAxis::y, "rows");
  check_extent(path, first, other, ArrayAxis::x, "columns");
}

/// The shape of a frame of all arrays, whose channels lie behind each other.
SampleShape joined_shape(const std::string& path, const std::vector<DataArray>& arrays) {
  SampleShape shape = arrays.front().shape();
  for (std::size_t k = 1; k < arrays.size(); ++k) {
    const DataArray& array = arrays[k];
    check_extent(path, arrays.front(), array, ArrayAxis::n, "samples");
    check_extent(path, arrays.front(), array, ArrayAxis::t, "times");
    check_space(path, arrays.front(), array);
    shape.channels += array.shape().channels;
  }
  return shape;
}

std::int64_t windows_of(const ArrayFile& file, const DataConfig& config) {
  const DataArray& input = file.inputs.front();
  const int history = config.input.history;
  const int ahead = config.target.ahead;
  const bool in_time = input.has(ArrayAxis::t);
  const bool target_in_time = !file.targets.empty() && file.targets.front().has(ArrayAxis::t);
  const bool both = in_time && target_in_time;
  if (target_in_time && !in_time)
    fail(ExitCode::usage, "data.target.axes has t, and the axes of inputs have not");
  if (!in_time && history > 1)
    fail(ExitCode::usage, "data.input.history = {} needs inputs with an axis t", history);
  if (!both && ahead >= 0 && !file.targets.empty())
    fail(ExitCode::usage, "data.target.ahead = {} needs inputs and targets with an axis t", ahead);
  if (both && ahead < 0)
    fail(ExitCode::usage,
         "data.target.ahead is missing: inputs and targets have an axis t, and nothing says which "
         "of the times is to be learned; 1 is the next one");
  if (both) check_extent(file.path, input, file.targets.front(), ArrayAxis::t, "times");
  const std::int64_t windows = input.extent(ArrayAxis::t) - (history - 1) - (both ? ahead : 0);
  if (in_time && windows < 1)
    fail(ExitCode::bad_data, "{}: {} has {} times, too few for data.input.history = {}{}",
         file.path, input.name(), input.extent(ArrayAxis::t), history,
         both ? fmt::format(" and data.target.ahead = {}", ahead) : "");
  return in_time ? windows : 1;
}

void check_labels(const ArrayFile& file, const TargetConfig& config) {
  if (file.targets.size() > 1 || file.target.channels != 1)
    fail(ExitCode::usage, "data.target.from: labels are one array without an axis c");
  const DataArray& labels = file.targets.front();
  if (!labels.layout().is_integer())
    fail(ExitCode::bad_data, "{}: {} holds floating-point numbers, and labels are integers",
         file.path, labels.name());
  if (config.ignore >= 0 && config.ignore < config.classes)
    fail(ExitCode::usage, "data.target.ignore = {} is one of data.target.classes = {}",
         config.ignore, config.classes);
}

DataArray open_mask(const hdf5::File& file, const ArrayFile& opened, const TargetConfig& config) {
  const DataArray& target = opened.targets.front();
  std::string axes;  // those of the targets, without c
  for (const char letter : config.arrays.axes)
    if (letter != 'c') axes += letter;
  if (config.arrays.axes.empty()) axes = "n";
  DataArray mask = open_array(file, "data.target.mask", config.mask, axes);
  check_extent(opened.path, target, mask, ArrayAxis::n, "samples");
  check_extent(opened.path, target, mask, ArrayAxis::t, "times");
  check_space(opened.path, target, mask);
  return mask;
}

}  // namespace

ArrayRoom room_for(const ArrayFile& file, bool targets) {
  std::vector<const DataArray*> arrays;
  for (const DataArray& array : targets ? file.targets : file.inputs) arrays.push_back(&array);
  if (targets && file.mask) arrays.push_back(&*file.mask);
  return ArrayRoom::of(arrays);
}

ArrayFile open_array_file(const std::string& path, const DataConfig& config) {
  const hdf5::File file = hdf5::File::open_with_reason(path);
  ArrayFile opened{.path = file.path(),
                   .inputs = open_arrays(file, "data.input", config.input.arrays),
                   .targets = {}};
  opened.input = joined_shape(path, opened.inputs);
  opened.samples = opened.inputs.front().extent(ArrayAxis::n);
  if (!config.without_targets) {
    opened.targets = open_arrays(file, "data.target", config.target.arrays);
    opened.target = joined_shape(path, opened.targets);
    check_extent(path, opened.inputs.front(), opened.targets.front(), ArrayAxis::n, "samples");
  }
  opened.windows = windows_of(opened, config);
  if (config.without_targets) return opened;
  if (config.target.classes > 0) check_labels(opened, config.target);
  if (!config.target.mask.empty()) opened.mask = open_mask(file, opened, config.target);
  return opened;
}

std::vector<std::string> expand_paths(const std::string& key,
                                      const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    glob_t found = {};
    const int result = glob(path.c_str(), 0, nullptr, &found);
    const std::unique_ptr<glob_t, void (*)(glob_t*)> release(&found, globfree);
    if (result == GLOB_NOMATCH)
      fail(ExitCode::input_output, "{} = {}: no such file", key, in_quotes(path));
    if (result != 0)
      fail(ExitCode::input_output, "{} = {}: its folder cannot be read", key, in_quotes(path));
    for (std::size_t k = 0; k < found.gl_pathc; ++k) files.emplace_back(found.gl_pathv[k]);
  }
  return files;
}

}  // namespace carousel
