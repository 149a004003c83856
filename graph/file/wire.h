// Reads protocol buffers from untrusted sources, with limits.
#pragma once

#include <cstdint>
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

// Checks a message before it is parsed: its size, the number of its nodes, and
// that no node has an attribute twice. `paths` are the field numbers that lead
// to nodes. (A node of two bytes would need a hundred in memory.)
// ResourceExhausted beyond the limits; DataLoss if it is not a message;
// InvalidArgument for a duplicate attribute. `what` is for errors, as below.
Status check_message(std::string_view bytes,
                     std::initializer_list<std::vector<int>> paths,
                     std::string_view what, const Limits& limits);

// Checks the number of submessages of another kind; `what` names them.
// ResourceExhausted beyond the limit. A malformed message is left to the
// parser.
Status check_count(std::string_view bytes,
                   std::initializer_list<std::vector<int>> paths,
                   std::string_view what, size_t limit);

// DataLoss if the bytes are not such a message. It asks the budget of the
// limits, too.
Status parse_message(std::string_view bytes, std::string_view what,
                     google::protobuf::Message* message,
                     const Limits& limits = {});

// Deterministic. ResourceExhausted beyond 2 GiB, the maximum of the format.
Result<std::string> write_message(const google::protobuf::Message& message);

// Fields that our messages lack: an error, since a name may be misspelled, or
// ignored in what only programs write.
enum class UnknownFields : uint8_t { kRefused, kIgnored };

// InvalidArgument, with line and column, if the text is not such a message, and
// with the node, if that has an attribute twice or a string is not UTF-8, which
// no binary message may hold; ResourceExhausted if it is too long or nested too
// deeply. It asks the budget of the limits, too.
Status parse_text(std::string_view text, std::string_view what,
                  const Limits& limits, google::protobuf::Message* message,
                  UnknownFields unknown = UnknownFields::kRefused);
std::string print_text(const google::protobuf::Message& message);

}  // namespace tagflow::graph
