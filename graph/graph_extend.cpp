// Graph::extend: adds nodes in any order.
#include <algorithm>

#include "graph/fault.h"
#include "graph/function.h"
#include "graph/function_uses.h"
#include "graph/graph.h"
#include "graph/node_name.h"
#include "graph/op_registry.h"
#include "graph/precedence.h"

namespace tagflow::graph {
namespace {

bool is_merge_op(const std::string& op) {
  return op == "Merge" || op == "RefMerge";
}

bool is_next_iteration_op(const std::string& op) {
  return op == "NextIteration" || op == "RefNextIteration";
}

// One call of extend(). Nodes are added after their inputs; edges from a
// NextIteration to a Merge are left open and closed at the end. If Def is not
// const, its contents are moved to the nodes.
template <class Def>
class Extension {
 public:
  Extension(Graph& graph, std::span<Def> defs)
      : graph_(graph),
        defs_(defs),
        by_name_(defs.size()),
        added_(defs.size()) {}

  Status run() {
    TAGFLOW_RETURN_IF_ERROR(index_names());
    TAGFLOW_RETURN_IF_ERROR(resolve_inputs());
    TAGFLOW_RETURN_IF_ERROR(add_nodes());
    return close_back_edges();
  }

  // The nodes added so far.
  std::vector<Node*> added() const {
    std::vector<Node*> nodes;
    for (Node* node : added_)
      if (node != nullptr) nodes.push_back(node);
    return nodes;
  }

 private:
  // An input: a node of `defs_`, or an existing node of the graph.
  struct Source {
    uint32_t def = NameIndex::kNone;
    int port = 0;
    Node* old = nullptr;
    bool is_control = false;
    bool is_back_edge = false;

    bool is_old() const { return def == NameIndex::kNone; }
  };

  std::string prefix(const NodeDef& def) const {
    return fmt::format("[{}] node \"{}\": ", def.op, def.name);
  }

  uint32_t find_def(std::string_view name) const {
    return by_name_.find(
        name, [this](uint32_t i) -> std::string_view { return defs_[i].name; });
  }

  Status index_names() {
    if (defs_.size() >= NameIndex::kNone)
      return error(Code::kResourceExhausted, "[graph] {} nodes are too many",
                   defs_.size());
    for (size_t i = 0; i < defs_.size(); ++i) {
      const NodeDef& def = defs_[i];
      if (find_def(def.name) != NameIndex::kNone ||
          graph_.find(def.name) != nullptr)
        return error(Code::kAlreadyExists,
                     "{}a node of this name is there already", prefix(def));
      by_name_.insert(def.name, uint32_t(i));
    }
    return {};
  }

  std::span<const Source> sources(size_t i) const {
    return std::span(sources_).subspan(first_source_[i],
                                       first_source_[i + 1] - first_source_[i]);
  }

  Status resolve_inputs() {
    first_source_.reserve(defs_.size() + 1);
    sources_.reserve(2 * defs_.size());
    for (const NodeDef& def : defs_) {
      first_source_.push_back(sources_.size());
      bool after_control = false;
      for (size_t k = 0; k < def.inputs.size(); ++k) {
        Result<Source> source = resolve(def, k);
        if (!source.ok())
          return std::move(source).status().with_prefix(
              prefix(def) + fmt::format("input {}: ", k));
        if (!source->is_control && after_control)
          return invalid_argument(
              "{}input {} (\"{}\") comes after a control input", prefix(def), k,
              def.inputs[k]);
        after_control = source->is_control;
        sources_.push_back(*source);
      }
    }
    first_source_.push_back(sources_.size());
    return {};
  }

  Result<Source> resolve(const NodeDef& def, size_t k) const {
    TAGFLOW_ASSIGN(const InputText text, split_input(def.inputs[k]));
    Source source;
    source.port = text.port;
    source.is_control = text.is_control;
    source.def = find_def(text.name);
    if (!source.is_old()) {
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

  // In the order of `defs_`, as far as the edges allow it.
  Status add_nodes() {
    Precedence before(defs_.size(), sources_.size());
    for (size_t i = 0; i < defs_.size(); ++i) {
      for (const Source& source : sources(i))
        if (!source.is_old() && !source.is_back_edge) before.add(source.def);
      before.end_list();
    }
    TAGFLOW_ASSIGN(const auto order, topological_order(before, [&](size_t i) {
                     return std::string_view(defs_[i].name);
                   }));
    for (size_t i : order) TAGFLOW_RETURN_IF_ERROR(add_node(i));
    return {};
  }

  Status add_node(size_t i) {
    Def& def = defs_[i];
    inputs_.clear();
    controls_.clear();
    for (const Source& source : sources(i)) {
      Node* node = source.is_old() ? source.old : added_[source.def];
      if (source.is_back_edge) {
        inputs_.emplace_back();
      } else if (source.is_control) {
        controls_.push_back(node);
      } else {
        inputs_.push_back({node, source.port});
      }
    }
    Result<Node*> added =
        graph_.add(std::move(def.name), def.op, inputs_, std::move(def.attrs),
                   controls_, std::move(def.device));
    if (!added.ok())
      return is_known(def.op)
                 ? std::move(added).status()
                 : with_other_unknown_ops(std::move(added).status(), def.op);
    added_[i] = *added;
    return {};
  }

  bool is_known(const std::string& op) const {
    return OpRegistry::global().find_or_null(op) != nullptr ||
           graph_.library().find(op) != nullptr;
  }

  // Adds all other unknown ops to the error of a node with an unknown op, so
  // that users can fix them all at once.
  Status with_other_unknown_ops(Status status, const std::string& op) const {
    std::vector<NodeDef> others;
    for (const NodeDef& def : defs_)
      if (def.op != op && !is_known(def.op))
        others.push_back({def.name, def.op, {}, {}, {}});
    const Status rest =
        check_ops(others, graph_.library().functions(), graph_.library());
    if (rest.ok()) return status;
    std::string_view text = rest.message();
    text.remove_prefix(std::min(text.size(), kOpsModule.size()));
    return Status(status.code(), fmt::format("{}; {}", status.message(), text));
  }

  Status close_back_edges() {
    for (size_t i = 0; i < defs_.size(); ++i)
      for (size_t k = 0; k < sources(i).size(); ++k) {
        const Source& source = sources(i)[k];
        if (source.is_back_edge)
          TAGFLOW_RETURN_IF_ERROR(graph_.set_input(
              added_[i], int(k), {added_[source.def], source.port}));
      }
    return {};
  }

  Graph& graph_;
  std::span<Def> defs_;
  NameIndex by_name_;  // of `defs_`
  // Sources of all nodes in sequence, and the start of each node's.
  std::vector<Source> sources_;
  std::vector<size_t> first_source_;
  std::vector<Node*> added_;
  // Those of the node that is being added.
  std::vector<Endpoint> inputs_;
  std::vector<Node*> controls_;
};

}  // namespace

template <class Def>
Status Graph::extend_by(std::span<Def> defs) {
  const size_t first_id = by_id_.size();
  Extension extension(*this, defs);
  // An exception, as that without memory, leaves nothing either.
  Status status = guarded([&] { return extension.run(); });
  if (!status.ok()) {
    remove(extension.added());
    by_id_.resize(first_id);
  }
  return status;
}

Status Graph::extend(std::span<const NodeDef> defs) { return extend_by(defs); }

Status Graph::extend(std::vector<NodeDef>&& defs) {
  return extend_by(std::span(defs));
}

Status Graph::extend(const Graph& other) {
  if (size() == 0 && library_->empty()) {
    *this = other.clone();
    return {};
  }
  std::vector<NodeDef> defs;
  defs.reserve(other.size());
  for (const Node* node : other.nodes()) defs.push_back(to_def(*node));
  const FunctionLibrary::Mark before = library_->mark();
  Status status = guarded([&]() -> Status {
    TAGFLOW_RETURN_IF_ERROR(library_->merge(*other.library_));
    return extend(std::move(defs));
  });
  if (!status.ok()) library_->take_back(before);
  return status;
}

}  // namespace tagflow::graph
