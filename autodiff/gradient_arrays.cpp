#include "autodiff/gradient_arrays.h"

#include <algorithm>
#include <map>

namespace tagflow::autodiff {
namespace {

struct GradientArray {
  std::vector<Node*> reads;   // on which ys depend
  std::vector<Node*> writes;  // of what depends on xs
};

using Nodes = std::unordered_set<const Node*>;

// All tensors that have a flow of the write's array.
Nodes reached_by_flow(const Analysis& analysis, Node& write) {
  Nodes reached{&write};
  std::vector<const Node*> open{&write};
  while (!open.empty()) {
    const Node& node = *open.back();
    open.pop_back();
    for (const Use& use : analysis.uses(node))
      if (analysis.is_gradient_flow(use.node->inputs()[use.index]) &&
          reached.insert(use.node).second)
        open.push_back(use.node);
  }
  return reached;
}

// Whether the write waits for the read, so that the read does not see it. Only
// outside loops, where each node runs once.
bool is_before(const Analysis& analysis, const Node& read, const Node& write) {
  if (analysis.frame_of(write) != FrameId::kRoot) return false;
  Nodes known{&write};
  std::vector<const Node*> open{&write};
  const auto find = [&](const Node* node) {
    if (node != nullptr && known.insert(node).second) open.push_back(node);
  };
  while (!open.empty() && !known.contains(&read)) {
    const Node& node = *open.back();
    open.pop_back();
    for (const Endpoint& input : node.inputs()) find(input.node);
    for (const Node* control : node.control_inputs()) find(control);
  }
  return known.contains(&read);
}

bool is_sum(const Node& node) {
  return node.op() == "AddN" || node.op() == "AddV2" || node.op() == "Add";
}

using Flows = std::unordered_set<Endpoint, graph::EndpointHash>;

// The flows on paths to an input of the sum.
Flows leading_to(const Analysis& analysis, const Paths& paths,
                 const Node& sum) {
  Flows found;
  std::vector<Endpoint> open;
  const auto find_inputs = [&](const Node& node) {
    for (const Endpoint& input : node.inputs())
      if (analysis.is_gradient_flow(input) && paths.has(input) &&
          found.insert(input).second)
        open.push_back(input);
  };
  find_inputs(sum);
  while (!open.empty()) {
    const Node& node = *open.back().node;
    open.pop_back();
    find_inputs(node);
  }
  return found;
}

// Rejects a sum that some flow reaches in two ways: that flow would count
// twice. A loop constant reaches a sum in each iteration, so it counts as two
// ways.
Status check_sum(const Analysis& analysis, const Paths& paths, Node& sum) {
  const Flows flows = leading_to(analysis, paths, sum);
  for (const Endpoint& flow : flows) {
    int ways = flow.node->is_constant_enter() ? 2 : 0;
    for (const Use& use : analysis.uses(*flow.node)) {
      if (use.node->inputs()[use.index] != flow) continue;
      bool leads_on = use.node == &sum;
      for (int port = 0; port < use.node->num_outputs(); ++port)
        leads_on = leads_on || flows.contains({use.node, port});
      ways += leads_on;
    }
    if (ways > 1)
      return error(
          Code::kUnimplemented,
          "[gradients] [{}] node \"{}\" sums flows of a gradient array "
          "that all contain \"{}\", which would count more than once",
          sum.op(), sum.name(), flow.to_string());
  }
  return {};
}

}  // namespace

Status check_gradient_arrays(Analysis& analysis, const Paths& paths,
                             std::span<const Endpoint> ys) {
  if (!analysis.has_gradient_flows()) return {};
  for (Node* node : analysis.graph().nodes())
    if (is_sum(*node) && analysis.is_gradient_flow({node, 0}) &&
        paths.has({node, 0}))
      TAGFLOW_RETURN_IF_ERROR(check_sum(analysis, paths, *node));
  const Nodes needed = paths.leading_to(ys);
  // By the array whose gradient it is, and the source.
  std::map<std::pair<const Node*, std::string>, GradientArray> arrays;
  for (Node* node : analysis.graph().nodes()) {
    if (!node->op().starts_with("TensorArray") || node->inputs().empty())
      continue;
    const Node& maker = *analysis.maker_of(node->inputs()[0]);
    const auto source = maker.attr<std::string>("source");
    if (!source.ok() || maker.inputs().empty()) continue;
    GradientArray& array =
        arrays[{analysis.maker_of(maker.inputs()[0]), *source}];
    const auto find_value = [](const auto& ports) {
      const auto found =
          std::ranges::find(ports, "value", &graph::ArgDef::name);
      return found == ports.end() ? -1 : int(found - ports.begin());
    };
    if (const int in = find_value(node->op_def().inputs); in >= 0) {
      if (paths.depends(node->inputs()[size_t(in)]))
        array.writes.push_back(node);
    } else if (find_value(node->op_def().outputs) >= 0 &&
               needed.contains(node)) {
      array.reads.push_back(node);
    }
  }
  for (const auto& [of, array] : arrays)
    for (Node* write : array.writes) {
      const Nodes reached = reached_by_flow(analysis, *write);
      for (const Node* read : array.reads)
        if (!reached.contains(read) && !is_before(analysis, *read, *write))
          return error(
              Code::kUnimplemented,
              "[gradients] [{}] node \"{}\" may read what node \"{}\" adds to "
              "the gradient of TensorArray \"{}\" for \"{}\", but no flow "
              "leads from there, so the dependency is unknown",
              read->op(), read->name(), write->name(), of.first->name(),
              of.second);
    }
  return {};
}

}  // namespace tagflow::autodiff
