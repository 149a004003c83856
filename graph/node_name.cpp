#include "graph/node_name.h"

#include <algorithm>
#include <charconv>

namespace tagflow::graph {
namespace {

// The length at which messages truncate an invalid name.
constexpr size_t kShown = 100;

bool is_name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c >= '0' && c <= '9') || c == '.' || c == '_';
}

bool is_name_char(char c) {
  return is_name_start(c) || c == '-' || c == '/' || c == '\\' || c == '>';
}

Status check_length(std::string_view name) {
  if (name.size() <= kMaxNameLength) return {};
  return invalid_argument("the name \"{}...\" has {} bytes, the limit is {}",
                          name.substr(0, kShown), name.size(), kMaxNameLength);
}

}  // namespace

Status check_node_name(std::string_view name) {
  TAGFLOW_RETURN_IF_ERROR(check_length(name));
  if (name.empty()) return invalid_argument("the name of a node is empty");
  if (!is_name_start(name[0]) || !std::ranges::all_of(name, is_name_char))
    return invalid_argument("{:?} is not a legal name of a node",
                            name.substr(0, kShown));
  return {};
}

Status check_function_name(std::string_view name) {
  if (name.empty()) return invalid_argument("the name of a function is empty");
  return check_length(name);
}

std::string to_node_name(std::string_view name) {
  std::string legal(name);
  for (char& c : legal)
    if (!is_name_char(c)) c = '_';
  if (legal.empty() || !is_name_start(legal[0])) legal.insert(0, "_");
  return legal;
}

Result<InputText> split_input(std::string_view text) {
  InputText input;
  input.is_control = text.starts_with('^');
  input.name = text.substr(input.is_control ? 1 : 0);
  const size_t colon = input.name.rfind(':');
  if (colon != std::string_view::npos && !input.is_control) {
    const std::string_view digits = input.name.substr(colon + 1);
    const char* last = digits.data() + digits.size();
    const auto [end, code] = std::from_chars(digits.data(), last, input.port);
    if (code != std::errc() || end != last || input.port < 0)
      return invalid_argument("{:?} has no valid port number",
                              text.substr(0, kShown));
    input.name = input.name.substr(0, colon);
  }
  TAGFLOW_RETURN_IF_ERROR(check_node_name(input.name));
  return input;
}

Result<std::pair<std::string, int>> parse_endpoint(std::string_view text) {
  Result<InputText> input = split_input(text);
  if (!input.ok()) return std::move(input).status().with_prefix("[graph] ");
  if (input->is_control)
    return invalid_argument("[graph] {:?} names no output of a node",
                            text.substr(0, kShown));
  return std::pair(std::string(input->name), input->port);
}

}  // namespace tagflow::graph
