// GIF files, by giflib.
#pragma once

#include <string_view>

#include "devices/media/picture.h"

namespace tagflow::media {

bool is_gif(std::string_view bytes);

// Decodes all frames, or only the first one, into uint8 of red, green and blue.
// Each is as large as the largest of the file. A frame changes a part of the
// one before it; where the first one has no pixels, it is black. Frames from a
// damaged one on are left out: then `memory` is called a second time, for fewer
// frames. InvalidArgument if the first one is damaged or incomplete.
// Thread-safe.
Status decode_gif(std::string_view bytes, bool only_first,
                  const PixelMemory& memory, const Interruption& interrupt);

}  // namespace tagflow::media
