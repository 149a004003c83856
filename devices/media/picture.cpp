#include "devices/media/picture.h"

#include <algorithm>

namespace tagflow::media {

Status check_picture(std::string_view format, const PictureShape& shape) {
  int64_t elements = 1;
  for (const int64_t size :
       {shape.frames, shape.height, shape.width, shape.channels}) {
    if (size <= 0)
      return error(Code::kInvalidArgument,
                   "a {} of {} x {} pixels and {} channels has no content",
                   format, shape.height, shape.width, shape.channels);
    if (elements > kMostElements / size)
      return error(
          Code::kResourceExhausted,
          "a {} of {} x {} pixels, {} channels and {} frames is larger "
          "than {} numbers",
          format, shape.height, shape.width, shape.channels, shape.frames,
          kMostElements);
    elements *= size;
  }
  return {};
}

}  // namespace tagflow::media
