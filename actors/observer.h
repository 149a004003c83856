// Observer: one hook on everything the engine does; the stepper, traces,
// watches and the examples' logs hang on it.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "devices/kernel.h"
#include "graph/tensor.h"

namespace tagflow::actors {

// Where something happened. `frame` is the frame's static name, "" for the
// root frame; `tag` identifies its instance and iteration.
struct Place {
  std::string_view frame;
  devices::Tag tag;
};

// Methods are called synchronously by the thread that does the work, often
// several at once: implementations must be thread-safe and quick. References
// are valid during the call only.
class Observer {
 public:
  virtual ~Observer() = default;
  // A node is about to run (`dead` false) or is skipped because an input is
  // dead. With the pass "edges", nodes that became edges do not fire.
  virtual void on_fire(const Place&, const graph::Node&, bool dead) {
    (void)dead;
  }
  // The node above has run. `outputs` are its values, before they are passed
  // on; of a Switch the one value, whichever side it takes. Not called where
  // the node failed or has no data output.
  virtual void on_fired(const Place&, const graph::Node&,
                        std::span<const Tensor> outputs) {
    (void)outputs;
  }
  // A token entered this iteration from outside it: through an Enter, a
  // NextIteration, an Exit of a child frame, or a feed. `node` is that node.
  virtual void on_arrive(const Place&, const graph::Node& node,
                         const Tensor& value, bool dead) {
    (void)node, (void)value, (void)dead;
  }
  virtual void on_iteration_start(const Place&) {}
  virtual void on_iteration_end(const Place&) {}
  virtual void on_frame_start(const Place&) {}
  virtual void on_frame_end(const Place&) {}
};

}  // namespace tagflow::actors
