// Variables that a program treats as constants.
#pragma once

#include <cstdint>
#include <vector>

#include "devices/state/resource_manager.h"
#include "devices/state/variable.h"
#include "graph/program.h"

namespace tagflow::actors {

// Note [Frozen variables]
// Passes optimise constant weights: they fold and absorb them, and store them
// in the layout that is best for a product. In a run that changes no variable,
// each variable is a constant: the run may use the version that is current when
// it starts. So a signature that only reads has a second, *frozen* form, in
// which the reads of variables are constants, with the version of each that it
// was compiled for. While these versions are current, runs use the frozen form;
// otherwise they use the usual form, for a number of runs (Note [Forms]).
//
// Some reads are never frozen:
//   - reads after a node that may see effects of other runs, such as those on a
//     queue, a table, or an unfrozen variable: such an effect may be later than
//     the start of the run, and then the read must not return an older version;
//   - reads in a loop that decide whether it continues: the loop may wait for
//     another run to change the variable;
//   - reads of variables on accelerators, and of variables that are read by
//     copy, since a form would need a copy of its own.
// All other reads could happen at the start of the run.
//
// A frozen form shares the buffers of variables that are not folded, and keeps
// folded copies of the others: it needs up to as much memory as its variables,
// until it is replaced. The first update after it copies the shared buffers.

// A list of variables and their versions. A value type.
class FrozenVariables {
 public:
  void add(Ref<devices::Variable> variable, uint64_t version) {
    versions_.push_back({std::move(variable), version});
  }
  bool empty() const { return versions_.empty(); }
  // Whether no variable has changed since. Thread-safe.
  bool are_current() const;

 private:
  struct Version {
    Ref<devices::Variable> variable;
    uint64_t number = 0;
  };
  std::vector<Version> versions_;
};

// Replaces reads of variables by constants in the program's graph, and returns
// the versions of these variables. It does not replace reads of variables that
// are uninitialized, in use at the moment, or without a name.
// REQUIRES: the program is valid, functions are lowered, and references are
// replaced by reads.
Result<FrozenVariables> freeze_variables(
    graph::Program& program, const devices::ResourceManager& resources);

}  // namespace tagflow::actors
