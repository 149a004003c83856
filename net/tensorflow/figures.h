// What a session service says of itself.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tagflow::net {

struct SessionFigures {
  size_t sessions = 0;
  size_t runs = 0;     // that are not answered
  uint64_t bytes = 0;  // of their feeds, and of graphs
};

}  // namespace tagflow::net
