// A small font for pictures.
#pragma once

#include <cstdint>

namespace tagflow::apps::draw {

inline constexpr int kGlyphWidth = 3, kGlyphHeight = 5;

// Five rows of three dots, the first row in the highest bits: an octal digit
// each. Lower case looks like upper case; 0 for a character that the font does
// not have.
uint16_t glyph(char c);

}  // namespace tagflow::apps::draw
