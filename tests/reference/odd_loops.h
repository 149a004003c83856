// Loops that no builder makes, but that have one result on every schedule.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/graph/passes/whole_program.h"
#include "tests/reference/random_graph.h"

namespace tagflow::reference {

using graph::Endpoint;
using graph::Node;

// The loop that they are made of, and what it is made by.
struct Odd : Case {
  // Another variable of it.
  struct Variable {
    Node* merge;
    Node* branch;
    Node* exit;
  };

  Node* x = graph::testing::placeholder(graph, "x", DataType::kInt32);
  Node* n = graph::testing::placeholder(graph, "n", DataType::kInt32);
  graph::testing::Counter loop =
      graph::testing::counter(graph, "l", {x, 0}, {n, 0});

  Odd() {
    feeds = {{"x:0", Tensor::scalar(3)}, {"n:0", Tensor::scalar(8)}};
    fetches = {"l/exit:0"};
  }
  Node* add(const std::string& name, std::string_view op,
            std::vector<Endpoint> inputs, AttrMap attrs = {}) {
    return graph::testing::add(graph, name, op, std::move(inputs),
                               std::move(attrs));
  }
  Node* enter(const std::string& name, Node* value, const std::string& frame,
              bool is_constant = false) {
    return add(name, "Enter", {{value, 0}},
               {{"frame_name", frame}, {"is_constant", is_constant}});
  }
  Node* switch_(const std::string& name, Endpoint value, Node* predicate) {
    return add(name, "Switch", {value, {predicate, 0}});
  }
  Node* less(const std::string& name, Node* value, int limit) {
    Node* bound =
        graph::testing::constant(graph, name + "/bound", Tensor::scalar(limit));
    return add(name, "Less",
               {{value, 0}, {enter(name + "/enter", bound, "l", true), 0}});
  }
  Variable variable(const std::string& name, Endpoint start) {
    Node* entered = add(name + "/enter", "Enter", {start},
                        {{"frame_name", std::string("l")}});
    Node* merge = add(name + "/merge", "Merge", {{entered, 0}, {}});
    Node* branch = switch_(name + "/switch", {merge, 0}, loop.cond);
    return {merge, branch, add(name + "/exit", "Exit", {{branch, 0}})};
  }
  // The variable becomes minus the value. Fetches what comes of it; of one that
  // ends dead, another number.
  void go_on(const std::string& name, const Variable& variable, Endpoint value,
             bool ends_dead = true) {
    Node* neg = add(name + "/neg", "Neg", {value});
    Node* next = add(name + "/next", "NextIteration", {{neg, 0}});
    graph::testing::must(graph.set_input(variable.merge, 1, {next, 0}));
    Node* out = variable.exit;
    if (ends_dead) {
      Node* other =
          graph::testing::constant(graph, name + "/other", Tensor::scalar(77));
      out = add(name + "/out", "Merge", {{out, 0}, {other, 0}});
    }
    fetches.push_back(out->name() + ":0");
  }
  // One side of it is dead.
  Node* fork() {
    return switch_("fork", {x, 0}, add("p", "Less", {{x, 0}, {n, 0}}));
  }
  // Fetches what `first` gives in the first iteration and `later` in others:
  // of these, what the last one has.
  void choose(Node* first, Node* later) {
    Node* either = add("l/either", "Merge", {{first, 0}, {later, 0}});
    Node* fork = add("l/last", "Switch", {{either, 0}, {loop.cond, 0}});
    add("l/done", "Exit", {{fork, 0}});
    fetches.push_back("l/done:0");
  }
};

// The Enter of a variable, and its NextIteration, read by others than a Merge.
inline Case read_at_borders() {
  Odd odd;
  Node* sum =
      odd.add("l/sum", "AddV2", {{odd.loop.enter, 0}, {odd.loop.limit, 0}});
  Node* first = odd.add("l/first", "Neg", {{sum, 0}});
  Node* later = odd.add("l/later", "Square", {{odd.loop.next, 0}});
  odd.choose(first, odd.add("l/latest", "Neg", {{later, 0}}));
  return odd;
}

// A loop inside a loop, in the first iteration only.
inline Case nested_in_the_first() {
  Odd odd;
  Node* sum =
      odd.add("l/sum", "AddV2", {{odd.loop.enter, 0}, {odd.loop.limit, 0}});
  const auto inner =
      graph::testing::counter(odd.graph, "i", {odd.loop.enter, 0}, {sum, 0});
  Node* first = odd.add("l/first", "Neg", {{inner.exit, 0}});
  odd.choose(first, odd.add("l/later", "Square", {{odd.loop.next, 0}}));
  return odd;
}

// Nodes of loop constants only, in a loop inside a loop too.
inline Case constants() {
  Odd odd;
  const auto twice = [&](const std::string& name, Node* value) {
    Node* once = odd.add(name, "AddV2", {{value, 0}, {value, 0}});
    return odd.add(name + "/neg", "Neg",
                   {{odd.add(name + "/back", "Neg", {{once, 0}}), 0}});
  };
  Node* limit = twice("l/twice", odd.loop.limit);
  graph::testing::must(odd.graph.set_input(odd.loop.less, 1, {limit, 0}));
  const auto inner =
      graph::testing::counter(odd.graph, "i", {odd.loop.body, 0}, {limit, 0});
  graph::testing::must(
      odd.graph.set_input(inner.less, 1, {twice("i/twice", inner.limit), 0}));
  graph::testing::must(odd.graph.set_input(odd.loop.add, 0, {inner.exit, 0}));
  return odd;
}

// A frame that nothing goes around in.
inline Case no_loop() {
  Odd odd;
  Node* once = odd.enter("once", odd.x, "once");
  Node* limit = odd.enter("limit", odd.n, "once", true);
  Node* sum = odd.add("sum", "AddV2", {{once, 0}, {limit, 0}});
  Node* neg = odd.add("neg", "Neg", {{sum, 0}});
  odd.add("out", "Exit", {{odd.add("square", "Square", {{neg, 0}}), 0}});
  odd.fetches.push_back("out:0");
  return odd;
}

// What waits for both the first iteration and a later one.
inline Case never() {
  Odd odd;
  Node* both =
      odd.add("l/both", "AddV2", {{odd.loop.enter, 0}, {odd.loop.next, 0}});
  Node* neg = odd.add("l/neg", "Neg", {{both, 0}});
  odd.choose(odd.loop.merge, neg);
  return odd;
}

// A variable that dies after some iterations, while the loop goes on.
inline Case dies_later() {
  Odd odd;
  const auto y = odd.variable("y", {odd.x, 0});
  Node* few = odd.less("l/few", odd.loop.merge, 6);
  odd.go_on("y", y, {odd.switch_("l/narrow", {y.branch, 1}, few), 1});
  return odd;
}

// The same in the first iteration, and by a control edge.
inline Case dies_at_once() {
  Odd odd;
  const auto y = odd.variable("y", {odd.x, 0});
  Node* few = odd.less("l/few", odd.loop.merge, 0);
  Node* gate = odd.add("l/gate", "Identity",
                       {{odd.switch_("l/narrow", {odd.loop.body, 0}, few), 1}});
  Node* same = odd.add("l/same", "Identity", {{y.branch, 1}});
  odd.graph.add_control_input(same, gate);
  odd.go_on("y", y, {same, 0});
  return odd;
}

// A variable that is dead from the start on, where the others are not.
inline Case never_starts() {
  Odd odd;
  const auto y = odd.variable("y", {odd.fork(), 0});
  odd.go_on("y", y, {y.branch, 1});
  return odd;
}

// A variable that starts, and depends on a dead constant of the loop.
inline Case dead_constant() {
  Odd odd;
  const auto y = odd.variable("y", {odd.x, 0});
  Node* none =
      odd.add("l/none", "Enter", {{odd.fork(), 0}},
              {{"frame_name", std::string("l")}, {"is_constant", true}});
  odd.go_on("y", y, {odd.add("l/sum", "AddV2", {{y.branch, 1}, {none, 0}}), 0});
  return odd;
}

// The predicate is dead, all else is live: the loop ends at once.
inline Case dead_predicate() {
  Odd odd;
  Node* none =
      odd.add("l/none", "Enter", {{odd.fork(), 0}},
              {{"frame_name", std::string("l")}, {"is_constant", true}});
  graph::testing::must(odd.graph.set_input(odd.loop.less, 1, {none, 0}));
  const auto y = odd.variable("y", {odd.x, 0});
  odd.go_on("y", y, {y.branch, 1});
  odd.fetches.erase(odd.fetches.begin());
  return odd;
}

// A conditional in a conditional in the body, of the outer one of which both
// sides are joined, or one goes on alone.
inline Case conditional(bool joined) {
  Odd odd;
  const auto y = odd.variable("y", {odd.x, 0});
  Node* p = odd.less("l/p", odd.loop.merge, 6);
  Node* q = odd.less("l/q", odd.loop.merge, 5);
  Node* outer = odd.switch_("l/outer", {y.branch, 1}, p);
  Node* inner = odd.switch_("l/inner", {outer, 1}, q);
  Node* neg = odd.add("l/neg", "Neg", {{inner, 0}});
  Node* both = odd.add("l/both", "Merge", {{neg, 0}, {inner, 1}});
  Node* all = odd.add("l/all", "Merge", {{outer, 0}, {both, 0}});
  odd.go_on("y", y, {joined ? all : both, 0}, !joined);
  return odd;
}
inline Case joined_conditional() { return conditional(true); }
inline Case half_conditional() { return conditional(false); }

// A loop inside a loop, of which one variable dies at once in each iteration of
// the outer one, which goes on all the same.
inline Case dies_inside() {
  Odd odd;
  const auto inner = graph::testing::counter(odd.graph, "i", {odd.loop.body, 0},
                                             {odd.loop.limit, 0});
  Node* enter = odd.enter("i/y", odd.loop.body, "i");
  Node* merge = odd.add("i/y/merge", "Merge", {{enter, 0}, {}});
  Node* fork = odd.switch_("i/y/switch", {merge, 0}, inner.cond);
  Node* p = odd.add("i/p", "Less", {{inner.body, 0}, {inner.add, 0}});
  Node* narrow = odd.switch_("i/narrow", {fork, 1}, p);
  Node* next = odd.add("i/y/next", "NextIteration", {{narrow, 0}});
  graph::testing::must(odd.graph.set_input(merge, 1, {next, 0}));
  Node* exit = odd.add("i/y/exit", "Exit", {{fork, 0}});
  Node* either = odd.add("l/either", "Merge", {{exit, 0}, {odd.loop.body, 0}});
  Node* one = odd.add("l/more", "Maximum", {{either, 0}, {odd.loop.add, 0}});
  graph::testing::must(odd.graph.set_input(odd.loop.next, 0, {one, 0}));
  return odd;
}

inline constexpr Case (*kOddLoops[])() = {
    read_at_borders, nested_in_the_first, constants,          no_loop,
    never,           dies_later,          dies_at_once,       never_starts,
    dead_constant,   dead_predicate,      joined_conditional, half_conditional,
    dies_inside};

// Loops in loops at random: of which some variables are dead from the start,
// or die by and by, or whose predicates do. It ends, and no Merge has two live
// inputs. Fetches may be dead.
Case random_odd_loops(uint64_t seed);

}  // namespace tagflow::reference
