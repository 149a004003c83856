#include "graph/base64.h"

#include <cstdint>

namespace tagflow {
namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

std::string encode_base64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t left = bytes.size() - i;
    uint32_t group = uint32_t(uint8_t(bytes[i])) << 16;
    if (left > 1) group |= uint32_t(uint8_t(bytes[i + 1])) << 8;
    if (left > 2) group |= uint32_t(uint8_t(bytes[i + 2]));
    text += kAlphabet[group >> 18];
    text += kAlphabet[group >> 12 & 63];
    text += left > 1 ? kAlphabet[group >> 6 & 63] : '=';
    text += left > 2 ? kAlphabet[group & 63] : '=';
  }
  return text;
}

Result<std::string> decode_base64(std::string_view text) {
  if (text.size() % 4 != 0) {
    return invalid_argument("[base64] {} characters are not a multiple of 4",
                            text.size());
  }
  size_t padding = 0;
  while (padding < 2 && padding < text.size() &&
         text[text.size() - 1 - padding] == '=') {
    ++padding;
  }
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  uint32_t group = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool is_padding = i >= text.size() - padding;
    const size_t value = is_padding ? 0 : kAlphabet.find(text[i]);
    if (value == std::string_view::npos) {
      return invalid_argument("[base64] byte {} is not of the alphabet", i);
    }
    group = group << 6 | uint32_t(value);
    if (i % 4 == 3) {
      bytes +=
          {char(group >> 16 & 255), char(group >> 8 & 255), char(group & 255)};
      group = 0;
    }
  }
  bytes.resize(bytes.size() - padding);
  return bytes;
}

}  // namespace tagflow
