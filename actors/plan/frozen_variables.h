// Variables that a program takes for constants.
#pragma once

#include <cstdint>
#include <vector>

#include "devices/state/resource_manager.h"
#include "devices/state/variable.h"
#include "graph/program.h"

namespace tagflow::actors {

// Note [Frozen variables]
// Passes make much of constant weights: they are folded, absorbed, and brought
// into the order that a product likes best. To a run that changes no variable,
// each is a constant: it may take the version of the moment when it starts. So
// a signature that only reads has a second, *frozen* form, in which the reads
// of variables are constants, with the version of each that it was compiled
// for. While all still have these, runs take the frozen form; otherwise the
// usual one, for a number of runs (Note [Forms]).
//
// Some reads are never frozen:
//   - those that come after something that may see what other runs do, as a
//     queue, a table, or a read that is not frozen: what that sees may be later
//     than the start of the run, and then this read must not be earlier;
//   - those in a loop that decide whether it goes on: it may wait for another
//     run to change the variable;
//   - those of variables of accelerators, and of variables that are read by
//     copy, since a form would have a copy of its own.
// All others could be the first that the run does.
//
// A frozen form shares the buffers of what it has not folded, and keeps what it
// has: it costs up to as much memory as its variables once more, until it is
// replaced. The first update after it copies what is shared.

// Versions of variables. A value.
class FrozenVariables {
 public:
  void add(Ref<devices::Variable> variable, uint64_t version) {
    versions_.push_back({std::move(variable), version});
  }
  bool empty() const { return versions_.empty(); }
  // Whether nothing was changed since. Thread-safe.
  bool are_current() const;

 private:
  struct Version {
    Ref<devices::Variable> variable;
    uint64_t number = 0;
  };
  std::vector<Version> versions_;
};

// Replaces reads of variables by constants, in the program's graph; gives the
// versions of those. What is not initialized, in use at the moment, or without
// a name is read as before.
// REQUIRES: the program is valid, functions are lowered, and references read.
Result<FrozenVariables> freeze_variables(
    graph::Program& program, const devices::ResourceManager& resources);

}  // namespace tagflow::actors
