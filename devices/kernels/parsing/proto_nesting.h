// How many messages a serialized message has, before it is parsed.
#pragma once

#include <google/protobuf/descriptor.h>

#include <cstddef>
#include <string_view>

namespace tagflow::devices {

// Messages are nested no deeper.
inline constexpr int kMostNesting = 100;

// At least as many messages as a parser makes of `bytes`, of type `type`, also
// if they are damaged: itself, and all inside of it. REQUIRES: fewer than 2
// GiB.
size_t most_messages(std::string_view bytes,
                     const google::protobuf::Descriptor& type);

}  // namespace tagflow::devices
