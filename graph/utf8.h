// UTF-8 in text that files and users bring.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tagflow {

// Whether half of a surrogate pair counts as a character. RE2 reads it as one.
enum class Surrogates : uint8_t { kRefused, kAllowed };

// The number of bytes of the character that the text begins with; 0 if it
// begins with none, as for a longer form than a character needs, or for an
// empty text. Thread-safe.
std::size_t character_length(std::string_view text,
                             Surrogates surrogates = Surrogates::kRefused);

// The longest beginning of at most `most` bytes that does not end within a
// character. Of a text that is not UTF-8 it may end anywhere. Thread-safe.
std::string_view beginning_of(std::string_view text, std::size_t most);

}  // namespace tagflow
