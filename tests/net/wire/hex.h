// Bytes as people write them.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace tagflow::net {

// "00 ff 61".
inline std::string hex(std::string_view bytes) {
  std::string text;
  for (char byte : bytes)
    text += fmt::format("{}{:02x}", text.empty() ? "" : " ", uint8_t(byte));
  return text;
}

// The bytes of such a text, which may have any spaces.
inline std::string unhex(std::string_view text) {
  std::string digits, bytes;
  for (char c : text)
    if (c != ' ' && c != '\n') digits += c;
  for (size_t i = 0; i + 1 < digits.size(); i += 2)
    bytes += char(std::stoi(digits.substr(i, 2), nullptr, 16));
  return bytes;
}

}  // namespace tagflow::net
