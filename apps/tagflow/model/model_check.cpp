#include "apps/tagflow/model/model_check.h"

#include <algorithm>

#include "graph/analysis/prune.h"
#include "graph/function.h"
#include "graph/function_uses.h"
#include "graph/functions/check.h"

namespace tagflow::apps {
namespace {

// A limit on expanded nodes: checks expand functions, which should take seconds
// at most.
constexpr size_t kMostNodesMade = size_t{1} << 17;

std::string too_many_nodes(const std::string& name) {
  return fmt::format(
      "functions were checked only up to \"{}\": expanded, they have more than "
      "{} nodes",
      name, kMostNodesMade);
}

// The tensor of a name in a signature. Some names are of nodes without outputs,
// which only have effects.
graph::Node* find_effect(const graph::Graph& graph, const std::string& tensor) {
  graph::Node* node =
      graph.find(tensor.substr(0, std::min(tensor.rfind(':'), tensor.size())));
  return node != nullptr && node->num_outputs() == 0 ? node : nullptr;
}

// The nodes that any signature needs; none if no signature can be run.
Nodes nodes_of_signatures(const Model& model) {
  std::vector<graph::Endpoint> endpoints;
  Nodes targets;
  for (const NamedSignature& signature : model.signatures) {
    for (const auto& [name, tensor] : signature.second.outputs) {
      const Result<graph::Endpoint> endpoint = model.graph.endpoint(tensor);
      if (endpoint.ok()) {
        endpoints.push_back(*endpoint);
      } else if (graph::Node* node = find_effect(model.graph, tensor)) {
        targets.push_back(node);
      }
    }
  }
  if (endpoints.empty() && targets.empty()) return {};
  return needed_by(model.graph, endpoints, targets);
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
    notes.emplace_back(name, TensorNote{tensor, "", ""});
    if (find_effect(model.graph, tensor) != nullptr) continue;
    errors.push_back(found.status()
                         .with_prefix(fmt::format(
                             "\"{}\" of signature \"{}\": ", name, signature))
                         .to_string());
  }
  return notes;
}

}  // namespace

Nodes needed_by(const graph::Graph& graph,
                const std::vector<graph::Endpoint>& endpoints,
                const Nodes& targets) {
  return graph::needed_nodes(graph, endpoints, targets, {});
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
  Nodes vital;
  if (is_whole) vital = nodes_of_signatures(model);
  const bool has_signatures = !vital.empty();
  if (!has_signatures) vital = nodes;
  const Status ops = graph::check_ops(
      {}, graph::reached_functions(vital, graph.library()), graph.library());
  if (!ops.ok()) summary.errors.push_back(ops.to_string());
  size_t budget = kMostNodesMade;
  for (const graph::Node* node : vital) {
    const Status status = graph::check_call(graph, *node, budget);
    // An unknown op was reported already.
    if (status.ok() || (!ops.ok() && status.code() == Code::kUnimplemented))
      continue;
    if (status.code() == Code::kResourceExhausted && budget == 0) {
      summary.warnings.push_back(too_many_nodes(node->name()));
      return;
    }
    summary.errors.push_back(status.to_string());
  }
  if (!is_whole || has_signatures) return;
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
