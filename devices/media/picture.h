// Pictures in memory, and what all of their formats have in common.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

#include "graph/status.h"

namespace tagflow::media {

// Pixels are rows from the top, of `width` pixels of `channels` numbers each: 1
// is grey, 2 grey and opacity, 3 red, green, blue, and 4 these and opacity.
struct PictureShape {
  int64_t height = 0;
  int64_t width = 0;
  int64_t channels = 0;
  int64_t frames = 1;  // more than 1 for an animation

  int64_t elements() const { return frames * height * width * channels; }
};

// A decoder calls it when it knows the shape, before it decodes, and once
// unless it says otherwise. Returns where the pixels go, until the next call or
// the end of the decoding, or the error that ends the decoding.
using PixelMemory = std::function<Result<void*>(const PictureShape& shape)>;

// Called every few rows. It may throw, to stop the work.
using Interruption = std::function<void()>;

// No format decodes or encodes more: headers of a few bytes could ask for any
// amount of memory.
inline constexpr int64_t kMostElements = int64_t{1} << 29;

// ResourceExhausted, with the name of the format, if a picture is larger.
// REQUIRES: no number is negative, or exceeds 2^31.
Status check_picture(std::string_view format, const PictureShape& shape);

}  // namespace tagflow::media
