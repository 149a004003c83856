// LinkFigures: what a process says of its links to another one.
#pragma once

#include <string>

#include "net/link/traffic.h"

namespace tagflow::net {

struct LinkFigures {
  std::string peer;  // "/job:worker/task:1", or "the master"
  Traffic traffic;
};

}  // namespace tagflow::net
