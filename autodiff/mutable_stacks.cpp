#include "autodiff/mutable_stacks.h"

#include <algorithm>
#include <unordered_set>

#include "autodiff/carrier.h"
#include "graph/analysis/topology.h"

namespace tagflow::autodiff {

bool pushes_onto_stack(const Node& node) {
  return node.op() == "StackPushV2" || node.op() == "StackPush";
}

bool pops_from_stack(const Node& node) {
  return node.op() == "StackPopV2" || node.op() == "StackPop";
}

namespace {

// What the stack is carried through: a push, a pop, or a loop.
struct Unit {
  Node* node = nullptr;  // null: the loop
  FrameId loop = FrameId::kRoot;
  Conditions::Set live = Conditions::kNone;
  // Its dependencies within the iteration.
  std::unordered_set<const Node*> after = {};
  size_t rank = 0;  // the number of units before it
};

// The replacement of one stack.
class MutableStack {
 public:
  MutableStack(Analysis& analysis, Node& maker)
      : analysis_(analysis), maker_(maker), carrier_(analysis, maker.name()) {}

  void add_user(Node* node) { users_.push_back(node); }

  Status run() {
    const FrameId home = analysis_.output_frame(maker_);
    const auto dtype = maker_.attr<DataType>("elem_type");
    TAGFLOW_RETURN_IF_ERROR(dtype.status());
    find_shape();
    TAGFLOW_ASSIGN(Node * empty,
                   carrier_.add("PersistentStack", "PersistentStack", {},
                                {{"elem_type", *dtype}}, home,
                                analysis_.live(maker_), {&maker_}));
    TAGFLOW_ASSIGN(const std::vector<Unit> units, units_of(home));
    return lead(units, home, analysis_.live(maker_), {empty, 0}).status();
  }

 private:
  // The shape of all elements, if any is known.
  void find_shape() {
    bool is_first = true;
    for (const Node* node : users_) {
      if (!pushes_onto_stack(*node)) continue;
      const Endpoint& value = node->inputs()[1];
      const PartialShape& shape = value.node->output_shape(value.port);
      if (is_first)
        shape_ = shape;
      else if (shape != shape_)
        shape_ = PartialShape();
      is_first = false;
    }
  }

  // In the order in which they run.
  Result<std::vector<Unit>> units_of(FrameId frame) {
    std::vector<Unit> units;
    for (Node* user : users_) {
      const FrameId own = analysis_.frame_of(*user);
      if (own == frame) {
        units.push_back({user, frame, analysis_.live(*user)});
        continue;
      }
      const FrameId child = analysis_.child_towards(frame, own);
      if (child == FrameId::kRoot ||
          std::ranges::any_of(units, [&](const Unit& unit) {
            return unit.node == nullptr && unit.loop == child;
          }))
        continue;
      const Loop& loop = analysis_.loop(child);
      if (!loop.trouble.empty())
        return refuse(fmt::format(
            "it is used in the loop of frame \"{}\", whose iterations do not "
            "end by its LoopCond: {}",
            analysis_.frame(child).name, loop.trouble));
      units.push_back({nullptr, child, analysis_.live(*loop.loop_cond)});
    }
    for (Unit& unit : units) find_what_is_before(unit, frame);
    return in_order(std::move(units));
  }

  // All nodes of the same iteration that the unit waits for.
  void find_what_is_before(Unit& unit, FrameId frame) {
    std::vector<const Node*> open;
    const auto find = [&](const Node* node) {
      if (node != nullptr && unit.after.insert(node).second)
        open.push_back(node);
    };
    const auto find_inputs = [&](const Node& node) {
      for (size_t i = 0; i < node.inputs().size(); ++i)
        if (!graph::is_back_edge(node, i) || analysis_.frame_of(node) != frame)
          find(node.inputs()[i].node);
      for (const Node* control : node.control_inputs()) find(control);
    };
    if (unit.node != nullptr)
      find_inputs(*unit.node);
    else
      for (const Node* enter : analysis_.frame(unit.loop).enters)
        find_inputs(*enter);
    while (!open.empty()) {
      const Node& node = *open.back();
      open.pop_back();
      const bool comes_in =
          node.is_enter() && analysis_.output_frame(node) == frame;
      if (!comes_in) find_inputs(node);
    }
  }

  bool is_before(const Unit& a, const Unit& b) const {
    if (a.node != nullptr) return b.after.contains(a.node);
    return std::ranges::any_of(
        analysis_.frame(a.loop).exits,
        [&](const Node* exit) { return b.after.contains(exit); });
  }

  Result<std::vector<Unit>> in_order(std::vector<Unit> units) {
    for (Unit& unit : units)
      unit.rank = size_t(std::ranges::count_if(
          units, [&](const Unit& other) { return is_before(other, unit); }));
    std::ranges::stable_sort(units, {}, &Unit::rank);
    for (size_t i = 0; i < units.size(); ++i)
      for (size_t j = i + 1; j < units.size(); ++j)
        if (!is_before(units[i], units[j]) &&
            !are_exclusive(analysis_.conditions(), units[i].live,
                           units[j].live))
          return refuse(
              fmt::format("no edges say which of {} and {} uses it first",
                          describe(units[i]), describe(units[j])));
    return units;
  }

  // Carries the stack through the units, which are in one frame, and live if
  // `given` holds.
  Result<Endpoint> lead(std::span<const Unit> units, FrameId frame,
                        Conditions::Set given, Endpoint stack) {
    for (const Unit& unit : units) {
      const Endpoint what = unit.node != nullptr
                                ? Endpoint{unit.node, 0}
                                : Endpoint{analysis_.loop(unit.loop).loop_cond};
      TAGFLOW_ASSIGN(const std::vector<Guard> guards,
                     guards_of(analysis_, frame, unit.live, given, what));
      TAGFLOW_ASSIGN(stack,
                     carrier_.guarded(name_of(unit), stack, guards, frame,
                                      [&](const Endpoint& inside) {
                                        return through(unit, inside);
                                      }));
    }
    return stack;
  }

  Result<Endpoint> through(const Unit& unit, const Endpoint& stack) {
    if (unit.node == nullptr)
      return through_loop(analysis_.loop(unit.loop), name_of(unit), stack);
    return pushes_onto_stack(*unit.node) ? through_push(*unit.node, stack)
                                         : through_pop(*unit.node, stack);
  }

  // The old push is live where the new one is.
  Result<Endpoint> through_push(Node& push, const Endpoint& stack) {
    const Endpoint value = push.inputs()[1];
    TAGFLOW_ASSIGN(Node * made,
                   carrier_.add(push.name() + "/Push", "PersistentStackPush",
                                {stack, value}, {}, analysis_.frame_of(push)));
    TAGFLOW_RETURN_IF_ERROR(become_identity(push, value, made));
    return Endpoint{made, 0};
  }

  Result<Endpoint> through_pop(Node& pop, const Endpoint& stack) {
    TAGFLOW_ASSIGN(
        Node * made,
        carrier_.add(
            pop.name() + "/Pop", "PersistentStackPop", {stack},
            {{"elem_type", pop.output_dtypes()[0]}, {"elem_shape", shape_}},
            analysis_.frame_of(pop)));
    TAGFLOW_RETURN_IF_ERROR(become_identity(pop, {made, 1}, nullptr));
    return Endpoint{made, 0};
  }

  Status become_identity(Node& node, const Endpoint& value, Node* control) {
    std::vector<Node*> controls(node.control_inputs().begin(),
                                node.control_inputs().end());
    if (control != nullptr) controls.push_back(control);
    return analysis_.graph().become(&node, "Identity", {&value, 1}, {},
                                    controls);
  }

  // Units that are live in each iteration, including the last one, come before
  // the Switch by the LoopCond; all others are behind one of its outputs.
  Result<Endpoint> through_loop(const Loop& loop, const std::string& name,
                                const Endpoint& stack) {
    Conditions& conditions = analysis_.conditions();
    const Conditions::Set goes_on = analysis_.goes_on(loop);
    const Conditions::Set ends = analysis_.ends(loop);
    TAGFLOW_ASSIGN(std::vector<Unit> units, units_of(loop.frame));
    std::vector<Unit> first, then, last;
    for (Unit& unit : units) {
      const bool is_behind = conditions.includes(unit.live, goes_on);
      const bool is_last = conditions.includes(unit.live, ends);
      if (!is_behind && !is_last && !(then.empty() && last.empty()))
        return refuse(
            fmt::format("{} uses it after what only some iterations of the "
                        "loop of frame \"{}\" do",
                        describe(unit), analysis_.frame(loop.frame).name));
      (is_behind ? then : is_last ? last : first).push_back(std::move(unit));
    }
    TAGFLOW_ASSIGN(Node * merge, carrier_.enter(name, loop, stack));
    TAGFLOW_ASSIGN(
        const Endpoint now,
        lead(first, loop.frame, analysis_.live(*loop.loop_cond), {merge, 0}));
    TAGFLOW_ASSIGN(const Carrier::Variable variable,
                   carrier_.split(name, loop, merge, now));
    TAGFLOW_ASSIGN(const Endpoint next,
                   lead(then, loop.frame, goes_on, variable.goes_on));
    TAGFLOW_RETURN_IF_ERROR(carrier_.close(loop, variable, next));
    TAGFLOW_ASSIGN(const Endpoint end,
                   lead(last, loop.frame, ends, variable.ends));
    TAGFLOW_ASSIGN(Node * exit, carrier_.leave(name, loop, end));
    return Endpoint{exit, 0};
  }

  std::string name_of(const Unit& unit) const {
    return unit.node != nullptr ? unit.node->name()
                                : analysis_.frame(unit.loop).name;
  }
  std::string describe(const Unit& unit) const {
    return fmt::format("{} \"{}\"",
                       unit.node != nullptr ? "node" : "the loop of frame",
                       name_of(unit));
  }
  Status refuse(const std::string& why) const {
    return error(Code::kUnimplemented,
                 "[gradients] [{}] the values on stack \"{}\" have no "
                 "gradient: {}",
                 maker_.op(), maker_.name(), why);
  }

  Analysis& analysis_;
  Node& maker_;
  Carrier carrier_;
  std::vector<Node*> users_;
  PartialShape shape_;
};

}  // namespace

Status make_stacks_persistent(Analysis& analysis,
                              std::span<const Node* const> pops) {
  std::vector<MutableStack> stacks;
  std::unordered_map<const Node*, size_t> by_maker;
  for (const Node* pop : pops) {
    Node* maker = analysis.maker_of(pop->inputs()[0]);
    if (maker->op() != "StackV2" && maker->op() != "Stack")
      return error(Code::kUnimplemented,
                   "[gradients] [{}] node \"{}\" has no gradient: its stack "
                   "comes from node \"{}\", and is not known when the graph is "
                   "built",
                   pop->op(), pop->name(), maker->name());
    if (by_maker.emplace(maker, stacks.size()).second)
      stacks.emplace_back(analysis, *maker);
  }
  for (Node* node : analysis.graph().nodes()) {
    if (!pushes_onto_stack(*node) && !pops_from_stack(*node)) continue;
    const auto stack = by_maker.find(analysis.maker_of(node->inputs()[0]));
    if (stack != by_maker.end()) stacks[stack->second].add_user(node);
  }
  for (MutableStack& stack : stacks) TAGFLOW_RETURN_IF_ERROR(stack.run());
  return {};
}

}  // namespace tagflow::autodiff
