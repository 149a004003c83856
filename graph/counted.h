// Counts and lists for messages.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <iterator>
#include <string>
#include <string_view>

namespace tagflow {

// "1 node", "2 nodes": for a noun whose plural ends in "s".
inline std::string counted(size_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

// "a, b, c and 2 more": the texts of the first `most` items, as given by
// `text_of(item)`, and the number of the remaining ones.
template <class Range, class TextOf>
std::string first_of(const Range& things, size_t most, TextOf text_of,
                     std::string_view separator = ", ",
                     std::string_view before_rest = " ") {
  std::string text;
  size_t named = 0;
  for (const auto& thing : things) {
    if (named == most) break;
    if (named++ > 0) text += separator;
    text += text_of(thing);
  }
  if (const size_t count = std::size(things); count > named)
    text += fmt::format("{}and {} more", before_rest, count - named);
  return text;
}

// As above, for items that are texts.
template <class Range>
std::string first_of(const Range& texts, size_t most) {
  return first_of(texts, most, [](const auto& text) { return text; });
}

}  // namespace tagflow
