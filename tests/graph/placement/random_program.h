// Random programs with loops, conditionals, stacks and constraints.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "tests/graph/placement/devices_and_kernels.h"

namespace tagflow::graph::testing {

// Makes one program. All values are float matrices but for predicates,
// counters and handles.
class RandomProgram {
 public:
  explicit RandomProgram(uint32_t seed) : random_(seed) {}

  // About that many nodes. Constraints name CPU:0, CPU:1 or a STREAM.
  Program make(int nodes, bool constrained) {
    constrained_ = constrained;
    values_ = {
        {add(graph_, "x", "Placeholder", {},
             {{"dtype", DataType::kFloat}, {"shape", PartialShape({8, 8})}}),
         0}};
    predicate_ = {
        add(graph_, "p", "Placeholder", {},
            {{"dtype", DataType::kBool}, {"shape", PartialShape::scalar()}}),
        0};
    start_ = {constant(graph_, "start", Tensor::scalar(0)), 0};
    limit_ = {constant(graph_, "limit", Tensor::scalar(3)), 0};
    while (int(graph_.size()) < nodes) step(0);
    return whole(std::move(graph_));
  }

 private:
  bool chance(uint32_t one_in) { return random_() % one_in == 0; }
  Endpoint pick() { return values_[random_() % values_.size()]; }
  std::string name(std::string_view op) {
    return fmt::format("{}_{}", op, next_++);
  }
  Endpoint put(std::string_view op, std::vector<Endpoint> inputs,
               AttrMap attrs = {}) {
    if (constrained_ && chance(10))
      attrs.insert_or_assign("_class", std::vector<std::string>{fmt::format(
                                           "loc:@{}", random_() % 20)});
    Node* node = add(graph_, name(op), op, std::move(inputs), std::move(attrs));
    if (constrained_ && chance(8))
      on(graph_, node, chance(2) ? "/cpu:*" : "/job:localhost");
    return {node, 0};
  }

  void step(int depth) {
    switch (random_() % 8) {
      case 0:
        if (depth < 3) return loop(depth);
        [[fallthrough]];
      case 1:
        return branch();
      case 2:
        return stack();
      case 3:
      case 4:
        return values_.push_back(put("MatMul", {pick(), pick()}));
      default:
        return values_.push_back(put("AddV2", {pick(), pick()}));
    }
  }

  void branch() {
    const Endpoint value = pick();
    const Endpoint fork = put("Switch", {value, predicate_});
    const Endpoint no = put("Neg", {{fork.node, 0}});
    const Endpoint yes = put("Tanh", {{fork.node, 1}});
    values_.push_back(put("Merge", {no, yes}));
  }

  void stack() {
    const Endpoint handle =
        put("StackV2", {start_}, {{"elem_type", DataType::kFloat}});
    const Endpoint pushed = put("StackPushV2", {handle, pick()});
    const Endpoint popped =
        put("StackPopV2", {handle}, {{"elem_type", DataType::kFloat}});
    graph_.add_control_input(popped.node, pushed.node);
    values_.push_back(put("Reshape", {popped, put("Shape", {pushed})}));
  }

  // A counter beside a variable that the body changes; the value around is
  // seen as a constant.
  void loop(int depth) {
    const std::string frame = name("loop");
    const Counter counter = testing::counter(graph_, frame, start_, limit_);
    const Endpoint enter = put("Enter", {pick()}, {{"frame_name", frame}});
    const Endpoint constant =
        put("Enter", {pick()}, {{"frame_name", frame}, {"is_constant", true}});
    const Endpoint p = put("Enter", {predicate_},
                           {{"frame_name", frame}, {"is_constant", true}});
    const Endpoint merge = put("Merge", {enter, {}});
    const Endpoint fork = put("Switch", {merge, {counter.cond, 0}});
    const Endpoint body = put("Identity", {{fork.node, 1}});

    const auto outer = std::tuple(values_, predicate_, start_, limit_);
    values_ = {body, constant};
    predicate_ = p;
    start_ = {counter.body, 0};
    limit_ = {counter.add, 0};
    for (uint32_t n = random_() % 4; n > 0; --n) step(depth + 1);
    const Endpoint next =
        put("NextIteration", {put("AddV2", {values_.back(), body})});
    std::tie(values_, predicate_, start_, limit_) = outer;

    must(graph_.set_input(merge.node, 1, next));
    values_.push_back(put("Exit", {{fork.node, 0}}));
  }

  std::mt19937 random_;
  Graph graph_;
  bool constrained_ = false;
  int next_ = 0;
  std::vector<Endpoint> values_;  // of the frame that is being made
  Endpoint predicate_, start_, limit_;
};

}  // namespace tagflow::graph::testing
