// Base64 (RFC 4648, with padding): arbitrary bytes as text.
#pragma once

#include <string>
#include <string_view>

#include "graph/status.h"

namespace tagflow {

std::string encode_base64(std::string_view bytes);

// Returns InvalidArgument for any character outside the alphabet (spaces too),
// a length that is not a multiple of 4, or misplaced padding. Thread-safe.
Result<std::string> decode_base64(std::string_view text);

}  // namespace tagflow
