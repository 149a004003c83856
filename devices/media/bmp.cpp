#include "devices/media/bmp.h"

#include <cstdlib>

namespace tagflow::media {
namespace {

int64_t bmp_number(std::string_view bytes, size_t at, size_t size) {
  uint32_t number = 0;
  for (size_t i = 0; i < size; ++i)
    number |= uint32_t(uint8_t(bytes[at + i])) << (8 * i);
  return size == 4 ? int64_t(int32_t(number)) : int64_t(number);
}

template <class... Args>
Status bad_bmp(fmt::format_string<Args...> format, Args&&... args) {
  return Status(Code::kInvalidArgument,
                "the BMP cannot be decoded: " +
                    fmt::format(format, std::forward<Args>(args)...));
}

// A pixel of 1, 3 or 4 bytes, blue first, as one of 1, 3 or 4.
void convert_pixel(const uint8_t* from, int64_t has, int64_t wants,
                   uint8_t* to) {
  constexpr uint8_t kOpaque = 255;
  for (int64_t c = 0; c < wants; ++c)
    to[c] = c == 3     ? (has == 4 ? from[3] : kOpaque)
            : has == 1 ? from[0]
                       : from[2 - c];
}

}  // namespace

bool is_bmp(std::string_view bytes) { return bytes.starts_with("BM"); }

Status decode_bmp(std::string_view bytes, int channels,
                  const PixelMemory& memory, const Interruption& interrupt) {
  constexpr size_t kHeadBytes = 32;
  if (bytes.size() < kHeadBytes || !is_bmp(bytes))
    return bad_bmp("its head is incomplete");
  const int64_t begin = bmp_number(bytes, 10, 4);
  const int64_t width = bmp_number(bytes, 18, 4);
  const int64_t stored_height = bmp_number(bytes, 22, 4);
  const int64_t bits = bmp_number(bytes, 28, 2);
  const int64_t height = std::abs(stored_height);
  if (begin < 0 || width <= 0 || height == 0)
    return bad_bmp("it has {} x {} pixels at byte {}", stored_height, width,
                   begin);
  if (bits != 8 && bits != 24 && bits != 32)
    return bad_bmp("its pixels have {} bits, not 8, 24 or 32", bits);
  const int64_t has = bits / 8, wants = channels == 0 ? has : channels;
  if (channels == 1) return bad_bmp("it does not become 1 channel");
  TAGFLOW_RETURN_IF_ERROR(check_picture("BMP", {height, width, wants}));
  const int64_t row_bytes = (bits * width + 31) / 32 * 4;
  // No overflow: both are less than 2^33.
  if (begin + row_bytes * height != int64_t(bytes.size()))
    return bad_bmp("it has {} bytes, and not {} with {} rows of {}",
                   bytes.size(), begin + row_bytes * height, height, row_bytes);
  TAGFLOW_ASSIGN(void* const pixels, memory({height, width, wants}));
  auto* to = static_cast<uint8_t*>(pixels);
  const auto* const rows =
      reinterpret_cast<const uint8_t*>(bytes.data()) + begin;
  for (int64_t row = 0; row < height; ++row) {
    interrupt();
    const int64_t stored = stored_height < 0 ? row : height - 1 - row;
    const uint8_t* from = rows + stored * row_bytes;
    for (int64_t i = 0; i < width; ++i, from += has, to += wants)
      convert_pixel(from, has, wants, to);
  }
  return {};
}

}  // namespace tagflow::media
