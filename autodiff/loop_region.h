// The regions of a loop: Note [Regions] in region.h.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "autodiff/forward_loop.h"
#include "autodiff/region.h"
#include "graph/builder/structured_control_flow.h"

namespace tagflow::autodiff {

// What body and end of a loop have in common.
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
