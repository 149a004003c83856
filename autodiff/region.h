// Region: the part of a graph within which gradients are made in one piece, and
// how values of it get to where its gradient is computed.
#pragma once

#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "autodiff/analysis.h"
#include "autodiff/gradient.h"
#include "graph/builder/scope.h"

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
//   call        the body of a recursive function. The gradient is in a function
//               of its own; values come from the call's record (Note [Records]
//               in call_region.h).
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

// One whose gradient is made elsewhere than its values are, and runs later:
// what is no constant has to be kept for it.
class DistantRegion : public Region {
 public:
  using Region::Region;
  Output value(const Endpoint& tensor) final;

 protected:
  Output run_time_shape(const Endpoint& tensor, DataType dtype) final;
  // What is neither a constant nor from outside.
  virtual Output varying_value(const Endpoint& tensor) = 0;
  // Where the value comes from the region around: there; else null.
  virtual Endpoint outside(const Endpoint&) const { return {}; }
  // Null where there is none, and so nothing is from outside.
  virtual Region* around_or_null() { return nullptr; }
  // Whether value() of the source of a value adds nothing to the graph.
  bool has_value(const Endpoint& source) const {
    return values_.contains(source) || outside(source).node != nullptr;
  }

 private:
  std::unordered_map<Endpoint, Output, graph::EndpointHash> values_;
  struct ShapeHash {
    size_t operator()(const std::pair<Endpoint, DataType>& key) const {
      return graph::EndpointHash()(key.first) * 31 + size_t(key.second);
    }
  };
  std::unordered_map<std::pair<Endpoint, DataType>, Output, ShapeHash> shapes_;
};

}  // namespace tagflow::autodiff
