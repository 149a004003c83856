// Small programs made by hand, before and after a pass.
#pragma once

#include <string>
#include <vector>

#include "graph/analysis/extract.h"
#include "graph/analysis/validate.h"
#include "graph/passes/passes.h"
#include "tests/graph/builder/dump.h"
#include "tests/graph/hand_made.h"

namespace tagflow::graph::testing {

// A copy of what the fetches and targets need of the graph.
inline Program program_of(const Graph& graph,
                          const std::vector<std::string>& fetches,
                          const std::vector<std::string>& targets = {},
                          const std::vector<std::string>& feeds = {}) {
  std::vector<Endpoint> fed, fetched;
  std::vector<Node*> run;
  for (const std::string& name : feeds)
    fed.push_back(must(graph.endpoint(name)));
  for (const std::string& name : fetches)
    fetched.push_back(must(graph.endpoint(name)));
  for (const std::string& name : targets) run.push_back(graph.find(name));
  return must(extract(graph, fed, fetched, run));
}

// Whether the pass changed anything; what it leaves is valid.
inline bool run_pass(PassFunction pass, Program& program,
                     const PassContext& context = {}) {
  const bool changed = must(pass(program, context));
  must(validate(program.graph));
  return changed;
}

// Adds int32 scalars; refuses everything else, and a sum of 13.
class Adder final : public Evaluator {
 public:
  Result<std::vector<Tensor>> evaluate(const Node& node,
                                       std::span<const Tensor> inputs,
                                       size_t) const override {
    if (node.op() != "AddV2")
      return error(Code::kUnimplemented, "it adds, nothing else");
    const int sum =
        inputs[0].scalar_value<int32_t>() + inputs[1].scalar_value<int32_t>();
    if (sum == 13) return invalid_argument("13 is a bad sum");
    return std::vector<Tensor>{Tensor::scalar(sum)};
  }
};

inline Node* placeholder(Graph& graph, std::string name, DataType type,
                         PartialShape shape = {}) {
  return add(graph, std::move(name), "Placeholder", {},
             {{"dtype", type}, {"shape", std::move(shape)}});
}

inline Node* number(Graph& graph, std::string name, int value,
                    std::vector<Node*> control = {}) {
  return add(graph, std::move(name), "Const", {},
             {{"value", Tensor::scalar(value)}, {"dtype", DataType::kInt32}},
             std::move(control));
}

inline int value_of(const Graph& graph, const std::string& name) {
  const Node* node = graph.find(name);
  REQUIRE(node != nullptr);
  return must(node->attr<Tensor>("value")).scalar_value<int32_t>();
}

}  // namespace tagflow::graph::testing
