// Region: the part of a graph within which gradients are made in one piece, and
// how values of it get to where its gradient is computed.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "autodiff/analysis.h"
#include "autodiff/forward_loop.h"
#include "autodiff/gradient.h"
#include "graph/builder/scope.h"
#include "graph/builder/structured_control_flow.h"

namespace tagflow::autodiff {

// Note [Regions]
// What has to do with the nodes of one frame is made in one walk over them, in
// which each loop within is one thing, with the inputs of its Enters and the
// outputs of its Exits. Where the gradient of a node is computed, and what its
// values are there, is a matter of the region:
//
//   outermost   where the node is; its values are there.
//   body        iterations that go on. The gradient is in the body of a
//               backward loop; values of an iteration come from stacks (Note
//               [Saved values]), loop constants from the region around.
//   end         the last iteration, which only finds out that the loop ends.
//               The gradient is beside the loop; values leave it by Exits.
//
// Conditionals need no region: what is in a branch is live where its values
// are.
class Region {
 public:
  Region(Analysis& analysis, FrameId frame, graph::Scope scope)
      : analysis_(analysis), frame_(frame), scope_(std::move(scope)) {}
  virtual ~Region() = default;
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  Analysis& analysis() { return analysis_; }
  FrameId frame() const { return frame_; }
  // Where the gradient's nodes are made.
  const graph::Scope& scope() const { return scope_; }

  // What is known to hold of everything in the region.
  virtual Conditions::Set given() { return Conditions::kNone; }
  // Which output of the loop's own Switches is live here.
  virtual int loop_port() const { return 1; }

  // All of the following take a tensor of the frame, and give one for the
  // gradient. After an error of the scope the results are invalid.

  // The value that `tensor` had.
  virtual Output value(const Endpoint& tensor) = 0;
  // Its shape, or that of the variable behind it where it is a handle: a vector
  // of int32 or int64, constant where it is known.
  Output shape(const Endpoint& tensor, DataType dtype = DataType::kInt32);
  // The gradient of what has no part in y: zeros of its type and shape. `dtype`
  // is for a variable's handle, whose own type says nothing.
  Output zeros(const Endpoint& tensor, DataType dtype = DataType::kInvalid);
  // A gradient of `like` as one tensor: a sparse one is summed by its rows.
  Output dense(const graph::Scope& s, const Endpoint& like,
               const Gradient& gradient);
  // Output `port` of a new node beside the tensor's, which reads `inputs`.
  Output forward(const std::string& name, std::string_view op,
                 const std::vector<Endpoint>& inputs, AttrMap attrs, int port);
  // A constant that is no part of any loop or branch.
  Output constant(Tensor value) const;

 protected:
  virtual Output run_time_shape(const Endpoint& tensor, DataType dtype) = 0;

 private:
  // A known shape as a constant vector.
  Output dims(const PartialShape& shape, DataType dtype) const;
  Output shape_of_variable(const Endpoint& handle, DataType dtype);

  Analysis& analysis_;
  const FrameId frame_;
  const graph::Scope scope_;
};

// The outermost region.
class PlainRegion final : public Region {
 public:
  using Region::Region;
  Output value(const Endpoint& tensor) override;

 protected:
  Output run_time_shape(const Endpoint& tensor, DataType dtype) override;
};

// What body and end of a loop have in common.
class LoopRegion : public Region {
 public:
  LoopRegion(Region& around, ForwardLoop& forward, const Loop& loop,
             graph::Scope scope);
  Output value(const Endpoint& tensor) final;

 protected:
  Output run_time_shape(const Endpoint& tensor, DataType dtype) final;
  // What is no constant of the loop.
  virtual Output varying_value(const Endpoint& tensor) = 0;

  Region& around() { return around_; }
  ForwardLoop& forward_loop() { return forward_; }
  const Loop& loop() const { return loop_; }
  // Whether value() of the source of a value adds nothing to the graph.
  bool has_value(const Endpoint& source) const {
    return values_.contains(source) || outside(source).node != nullptr;
  }

 private:
  // Where the value comes from outside of the loop: there; else null.
  Endpoint outside(const Endpoint& tensor) const;

  Region& around_;
  ForwardLoop& forward_;
  const Loop& loop_;
  std::unordered_map<Endpoint, Endpoint, graph::EndpointHash> invariants_;
  std::unordered_map<Endpoint, Output, graph::EndpointHash> values_;
  struct ShapeHash {
    size_t operator()(const std::pair<Endpoint, DataType>& key) const {
      return graph::EndpointHash()(key.first) * 31 + size_t(key.second);
    }
  };
  std::unordered_map<std::pair<Endpoint, DataType>, Output, ShapeHash> shapes_;
};

class BodyRegion final : public LoopRegion {
 public:
  // `counter` is the number of iterations before the one whose gradient is
  // computed, an int64 scalar; `grow` gives the backward loop a variable.
  BodyRegion(Region& around, ForwardLoop& forward, const Loop& loop,
             graph::Scope scope, Output counter,
             graph::structure::AddVariable grow)
      : LoopRegion(around, forward, loop, std::move(scope)),
        counter_(counter),
        grow_(std::move(grow)) {}

  Conditions::Set given() override { return analysis().goes_on(loop()); }
  // A variable of the backward loop; the body's next value of it goes into
  // `next_values()`, in the order in which they were added.
  Output add_variable(std::string path, const Output& initial);
  std::vector<graph::Leaf>& next_values() { return next_values_; }

 protected:
  Output varying_value(const Endpoint& tensor) override;

 private:
  // What the loop counts with that variable, if it does.
  std::optional<Counter> counter_at(const Endpoint& tensor) const;
  // The value of a counter, from that of the backward loop.
  Output counted(const Endpoint& tensor, const Counter& counter);
  Output popped(const Endpoint& tensor);

  // recomputed.cpp: a value that is as cheap to compute again, from what is
  // there anyway, as it is to save; invalid where it is not.
  Output recomputed(const Endpoint& tensor);
  bool is_recomputed(const Endpoint& tensor, int depth);
  bool is_at_hand(const Endpoint& tensor, int depth);

  const Output counter_;
  const graph::structure::AddVariable grow_;
  std::vector<graph::Leaf> next_values_;
};

class EndRegion final : public LoopRegion {
 public:
  using LoopRegion::LoopRegion;
  Conditions::Set given() override { return analysis().ends(loop()); }
  int loop_port() const override { return 0; }

 protected:
  Output varying_value(const Endpoint& tensor) override;
};

}  // namespace tagflow::autodiff
