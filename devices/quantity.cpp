#include "devices/quantity.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <span>

namespace tagflow::devices {
namespace {

struct Unit {
  std::string_view name;
  double scale;
};

constexpr Unit kSizes[] = {
    {"", 1},      {"b", 1},
    {"kb", 1e3},  {"kib", 1024},
    {"mb", 1e6},  {"mib", 1048576},
    {"gb", 1e9},  {"gib", 1073741824},
    {"tb", 1e12}, {"tib", 1099511627776},
};
constexpr Unit kDurations[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};

std::span<const Unit> units_of(Quantity quantity) {
  if (quantity == Quantity::kDuration) return kDurations;
  return kSizes;
}

}  // namespace

std::string lower_case(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = char(c - 'A' + 'a');
  return result;
}

std::string_view quantity_form(Quantity quantity) {
  switch (quantity) {
    case Quantity::kBytes:
      return "a size, as 64MiB or 1.5GB";
    case Quantity::kDuration:
      return "a duration, as 5us or 1.5ms";
    case Quantity::kBandwidth:
      return "bytes per second, as 8GB/s";
  }
  return "a quantity";
}

Result<int64_t> parse_quantity(Quantity quantity, std::string_view text) {
  const auto refused = [&] {
    return invalid_argument("\"{}\" is not {}", text, quantity_form(quantity));
  };
  // from_chars would take signs and "inf" too.
  if (text.empty() || text[0] < '0' || text[0] > '9') return refused();
  double number = 0;
  const auto [end, failure] = std::from_chars(
      text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  const std::string_view rest = text.substr(size_t(end - text.data()));
  if (failure != std::errc() && failure != std::errc::result_out_of_range)
    return refused();
  std::string name = lower_case(rest);
  if (quantity == Quantity::kBandwidth && name.ends_with("/s"))
    name.resize(name.size() - 2);
  const auto units = units_of(quantity);
  const auto unit = std::find_if(units.begin(), units.end(),
                                 [&](const Unit& u) { return u.name == name; });
  if (unit == units.end()) return refused();
  const double value = std::floor(number * unit->scale);
  if (failure != std::errc() || !(value < 0x1p63))
    return invalid_argument("\"{}\" is too large", text);
  if (value < 1 && quantity != Quantity::kDuration)
    return invalid_argument(
        "\"{}\" is less than a byte{}", text,
        quantity == Quantity::kBandwidth ? " per second" : "");
  return int64_t(value);
}

}  // namespace tagflow::devices
