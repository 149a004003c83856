#include "graph/analysis/extract.h"

#include <algorithm>
#include <unordered_map>

#include "graph/analysis/prune.h"
#include "graph/function.h"
#include "graph/known_value.h"
#include "graph/node_name.h"
#include "graph/paged_table.h"

namespace tagflow::graph {
namespace {

// Adds the Placeholders of fed tensors before all nodes that read them, so that
// the program stays in topological order.
class Placeholders {
 public:
  // Names of `needed` nodes, which are copied too, are avoided.
  Placeholders(const Graph& graph, std::span<Node* const> needed, Graph& made)
      : graph_(graph), needed_(needed), made_(made) {}

  Result<Node*> add(const Endpoint& fed) {
    const Node& node = *fed.node;
    AttrMap attrs;
    attrs["dtype"] = node.output_dtypes()[size_t(fed.port)];
    attrs["shape"] = node.output_shape(fed.port);
    return made_.add(free_name(node), "Placeholder", {}, std::move(attrs), {},
                     node.device());
  }

 private:
  // The node's own name, unless the node is needed too or has two Placeholders.
  std::string free_name(const Node& node) {
    if (!std::ranges::binary_search(needed_, node.id(), {}, &Node::id) &&
        made_.find(node.name()) == nullptr)
      return node.name();
    const std::string_view prefix =
        std::string_view(node.name()).substr(0, kMaxNameLength - 12);
    int& number = numbers_[&node];
    std::string name;
    do {
      name = fmt::format("{}_{}", prefix, ++number);
    } while (graph_.find(name) != nullptr || made_.find(name) != nullptr);
    return name;
  }

  const Graph& graph_;
  const std::span<Node* const> needed_;
  Graph& made_;
  std::unordered_map<const Node*, int> numbers_;  // the last suffix in use
};

}  // namespace

Result<Program> extract(const Graph& graph, std::span<const Endpoint> feeds,
                        std::span<const Endpoint> fetches,
                        std::span<Node* const> targets) {
  std::unordered_map<Endpoint, Endpoint, EndpointHash> twins;  // of fed tensors
  for (const Endpoint& feed : feeds) {
    if (!twins.try_emplace(feed).second)
      return invalid_argument("[session] \"{}\" is fed twice",
                              feed.to_string());
    if (feed.node->attrs().contains(kFixedValueAttr))
      return invalid_argument(
          "[session] Const \"{}\" cannot be fed: gradients of the graph were "
          "made by its value; a PlaceholderWithDefault can be fed",
          feed.node->name());
  }
  // A fed Placeholder need not run.
  const auto has_run = [&](Node* node) {
    return (node->op() == "Placeholder" || node->op() == "PlaceholderV2") &&
           twins.contains({node, 0});
  };
  std::vector<Node*> to_run;
  for (Node* target : targets)
    if (!has_run(target)) to_run.push_back(target);
  const std::vector<Node*> needed = needed_nodes(graph, fetches, to_run, feeds);
  Program program;
  Graph& copy = program.graph;
  copy.library() = graph.library();
  copy.set_producer_version(graph.producer_version());
  Placeholders placeholders(graph, needed, copy);
  for (const Endpoint& feed : feeds) {
    TAGFLOW_ASSIGN(Node * placeholder, placeholders.add(feed));
    program.feeds.push_back({placeholder, 0});
    twins[feed] = {placeholder, 0};
  }
  PagedTable<Node*> copies;
  copy.add_copies(needed, copies);
  const auto copy_of = [&](const Node* node) {
    return std::as_const(copies).at(node->id());
  };
  const auto twin = [&](const Endpoint& endpoint) {
    const auto fed = twins.find(endpoint);
    return fed != twins.end() ? fed->second
                              : Endpoint{copy_of(endpoint.node), endpoint.port};
  };
  for (const Endpoint& fetch : fetches) program.fetches.push_back(twin(fetch));
  // Any other fed op still runs as a target.
  const auto stand_in = [&](Node* node) {
    return has_run(node) ? twin({node, 0}).node : copy_of(node);
  };
  for (Node* target : targets) program.targets.push_back(stand_in(target));
  if (feeds.empty()) return program;
  for (const Node* node : needed) {
    Node* made = copy_of(node);
    for (size_t i = 0; i < node->inputs().size(); ++i)
      if (twins.contains(node->inputs()[i]))
        TAGFLOW_RETURN_IF_ERROR(
            copy.set_input(made, int(i), twin(node->inputs()[i])));
    if (std::ranges::none_of(node->control_inputs(), has_run)) continue;
    std::vector<Node*> controls;
    for (Node* control : node->control_inputs())
      if (Node* source = stand_in(control)) controls.push_back(source);
    copy.set_control_inputs(made, controls);
  }
  return program;
}

}  // namespace tagflow::graph
