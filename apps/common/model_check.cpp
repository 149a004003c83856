#include "apps/common/model_check.h"

#include <algorithm>
#include <unordered_set>

#include "graph/function.h"
#include "graph/functions/check.h"
#include "graph/prune.h"

namespace tagflow::apps {
namespace {

// Checks make the nodes that functions stand for, some seconds of them at
// most.
constexpr size_t kMostNodesMade = size_t{1} << 17;

std::string too_many_nodes(const std::string& name) {
  return fmt::format(
      "functions are checked up to \"{}\": with it they stand for more than {} "
      "nodes",
      name, kMostNodesMade);
}

// What any signature needs, where there are some: else all nodes. The rest,
// such as what saves a model's variables, no run may ever need.
Nodes nodes_of_signatures(const Model& model, const Nodes& all) {
  std::vector<graph::Endpoint> endpoints;
  for (const NamedSignature& signature : model.signatures) {
    for (const auto& [name, tensor] : signature.second.outputs) {
      const Result<graph::Endpoint> endpoint = model.graph.endpoint(tensor);
      if (endpoint.ok()) endpoints.push_back(*endpoint);
    }
  }
  return endpoints.empty() ? all : needed_by(model.graph, endpoints);
}

std::vector<std::pair<std::string, TensorNote>> notes_of(
    const Model& model, const std::string& signature,
    const std::map<std::string, std::string>& tensors,
    std::vector<std::string>& errors) {
  std::vector<std::pair<std::string, TensorNote>> notes;
  for (const auto& [name, tensor] : tensors) {
    const Result<graph::Endpoint> found = model.graph.endpoint(tensor);
    if (found.ok()) {
      notes.emplace_back(name, note_of(*found));
      continue;
    }
    // Some name a node: what it does is all that is wanted.
    const graph::Node* node = model.graph.find(
        tensor.substr(0, std::min(tensor.rfind(':'), tensor.size())));
    notes.emplace_back(name, TensorNote{tensor, "", ""});
    if (node != nullptr && node->num_outputs() == 0) continue;
    errors.push_back(found.status()
                         .with_prefix(fmt::format(
                             "\"{}\" of signature \"{}\": ", name, signature))
                         .to_string());
  }
  return notes;
}

}  // namespace

Nodes needed_by(const graph::Graph& graph,
                const std::vector<graph::Endpoint>& endpoints) {
  const graph::NodeSet needed = graph::prune(graph, endpoints, {}, {});
  Nodes nodes;
  for (graph::Node* node : graph.nodes()) {
    if (needed.contains(*node)) nodes.push_back(node);
  }
  return nodes;
}

void add_signatures(const Model& model, const NamedSignature* chosen,
                    GraphSummary& summary) {
  for (const NamedSignature& signature : model.signatures) {
    SignatureNote note;
    note.name = signature.first;
    note.is_chosen = &signature == chosen;
    note.inputs = notes_of(model, signature.first, signature.second.inputs,
                           summary.errors);
    note.outputs = notes_of(model, signature.first, signature.second.outputs,
                            summary.errors);
    summary.signatures.push_back(std::move(note));
  }
}

void check_functions(const Model& model, const Nodes& nodes, bool is_whole,
                     GraphSummary& summary) {
  const graph::Graph& graph = model.graph;
  const Nodes vital = is_whole ? nodes_of_signatures(model, nodes) : nodes;
  const std::unordered_set<const graph::Node*> vital_ones(vital.begin(),
                                                          vital.end());
  const Status ops = graph::check_ops(
      {}, graph::reached_functions(vital, graph.library()), graph.library());
  if (!ops.ok()) summary.errors.push_back(ops.to_string());
  size_t budget = kMostNodesMade;
  for (const graph::Node* node : nodes) {
    const Status status = graph::check_call(graph, *node, budget);
    const bool is_vital = vital_ones.contains(node);
    // Of an unknown op enough was said.
    if (status.ok() ||
        (is_vital && !ops.ok() && status.code() == Code::kUnimplemented)) {
      continue;
    }
    if (status.code() == Code::kResourceExhausted && budget == 0) {
      summary.warnings.push_back(too_many_nodes(node->name()));
      return;
    }
    (is_vital ? summary.errors : summary.warnings)
        .push_back(status.to_string());
  }
  if (!is_whole) return;
  for (const FunctionNote& function : summary.functions) {
    if (function.is_reached) continue;
    const Status status = graph::check_function(
        *graph.library().find(function.name), graph.library(), budget);
    if (status.code() == Code::kResourceExhausted && budget == 0) {
      summary.warnings.push_back(too_many_nodes(function.name));
      return;
    }
    if (!status.ok()) {
      summary.warnings.push_back("not called: " + status.to_string());
    }
  }
}

}  // namespace tagflow::apps
