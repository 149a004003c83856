// Random graphs with nested loops and conditionals, for comparing the engine
// with the reference interpreter.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "graph/graph.h"

namespace tagflow::reference {

// Where the decisions come from.
class Choices {
 public:
  virtual ~Choices() = default;
  // A number in [0, n). REQUIRES: n > 0
  virtual uint32_t below(uint32_t n) = 0;
};

// The same sequence for the same seed, on every machine.
class SeededChoices : public Choices {
 public:
  explicit SeededChoices(uint64_t seed) : state_(seed) {}
  uint32_t below(uint32_t n) override;

 private:
  uint64_t state_;
};

// A byte or two for each decision; 0 when they are used up.
class ByteChoices : public Choices {
 public:
  ByteChoices(const uint8_t* data, size_t size)
      : data_(data), end_(data + size) {}
  uint32_t below(uint32_t n) override;
  bool empty() const { return data_ == end_; }

 private:
  const uint8_t* data_;
  const uint8_t* end_;
};

struct Case {
  graph::Graph graph;
  std::vector<std::pair<std::string, Tensor>> feeds;  // "name:port", value
  std::vector<std::string> fetches;                   // "name:port"
};

struct RandomOptions {
  int max_ops = 40;   // calls of op functions, about; nodes are some 3 times
  int max_depth = 4;  // of conditionals and loops
  // Also Switch, Merge, Enter, ... without cond() and while_loop(): dead
  // fetches, joins of several inputs, odd loops.
  bool raw = true;
  // Also calls, If, Case, While and recursion over functions.
  bool functions = true;
};

// A valid graph that ends (no loop makes more than 8 trips) and has one
// result on every schedule: no Merge has two live inputs, no integer
// overflows. Fetches may be dead. It has int64 and float scalars and vectors,
// bools, loops that make no trip, are on untaken branches, run in parallel,
// nest in conditionals and the other way round, in functions too; variables
// that pass through, swap and grow; captures through every level; control
// edges. An error is a bug of the builder or the generator.
Result<Case> random_graph(Choices& choices, const RandomOptions& options = {});
Result<Case> random_graph(uint64_t seed, const RandomOptions& options = {});

}  // namespace tagflow::reference
