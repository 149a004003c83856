// Transfer: an edge of a program that is cut: Note [Transfers] in rendezvous.h.
#pragma once

#include <cstdint>
#include <string>

namespace tagflow::actors {

// Of one executable.
struct Transfer {
  // Which ends are in this process.
  enum class Ends : uint8_t { kBoth, kSend, kRecv };

  // "sending device;incarnation;receiving device;tensor".
  std::string name;
  Ends ends = Ends::kBoth;
};

}  // namespace tagflow::actors
