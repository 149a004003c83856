#include "graph/analysis/dereference.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "graph/analysis/node_list.h"
#include "graph/analysis/node_queries.h"

namespace tagflow::graph {
namespace {

bool is_reference(const Endpoint& endpoint) {
  return endpoint.node != nullptr &&
         is_ref(endpoint.node->output_dtypes()[size_t(endpoint.port)]);
}

// The reference that an Enter's value was read from without control inputs;
// null otherwise.
Endpoint read_by(const Node& enter) {
  Endpoint source = enter.inputs()[0];
  if (source.node != nullptr && source.node->is_identity() &&
      source.node->control_inputs().empty() && !is_reference(source))
    source = source.node->inputs()[0];
  return is_reference(source) ? source : Endpoint();
}

// Redirects readers of a loop's constants to the reference in the loop.
Status follow_references(Graph& graph) {
  using Frame = std::pair<std::string, Endpoint>;
  const auto less = [](const Frame& a, const Frame& b) {
    return std::tuple(a.second.node->id(), a.second.port, a.first) <
           std::tuple(b.second.node->id(), b.second.port, b.first);
  };
  std::map<Frame, Node*, decltype(less)> references(less);
  for (Node* node : graph.nodes())
    if (node->is_constant_enter() && is_ref(node->output_dtypes()[0])) {
      TAGFLOW_ASSIGN(auto frame, node->attr<std::string>("frame_name"));
      references.try_emplace({std::move(frame), node->inputs()[0]}, node);
    }
  if (references.empty()) return {};
  // From the outermost loop inwards: each round goes one level deeper.
  for (bool changed = true; std::exchange(changed, false);)
    for (Node* reader : graph.nodes())
      for (size_t i = 0; i < reader->inputs().size(); ++i) {
        Node* enter = reader->inputs()[i].node;
        if (enter == nullptr || !enter->is_constant_enter() ||
            is_ref(enter->output_dtypes()[0]))
          continue;
        const Endpoint reference = read_by(*enter);
        if (reference.node == nullptr) continue;
        TAGFLOW_ASSIGN(auto frame, enter->attr<std::string>("frame_name"));
        const auto it = references.find({std::move(frame), reference});
        if (it == references.end()) continue;
        TAGFLOW_RETURN_IF_ERROR(
            graph.set_input(reader, int(i), {it->second, 0}));
        changed = true;
      }
  return {};
}

class Reads {
 public:
  explicit Reads(Graph& graph) : graph_(graph) {}

  Status run(std::span<Node* const> readers) {
    for (Node* node : readers) {
      const auto count = node->inputs().size();
      for (size_t i = 0; i < count; ++i)
        if (reads_reference(*node, i))
          TAGFLOW_RETURN_IF_ERROR(read_for(*node, i));
    }
    return {};
  }

  Status read_fetches(std::vector<Endpoint>& fetches) {
    for (Endpoint& fetch : fetches)
      if (is_reference(fetch)) {
        TAGFLOW_ASSIGN(
            Node * read,
            add_read(fetch, graph_.unique_name(fetch.node->name() + "/read"),
                     {}));
        fetch = {read, 0};
      }
    return {};
  }

 private:
  Result<Node*> add_read(const Endpoint& reference, std::string name,
                         std::span<Node* const> controls) {
    const DataType type =
        remove_ref(reference.node->output_dtypes()[size_t(reference.port)]);
    TAGFLOW_ASSIGN(Node * read,
                   graph_.add(std::move(name), "_Dereference", {&reference, 1},
                              {{"T", AttrValue(type)}}, controls));
    graph_.set_output_shape(read, 0,
                            reference.node->output_shape(reference.port));
    return read;
  }

  // A node that has a live token once the reader's other input is live.
  Result<Node*> sign_of(const Endpoint& input) {
    if (control_tells_deadness(input)) return input.node;
    return graph_.add(graph_.unique_name(input.node->name() + "/there"),
                      "Identity", {&input, 1});
  }

  Status read_for(Node& reader, size_t first) {
    const Endpoint reference = reader.inputs()[first];
    NodeList controls(reader.control_inputs());
    if (!reader.is_merge())
      for (const Endpoint& other : reader.inputs()) {
        if (other.node == nullptr || other == reference) continue;
        // Another reference becomes available only after its source.
        TAGFLOW_ASSIGN(Node * sign, is_reference(other)
                                        ? Result<Node*>(other.node)
                                        : sign_of(other));
        controls.add(sign);
      }
    TAGFLOW_ASSIGN(
        Node * read,
        add_read(reference,
                 graph_.unique_name(fmt::format("{}/read", reader.name())),
                 controls));
    for (size_t i = first; i < reader.inputs().size(); ++i)
      if (reader.inputs()[i] == reference && reads_reference(reader, i))
        TAGFLOW_RETURN_IF_ERROR(graph_.set_input(&reader, int(i), {read, 0}));
    return {};
  }

  Graph& graph_;
};

bool has_references(const Graph& graph) {
  return std::ranges::any_of(graph.nodes(), [](const Node* node) {
    return std::ranges::any_of(node->output_dtypes(), is_ref);
  });
}

}  // namespace

bool reads_reference(const Node& node, size_t input) {
  return is_reference(node.inputs()[input]) &&
         !is_ref(node.input_dtypes()[input]) &&
         int(input) != node.op_def().reference_input;
}

Status dereference(Program& program) {
  if (has_references(program.graph)) {
    Graph& graph = program.graph;
    TAGFLOW_RETURN_IF_ERROR(follow_references(graph));
    const std::vector<Node*> nodes(graph.nodes().begin(), graph.nodes().end());
    Reads reads(graph);
    TAGFLOW_RETURN_IF_ERROR(reads.run(nodes));
    TAGFLOW_RETURN_IF_ERROR(reads.read_fetches(program.fetches));
  }
  for (const auto& body : program.bodies)
    TAGFLOW_RETURN_IF_ERROR(dereference(*body));
  return {};
}

Status dereference(Graph& graph, std::span<Node* const> readers) {
  TAGFLOW_RETURN_IF_ERROR(follow_references(graph));
  return Reads(graph).run(readers);
}

}  // namespace tagflow::graph
