#include "apps/shared/draw/font.h"

#include <cctype>
#include <string_view>

namespace tagflow::apps::draw {
namespace {

constexpr uint16_t kDigits[] = {075557, 026227, 071747, 071717, 055711,
                                074717, 074757, 071222, 075757, 075717};
constexpr uint16_t kLetters[] = {
    025755, 065656, 034443, 065556, 074647, 074644, 034553, 055755, 072227,
    011152, 055655, 044447, 057755, 065555, 025552, 065644, 025573, 065655,
    034216, 072222, 055557, 055552, 055775, 055255, 055222, 071247};
constexpr std::string_view kSigns = ".,-+%/()=_";
constexpr uint16_t kSignGlyphs[] = {000002, 000024, 000700, 002720, 051245,
                                    011244, 024442, 021112, 007070, 000007};

}  // namespace

uint16_t glyph(char c) {
  const auto byte = static_cast<unsigned char>(c);
  if (std::isdigit(byte) != 0) return kDigits[c - '0'];
  if (std::isalpha(byte) != 0) return kLetters[std::tolower(byte) - 'a'];
  const size_t sign = kSigns.find(c);
  return sign == kSigns.npos ? 0 : kSignGlyphs[sign];
}

}  // namespace tagflow::apps::draw
