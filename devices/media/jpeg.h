// JPEG files, by libjpeg-turbo.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "devices/media/picture.h"

namespace tagflow::media {

// A part of a picture.
struct Crop {
  int64_t top = 0, left = 0, height = 0, width = 0;
};

struct JpegOptions {
  int channels = 0;     // 1 or 3; 0: as many as the file has, of CMYK 3
  int ratio = 1;        // of the file's size to the result's: 1, 2, 4 or 8
  bool is_fast = true;  // the transform that rounds more
  bool smooths_colors = true;  // where the file has fewer of them than pixels
  // A file that ends early is continued by grey.
  bool recovers_truncated = false;
  // Else it is black from there on, if this part of the rows is there.
  float acceptable_fraction = 1;
  std::optional<Crop> crop = {};  // of the result
};

bool is_jpeg(std::string_view bytes);

// The shape of the picture, of which only the head must be there.
// InvalidArgument if it is not. Thread-safe.
Result<PictureShape> jpeg_shape(std::string_view bytes);

// Decodes a file into uint8. InvalidArgument if it is damaged, incomplete, has
// too few bytes for the picture that it claims to be, or does not have the part
// that is wanted. Thread-safe.
Status decode_jpeg(std::string_view bytes, const JpegOptions& options,
                   const PixelMemory& memory, const Interruption& interrupt);

struct JpegEncoding {
  int quality = 95;  // 0 to 100
  bool is_progressive = false;
  bool is_small = false;      // takes longer to encode
  bool halves_colors = true;  // fewer of them than pixels
  bool is_per_inch = true;    // the density; or per centimetre
  int x_density = 300, y_density = 300;
  std::string xmp;  // metadata, as XML
};

// Encodes one frame of uint8, of 1 or 3 channels. InvalidArgument for other
// channels, for sides beyond 65500, and for metadata beyond 65 KB. Thread-safe.
Result<std::string> encode_jpeg(const PictureShape& shape,
                                const uint8_t* pixels,
                                const JpegEncoding& options,
                                const Interruption& interrupt);

}  // namespace tagflow::media
