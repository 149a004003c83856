// Fuzzes the decoders of pictures and sounds. The first byte chooses options.
// Memory is taken for small results only: what a head asks for must have been
// checked before.
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "devices/media/bmp.h"
#include "devices/media/gif.h"
#include "devices/media/jpeg.h"
#include "devices/media/png.h"
#include "devices/media/wav.h"
#include "devices/media/webp.h"

namespace {

using namespace tagflow;         // NOLINT: a fuzz target
using namespace tagflow::media;  // NOLINT

constexpr int64_t kMost = int64_t{1} << 22;

void decode_picture(std::string_view bytes, uint8_t choice) {
  static constexpr int kChannels[] = {0, 1, 3, 4};
  const int channels = kChannels[choice & 3];
  const bool is_wide = (choice & 4) != 0, flag = (choice & 8) != 0;
  std::vector<uint8_t> pixels;
  int64_t elements = -1;
  const PixelMemory memory = [&](const PictureShape& shape) -> Result<void*> {
    // Each dimension was checked, and so was their product.
    if (!check_picture("picture", shape).ok()) std::abort();
    elements = shape.elements();
    if (elements > kMost)
      return error(Code::kResourceExhausted, "too large to try");
    pixels.assign(size_t(elements) * (is_wide ? 2 : 1), 0);
    return static_cast<void*>(pixels.data());
  };
  const Interruption never = [] {};
  JpegOptions jpeg;
  jpeg.channels = channels == 4 ? 0 : channels;
  jpeg.ratio = is_wide ? 8 : 1;
  jpeg.recovers_truncated = flag;
  jpeg.acceptable_fraction = flag ? 1.0F : 0.25F;
  if ((choice & 16) != 0) jpeg.crop = Crop{1, 1, 2, 2};
  Status status;
  if (is_png(bytes)) {
    status = decode_png(bytes, {channels, is_wide ? 16 : 8}, memory, never);
  } else if (is_jpeg(bytes)) {
    (void)jpeg_shape(bytes);
    status = decode_jpeg(bytes, jpeg, memory, never);
  } else if (is_gif(bytes)) {
    status = decode_gif(bytes, flag, memory, never);
  } else if (is_webp(bytes)) {
    status = decode_webp(bytes, channels, flag, memory, never);
  } else {
    status = decode_bmp(bytes, channels, memory, never);
  }
  // Success without a result.
  if (status.ok() && elements <= 0) std::abort();
}

void decode_sound(std::string_view bytes) {
  std::vector<float> samples;
  (void)decode_wav(
      bytes,
      [&](const SoundShape& shape) -> Result<float*> {
        // No more than the file has.
        if (shape.frames * shape.channels > int64_t(bytes.size())) std::abort();
        samples.assign(size_t(shape.frames * shape.channels) + 1, 0);
        return samples.data();
      },
      [] {});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1,
                               size - 1);
  if (bytes.starts_with("RIFF") && !is_webp(bytes)) {
    decode_sound(bytes);
  } else {
    decode_picture(bytes, data[0]);
  }
  return 0;
}
