// Grey pictures as PNG files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "graph/status.h"

namespace tagflow::io {

struct Picture {
  int width = 0, height = 0;
  std::vector<uint8_t> pixels;  // row by row, 0 is black
};

// Returns PermissionDenied if the file cannot be written. REQUIRES: width
// and height are positive, and their product is the number of pixels.
Status write_png(const std::filesystem::path& path, const Picture& picture);

}  // namespace tagflow::io
