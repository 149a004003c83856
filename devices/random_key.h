// Which numbers a random op draws: a key that depends on what the user sees of
// an execution, and on nothing else.
//
// Note [Random keys]
// ~~~~~~~~~~~~~~~~~~
// A random op has no generator that moves on from draw to draw: who draws first
// would depend on the schedule. Its numbers are a stream of Philox, whose key
// is a function of
//   - its seeds: the attributes `seed` and `seed2`, or, where both are 0, the
//     seed of the session and the node's name;
//   - in how many earlier runs the node took part (RandomRuns);
//   - the tag of this execution: which frame, which iteration.
// So a run gives the same numbers whatever the workers, devices and shards are.
// Nodes of equal seeds that are not 0 draw the same numbers in each run, in
// whichever session, as they do in TensorFlow; their values differ from its.
//
// These words are folded one by one into two states of 64 bits: a state is the
// key under which Threefry encrypts the word, which gives the next state. Words
// that differ in a bit lead to unrelated states, and no sequence of words is
// the beginning of another: a name comes with its length. The first state is
// the key of the stream, the second one the upper half of its counter; the
// lower half counts the blocks of the output from 0. Two executions share
// numbers only where both states agree: by a chance of 2^-128 for each pair.
#pragma once

#include <cstdint>

#include "devices/kernel.h"
#include "devices/philox.h"

namespace tagflow::devices {

struct RandomKey {
  uint64_t key = 0;
  uint64_t counter = 0;  // the upper half

  // From block 0.
  Philox stream() const { return {key, 0, counter}; }
  bool operator==(const RandomKey&) const = default;
};

// Of this execution of a node with attributes `seed` and `seed2`, which count
// as 0 where it has none. Thread-safe.
RandomKey random_key(const KernelContext& context);

}  // namespace tagflow::devices
