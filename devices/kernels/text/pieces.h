// Long texts: loops and searches that take linear time, and look for a
// cancellation about every kPieceBytes (Note [Interruption] in
// devices/kernel.h).
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include "devices/kernel.h"

namespace tagflow::devices {

// A multiple of 3, 4 and 8.
inline constexpr size_t kPieceBytes = size_t(3) << 15;

// Calls body(piece) for parts of the text, one after the other: all but the
// last have kPieceBytes. An empty text is one piece.
template <class Body>
void for_pieces(const KernelContext& context, std::string_view text,
                const Body& body) {
  for (; text.size() > kPieceBytes; text.remove_prefix(kPieceBytes)) {
    context.check_cancelled();
    body(text.substr(0, kPieceBytes));
  }
  context.check_cancelled();
  body(text);
}

// Where the first byte is, from `at` on, for which is_it(byte); the size of the
// text if there is none.
template <class IsIt>
size_t find_byte(const KernelContext& context, std::string_view text, size_t at,
                 const IsIt& is_it) {
  while (at < text.size()) {
    context.check_cancelled();
    const size_t end = std::min(text.size(), at + kPieceBytes);
    while (at < end && !is_it(text[at])) ++at;
    if (at < end) break;
  }
  return at;
}

// Where `wanted` begins, from `at` on; npos if it is not there. Unlike
// std::string_view::find(), this takes linear time for each text and `wanted`.
size_t find_text(std::string_view text, std::string_view wanted, size_t at);
size_t find_text(const KernelContext& context, std::string_view text,
                 std::string_view wanted, size_t at);

// The number of characters of UTF-8.
size_t count_characters(const KernelContext& context, std::string_view text);

// The beginning of a text, for messages: "..." stands for the rest of a long
// one. No character of UTF-8 is cut.
std::string shown(std::string_view text);

// Whether a byte continues a character of UTF-8.
inline bool continues(char byte) { return (uint8_t(byte) & 0xc0) == 0x80; }

// Whether the byte is white space.
inline bool is_space(char byte) {
  return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

// The text without the white space around it.
std::string_view stripped(const KernelContext& context, std::string_view text);

}  // namespace tagflow::devices
