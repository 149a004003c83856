// WAV files of sounds: linear samples of 16 bits.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "devices/media/picture.h"
#include "graph/status.h"

namespace tagflow::media {

struct SoundShape {
  int64_t frames = 0;    // moments, each with a sample of every channel
  int64_t channels = 0;  // at most 65535
  uint32_t rate = 0;     // frames per second
};

// Returns where `frames` x `channels` floats go.
using SampleMemory = std::function<Result<float*>(const SoundShape& shape)>;

// Decodes a file into floats from -1 to 1. InvalidArgument if it has another
// format, is damaged or ends early. Thread-safe.
Status decode_wav(std::string_view bytes, const SampleMemory& memory,
                  const Interruption& interrupt);

// Encodes samples, of which those beyond [-1, 1] are clipped, and NaN is
// silence. InvalidArgument for no channels, too many, or a rate of 0;
// ResourceExhausted beyond the 4 GiB of the format. Thread-safe.
Result<std::string> encode_wav(const SoundShape& shape, const float* samples,
                               const Interruption& interrupt);

}  // namespace tagflow::media
