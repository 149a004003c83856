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

// How an iteration stands: a look at the engine's own state. Nodes are those
// of its frame that fire, in a fixed order.
class IterationView {
 public:
  // Without the interpreter it knows of nothing that is outstanding.
  IterationView(const FramePlan& plan, const IterationState& state,
                const Interpreter* interpreter = nullptr)
      : plan_(plan), state_(state), interpreter_(interpreter) {}

  size_t num_nodes() const;
  // REQUIRES of these: i < num_nodes()
  const graph::Node& node(size_t i) const;
  // How many inputs it still waits for; a Merge for one, beyond its control
  // inputs. Inputs that constants provide are not waited for.
  uint32_t pending(size_t i) const;
  bool has_fired(size_t i) const;  // it ran, or was skipped
  // The output that a Switch took which has fired.
  uint32_t taken(size_t i) const;
  // Nodes that can fire; the last one is the next.
  std::span<const uint32_t> ready() const;
  // What else keeps the iteration from its end: kernels and Recvs that have
  // fired and not answered, and child frames that were entered and have not
  // ended.
  size_t running() const;
  size_t children() const;

 private:
  const FramePlan& plan_;
  const IterationState& state_;
  const Interpreter* const interpreter_;
};

// The whole tag in words: "outer/2/inner/3" is iteration 3 of frame "inner" in
// iteration 2 of "outer"; "root/0" outside of loops. Of very many calls around
// it, only the first and last ones. REQUIRES: the call of the observer that the
// location came with has not returned.
std::string tag_text(const Location& location);

}  // namespace tagflow::actors
