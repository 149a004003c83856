// Numbers of things, for people.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace tagflow::apps {

// "1 node", "2 nodes": of a noun whose plural ends in "s".
inline std::string counted(size_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

}  // namespace tagflow::apps
