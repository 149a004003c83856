#include "devices/kernels/elementwise/fused_program.h"

#include <algorithm>
#include <charconv>

namespace tagflow::devices {

Result<FusedLine> parse_fused_line(std::string_view line, size_t num_values) {
  FusedLine parsed;
  parsed.op = line.substr(0, std::min(line.find(' '), line.size()));
  for (std::string_view rest = line.substr(parsed.op.size()); !rest.empty();) {
    rest.remove_prefix(1);
    const std::string_view text = rest.substr(0, rest.find(' '));
    rest.remove_prefix(text.size());
    size_t number = 0;
    const char* const text_end = text.data() + text.size();
    const auto [end, bad] = std::from_chars(text.data(), text_end, number);
    if (bad != std::errc() || end != text_end || number >= num_values ||
        parsed.operands.size() == 2)
      return invalid_argument("\"{}\" is not an operand", text);
    parsed.operands.push_back(number);
  }
  return parsed;
}

}  // namespace tagflow::devices
