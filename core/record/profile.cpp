// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/record/profile.hpp"

#include <type_traits>

#include "core/base/check.hpp"
#include "core/base/descriptor.hpp"
#include "core/base/hdf5.hpp"
#include "core/record/run_folder.hpp"

namespace carousel {
namespace {

/// Reads the columns of one group into records; the first column says how many there are.
template <class Record>
class Table {
 public:
  Table(const hdf5::File& file, std::string group, std::vector<Record>& records,
        std::set<std::string>& words)
      : file_(file), group_(std::move(group)), records_(records), words_(words) {}

  template <class T>
  Table& column(const char* name, T Record::*member) {
    const std::string dataset = group_ + "/" + name;
    if constexpr (std::is_same_v<T, const char*>) {
      assign(dataset, file_.read_strings(dataset), [&](Record& record, const std::string& value) {
        record.*member = words_.insert(value).first->c_str();
      });
    } else {
      assign(dataset, file_.read<T>(dataset),
             [&](Record& record, const T& value) { record.*member = value; });
    }
    return *this;
  }

 private:
  template <class Values, class Set>
  void assign(const std::string& dataset, const Values& values, Set&& set) {
    if (records_.empty()) records_.resize(values.size());
    if (values.size() != records_.size())
      fail(ExitCode::bad_data, "{}: {} has {} rows, the columns beside it have {}", file_.path(),
           dataset, values.size(), records_.size());
    for (std::size_t k = 0; k < values.size(); ++k) set(records_[k], values[k]);
  }

  const hdf5::File& file_;
  std::string group_;
  std::vector<Record>& records_;
  std::set<std::string>& words_;
};

}  // namespace

DeviceProfile read_profile(const std::filesystem::path& folder, int device) {
  const std::string path = (folder / rank_file_name(device)).string();
  const Descriptor readable = Descriptor::open(path);  // its reason is clearer than HDF5's
  const hdf5::File file = hdf5::File::open(path);
  DeviceProfile profile;
  Table(file, "/actions", profile.actions, profile.words)
      .column("kind", &ActionRecord::kind)
      .column("step", &ActionRecord::step)
      .column("micro_batch", &ActionRecord::micro_batch)
      .column("stage", &ActionRecord::stage)
      .column("version", &ActionRecord::version)
      .column("begin", &ActionRecord::begin)
      .column("end", &ActionRecord::end);
  Table(file, "/messages", profile.messages, profile.words)
      .column("kind", &MessageRecord::kind)
      .column("direction", &MessageRecord::direction)
      .column("step", &MessageRecord::step)
      .column("stage", &MessageRecord::stage)
      .column("micro_batch", &MessageRecord::micro_batch)
      .column("peer", &MessageRecord::peer)
      .column("bytes", &MessageRecord::bytes)
      .column("posted", &MessageRecord::posted)
      .column("completed", &MessageRecord::completed)
      .column("waited", &MessageRecord::waited);
  return profile;
}

}  // namespace carousel
