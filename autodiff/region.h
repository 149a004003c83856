// Region: a part of a graph whose gradients are made in one walk, and how its
// values get to where the gradient is computed.
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
// The gradients of the nodes of one frame are made in one walk over them. The
// walk treats each loop in the frame as one node, with the inputs of its Enters
// and the outputs of its Exits. The region decides where the gradient of a node
// is computed, and how it gets the node's values:
//
//   outermost   where the node is; its values are there.
//   body        iterations that go on. The gradient is in the body of a
//               backward loop; values of an iteration come from stacks (Note
//               [Saved values]), loop constants from the region around.
//   end         the last iteration, in which the predicate is false. The
//               gradient is beside the loop; values leave it by Exits.
//   call        the body of a recursive function. The gradient is in a function
//               of its own; values come from the call's record (Note [Records]
//               in call_region.h).
//
// Conditionals need no region: the gradient of a branch is live where its
// values are.
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

  // The conditions that hold for everything in the region.
  virtual Conditions::Set given() { return Conditions::kNone; }
  // The output of the loop's own Switches that is live here.
  virtual int loop_port() const { return 1; }

  // All of the following take a tensor of the frame, and return one for the
  // gradient. After an error of the scope the results are invalid.

  // The value that `tensor` had.
  virtual Output value(const Endpoint& tensor) = 0;
  // Its shape, or, of a handle, that of its variable: a vector of int32 or
  // int64, constant if the shape is known.
  Output shape(const Endpoint& tensor, DataType dtype = DataType::kInt32);
  // The gradient of a tensor on which y does not depend: zeros of its type and
  // shape. `dtype` is the type for a variable's handle.
  Output zeros(const Endpoint& tensor, DataType dtype = DataType::kInvalid);
  // Ones of the tensor's type and shape, as live as it is: the gradient of a y.
  // The tensor is not read if its shape is known and it is always live.
  Output ones(const Endpoint& tensor);
  // A gradient of `like` as one tensor; the rows of a sparse one are summed.
  Output dense(const graph::Scope& s, const Endpoint& like,
               const Gradient& gradient);
  // Output `port` of a new node that runs where the graph's nodes do, and reads
  // `inputs`.
  Output forward(const std::string& name, std::string_view op,
                 const std::vector<Endpoint>& inputs, AttrMap attrs, int port);
  // A constant outside all loops and branches.
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

// A region whose gradient is made elsewhere than its values, and runs later:
// values that are not constant must be kept for it.
class DistantRegion : public Region {
 public:
  using Region::Region;
  Output value(const Endpoint& tensor) final;

 protected:
  Output run_time_shape(const Endpoint& tensor, DataType dtype) final;
  // The value of a tensor that is neither a constant nor from outside.
  virtual Output varying_value(const Endpoint& tensor) = 0;
  // The tensor in the region around that the value comes from, or null.
  virtual Endpoint outside(const Endpoint&) const { return {}; }
  // Null if there is none, so that no value is from outside.
  virtual Region* around_or_null() { return nullptr; }
  // Whether value(source) adds nothing to the graph. `source` is a
  // value_source().
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
