// Graph::extend: adds nodes that come in any order.
#include "graph/graph.h"
#include "graph/node_name.h"
#include "graph/op_registry.h"
#include "graph/topology.h"

namespace tagflow::graph {
namespace {

bool is_merge_op(const std::string& op) {
  return op == "Merge" || op == "RefMerge";
}

bool is_next_iteration_op(const std::string& op) {
  return op == "NextIteration" || op == "RefNextIteration";
}

// One call of extend(). Nodes are added when their inputs are there; the edges
// from a NextIteration to a Merge are left open and closed at the end.
class Extension {
 public:
  Extension(Graph& graph, std::span<const NodeDef> defs)
      : graph_(graph), defs_(defs), added_(defs.size()) {}

  Status run() {
    TAGFLOW_RETURN_IF_ERROR(index_names());
    TAGFLOW_RETURN_IF_ERROR(resolve_inputs());
    TAGFLOW_RETURN_IF_ERROR(add_nodes());
    return close_back_edges();
  }

  // What was added so far.
  std::vector<Node*> added() const {
    std::vector<Node*> nodes;
    for (Node* node : added_)
      if (node != nullptr) nodes.push_back(node);
    return nodes;
  }

 private:
  static constexpr size_t kOld = size_t(-1);

  // An input: a node of `defs_`, or one that the graph has already.
  struct Source {
    size_t def = kOld;
    Node* old = nullptr;
    int port = 0;
    bool is_control = false;
    bool is_back_edge = false;
  };

  std::string prefix(const NodeDef& def) const {
    return fmt::format("[{}] node \"{}\": ", def.op, def.name);
  }

  Status index_names() {
    by_name_.reserve(defs_.size());
    for (size_t i = 0; i < defs_.size(); ++i) {
      const NodeDef& def = defs_[i];
      if (!by_name_.try_emplace(def.name, i).second ||
          graph_.find(def.name) != nullptr)
        return error(Code::kAlreadyExists,
                     "{}a node of this name is there already", prefix(def));
    }
    return {};
  }

  Status resolve_inputs() {
    sources_.resize(defs_.size());
    before_.resize(defs_.size());
    for (size_t i = 0; i < defs_.size(); ++i) {
      const NodeDef& def = defs_[i];
      for (size_t k = 0; k < def.inputs.size(); ++k) {
        Result<Source> source = resolve(def, k);
        if (!source.ok())
          return std::move(source).status().with_prefix(
              prefix(def) + fmt::format("input {}: ", k));
        if (!source->is_control && !sources_[i].empty() &&
            sources_[i].back().is_control)
          return invalid_argument(
              "{}input {} (\"{}\") comes after a control input", prefix(def), k,
              def.inputs[k]);
        sources_[i].push_back(*source);
        if (source->def != kOld && !source->is_back_edge)
          before_[i].push_back(source->def);
      }
    }
    return {};
  }

  Result<Source> resolve(const NodeDef& def, size_t k) const {
    TAGFLOW_ASSIGN(const InputText text, split_input(def.inputs[k]));
    Source source;
    source.port = text.port;
    source.is_control = text.is_control;
    if (auto it = by_name_.find(text.name); it != by_name_.end()) {
      source.def = it->second;
      source.is_back_edge = !text.is_control && is_merge_op(def.op) &&
                            is_next_iteration_op(defs_[source.def].op);
      return source;
    }
    source.old = graph_.find(text.name);
    if (source.old == nullptr)
      return invalid_argument("no node \"{}\"{}", text.name,
                              suggestion(text.name));
    return source;
  }

  std::string suggestion(std::string_view name) const {
    std::vector<std::string> names;
    for (const Node* node : graph_.nodes()) names.push_back(node->name());
    for (const NodeDef& def : defs_) names.push_back(def.name);
    const std::string nearest = nearest_name(name, names);
    return nearest.empty() ? ""
                           : fmt::format(", did you mean \"{}\"?", nearest);
  }

  // In the order of `defs_` as far as the edges allow.
  Status add_nodes() {
    TAGFLOW_ASSIGN(const auto order, topological_order(before_, [&](size_t i) {
                     return std::string_view(defs_[i].name);
                   }));
    for (size_t i : order) TAGFLOW_RETURN_IF_ERROR(add_node(i));
    return {};
  }

  Status add_node(size_t i) {
    const NodeDef& def = defs_[i];
    std::vector<Endpoint> inputs;
    std::vector<Node*> control_inputs;
    for (const Source& source : sources_[i]) {
      Node* node = source.def == kOld ? source.old : added_[source.def];
      if (source.is_back_edge) {
        inputs.emplace_back();
      } else if (source.is_control) {
        control_inputs.push_back(node);
      } else {
        inputs.push_back({node, source.port});
      }
    }
    TAGFLOW_ASSIGN(added_[i], graph_.add(def.name, def.op, inputs, def.attrs,
                                         control_inputs, def.device));
    return {};
  }

  Status close_back_edges() {
    for (size_t i = 0; i < defs_.size(); ++i)
      for (size_t k = 0; k < sources_[i].size(); ++k) {
        const Source& source = sources_[i][k];
        if (source.is_back_edge)
          TAGFLOW_RETURN_IF_ERROR(graph_.set_input(
              added_[i], int(k), {added_[source.def], source.port}));
      }
    return {};
  }

  Graph& graph_;
  std::span<const NodeDef> defs_;
  std::unordered_map<std::string_view, size_t> by_name_;
  std::vector<std::vector<Source>> sources_;
  std::vector<std::vector<size_t>> before_;  // what each def waits for
  std::vector<Node*> added_;
};

}  // namespace

Status Graph::extend(std::span<const NodeDef> defs) {
  const NodeId first_id = next_id_;
  Extension extension(*this, defs);
  Status status = extension.run();
  if (!status.ok()) {
    remove(extension.added());
    next_id_ = first_id;
  }
  return status;
}

}  // namespace tagflow::graph
