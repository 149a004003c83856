// PNG files, by libpng.
#pragma once

#include <string>
#include <string_view>

#include "devices/media/picture.h"

namespace tagflow::media {

struct PngOptions {
  int channels = 0;  // 0: as many as the file has
  int bits = 8;      // of a number of the result: 8 or 16
};

// Whether the bytes begin as a PNG file does.
bool is_png(std::string_view bytes);

// Decodes a file into numbers of 8 or 16 bits, the latter in the order of the
// machine. Palettes become colours. InvalidArgument if the file is damaged,
// incomplete, or has too few bytes for the picture that it claims to be.
// Thread-safe.
Status decode_png(std::string_view bytes, const PngOptions& options,
                  const PixelMemory& memory, const Interruption& interrupt);

// Encodes one frame whose numbers have 8 or 16 bits. `compression` is from 0 to
// 9, or -1 for zlib's default. InvalidArgument for other channels than 1 to 4.
// Thread-safe.
Result<std::string> encode_png(const PictureShape& shape, int bits,
                               const void* pixels, int compression,
                               const Interruption& interrupt);

}  // namespace tagflow::media
