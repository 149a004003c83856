// Names of nodes and outputs as text.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "graph/status.h"

namespace tagflow::graph {

// The longest name of a node.
inline constexpr size_t kMaxNameLength = 4096;

// An input's text, split into parts: "name", "name:port" or "^name".
struct InputText {
  std::string_view name;  // a part of the text that was split
  int port = 0;           // 0 for a control input
  bool is_control = false;
};

// InvalidArgument for a malformed name or port.
Result<InputText> split_input(std::string_view text);
// Splits "name:port" into name and port; "name" is port 0. InvalidArgument
// for a malformed or out-of-range port.
Result<std::pair<std::string, int>> parse_endpoint(std::string_view text);

// A legal name starts with a letter, digit, '.' or '_', followed by these or
// any of "-/\>". InvalidArgument for any other name, or one longer than
// kMaxNameLength.
Status check_node_name(std::string_view name);
// A function may have any name ("__inference_<lambda>_7"). InvalidArgument if
// it is empty or longer than kMaxNameLength.
Status check_function_name(std::string_view name);
// The name with '_' in place of characters that node names cannot have.
std::string to_node_name(std::string_view name);

}  // namespace tagflow::graph
