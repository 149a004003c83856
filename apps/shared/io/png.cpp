#include "apps/shared/io/png.h"

#include <png.h>

#include <cstring>

namespace tagflow::io {

Status write_png(const std::filesystem::path& path, const Picture& picture) {
  png_image image;
  std::memset(&image, 0, sizeof image);
  image.version = PNG_IMAGE_VERSION;
  image.width = png_uint_32(picture.width);
  image.height = png_uint_32(picture.height);
  image.format = PNG_FORMAT_GRAY;
  const int written = png_image_write_to_file(
      &image, path.c_str(), 0, picture.pixels.data(), picture.width, nullptr);
  if (written != 0) return {};
  return error(Code::kPermissionDenied, "[png] cannot write \"{}\": {}",
               path.string(), image.message);
}

}  // namespace tagflow::io
