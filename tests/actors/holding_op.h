// An op whose kernel blocks until the test lets it go, whatever becomes of its
// step, and writes down in which order kernels of its kind began.
#pragma once

#include <string>
#include <vector>

#include "graph/builder/builder.h"

namespace tagflow::actors {

// TestBlock(x: T) -> x. While a Blockade lives, its kernels block.
graph::Output test_block(const graph::Scope& s, const graph::Input& x);

// One at a time. Thread-safe.
class Blockade {
 public:
  Blockade();
  // Lets all go.
  ~Blockade();
  Blockade(const Blockade&) = delete;
  Blockade& operator=(const Blockade&) = delete;

  void let_go();
  // Returns when `count` kernels have begun since the blockade did.
  void until_begun(int count) const;
  // The names of their nodes, in the order in which they began.
  std::vector<std::string> order() const;
};

}  // namespace tagflow::actors
