#include "apps/common/model_check.h"

#include <algorithm>
#include <optional>
#include <unordered_set>

#include "graph/function.h"
#include "graph/functions/check.h"
#include "graph/limits.h"
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

// Asks what a run would refuse, until the answers have made too many nodes.
class CallChecks {
 public:
  // What check(budget) says of the call by that name. The last one is asked
  // again with as many nodes as a run may make: it may be refused for them, or
  // for something else.
  template <class Check>
  Status ask(const std::string& name, const Check& check) {
    Status status = check(budget_);
    if (status.code() != Code::kResourceExhausted) return status;
    last_ = name;
    size_t all = graph::Limits().max_nodes;
    return check(all);
  }
  // The last call that can be asked about, if it has been.
  const std::optional<std::string>& last() const { return last_; }

 private:
  size_t budget_ = kMostNodesMade;
  std::optional<std::string> last_;
};

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
  CallChecks checks;
  for (const graph::Node* node : nodes) {
    const Status status = checks.ask(node->name(), [&](size_t& budget) {
      return graph::check_call(graph, *node, budget);
    });
    const bool is_vital = vital_ones.contains(node);
    // Of an unknown op enough was said.
    const bool is_known =
        is_vital && !ops.ok() && status.code() == Code::kUnimplemented;
    if (!status.ok() && !is_known) {
      (is_vital ? summary.errors : summary.warnings)
          .push_back(status.to_string());
    }
    if (checks.last()) break;
  }
  for (const FunctionNote& function : summary.functions) {
    if (!is_whole || checks.last()) break;
    if (function.is_reached) continue;
    const Status status = checks.ask(function.name, [&](size_t& budget) {
      return graph::check_function(*graph.library().find(function.name),
                                   graph.library(), budget);
    });
    if (!status.ok()) {
      summary.warnings.push_back("not called: " + status.to_string());
    }
  }
  if (checks.last()) summary.warnings.push_back(too_many_nodes(*checks.last()));
}

}  // namespace tagflow::apps
