#include "autodiff/forward_loop.h"

namespace tagflow::autodiff {

ForwardLoop::ForwardLoop(Analysis& analysis, const Loop& loop,
                         std::string prefix)
    : analysis_(analysis),
      loop_(loop),
      around_(analysis.parent(loop.frame)),
      carrier_(analysis, std::move(prefix)) {}

Result<Endpoint> ForwardLoop::inside(std::string_view prefix,
                                     std::string_view op,
                                     std::vector<Endpoint> inputs,
                                     AttrMap attrs,
                                     std::vector<Node*> controls) {
  TAGFLOW_ASSIGN(Node * node,
                 carrier_.add(fmt::format("{}/{}", prefix, op), op,
                              std::move(inputs), std::move(attrs), loop_.frame,
                              Conditions::kNone, std::move(controls)));
  return Endpoint{node, 0};
}

// The node is live if the loop runs.
Result<Endpoint> ForwardLoop::outside(std::string_view prefix,
                                      std::string_view op,
                                      std::vector<Endpoint> inputs,
                                      AttrMap attrs,
                                      std::vector<Node*> controls) {
  TAGFLOW_ASSIGN(
      Node * node,
      carrier_.add(fmt::format("{}/{}", prefix, op), op, std::move(inputs),
                   std::move(attrs), around_, analysis_.live(*loop_.loop_cond),
                   std::move(controls)));
  return Endpoint{node, 0};
}

// It must be dead if the loop is on a branch that is not taken, and run once
// in each iteration of a loop around. So it waits for an input of the loop.
Result<Endpoint> ForwardLoop::source(std::string_view op, AttrMap attrs) {
  std::vector<Node*> controls;
  if (around_ != FrameId::kRoot ||
      analysis_.live(*loop_.loop_cond) != Conditions::kNone) {
    if (anchor_ == nullptr) {
      const Endpoint entering = loop_.variables.front().enter->inputs()[0];
      TAGFLOW_ASSIGN(const Endpoint anchor,
                     outside("entered", "Identity", {entering}));
      anchor_ = anchor.node;
    }
    controls = {anchor_};
  }
  return outside("source", op, {}, std::move(attrs), std::move(controls));
}

Result<Carrier::Variable> ForwardLoop::add_variable(const std::string& name,
                                                    const Endpoint& initial) {
  TAGFLOW_ASSIGN(Node * merge, carrier_.enter(name, loop_, initial));
  return carrier_.split(name, loop_, merge, {merge, 0});
}

Result<Endpoint> ForwardLoop::integer(int64_t value) {
  return source(
      "Const", {{"value", Tensor::scalar(value)}, {"dtype", DataType::kInt64}});
}

Result<Endpoint> ForwardLoop::at_least_one(const Endpoint& k) {
  TAGFLOW_ASSIGN(const Endpoint one, integer(1));
  TAGFLOW_ASSIGN(const Endpoint wide,
                 outside("every", "Cast", {k}, {{"DstT", DataType::kInt64}}));
  return outside("every", "Maximum", {wide, one});
}

Result<Endpoint> ForwardLoop::number() {
  if (number_.node != nullptr) return number_;
  TAGFLOW_ASSIGN(const Endpoint zero, integer(0));
  TAGFLOW_ASSIGN(const Carrier::Variable count, add_variable("trips", zero));
  TAGFLOW_ASSIGN(const Endpoint now,
                 inside("trips", "Identity", {count.goes_on}));
  TAGFLOW_ASSIGN(const Endpoint one,
                 inside("trips", "Const", {},
                        {{"value", Tensor::scalar<int64_t>(1)},
                         {"dtype", DataType::kInt64}},
                        {now.node}));
  TAGFLOW_ASSIGN(const Endpoint next, inside("trips", "AddV2", {now, one}));
  TAGFLOW_RETURN_IF_ERROR(carrier_.close(loop_, count, next));
  number_ends_ = count.ends;
  return number_ = {count.merge, 0};
}

Result<Endpoint> ForwardLoop::trips() {
  if (trips_.node != nullptr) return trips_;
  for (const LoopVariable& variable : loop_.variables)
    if (const auto counter = counter_of(variable);
        counter && counter->step && number_.node == nullptr)
      return counted_trips(*counter, variable.merge);
  TAGFLOW_RETURN_IF_ERROR(number().status());
  TAGFLOW_ASSIGN(Node * exit, carrier_.leave("trips", loop_, number_ends_));
  return trips_ = {exit, 0};
}

Result<Endpoint> ForwardLoop::counted_trips(const Counter& counter,
                                            Node* merge) {
  TAGFLOW_ASSIGN(Endpoint trips, last({merge, 0}));
  const DataType type = merge->output_dtypes()[0];
  TAGFLOW_ASSIGN(trips, outside("trips", "Sub", {trips, counter.first}));
  if (type != DataType::kInt64) {
    TAGFLOW_ASSIGN(
        trips, outside("trips", "Cast", {trips}, {{"DstT", DataType::kInt64}}));
  }
  if (counter.step != 1) {
    TAGFLOW_ASSIGN(const Endpoint step, integer(counter.step));
    TAGFLOW_ASSIGN(trips, outside("trips", "FloorDiv", {trips, step}));
  }
  return trips_ = trips;
}

// Follows the nodes that saved() makes, from the push outwards.
Endpoint ForwardLoop::saved_before(const Endpoint& value,
                                   const std::vector<Guard>& guards) {
  const auto user = [&](const Endpoint& tensor, auto&& fits) -> Node* {
    for (const Use& use : analysis_.uses(*tensor.node))
      if (use.node->inputs()[use.index] == tensor && fits(use)) return use.node;
    return nullptr;
  };
  for (const Use& use : analysis_.uses(*value.node)) {
    if (use.node->op() != "PersistentStackPush" || use.index != 1 ||
        use.node->inputs()[1] != value)
      continue;
    Endpoint inside = use.node->inputs()[0];
    Endpoint next{use.node, 0};
    bool fits = true;
    for (size_t i = guards.size(); fits && i-- > 0;) {
      const Guard& guard = guards[i];
      fits = inside.node->is_switch() && inside.port == guard.port &&
             inside.node->inputs()[1] == guard.predicate;
      Node* merge = user(next, [&](const Use& by) {
        return by.node->is_merge() && int(by.index) == guard.port;
      });
      fits = fits && merge != nullptr;
      if (!fits) break;
      inside = inside.node->inputs()[0];
      next = {merge, 0};
    }
    if (!fits || !analysis_.is_loop_switch(*inside.node)) continue;
    for (const LoopVariable& variable : loop_.variables) {
      if (inside.node->inputs()[0] != Endpoint{variable.merge, 0} ||
          variable.next->inputs()[0] != next ||
          variable.enter->inputs()[0].node->op() != "PersistentStack")
        continue;
      if (Node* exit = user({inside.node, 0},
                            [](const Use& by) { return by.node->is_exit(); }))
        return {exit, 0};
    }
  }
  return {};
}

Result<Endpoint> ForwardLoop::saved(const Endpoint& value,
                                    const std::vector<Guard>& guards) {
  if (const auto known = saved_.find(value); known != saved_.end())
    return known->second;
  if (const Endpoint before = saved_before(value, guards);
      before.node != nullptr)
    return saved_[value] = before;
  TAGFLOW_ASSIGN(saved_[value], stacked(value, guards));
  return saved_[value];
}

Result<Endpoint> ForwardLoop::stacked(const Endpoint& value,
                                      const std::vector<Guard>& guards) {
  const DataType dtype = value.node->output_dtypes()[size_t(value.port)];
  TAGFLOW_ASSIGN(const Endpoint empty,
                 source("PersistentStack", {{"elem_type", dtype}}));
  const std::string name = value.node->name();
  TAGFLOW_ASSIGN(const Carrier::Variable stack, add_variable(name, empty));
  TAGFLOW_ASSIGN(
      const Endpoint next,
      carrier_.guarded(
          name, stack.goes_on, guards, loop_.frame,
          [&](const Endpoint& before) {
            return inside(name, "PersistentStackPush", {before, value});
          }));
  TAGFLOW_RETURN_IF_ERROR(carrier_.close(loop_, stack, next));
  TAGFLOW_ASSIGN(Node * exit, carrier_.leave(name, loop_, stack.ends));
  return Endpoint{exit, 0};
}

// As a constant of the loop.
Result<Endpoint> ForwardLoop::entered(const std::string& name,
                                      const Endpoint& outside) {
  const graph::StaticFrame& frame = analysis_.frame(loop_.frame);
  return inside(name, "Enter", {outside},
                {{"frame_name", frame.name},
                 {"is_constant", true},
                 {"parallel_iterations", frame.parallel_iterations}});
}

Result<Endpoint> ForwardLoop::saved_every(const Endpoint& value,
                                          const Endpoint& k) {
  if (const auto known = saved_every_.find(value); known != saved_every_.end())
    return known->second;
  if (is_kth_.node == nullptr) {
    TAGFLOW_ASSIGN(const Endpoint now, number());
    TAGFLOW_ASSIGN(const Endpoint every, entered("every", k));
    TAGFLOW_ASSIGN(const Endpoint zero, integer(0));
    TAGFLOW_ASSIGN(const Endpoint none, entered("every/zero", zero));
    TAGFLOW_ASSIGN(const Endpoint rest,
                   inside("every", "FloorMod", {now, every}));
    TAGFLOW_ASSIGN(is_kth_, inside("every", "Equal", {rest, none}));
  }
  TAGFLOW_ASSIGN(saved_every_[value], stacked(value, {{is_kth_, 1, 2}}));
  return saved_every_[value];
}

Result<Endpoint> ForwardLoop::filler(const std::string& name, DataType dtype) {
  Endpoint outside;
  if (dtype == DataType::kVariant) {
    TAGFLOW_ASSIGN(outside, source("ZeroVariant", {}));
  } else {
    TAGFLOW_ASSIGN(outside,
                   source("Const", {{"value", Tensor::make(dtype, {0})},
                                    {"dtype", dtype}}));
  }
  return entered(name + "/filler", outside);
}

Result<Endpoint> ForwardLoop::value_or_filler(
    const Endpoint& value, const std::vector<Guard>& guards) {
  if (guards.empty()) return value;
  const std::string& name = value.node->name();
  TAGFLOW_ASSIGN(Endpoint rest,
                 filler(name, value.node->output_dtypes()[size_t(value.port)]));
  std::vector<Endpoint> alternatives{value};
  for (const Guard& guard : guards) {
    TAGFLOW_ASSIGN(Node * node,
                   carrier_.branch(name + "/filler", rest, guard, loop_.frame));
    for (int port = 0; port < guard.ports; ++port)
      if (port != guard.port) alternatives.push_back({node, port});
    rest = {node, guard.port};
  }
  const auto count = int64_t(alternatives.size());
  return inside(name + "/or_filler", "Merge", std::move(alternatives),
                {{"N", count}});
}

Result<Endpoint> ForwardLoop::listed(const Endpoint& value) {
  if (const auto known = listed_.find(value); known != listed_.end())
    return known->second;
  const DataType dtype = value.node->output_dtypes()[size_t(value.port)];
  const Conditions::Set goes_on = analysis_.goes_on(loop_);
  const Conditions::Set live = analysis_.live(value);
  const bool has_last = !analysis_.conditions().includes(live, goes_on);
  TAGFLOW_ASSIGN(
      const auto guards,
      guards_of(analysis_, loop_.frame, live,
                has_last ? analysis_.live(*loop_.loop_cond) : goes_on, value));
  TAGFLOW_ASSIGN(const Endpoint any,
                 source("Const", {{"value", Tensor::scalar<int32_t>(-1)},
                                  {"dtype", DataType::kInt32}}));
  TAGFLOW_ASSIGN(const Endpoint empty,
                 outside("list", "EmptyTensorList", {any, any},
                         {{"element_dtype", dtype}}));
  TAGFLOW_ASSIGN(const Endpoint element, value_or_filler(value, guards));
  const std::string name = value.node->name() + "/list";
  TAGFLOW_ASSIGN(Node * merge, carrier_.enter(name, loop_, empty));
  // Before the loop ends, or where it goes on.
  Endpoint list{merge, 0};
  const auto push = [&]() -> Status {
    TAGFLOW_ASSIGN(list, inside(name, "TensorListPushBack", {list, element},
                                {{"element_dtype", dtype}}));
    return {};
  };
  if (has_last) TAGFLOW_RETURN_IF_ERROR(push());
  TAGFLOW_ASSIGN(const Carrier::Variable variable,
                 carrier_.split(name, loop_, merge, list));
  list = variable.goes_on;
  if (!has_last) TAGFLOW_RETURN_IF_ERROR(push());
  TAGFLOW_RETURN_IF_ERROR(carrier_.close(loop_, variable, list));
  TAGFLOW_ASSIGN(Node * exit, carrier_.leave(name, loop_, variable.ends));
  return listed_[value] = {exit, 0};
}

Result<Endpoint> ForwardLoop::last(const Endpoint& value) {
  if (const auto known = last_.find(value); known != last_.end())
    return known->second;
  Endpoint leaving = value;
  Conditions& conditions = analysis_.conditions();
  if (!conditions.includes(analysis_.live(value), analysis_.ends(loop_))) {
    TAGFLOW_ASSIGN(leaving,
                   inside("last", "Switch", {value, {loop_.loop_cond, 0}}));
  }
  TAGFLOW_ASSIGN(Node * exit, carrier_.leave("last", loop_, leaving));
  return last_[value] = {exit, 0};
}

}  // namespace tagflow::autodiff
