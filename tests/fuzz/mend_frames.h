// Frames that pass: no fuzzer finds a checksum by chance.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>

#include "net/wire/frame.h"

namespace tagflow::net {

// Makes the numbers and checksums of frames right, up to the first frame that
// is not whole.
inline void mend_frames(std::string& bytes) {
  constexpr size_t kLengthAt = 4;
  uint32_t number = 0;
  for (size_t at = 0; bytes.size() - at >= kFrameHeader; ++number) {
    uint32_t length;
    std::memcpy(&length, bytes.data() + at + kLengthAt, sizeof(length));
    if (length > bytes.size() - at - kFrameHeader) return;
    number_frame({bytes.data() + at, kFrameHeader + length}, number);
    at += kFrameHeader + length;
  }
}

}  // namespace tagflow::net
