#include "graph/program.h"

#include <algorithm>
#include <unordered_map>

#include "graph/prune.h"

namespace tagflow::graph {
namespace {

// The Placeholder that stands for a fed tensor.
Result<Node*> add_placeholder(Graph& graph, const Endpoint& fed) {
  const Node& node = *fed.node;
  AttrMap attrs;
  attrs["dtype"] = node.output_dtypes()[size_t(fed.port)];
  attrs["shape"] = node.output_shape(fed.port);
  return graph.add(graph.unique_name(node.name()), "Placeholder", {},
                   std::move(attrs), {}, node.device());
}

}  // namespace

Result<Program> extract(const Graph& graph, std::span<const Endpoint> feeds,
                        std::span<const Endpoint> fetches,
                        std::span<Node* const> targets) {
  std::unordered_map<Endpoint, Endpoint, EndpointHash> twins;  // of what is fed
  for (const Endpoint& feed : feeds)
    if (!twins.try_emplace(feed).second)
      return invalid_argument("[session] \"{}\" is fed twice",
                              feed.to_string());
  // A fed Placeholder has run when its feed is there.
  const auto has_run = [&](Node* node) {
    return (node->op() == "Placeholder" || node->op() == "PlaceholderV2") &&
           twins.contains({node, 0});
  };
  std::vector<Node*> to_run;
  for (Node* target : targets)
    if (!has_run(target)) to_run.push_back(target);
  const NodeSet needed = prune(graph, fetches, to_run, feeds);
  Program program;
  program.graph = graph.subset(needed);
  Graph& copy = program.graph;
  for (const Endpoint& feed : feeds) {
    TAGFLOW_ASSIGN(Node * placeholder, add_placeholder(copy, feed));
    program.feeds.push_back({placeholder, 0});
    twins[feed] = {placeholder, 0};
  }
  const auto twin = [&](const Endpoint& endpoint) {
    const auto fed = twins.find(endpoint);
    return fed != twins.end()
               ? fed->second
               : Endpoint{copy.node(endpoint.node->id()), endpoint.port};
  };
  for (const Endpoint& fetch : fetches) program.fetches.push_back(twin(fetch));
  // Any other op runs, though what it gives is fed.
  const auto stand_in = [&](Node* node) {
    return has_run(node) ? twin({node, 0}).node : copy.node(node->id());
  };
  for (Node* target : targets) program.targets.push_back(stand_in(target));
  if (feeds.empty()) return program;
  for (const Node* node : graph.nodes()) {
    if (!needed.contains(*node)) continue;
    Node* made = copy.node(node->id());
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
