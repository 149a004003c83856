#include "graph/utf8.h"

namespace tagflow {

std::size_t character_length(std::string_view text, Surrogates surrogates) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? uint8_t(text[i]) : uint8_t{0};
  };
  const auto is_within = [&](std::size_t i, uint8_t least, uint8_t most) {
    return byte(i) >= least && byte(i) <= most;
  };
  if (text.empty()) return 0;
  if (byte(0) < 0x80) return 1;
  const std::size_t length = is_within(0, 0xc2, 0xdf)   ? 2
                             : is_within(0, 0xe0, 0xef) ? 3
                             : is_within(0, 0xf0, 0xf4) ? 4
                                                        : 0;
  // What the second byte must be, so that there is no shorter form, no half of
  // a surrogate pair if these are refused, and nothing past U+10FFFF.
  const uint8_t least = byte(0) == 0xe0 ? 0xa0 : byte(0) == 0xf0 ? 0x90 : 0x80;
  const bool is_refused = surrogates == Surrogates::kRefused;
  const uint8_t most = byte(0) == 0xed && is_refused ? 0x9f
                       : byte(0) == 0xf4             ? 0x8f
                                                     : 0xbf;
  if (length == 0 || !is_within(1, least, most)) return 0;
  for (std::size_t i = 2; i < length; ++i)
    if (!is_within(i, 0x80, 0xbf)) return 0;
  return length;
}

std::string_view beginning_of(std::string_view text, std::size_t most) {
  if (text.size() <= most) return text;
  constexpr std::size_t kLongest = 4;  // bytes of a character
  for (std::size_t back = 0; back < kLongest && back <= most; ++back)
    if ((uint8_t(text[most - back]) & 0xc0) != 0x80)
      return text.substr(0, most - back);
  return text.substr(0, most);
}

}  // namespace tagflow
