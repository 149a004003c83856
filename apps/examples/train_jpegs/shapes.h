// Drawn pictures of shapes, for a classifier: in any colors, sizes, places and
// turns, so that only the outline tells the classes apart.
#pragma once

#include <array>
#include <cstdint>
#include <random>
#include <string_view>
#include <vector>

#include "devices/media/picture.h"

namespace tagflow::train_jpegs {

inline constexpr std::array<std::string_view, 6> kShapes = {
    "disc", "ring", "square", "frame", "triangle", "cross"};

struct Drawing {
  media::PictureShape shape;
  std::vector<uint8_t> pixels;
};

// Draws one of kShapes. Its sides are from 48 to 80 pixels. The same for the
// same numbers of `random`. REQUIRES: kind < kShapes.size(). Thread-safe for
// different `random`.
Drawing draw_shape(size_t kind, std::mt19937_64& random);

}  // namespace tagflow::train_jpegs
