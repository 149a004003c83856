// A loop of the primitives, node by node, for tests to add nodes to.
#pragma once

#include <string>
#include <vector>

#include "tests/actors/sessions.h"

namespace tagflow::actors {

// Of an Enter into the loop.
inline AttrMap into_loop(bool is_constant = false) {
  return {{"frame_name", "loop"}, {"is_constant", is_constant}};
}

inline graph::NodeDef placeholder_def(
    const std::string& name, DataType type,
    PartialShape shape = PartialShape::scalar()) {
  return graph::testing::def(name, "Placeholder", {},
                             {{"dtype", type}, {"shape", std::move(shape)}});
}

// for (i = 0; i < n; ++i), with `more` nodes in it and around it, and a
// loop_variable():
//
//   zero -> i -> merge -> less -> cond          limit (of n), step (of 1):
//                  |               |            constant Enters
//                  +---> switch <--+
//          exit <- :0 |    | :1
//   next <- plus <---------+
inline graph::Graph counting_loop(
    const std::vector<graph::NodeDef>& more,
    const std::vector<graph::NodeDef>& variable = {}) {
  using graph::testing::const_def;
  using graph::testing::def;
  std::vector<graph::NodeDef> nodes = {
      const_def("zero", Tensor::scalar(0)),
      const_def("one", Tensor::scalar(1)),
      placeholder_def("n", DataType::kInt32),
      def("i", "Enter", {"zero"}, into_loop()),
      def("limit", "Enter", {"n"}, into_loop(true)),
      def("step", "Enter", {"one"}, into_loop(true)),
      def("merge", "Merge", {"i", "next"}, {{"T", DataType::kInt32}}),
      def("less", "Less", {"merge", "limit"}),
      def("cond", "LoopCond", {"less"}),
      def("switch", "Switch", {"merge", "cond"}),
      def("plus", "AddV2", {"switch:1", "step"}),
      def("next", "NextIteration", {"plus"}),
      def("exit", "Exit", {"switch"}),
  };
  nodes.insert(nodes.end(), more.begin(), more.end());
  nodes.insert(nodes.end(), variable.begin(), variable.end());
  graph::Graph made;
  graph::testing::must(made.extend(nodes));
  return made;
}

// One more variable: NAME_merge has it in each iteration, NAME_switch:1 in the
// body, `next` is what it becomes, NAME_exit what it was in the end.
inline std::vector<graph::NodeDef> loop_variable(const std::string& name,
                                                 const std::string& initial,
                                                 const std::string& next,
                                                 DataType type) {
  using graph::testing::def;
  return {def(name + "_enter", "Enter", {initial}, into_loop()),
          def(name + "_merge", "Merge", {name + "_enter", name + "_next"},
              {{"T", type}}),
          def(name + "_switch", "Switch", {name + "_merge", "cond"}),
          def(name + "_next", "NextIteration", {next}),
          def(name + "_exit", "Exit", {name + "_switch"})};
}

}  // namespace tagflow::actors
