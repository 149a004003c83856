// IterationView: what an observer sees of an iteration.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace tagflow::graph {
class Node;
}

namespace tagflow::actors {

class Interpreter;     // internal
class IterationState;  // actors/runtime/iteration_state.h
struct FramePlan;      // actors/plan/plan.h
struct Location;       // actors/watch/observer.h

// A view of the engine's state of an iteration. Its nodes are those of the
// frame that fire, in a fixed order.
class IterationView {
 public:
  // Without the interpreter, running() and children() are 0.
  IterationView(const FramePlan& plan, const IterationState& state,
                const Interpreter* interpreter = nullptr)
      : plan_(plan), state_(state), interpreter_(interpreter) {}

  size_t num_nodes() const;
  // REQUIRES of these: i < num_nodes()
  const graph::Node& node(size_t i) const;
  // How many inputs it still waits for. A Merge waits for one data input, and
  // for its control inputs. Inputs from constants do not count.
  uint32_t pending(size_t i) const;
  bool has_fired(size_t i) const;  // it ran, or was skipped
  // The output that a Switch took. REQUIRES: it has fired.
  uint32_t taken(size_t i) const;
  // Nodes that can fire; the last one is the next.
  std::span<const uint32_t> ready() const;
  // What else the iteration waits for before it can end: kernels and Recvs that
  // have fired but not answered, and child frames that were entered but have
  // not ended.
  size_t running() const;
  size_t children() const;

 private:
  const FramePlan& plan_;
  const IterationState& state_;
  const Interpreter* const interpreter_;
};

// The text of the whole tag: "outer/2/inner/3" is iteration 3 of frame "inner"
// in iteration 2 of "outer"; "root/0" outside of loops. Of many nested calls,
// only the first and last ones are named. REQUIRES: the call of the observer
// that the location came with has not returned.
std::string tag_text(const Location& location);

}  // namespace tagflow::actors
