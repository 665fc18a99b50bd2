// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/data/picture.hpp"

#include <png.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstdio>  // jpeglib.h needs FILE
#include <cstring>
#include <string_view>

#include <jpeglib.h>

#include <jerror.h>

#include "core/base/check.hpp"

namespace carousel {
namespace {

constexpr int channels = Picture::channels;

/// Why a file could not be decoded; in memory of its own, since C code jumps over destructors.
struct Complaint {
  std::array<char, JMSG_LENGTH_MAX> text = {};

  void set(const char* reason) { std::snprintf(text.data(), text.size(), "%s", reason); }
};

/// Judges the size that a file claims.
void check_size(std::int64_t height, std::int64_t width, const DecodeOptions& options) {
  if (height * width > most_pixels)
    fail(ExitCode::bad_data, "{} x {} pixels are more than {} million", width, height,
         most_pixels / 1'000'000);
  if (options.expected && (height != options.expected->height || width != options.expected->width))
    fail(ExitCode::bad_data, "{} x {} pixels, not {} x {}", width, height, options.expected->width,
         options.expected->height);
}

void make_room(Picture& picture, std::int64_t height, std::int64_t width) {
  picture.size = {static_cast<int>(height), static_cast<int>(width)};
  picture.pixels.resize(static_cast<std::size_t>(height * width * channels));
}

/// Runs `work`, which may leave by longjmp to `place`, and says whether it came to its end. Nothing
/// with a destructor may live in `work` while C code runs.
template <class Work>
bool runs_to_end(std::jmp_buf& place, const Work& work) {
  if (setjmp(place) != 0) return false;
  work();
  return true;
}

// ---- JPEG ---------------------------------------------------------------------------------------

/// What libjpeg warns of and decodes all the same, as Pillow has it: bytes between two markers,
/// which are somebody's comment, and headers that cameras write otherwise than the standard has it.
/// All other warnings are of data that are missing or do not make sense.
bool costs_pixels(int warning) {
  constexpr std::array harmless = {JWRN_EXTRANEOUS_DATA, JWRN_NOT_SEQUENTIAL, JWRN_JFIF_MAJOR,
                                   JWRN_ADOBE_XFORM};
  return std::ranges::find(harmless, warning) == harmless.end();
}

class Jpeg {
 public:
  explicit Jpeg(std::span<const std::byte> file) : bytes_(std::ssize(file)) {
    info_.err = jpeg_std_error(&errors_);
    info_.client_data = this;
    errors_.error_exit = [](j_common_ptr info) { of(info).give_up(info); };
    errors_.emit_message = [](j_common_ptr info, int level) {
      if (level < 0 && costs_pixels(info->err->msg_code)) of(info).give_up(info);
    };
    jpeg_create_decompress(&info_);
    jpeg_mem_src(&info_, reinterpret_cast<const unsigned char*>(file.data()), file.size());
  }
  Jpeg(const Jpeg&) = delete;
  Jpeg& operator=(const Jpeg&) = delete;
  ~Jpeg() { jpeg_destroy_decompress(&info_); }

  void decode(Picture& picture, const DecodeOptions& options) {
    run([&] { jpeg_read_header(&info_, TRUE); });
    if (info_.jpeg_color_space == JCS_CMYK || info_.jpeg_color_space == JCS_YCCK)
      fail(ExitCode::bad_data, "a JPEG with CMYK colours; convert it to RGB");
    if (info_.num_components != 1 && info_.num_components != channels)
      fail(ExitCode::bad_data, "a JPEG with {} colour channels", info_.num_components);
    check_size(info_.image_height, info_.image_width, options);
    // Every block of 64 pixels has at least a bit. A progressive picture takes memory for all that
    // it claims before the first one is decoded.
    if (std::int64_t{info_.image_height} * info_.image_width > 64 * 8 * bytes_)
      fail(ExitCode::bad_data, "a damaged JPEG: {} x {} pixels in {} bytes", info_.image_width,
           info_.image_height, bytes_);
    run([&] {
      info_.out_color_space = JCS_RGB;
      info_.scale_num = 1;
      info_.scale_denom = static_cast<unsigned>(options.reduction);
      jpeg_calc_output_dimensions(&info_);
    });
    make_room(picture, info_.output_height, info_.output_width);
    run([&] {
      jpeg_start_decompress(&info_);
      while (info_.output_scanline < info_.output_height) {
        JSAMPROW row = picture.pixels.data() +
                       std::size_t{info_.output_scanline} * info_.output_width * channels;
        jpeg_read_scanlines(&info_, &row, 1);
      }
      jpeg_finish_decompress(&info_);
    });
  }

 private:
  static Jpeg& of(j_common_ptr info) { return *static_cast<Jpeg*>(info->client_data); }

  [[noreturn]] void give_up(j_common_ptr info) {
    std::array<char, JMSG_LENGTH_MAX> text = {};
    info->err->format_message(info, text.data());
    complaint_.set(text.data());
    std::longjmp(place_, 1);
  }

  template <class Work>
  void run(const Work& work) {
    if (!runs_to_end(place_, work))
      fail(ExitCode::bad_data, "a damaged JPEG: {}", complaint_.text.data());
  }

  std::int64_t bytes_;
  jpeg_decompress_struct info_ = {};
  jpeg_error_mgr errors_ = {};
  std::jmp_buf place_ = {};
  Complaint complaint_;
};

// ---- PNG ----------------------------------------------------------------------------------------

class Png {
 public:
  explicit Png(std::span<const std::byte> file) : left_(file) {
    png_ = png_create_read_struct(
        PNG_LIBPNG_VER_STRING, this,
        [](png_structp png, png_const_charp reason) {
          static_cast<Png*>(png_get_error_ptr(png))->give_up(reason);
        },
        [](png_structp, png_const_charp) {});
    info_ = png_ == nullptr ? nullptr : png_create_info_struct(png_);
    if (info_ == nullptr) {
      png_destroy_read_struct(&png_, nullptr, nullptr);
      throw std::bad_alloc();
    }
    png_set_read_fn(png_, this, [](png_structp png, png_bytep to, std::size_t size) {
      static_cast<Png*>(png_get_io_ptr(png))->read(to, size);
    });
  }
  Png(const Png&) = delete;
  Png& operator=(const Png&) = delete;
  ~Png() { png_destroy_read_struct(&png_, &info_, nullptr); }

  void decode(Picture& picture, const DecodeOptions& options) {
    run([&] {
      png_set_user_limits(png_, PNG_UINT_31_MAX, PNG_UINT_31_MAX);  // most_pixels is the limit
      png_read_info(png_, info_);
    });
    if (png_get_bit_depth(png_, info_) == 16)
      fail(ExitCode::bad_data, "a PNG with 16 bits per channel; convert it to 8");
    const std::int64_t height = png_get_image_height(png_, info_);
    const std::int64_t width = png_get_image_width(png_, info_);
    check_size(height, width, options);
    make_room(picture, height, width);
    run([&] {
      png_set_expand(png_);  // palettes and 1, 2 or 4 bits
      png_set_strip_alpha(png_);
      png_set_gray_to_rgb(png_);
      const int passes = png_set_interlace_handling(png_);
      png_read_update_info(png_, info_);
      for (int pass = 0; pass < passes; ++pass) {
        for (int y = 0; y < picture.size.height; ++y)
          png_read_row(png_,
                       picture.pixels.data() + std::int64_t{y} * picture.size.width * channels,
                       nullptr);
      }
      png_read_end(png_, nullptr);
    });
  }

 private:
  void read(png_bytep to, std::size_t size) {
    if (size > left_.size()) give_up("it ends too early");
    std::memcpy(to, left_.data(), size);
    left_ = left_.subspan(size);
  }

  [[noreturn]] void give_up(const char* reason) {
    complaint_.set(reason);
    std::longjmp(place_, 1);
  }

  template <class Work>
  void run(const Work& work) {
    if (!runs_to_end(place_, work))
      fail(ExitCode::bad_data, "a damaged PNG: {}", complaint_.text.data());
  }

  std::span<const std::byte> left_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  std::jmp_buf place_ = {};
  Complaint complaint_;
};

bool begins_with(std::span<const std::byte> file, std::string_view signature) {
  return file.size() >= signature.size() &&
         std::memcmp(file.data(), signature.data(), signature.size()) == 0;
}

}  // namespace

void decode_picture(std::span<const std::byte> file, Picture& picture,
                    const DecodeOptions& options) {
  if (begins_with(file, "\xff\xd8\xff")) {
    Jpeg(file).decode(picture, options);
  } else if (begins_with(file, "\x89PNG\r\n\x1a\n")) {
    Png(file).decode(picture, options);
  } else {
    fail(ExitCode::bad_data, "{}", file.empty() ? "empty" : "neither JPEG nor PNG");
  }
}

void separate(std::span<const std::uint8_t> pixels, std::size_t channels,
              std::span<std::uint8_t> planes) {
  CAROUSEL_CHECK(planes.size() == pixels.size() && pixels.size() % channels == 0,
                 "{} bytes for {} of {} channels", planes.size(), pixels.size(), channels);
  const std::size_t plane = pixels.size() / channels;
  for (std::size_t p = 0; p < plane; ++p) {
    for (std::size_t c = 0; c < channels; ++c) planes[c * plane + p] = pixels[p * channels + c];
  }
}

void join(std::span<const std::uint8_t> planes, PictureSize size, Picture& picture) {
  make_room(picture, size.height, size.width);
  CAROUSEL_CHECK(planes.size() == picture.pixels.size(), "{} bytes for a picture of {}",
                 planes.size(), picture.pixels.size());
  const std::size_t pixels = planes.size() / channels;
  for (std::size_t p = 0; p < pixels; ++p) {
    for (std::size_t c = 0; c < channels; ++c)
      picture.pixels[p * channels + c] = planes[c * pixels + p];
  }
}

}  // namespace carousel
