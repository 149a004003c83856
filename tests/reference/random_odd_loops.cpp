#include "tests/reference/odd_loops.h"

namespace tagflow::reference {
namespace {

// How deep loops nest.
constexpr int kDepth = 3;

// What there is to read in one frame; any of it may be dead, or never come.
struct Env {
  int depth = 0;
  std::vector<Endpoint> ints;  // from -3 to 3
  std::vector<Endpoint> bools;
  Endpoint one;
};

class OddLoops {
 public:
  explicit OddLoops(uint64_t seed) : choices_(seed) {}

  Case make() && {
    Env root;
    for (int i = 0; i < 3; ++i) {
      const std::string name = fmt::format("x{}", i);
      root.ints.push_back(
          {graph::testing::placeholder(case_.graph, name, DataType::kInt32),
           0});
      case_.feeds.emplace_back(name + ":0",
                               Tensor::scalar(int(choices_.below(4))));
    }
    root.one = {graph::testing::constant(case_.graph, "one", Tensor::scalar(1)),
                0};
    root.bools.push_back({add("Less", {root.ints[0], root.ints[1]}), 0});
    read(root, 3);
    for (int i = 0; i < 2; ++i) loop(root);
    for (const Endpoint& value : root.ints)
      if (value.node->is_exit() || value.node->is_merge())
        case_.fetches.push_back(value.to_string());
    return std::move(case_);
  }

 private:
  bool one_in(uint32_t n) { return choices_.below(n) == 0; }
  Endpoint pick(const std::vector<Endpoint>& from) {
    return from[choices_.below(uint32_t(from.size()))];
  }
  Node* add(const char* op, std::vector<Endpoint> inputs, AttrMap attrs = {}) {
    return graph::testing::add(case_.graph, fmt::format("{}{}", op, count_++),
                               op, std::move(inputs), std::move(attrs));
  }

  // Some nodes that read what there is.
  void read(Env& env, uint32_t count) {
    for (; count > 0; --count) {
      const Endpoint x = pick(env.ints);
      switch (choices_.below(6)) {
        case 0:
          env.bools.push_back({add("Less", {x, pick(env.ints)}), 0});
          break;
        case 1:
          env.ints.push_back({add("Maximum", {x, pick(env.ints)}), 0});
          break;
        case 2: {
          // Waits for another one, dead or not.
          Node* trigger = add("ControlTrigger", {});
          case_.graph.add_control_input(trigger, pick(env.ints).node);
          Node* same = add("Identity", {x});
          case_.graph.add_control_input(same, trigger);
          env.ints.push_back({same, 0});
          break;
        }
        default:
          branch(env, x);
      }
    }
  }

  // One side, or both joined again.
  void branch(Env& env, const Endpoint& x) {
    Node* fork = add("Switch", {x, pick(env.bools)});
    Node* no = add("Neg", {{fork, 0}});
    if (one_in(3)) {
      env.ints.push_back(one_in(2) ? Endpoint{no, 0} : Endpoint{fork, 1});
      return;
    }
    Env inner{env.depth, {{fork, 1}}, {}, env.one};
    if (env.depth < kDepth && one_in(2)) loop(inner);
    env.ints.push_back({add("Merge", {{no, 0}, inner.ints.back()}), 0});
  }

  // A counter, and variables that go on no longer than it does. What leaves the
  // loop comes last in `outer`.
  void loop(Env& outer) {
    Env in{outer.depth + 1, {}, {}, {}};
    const std::string frame = fmt::format("frame{}", count_++);
    const auto enter = [&](const Endpoint& value, bool is_constant) {
      return Endpoint{
          add("Enter", {value},
              {{"frame_name", frame}, {"is_constant", is_constant}}),
          0};
    };
    in.one = enter(outer.one, true);
    const Endpoint limit = enter(pick(outer.ints), true);
    std::vector<Node*> merges;
    for (uint32_t count = 2 + choices_.below(2); count > 0; --count)
      merges.push_back(add("Merge", {enter(pick(outer.ints), false), {}}));
    Endpoint predicate{add("Less", {{merges[0], 0}, limit}), 0};
    if (!one_in(12)) predicate = {add("LoopCond", {predicate}), 0};
    std::vector<Endpoint> bodies, exits;
    for (Node* merge : merges) {
      Node* fork = add("Switch", {{merge, 0}, predicate});
      bodies.push_back({fork, 1});
      exits.push_back({add("Exit", {{fork, 0}}), 0});
    }
    in.ints = bodies;
    if (one_in(2)) in.ints.push_back(limit);
    in.bools.push_back({add("Less", {bodies[0], pick(in.ints)}), 0});
    read(in, choices_.below(4));
    if (in.depth < kDepth && one_in(3)) loop(in);
    for (size_t i = 0; i < merges.size(); ++i) {
      Endpoint value{i == 0 ? add("AddV2", {bodies[0], in.one})
                            : add("Minimum", {bodies[i], pick(in.ints)}),
                     0};
      if (one_in(8)) value = {add("Switch", {value, pick(in.bools)}), 1};
      graph::testing::must(case_.graph.set_input(
          merges[i], 1, {add("NextIteration", {value}), 0}));
    }
    outer.ints.insert(outer.ints.end(), exits.begin(), exits.end());
  }

  SeededChoices choices_;
  Case case_;
  int count_ = 0;
};

}  // namespace

Case random_odd_loops(uint64_t seed) { return OddLoops(seed).make(); }

}  // namespace tagflow::reference
