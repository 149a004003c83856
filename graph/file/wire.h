// Protocol buffers from outside, read with bounds.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "graph/limits.h"
#include "graph/status.h"

namespace google::protobuf {
class Message;
}

namespace tagflow::graph {

// Checks a message before it is parsed: its size, how many nodes it has, and
// that no node has an attribute twice. `paths` are the field numbers that lead
// to nodes. A node of two bytes would need a hundred in memory.
// ResourceExhausted beyond the limits; DataLoss for what is no message;
// InvalidArgument for the attribute. `what` is for errors, as below.
Status check_message(std::string_view bytes,
                     std::initializer_list<std::vector<int>> paths,
                     std::string_view what, const Limits& limits);

// Likewise, how many messages of another kind there are, which `what` names.
// ResourceExhausted where they are more than the limit; what is no message is
// left to the parser.
Status check_count(std::string_view bytes,
                   std::initializer_list<std::vector<int>> paths,
                   std::string_view what, size_t limit);

// DataLoss where the bytes are no such message.
Status parse_message(std::string_view bytes, std::string_view what,
                     google::protobuf::Message* message);

// The same bytes for the same message. ResourceExhausted beyond 2 GiB, where
// the format ends.
Result<std::string> write_message(const google::protobuf::Message& message);

// InvalidArgument, with line and column, where the text is no such message, or
// a node has an attribute twice;
// ResourceExhausted where it is too long or nests too deep.
Status parse_text(std::string_view text, std::string_view what,
                  const Limits& limits, google::protobuf::Message* message);
std::string print_text(const google::protobuf::Message& message);

}  // namespace tagflow::graph
