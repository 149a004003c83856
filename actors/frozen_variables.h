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
// usual one, until nothing has changed for some time (Freezing).
//
// A run that waits for something, as for a queue, is never frozen: what it
// waits for may come after an update that it must see. Nor are variables of
// accelerators, and those that are read by copy, since a form would have a copy
// of its own. A frozen form shares the buffers of what it has not folded: the
// next update copies these once.

// Whether it reads the value of a variable, and does nothing else.
bool reads_variable(const graph::Node& node);

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
// versions of those. What is not initialized, in use at the moment, or named by
// nobody is read as before.
// REQUIRES: the program is valid, functions are lowered, and references read.
Result<FrozenVariables> freeze_variables(
    graph::Program& program, const devices::ResourceManager& resources);

}  // namespace tagflow::actors
