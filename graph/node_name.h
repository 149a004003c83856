// The texts that name nodes and their outputs.
#pragma once

#include <string>
#include <string_view>

#include "graph/status.h"

namespace tagflow::graph {

// The longest name of a node.
inline constexpr size_t kMaxNameLength = 4096;

// An input as text, split: "name", "name:port" or "^name".
struct InputText {
  std::string_view name;  // a part of the text that was split
  int port = 0;           // 0 for a control input
  bool is_control = false;
};

// InvalidArgument for a malformed name or port.
Result<InputText> split_input(std::string_view text);

// A legal name starts with a letter, digit, '.' or '_' and goes on with these
// or any of "-/\>". InvalidArgument for any other, or one over
// kMaxNameLength.
Status check_node_name(std::string_view name);
// A function may have any name ("__inference_<lambda>_7"). InvalidArgument for
// an empty one, or one over kMaxNameLength.
Status check_function_name(std::string_view name);
// The name with '_' in the place of what a node's name must not have.
std::string to_node_name(std::string_view name);

}  // namespace tagflow::graph
