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
  return std::move(odd);
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
  return std::move(odd);
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
  return std::move(odd);
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
  return std::move(odd);
}

// What waits for both the first iteration and a later one.
inline Case never() {
  Odd odd;
  Node* both =
      odd.add("l/both", "AddV2", {{odd.loop.enter, 0}, {odd.loop.next, 0}});
  Node* neg = odd.add("l/neg", "Neg", {{both, 0}});
  odd.choose(odd.loop.merge, neg);
  return std::move(odd);
}

inline constexpr Case (*kOddLoops[])() = {read_at_borders, nested_in_the_first,
                                          constants, no_loop, never};

}  // namespace tagflow::reference
