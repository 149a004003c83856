// Observer: one interface for everything that the engine does; the stepper,
// traces, watches and the logs of the examples implement it.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "devices/kernel.h"
#include "graph/tensor.h"

namespace tagflow::actors {

class IterationView;   // actors/runtime/iteration_view.h
struct FrameInstance;  // internal

// Where something happened. `frame` is the frame's static name, "" for the root
// frame. `tag` identifies its instance and iteration; `device` is the full name
// of the partition's device. tag_text() in actors/runtime/iteration_view.h
// makes a text of the tag.
struct Location {
  std::string_view frame;
  devices::Tag tag;
  std::string_view device;
  const FrameInstance* instance = nullptr;
};

// Methods are called synchronously by the thread that does the work, often
// several at once: implementations must be thread-safe and quick. A method must
// not wait: it must not call Session::run(), and Session::close() does not wait
// in it. An exception of a method is the error of the run. References are valid
// during the call only. RunOptions::observer says how long the observer must
// live.
class Observer {
 public:
  virtual ~Observer() = default;
  // A node is about to run (`dead` false) or is skipped because an input is
  // dead. With the pass "edges", nodes that became edges do not fire.
  virtual void on_fire(const Location&, const graph::Node&, bool dead) {
    (void)dead;
  }
  // The node of on_fire() has run. `outputs` are its values, before they are
  // passed on; for a Switch it is the one value, whichever side it takes. Not
  // called if the node failed or has no data output.
  virtual void on_fired(const Location&, const graph::Node&,
                        std::span<const Tensor> outputs) {
    (void)outputs;
  }
  // An expensive kernel was deferred when its node fired: now it runs on this
  // thread, until on_computed(). on_fired() may be called on another thread.
  virtual void on_compute(const Location&, const graph::Node&) {}
  virtual void on_computed(const Location&, const graph::Node&) {}
  // A token entered this iteration from outside it: through an Enter, a
  // NextIteration, an Exit of a child frame, or a feed. `node` is that node.
  virtual void on_arrive(const Location&, const graph::Node& node,
                         const Tensor& value, bool dead) {
    (void)node, (void)value, (void)dead;
  }
  // The tokens of the last arrivals, or of the last firing, have reached their
  // destinations within this iteration.
  virtual void on_settle(const Location&, const IterationView&) {}
  // No node is ready here: this thread leaves the iteration, and its tokens for
  // other actors have been sent.
  virtual void on_pause(const Location&) {}
  virtual void on_iteration_start(const Location&) {}
  virtual void on_iteration_end(const Location&) {}
  // `caller` is the iteration whose Enters started the frame; for the root
  // frame, it is the frame itself.
  virtual void on_frame_start(const Location&, const Location& caller) {
    (void)caller;
  }
  virtual void on_frame_end(const Location&) {}
};

}  // namespace tagflow::actors
