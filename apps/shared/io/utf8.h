// UTF-8 in text that files and users bring.
#pragma once

#include <cstddef>
#include <string_view>

namespace tagflow::io {

// The number of bytes of the character that the text begins with; 0 if it
// begins with none, as for a longer form than a character needs, for half of a
// surrogate pair, or for an empty text. Thread-safe.
std::size_t character_length(std::string_view text);

}  // namespace tagflow::io
