// Texts without white space at their ends.
#pragma once

#include <string_view>

namespace tagflow::devices {

// The text without the white space around it.
std::string_view stripped(std::string_view text);

}  // namespace tagflow::devices
