// Small letters for pictures.
#pragma once

#include <cstdint>

namespace tagflow::apps::draw {

inline constexpr int kGlyphWidth = 3, kGlyphHeight = 5;

// Five rows of three dots, the first row in the highest bits: an octal digit
// each. Lower case has the forms of upper case; 0 for what is not there.
uint16_t glyph(char c);

}  // namespace tagflow::apps::draw
