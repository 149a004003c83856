// The regions of a loop (Note [Regions] in region.h).
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "autodiff/forward_loop.h"
#include "autodiff/region.h"
#include "graph/builder/structured_control_flow.h"

namespace tagflow::autodiff {

// The base of the regions for a loop's body and end.
class LoopRegion : public DistantRegion {
 public:
  LoopRegion(Region& around, ForwardLoop& forward, const Loop& loop,
             graph::Scope scope);

 protected:
  Endpoint outside(const Endpoint& tensor) const final;
  Region* around_or_null() final { return &around_; }

  Region& around() { return around_; }
  ForwardLoop& forward_loop() { return forward_; }
  const Loop& loop() const { return loop_; }

 private:
  Region& around_;
  ForwardLoop& forward_;
  const Loop& loop_;
  std::unordered_map<Endpoint, Endpoint, graph::EndpointHash> invariants_;
};

class BodyRegion final : public LoopRegion {
 public:
  // `counter` is the number of iterations before the one whose gradient is
  // computed, an int64 scalar; `grow` adds a variable to the backward loop.
  BodyRegion(Region& around, ForwardLoop& forward, const Loop& loop,
             graph::Scope scope, Output counter,
             graph::structure::AddVariable grow)
      : LoopRegion(around, forward, loop, std::move(scope)),
        counter_(counter),
        grow_(std::move(grow)) {}

  Conditions::Set given() override { return analysis().goes_on(loop()); }
  // Adds a variable to the backward loop. The caller appends its next value to
  // `next_values()`, in the order in which variables were added.
  Output add_variable(std::string path, const Output& initial);
  std::vector<graph::Leaf>& next_values() { return next_values_; }

 protected:
  Output varying_value(const Endpoint& tensor) override;

 private:
  // The counter that the tensor is in the loop, if it is one.
  std::optional<Counter> counter_at(const Endpoint& tensor) const;
  // The value of a counter, computed from that of the backward loop.
  Output counted(const Endpoint& tensor, const Counter& counter);
  Output popped(const Endpoint& tensor);

  // recomputed.cpp: the value, computed again from values that are available
  // anyway; invalid if saving it is cheaper.
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
