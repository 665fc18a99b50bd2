// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// HDF5 files: what is written comes back, what goes wrong is told with file and object.

#include "core/base/hdf5.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>

#include <array>
#include <utility>

#include "core/base/descriptor.hpp"
#include "tests/core/support.hpp"

namespace carousel {
namespace {

using ::testing::ElementsAre;
using testing::failure;
using ::testing::HasSubstr;
using testing::TemporaryFolder;

TEST(Hdf5, KeepsDatasetsAndAttributes) {
  const TemporaryFolder folder;
  {
    hdf5::File file = hdf5::File::create(folder / "a.h5");
    const std::vector<float> weights{1, 2, 3, 4, 5, 6};
    file.write<float>("/deep/down/weights", weights, {2, 3}, hdf5::Layout::checked);
    file.write("/counts", std::vector<std::int64_t>{7, 8});
    file.write_strings("/names", {"one", "three"});
    file.set("/", "seed", std::uint64_t{0xffffffffffffffff});
    file.set("/deep", "text", "first");
    file.set("/deep", "text", "second, longer");
    file.set("/deep", "empty", "");
    file.set("/deep", "rate", 0.5);
    file.close();
  }
  const hdf5::File file = hdf5::File::open(folder / "a.h5");
  EXPECT_THAT(file.read<float>("/deep/down/weights"), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(file.info("/deep/down/weights").shape, ElementsAre(2, 3));
  EXPECT_FALSE(file.info("/deep/down/weights").contiguous);
  EXPECT_TRUE(file.info("/counts").contiguous);
  EXPECT_GT(file.info("/counts").offset, 0);
  EXPECT_THAT(file.read_strings("/names"), ElementsAre("one", "three"));
  EXPECT_EQ(file.unsigned_integer("/", "seed"), 0xffffffffffffffff);
  EXPECT_EQ(file.string("/deep", "text"), "second, longer");
  EXPECT_EQ(file.string("/deep", "empty"), "");
  EXPECT_THAT(file.reals("/deep", "rate"), ElementsAre(0.5));
  EXPECT_THAT(file.children("/"), ElementsAre("counts", "deep", "names"));
  EXPECT_FALSE(file.contains("/deep/nothing/here"));
  EXPECT_THAT(failure(ExitCode::bad_data, [&] { (void)file.read<int>("/deep/down/weights"); }),
              HasSubstr("/deep/down/weights holds float32, not integers"));
}

TEST(Hdf5, LeavesOutWhenItWrote) {
  const TemporaryFolder folder;
  const std::string path = folder / "a.h5";
  {
    hdf5::File made = hdf5::File::create(path);
    made.write("/deep/counts", std::vector<int>{7, 8});
    made.append<int>("/column", std::vector<int>{1});
    (void)made.reserve<float>("/weights", {3});
    made.close();
  }
  const hdf5::Handle file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose);
  for (const char* object : {"/", "/deep", "/deep/counts", "/column", "/weights"}) {
    H5O_info_t info = {};
    ASSERT_GE(H5Oget_info_by_name(file.get(), object, &info, H5P_DEFAULT), 0);
    EXPECT_EQ(info.mtime, 0) << object << ": files of equal content would differ";
  }
}

TEST(Hdf5, AppendsRows) {
  const TemporaryFolder folder;
  hdf5::File made = hdf5::File::create(folder / "a.h5");
  for (int part = 0; part < 3; ++part) {
    made.append<int>("/column", std::vector<int>{part, part + 10});
    made.append<double>("/rows", std::vector<double>(4, part), {2, 2});
    made.append_strings("/kinds", std::vector<const char*>{"forward", "a text of more than 16"});
    made.append<int>("/empty", {});
  }
  made.close();
  const hdf5::File file = hdf5::File::open(folder / "a.h5");
  EXPECT_THAT(file.read<int>("/column"), ElementsAre(0, 10, 1, 11, 2, 12));
  EXPECT_THAT(file.info("/rows").shape, ElementsAre(3, 2, 2));
  EXPECT_EQ(file.read_strings("/kinds")[5], "a text of more t");
  EXPECT_TRUE(file.read<int>("/empty").empty());
  EXPECT_TRUE(file.is_group("/"));
  EXPECT_FALSE(file.is_group("/rows"));
}

TEST(Hdf5, FollowsLinksToOtherFiles) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "ranks");
  hdf5::File main = hdf5::File::create(folder / "run.h5");
  main.link("/ranks/0000", "ranks/0000.h5", "/");
  main.link("/ranks/0001", "ranks/0001.h5", "/");
  main.close();
  hdf5::File rank = hdf5::File::create(folder / "ranks/0000.h5");
  rank.write("/values", std::vector<int>{3});
  rank.close();
  const hdf5::File file = hdf5::File::open(folder / "run.h5");
  EXPECT_THAT(file.read<int>("/ranks/0000/values"), ElementsAre(3));
  EXPECT_TRUE(file.contains("/ranks/0000"));
  EXPECT_FALSE(file.contains("/ranks/0001"));
  EXPECT_FALSE(file.contains("/ranks/0001/values"));
}

TEST(Hdf5, TellsWhereALinkLeads) {
  const TemporaryFolder folder;
  hdf5::File file = hdf5::File::create(folder / "run.h5");
  file.link("/receipts/0", "ranks/0003.h5", "/receipts/0");
  file.write("/values", std::vector<int>{3});
  EXPECT_EQ(file.link_target("/receipts/0"), "ranks/0003.h5:/receipts/0");
  for (const char* other : {"/receipts", "/values", "/receipts/1", "/none/0"})
    EXPECT_EQ(file.link_target(other), "") << other;
}

/// Makes a dataset in chunks, none of which is written.
void claim(const std::string& path, const hdf5::Shape& shape, hid_t type) {
  const hdf5::Handle file(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT),
                          H5Fclose);
  const int rank = static_cast<int>(shape.size());
  const hdf5::Handle space(H5Screate_simple(rank, shape.data(), nullptr), H5Sclose);
  const hdf5::Handle properties(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  const hdf5::Shape chunk(shape.size(), 3);
  H5Pset_chunk(properties.get(), rank, chunk.data());
  const hdf5::Handle set(H5Dcreate2(file.get(), "claim", type, space.get(), H5P_DEFAULT,
                                    properties.get(), H5P_DEFAULT),
                         H5Dclose);
  ASSERT_GE(set.get(), 0);
}

TEST(Hdf5, ShapesBeyondWhatIsStoredAreRefused) {
  const TemporaryFolder folder;
  const std::string path = folder / "a.h5";
  constexpr hsize_t one = 1;
  // Products of 2^50, of 0 and of 2 in 64 bits.
  for (const hdf5::Shape& shape : {hdf5::Shape{one << 50}, hdf5::Shape{one << 32, one << 32},
                                   hdf5::Shape{3, 6148914691236517206}}) {
    claim(path, shape, H5T_NATIVE_INT64);
    EXPECT_THAT(failure(ExitCode::bad_data,
                        [&] { (void)hdf5::File::open(path).read<std::int64_t>("/claim"); }),
                HasSubstr("a.h5: /claim is ["));
    const hdf5::Handle text(H5Tcopy(H5T_C_S1), H5Tclose);
    claim(path, shape, text.get());
    EXPECT_THAT(
        failure(ExitCode::bad_data, [&] { (void)hdf5::File::open(path).read_strings("/claim"); }),
        HasSubstr("far more than is stored"));
  }
}

TEST(Hdf5, TellsWhatWasNeverWritten) {
  const TemporaryFolder folder;
  const std::string path = folder / "a.h5";
  claim(path, {7, 4}, H5T_NATIVE_INT64);  // in chunks of 3 by 3
  {
    const hdf5::Handle file(H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT), H5Fclose);
    const hdf5::Handle set(H5Dopen2(file.get(), "claim", H5P_DEFAULT), H5Dclose);
    const hdf5::Handle space(H5Dget_space(set.get()), H5Sclose);
    const std::array<hsize_t, 2> start = {2, 0}, count = {2, 3};  // in two chunks
    H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr);
    const hdf5::Handle rows(H5Screate_simple(2, count.data(), nullptr), H5Sclose);
    const std::vector<std::int64_t> values(6, 1);
    ASSERT_GE(
        H5Dwrite(set.get(), H5T_NATIVE_INT64, rows.get(), space.get(), H5P_DEFAULT, values.data()),
        0);
    const hdf5::Handle empty(H5Dcreate2(file.get(), "empty", H5T_NATIVE_INT64, space.get(),
                                        H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
                             H5Dclose);
  }
  const hdf5::File file = hdf5::File::open(path);
  EXPECT_EQ(file.written_parts("/claim").written, 2U);
  EXPECT_EQ(file.written_parts("/claim").all, 6U);
  EXPECT_EQ(file.written_parts("/empty").written, 0U);
  EXPECT_EQ(file.written_parts("/empty").all, 1U);
  hdf5::File whole = hdf5::File::create(folder / "b.h5");
  whole.write("/a", std::vector<int>{1, 2, 3});
  EXPECT_EQ(whole.written_parts("/a").written, 1U);
  whole.append<int>("/rows", std::vector<int>(5000, 1));
  EXPECT_EQ(whole.written_parts("/rows").written, whole.written_parts("/rows").all);
}

TEST(Hdf5, ZerosMayBeCompressed) {
  const TemporaryFolder folder;
  const std::string path = folder / "a.h5";
  const std::vector<std::uint8_t> zeros(1 << 22);
  {
    const hdf5::Handle file(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT),
                            H5Fclose);
    const hsize_t extent = zeros.size();
    const hdf5::Handle space(H5Screate_simple(1, &extent, nullptr), H5Sclose);
    const hdf5::Handle properties(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
    H5Pset_chunk(properties.get(), 1, &extent);
    if (H5Pset_deflate(properties.get(), 9) < 0) GTEST_SKIP() << "this HDF5 has no deflate";
    const hdf5::Handle set(H5Dcreate2(file.get(), "zeros", H5T_NATIVE_UINT8, space.get(),
                                      H5P_DEFAULT, properties.get(), H5P_DEFAULT),
                           H5Dclose);
    ASSERT_GE(H5Dwrite(set.get(), H5T_NATIVE_UINT8, H5S_ALL, H5S_ALL, H5P_DEFAULT, zeros.data()),
              0);
  }
  EXPECT_EQ(hdf5::File::open(path).read<std::uint8_t>("/zeros"), zeros);
}

TEST(Descriptor, WaitsForNoWriterOfAPipe) {
  const TemporaryFolder folder;
  const std::string path = folder / "pipe";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_THAT(failure(ExitCode::input_output, [&] { (void)Descriptor::open(path); }),
              HasSubstr("pipe: cannot open: it is a pipe or device"));
  EXPECT_THAT(failure(ExitCode::input_output, [&] { (void)read_file(folder.path().string()); }),
              HasSubstr("Is a directory"));
}

TEST(Hdf5, LivesInMemoryAsOnDisk) {
  hdf5::File file = hdf5::File::create_in_memory("image");
  const std::vector<double> values(1000, 0.25);
  file.write<double>("/values", values, {1000}, hdf5::Layout::checked);
  const std::vector<std::byte> image = file.image();
  EXPECT_EQ(hdf5::File::open_image("image", image).read<double>("/values"), values);
}

TEST(Hdf5, SaysWhereReadingFailed) {
  const TemporaryFolder folder;
  EXPECT_THAT(failure(ExitCode::bad_data, [&] { hdf5::File::open(folder / "none.h5"); }),
              HasSubstr("none.h5: cannot read /"));
  EXPECT_THAT(
      failure(ExitCode::input_output, [&] { hdf5::File::create(folder / "no/such/folder.h5"); }),
      HasSubstr("folder.h5: cannot write /"));
}

TEST(Hdf5, HandlesMoveAndCloseOnce) {
  hdf5::Handle first(H5Screate(H5S_SCALAR), H5Sclose);
  const hid_t id = first.get();
  hdf5::Handle second(std::move(first));
  EXPECT_EQ(second.get(), id);
  EXPECT_LT(first.get(), 0);  // NOLINT: a moved-from handle owns nothing
  EXPECT_EQ(second.reset(), 0);
  EXPECT_EQ(second.reset(), 0);
  EXPECT_EQ(H5Iis_valid(id), 0);
}

}  // namespace
}  // namespace carousel
