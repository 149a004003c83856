// An op whose kernel blocks until the test releases it, even if its step has
// ended, and records in which order kernels of its kind began.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "graph/builder/builder.h"
#include "graph/graph.h"

namespace tagflow::actors {

// TestBlock(x: T) -> x. While a Blockade lives, its kernels block.
graph::Output test_block(const graph::Scope& s, const graph::Input& x);
// "y" is 2, when a kernel of that kind has run.
graph::Graph blocked_graph();

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

// TestCall(x: T) -> x. While a TestCall lives, its kernels, which are cheap,
// call that: if the caller lends its thread, on it. One at a time.
graph::Output test_call(const graph::Scope& s, const graph::Input& x);
class TestCall {
 public:
  explicit TestCall(std::function<void()> call);
  ~TestCall();
  TestCall(const TestCall&) = delete;
  TestCall& operator=(const TestCall&) = delete;
};

}  // namespace tagflow::actors
