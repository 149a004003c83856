// The numbers that a random op draws: they follow from a key that depends only
// on what the user sees of an execution.
//
// Note [Random keys]
// ~~~~~~~~~~~~~~~~~~
// A random op has no generator that advances from draw to draw: the order of
// draws would depend on the schedule. Its numbers are a stream of Philox, whose
// key is a function of
//   - its seeds: the attributes `seed` and `seed2`, or, if both are 0, the
//     seed of the session and the node's name;
//   - the number of earlier runs in which the node took part (RandomRuns);
//   - the tag of this execution: which frame, which iteration.
// So a run gives the same numbers for any number of workers, devices and
// shards. Nodes with equal nonzero seeds draw the same numbers in each run, in
// any session, as they do in TensorFlow; the values differ from TensorFlow's.
//
// These words are folded one by one into two states of 64 bits: a state is the
// key under which Threefry encrypts the word, which gives the next state. Words
// that differ in a bit lead to unrelated states. No sequence of words is a
// prefix of another: a name comes with its length. The first state is the key
// of the stream, the second one the upper half of its counter; the lower half
// counts the blocks of the output from 0. Two executions share numbers only
// if both states agree: by a chance of 2^-128 for each pair.
#pragma once

#include <cstdint>

#include "devices/kernel.h"
#include "devices/philox.h"

namespace tagflow::devices {

struct RandomKey {
  uint64_t key = 0;
  uint64_t counter = 0;  // its upper half

  // The stream from block 0.
  Philox stream() const { return {key, 0, counter}; }
  bool operator==(const RandomKey&) const = default;
};

// The key of this execution of a node with attributes `seed` and `seed2`; a
// missing attribute counts as 0. Thread-safe.
RandomKey random_key(const KernelContext& context);
// Whether the node's numbers depend on how often it has run: it is a random op.
bool counts_runs(const graph::Node& node);

}  // namespace tagflow::devices
