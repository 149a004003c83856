// Frames as a peer of tests sends them.
#pragma once

#include <doctest/doctest.h>

#include <string>

#include "net/wire/messages.h"

namespace tagflow::net {

// The message as the frame of that number, with `rest` behind the body.
template <class Message>
std::string numbered(const Message& message, uint32_t number,
                     std::string_view rest = {}) {
  Writer writer(kFrameHeader);
  message.write(writer);
  writer.raw(rest);
  REQUIRE(begin_frame(Message::kKind, writer.bytes()).ok());
  number_frame(writer.bytes(), number);
  return writer.bytes();
}

}  // namespace tagflow::net
