#include "graph/graph.h"

#include <algorithm>
#include <unordered_set>

#include "graph/fault.h"
#include "graph/function.h"
#include "graph/node_name.h"
#include "graph/node_set.h"
#include "graph/node_types.h"
#include "graph/op_registry.h"
#include "graph/paged_table.h"
#include "graph/shape_context.h"

namespace tagflow::graph {
namespace {

std::string prefix_of(std::string_view op, std::string_view name) {
  return fmt::format("[{}] node \"{}\": ", op, name);
}

// Adds the node as prefix to a message that does not name it yet.
Status about(std::string_view prefix, Status status) {
  if (status.message().starts_with(prefix)) return status;
  return std::move(status).with_prefix(prefix);
}

// Reserves room for one more element.
template <class T>
void make_room(std::vector<T>& values) {
  if (values.size() == values.capacity())
    values.reserve(std::max<size_t>(16, 2 * values.size()));
}

}  // namespace

Graph::Graph() : library_(std::make_unique<FunctionLibrary>()) {}
Graph::Graph(Graph&&) noexcept = default;
Graph& Graph::operator=(Graph&&) noexcept = default;
Graph::~Graph() = default;

Result<const OpDef*> Graph::find_op(std::string_view op) const {
  const OpRegistry& registry = OpRegistry::global();
  if (const OpDef* def = registry.find_or_null(op)) return def;
  // A function of the library can be called as if it were an op.
  if (const FunctionDef* function = library_->find(op))
    return &function->signature;
  return registry.find(op);
}

Status Graph::check_source(const Endpoint& source, size_t index) const {
  const Node& node = *source.node;
  if (!owns(&node))
    return invalid_argument("input {} (\"{}\") is not of this graph", index,
                            source.to_string());
  if (source.port < 0 || source.port >= node.num_outputs())
    return invalid_argument(
        "input {} (\"{}\"): node \"{}\" ({}) has {} output(s)", index,
        source.to_string(), node.name(), node.op(), node.num_outputs());
  return {};
}

Result<Node*> Graph::add(std::string name, std::string_view op,
                         std::span<const Endpoint> inputs, AttrMap attrs,
                         std::span<Node* const> control_inputs,
                         std::string device) {
  auto node = std::make_unique<Node>();
  node->name_ = std::move(name);
  node->device_ = std::move(device);
  Status status = prepare(*node, op, inputs, std::move(attrs), control_inputs);
  if (!status.ok()) return about(prefix_of(op, node->name_), std::move(status));
  set_control_inputs(node.get(), control_inputs);
  node->id_ = NodeId(by_id_.size());
  Node* added = node.get();
  // All memory is allocated first: if that fails, the graph is unchanged.
  make_room(by_id_);
  make_room(order_);
  by_name_.insert(added->name_, added->id_);
  by_id_.push_back(std::move(node));
  order_.push_back(added);
  num_outputs_ += added->num_outputs();
  return added;
}

Status Graph::prepare(Node& node, std::string_view op,
                      std::span<const Endpoint> inputs, AttrMap attrs,
                      std::span<Node* const> control_inputs) const {
  TAGFLOW_RETURN_IF_ERROR(check_node_name(node.name_));
  if (find(node.name_) != nullptr)
    return error(Code::kAlreadyExists, "a node of this name is there already");
  TAGFLOW_ASSIGN(node.op_def_, find_op(op));
  node.kind_ = Node::kind_of(op);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].node != nullptr) {
      TAGFLOW_RETURN_IF_ERROR(check_source(inputs[i], i));
    } else if (!node.is_merge()) {
      return invalid_argument("input {} is open; only those of a Merge may be",
                              i);
    }
  }
  node.attrs_ = std::move(attrs);
  TAGFLOW_ASSIGN(PortTypes types,
                 infer_types(*node.op_def_, inputs, node.attrs_));
  if (num_outputs_ + int64_t(types.outputs.size()) > kMaxGraphOutputs)
    return error(Code::kResourceExhausted,
                 "the graph's nodes have more than {} outputs",
                 kMaxGraphOutputs);
  node.inputs_.assign(inputs.begin(), inputs.end());
  node.input_dtypes_ = std::move(types.inputs);
  node.output_dtypes_ = std::move(types.outputs);
  node.has_inferred_types_ = true;
  for (const Node* source : control_inputs)
    if (source == nullptr || !owns(source))
      return invalid_argument("a control input is not of this graph");
  return infer_shapes(node);
}

Status Graph::become(Node* node, std::string_view op,
                     std::span<const Endpoint> inputs, AttrMap attrs,
                     std::span<Node* const> control_inputs) {
  Node made;
  made.name_ = unique_name(node->name_);
  Status status = prepare(made, op, inputs, std::move(attrs), control_inputs);
  const auto& types = made.output_dtypes_;
  const auto& before = node->output_dtypes_;
  const size_t common = std::min(types.size(), before.size());
  if (status.ok() &&
      !std::equal(types.begin(), types.begin() + long(common), before.begin()))
    status =
        invalid_argument("it cannot become a {}, which has other outputs", op);
  if (!status.ok())
    return about(prefix_of(node->op(), node->name_), std::move(status));
  set_control_inputs(&made, control_inputs);
  num_outputs_ += int64_t(types.size()) - int64_t(before.size());
  made.name_ = std::move(node->name_);
  made.device_ = std::move(node->device_);
  made.id_ = node->id_;
  *node = std::move(made);
  return {};
}

Status Graph::infer_shapes(Node& node) {
  node.output_shapes_.resize(node.output_dtypes_.size());
  const ShapeFn& shape_fn = node.op_def_->shape_fn;
  if (!shape_fn) return {};
  ShapeContext context(node);
  TAGFLOW_RETURN_IF_ERROR(guarded([&] { return shape_fn(context); }));
  node.output_shapes_ = std::move(context).outputs();
  return {};
}

Status Graph::set_input(Node* node, int index, Endpoint source) {
  const auto refuse = [&](Status status) {
    return about(prefix_of(node->op(), node->name()), std::move(status));
  };
  if (index < 0 || index >= node->num_inputs())
    return refuse(invalid_argument("no input {}, there are {}", index,
                                   node->num_inputs()));
  if (source.node == nullptr) {
    if (!node->is_merge())
      return refuse(invalid_argument(
          "input {} cannot be open; only those of a Merge can", index));
  } else {
    Status status = check_source(source, size_t(index));
    if (!status.ok()) return refuse(std::move(status));
    const DataType want = node->input_dtypes_[size_t(index)];
    const DataType have = source.node->output_dtypes_[size_t(source.port)];
    if (have != want && (is_ref(want) || remove_ref(have) != want))
      return refuse(invalid_argument("input {} (\"{}\") is {}, {} is wanted",
                                     index, source.to_string(),
                                     dtype_name(have), dtype_name(want)));
  }
  node->inputs_[size_t(index)] = source;
  return {};
}

void Graph::add_control_input(Node* node, Node* source) {
  auto& inputs = node->control_inputs_;
  if (std::ranges::find(inputs, source) == inputs.end())
    inputs.push_back(source);
}

void Graph::set_control_inputs(Node* node, std::span<Node* const> sources) {
  auto& inputs = node->control_inputs_;
  inputs.clear();
  std::unordered_set<const Node*> seen;  // for long lists only
  for (Node* source : sources) {
    constexpr size_t kFew = 8;
    const bool is_new = sources.size() > kFew
                            ? seen.insert(source).second
                            : std::ranges::find(inputs, source) == inputs.end();
    if (is_new) inputs.push_back(source);
  }
}

void Graph::set_attr(Node* node, std::string name, AttrValue value) {
  node->attrs_.insert_or_assign(name, std::move(value));
  node->has_inferred_types_ = false;
}

void Graph::set_device(Node* node, std::string device) {
  node->device_ = std::move(device);
}

void Graph::set_output_shape(Node* node, int port, PartialShape shape) {
  node->output_shapes_[size_t(port)] = std::move(shape);
}

void Graph::remove(std::span<Node* const> nodes) {
  if (nodes.empty()) return;
  // The removed nodes leave by_id_ first.
  std::vector<std::unique_ptr<Node>> gone;
  gone.reserve(nodes.size());
  for (const Node* node : nodes) {
    if (by_id_[node->id_] == nullptr) continue;
    num_outputs_ -= node->num_outputs();
    gone.push_back(std::move(by_id_[node->id_]));
  }
  std::erase_if(order_, [&](Node* node) { return !owns(node); });
  index_names();
}

void Graph::index_names() {
  by_name_ = NameIndex(order_.size());
  for (const Node* node : order_) by_name_.insert(node->name_, node->id_);
}

Node* Graph::find(std::string_view name) const {
  // If there is none, NameIndex::kNone is not the id of a node.
  return node(by_name_.find(name, [this](NodeId id) -> std::string_view {
    return by_id_[id]->name_;
  }));
}

Result<Endpoint> Graph::endpoint(std::string_view text) const {
  TAGFLOW_ASSIGN(const auto parsed, parse_endpoint(text));
  const auto& [name, port] = parsed;
  Node* node = find(name);
  if (node == nullptr)
    return error(Code::kNotFound, "[graph] no node \"{}\"{}", name,
                 suggestion(name));
  if (port >= node->num_outputs())
    return invalid_argument("[graph] \"{}\": node \"{}\" ({}) has {} output(s)",
                            text, name, node->op(), node->num_outputs());
  return Endpoint{node, port};
}

std::string Graph::suggestion(std::string_view name) const {
  std::vector<std::string> names;
  names.reserve(order_.size());
  for (const Node* node : order_) names.push_back(node->name());
  const std::string nearest = nearest_name(name, names);
  return nearest.empty() ? "" : fmt::format(", did you mean \"{}\"?", nearest);
}

std::string Graph::unique_name(std::string_view prefix) const {
  std::string name(prefix);
  if (find(name) == nullptr) return name;
  int& suffix = next_suffix_[name];
  // Leaves room for the number.
  prefix = prefix.substr(0, kMaxNameLength - 12);
  do {
    name = fmt::format("{}_{}", prefix, ++suffix);
  } while (find(name) != nullptr);
  return name;
}

template <class Twin>
void Graph::lead_edges(Node& node, const Twin& twin) {
  for (Endpoint& input : node.inputs_) {
    if (input.node == nullptr) continue;
    input.node = twin(input.node);
    if (input.node == nullptr) input.port = 0;
  }
  auto& controls = node.control_inputs_;
  for (Node*& input : controls) input = twin(input);
  controls.erase(std::remove(controls.begin(), controls.end(), nullptr),
                 controls.end());
}

template <class Keep>
Graph Graph::copy(Keep keep) const {
  Graph copy;
  *copy.library_ = *library_;
  copy.next_suffix_ = next_suffix_;
  copy.producer_version_ = producer_version_;
  copy.by_id_.resize(by_id_.size());
  copy.order_.reserve(order_.size());
  for (const Node* node : order_) {
    if (!keep(*node)) continue;
    std::unique_ptr<Node>& made = copy.by_id_[node->id_];
    made = std::make_unique<Node>(*node);
    copy.order_.push_back(made.get());
    copy.num_outputs_ += made->num_outputs();
  }
  for (Node* node : copy.order_)
    lead_edges(*node, [&](const Node* source) {
      return copy.by_id_[source->id_].get();
    });
  if (copy.size() == size()) {
    copy.by_name_ = by_name_;
  } else {
    copy.index_names();
  }
  return copy;
}

void Graph::add_copies(std::span<Node* const> nodes,
                       PagedTable<Node*, 64>& twins) {
  const size_t first = order_.size();
  const size_t size = first + nodes.size();
  by_id_.reserve(size);
  order_.reserve(size);
  if (first == 0) by_name_ = NameIndex(size);
  for (const Node* node : nodes) {
    auto copy = std::make_unique<Node>(*node);
    copy->id_ = NodeId(by_id_.size());
    num_outputs_ += copy->num_outputs();
    by_name_.insert(copy->name_, copy->id_);
    twins[node->id_] = copy.get();
    order_.push_back(copy.get());
    by_id_.push_back(std::move(copy));
  }
  const auto twin = [&](const Node* node) {
    return std::as_const(twins).at(node->id_);
  };
  for (size_t i = first; i < size; ++i) lead_edges(*order_[i], twin);
}

Graph Graph::clone() const {
  return copy([](const Node&) { return true; });
}

Graph Graph::subset(const NodeSet& nodes) const {
  return copy([&](const Node& node) { return nodes.contains(node); });
}

NodeDef Graph::to_def(const Node& node) {
  NodeDef def{node.name(), node.op(), {}, node.device(), node.attrs()};
  def.inputs.reserve(node.inputs().size() + node.control_inputs().size());
  for (const Endpoint& input : node.inputs()) {
    if (input.node == nullptr) {
      def.inputs.emplace_back();
    } else if (input.port == 0) {
      def.inputs.push_back(input.node->name());
    } else {
      def.inputs.push_back(input.to_string());
    }
  }
  for (const Node* input : node.control_inputs())
    def.inputs.push_back("^" + input->name());
  return def;
}

}  // namespace tagflow::graph
