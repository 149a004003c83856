// The reference interpreter: what a graph means, as a recursive function.
//
// Note [Reference semantics]
// A tag is a path of (frame, iteration). Within one tag, every node is in one
// of three states, and so is each of its outputs:
//   live    it was computed
//   dead    it was skipped
//   absent  it never ran: the tag has no token for some input of it
// The interpreter computes the state of a node at a tag recursively from the
// states of its inputs, and caches it. The rules:
//   - an ordinary node is absent if an input or control input is, else dead if
//     one is, else live;
//   - a Merge waits for its control inputs, dead or not. It takes a live
//     input; is dead if all inputs that its iteration can bring are; an Enter
//     is brought by iteration 0 only, a NextIteration by the others only;
//   - an Enter brings its input to iteration 0 of the child frame, a constant
//     one to every iteration;
//   - a NextIteration brings a live input to the next iteration, and a dead
//     one nowhere; iteration n+1 exists if n brings a live token to it;
//   - an Exit passes on the one live token that the iterations of its frame
//     instance give it, and is dead if none does;
//   - a ControlTrigger is live once all control inputs are live or dead.
// A control edge carries the state of its source node: a live Switch has a dead
// output, but is live for nodes that wait for it.
//
// A node that calls functions is live or dead like any other. If it is live, it
// interprets the bodies as often as its op says, and its outputs are the
// results of the body. Functions are not expanded or lowered.
//
// It has no counts, queues, actors or batches, nothing is started and nothing
// ends: it shares no idea with the engine that it checks. It evaluates every
// node that the fetches need, at every tag that exists, so that it sees every
// error that the engine may see. It is slow, and only for graphs that end.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "graph/graph.h"

namespace tagflow::reference {

enum class State : uint8_t { kAbsent, kDead, kLive };

// The result of a fetch. It has a value if the state is kLive.
struct Outcome {
  State state = State::kAbsent;
  Tensor value;
};

struct Counts {
  int64_t computed = 0;    // live firings, of control flow too
  int64_t skipped = 0;     // dead firings
  int64_t frames = 0;      // instances, the root apart
  int64_t iterations = 0;  // of those
};

struct Interpretation {
  std::vector<Outcome> fetches;
  Counts counts;
  // A Merge had two live inputs: which of them it takes is open.
  bool is_ambiguous = false;
};

struct InterpreterOptions {
  int64_t max_firings = 1'000'000;  // beyond: ResourceExhausted
  // Of the recursion, that is of a chain of ops in one iteration.
  int max_depth = 2000;
  // Of calls inside calls.
  int max_calls = 50;
  // Of the values of one firing's outputs: loops may double a tensor.
  size_t max_bytes = size_t(1) << 20;
};

// Evaluates the fetches, "name:port" or "name". Feeds replace outputs. Errors:
// what a kernel returned, with node and tag; InvalidArgument or NotFound for
// names, feeds and fetches inside loops, illegal cycles and mixed frames.
Result<Interpretation> interpret(
    const graph::Graph& graph,
    const std::vector<std::pair<std::string, Tensor>>& feeds,
    const std::vector<std::string>& fetches,
    const InterpreterOptions& options = {});

}  // namespace tagflow::reference
