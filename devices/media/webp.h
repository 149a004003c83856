// WebP files, by libwebp.
#pragma once

#include <string_view>

#include "devices/media/picture.h"

namespace tagflow::media {

bool is_webp(std::string_view bytes);

// Decodes a file into uint8: 3 channels, or 4 if it has opacity or is an
// animation. `channels` must be that number, or 0. With `only_first`, the other
// frames are left out. InvalidArgument if the file is damaged or incomplete, or
// has other channels. Thread-safe.
Status decode_webp(std::string_view bytes, int channels, bool only_first,
                   const PixelMemory& memory, const Interruption& interrupt);

}  // namespace tagflow::media
