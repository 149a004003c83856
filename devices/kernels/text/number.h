// Numbers in text, as TensorFlow reads them.
#pragma once

#include <charconv>
#include <cstdlib>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>

namespace tagflow::devices {

// "0x1.8p3", "-0X2": the mantissa needs a digit.
inline bool is_hexadecimal(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  return text.starts_with("0x") || text.starts_with("0X");
}

// Reads a number, of which floating ones may be hexadecimal, and are rounded to
// zero or infinity if they are out of range. False if there is something else
// than a number, as white space.
template <class T>
bool parse_number(std::string_view text, T& value) {
  if (text.empty()) return false;
  if (text.starts_with('+')) {
    text.remove_prefix(1);
    if (text.starts_with('-')) return false;
  }
  const char* const end = text.data() + text.size();
  if constexpr (std::is_floating_point_v<T>) {
    if (is_hexadecimal(text)) {
      const std::string copy(text);
      char* stop = nullptr;
      if constexpr (std::is_same_v<T, float>) {
        value = std::strtof(copy.c_str(), &stop);
      } else {
        value = std::strtod(copy.c_str(), &stop);
      }
      return stop == copy.c_str() + copy.size();
    }
  }
  const auto result = std::from_chars(text.data(), end, value);
  if (result.ptr != end) return false;
  if constexpr (std::is_floating_point_v<T>) {
    if (result.ec == std::errc::result_out_of_range) {
      value = T(std::strtod(std::string(text).c_str(), nullptr));
      return true;
    }
  }
  return result.ec == std::errc();
}

}  // namespace tagflow::devices
