// BMP files whose pixels are not compressed: of 8, 24 or 32 bits.
#pragma once

#include <string_view>

#include "devices/media/picture.h"

namespace tagflow::media {

bool is_bmp(std::string_view bytes);

// Decodes a file into uint8 of 3 or 4 channels; 0: as many as it has, which may
// be 1: pixels of 8 bits are grey, whatever the palette. InvalidArgument for
// other channels, or if the file is of another kind, damaged or incomplete.
// Thread-safe.
Status decode_bmp(std::string_view bytes, int channels,
                  const PixelMemory& memory, const Interruption& interrupt);

}  // namespace tagflow::media
