// Connection: what listeners and connectors hand on.
#pragma once

#include "net/link/socket.h"
#include "net/wire/greeting.h"

namespace tagflow::net {

// A connection whose other side has proved itself. What it is for, and who is
// there, is in the greeting.
struct Connection {
  Greeting peer;
  Socket socket;
};

}  // namespace tagflow::net
