#include "graph/file/graph_proto.h"

#include <google/protobuf/arena.h>

#include <algorithm>
#include <unordered_map>

#include "graph/budget.h"
#include "graph/file/stored_gradients.h"
#include "graph/file/tensor_proto.h"
#include "graph/file/wire.h"
#include "graph/proto/graph.pb.h"
#include "graph/proto/meta_graph.pb.h"

namespace tagflow::graph {
namespace {

namespace pb = google::protobuf;

// The length at which messages truncate a name that is too long.
constexpr size_t kShownName = 60;

// Each needs a thread.
constexpr int kMostEnqueueOps = 1024;

std::string shown(const std::string& name) {
  if (name.size() <= kShownName) return fmt::format("{:?}", name);
  return fmt::format("{:?}...", name.substr(0, kShownName));
}

Status check_length(const std::string& name, const char* what,
                    const Limits& limits) {
  if (name.size() <= limits.max_name_length) return {};
  return error(Code::kResourceExhausted,
               "the {} {} has {} bytes, the limit is {}", what, shown(name),
               name.size(), limits.max_name_length);
}

// Graphs give the minimum version of their readers; no TensorFlow up to 2.21
// writes a version above this one.
constexpr int kReaderVersion = 2500;

Status check_versions(const tensorflow::VersionDef& versions) {
  if (versions.min_consumer() > kReaderVersion)
    return error(Code::kUnimplemented,
                 "[graphdef] the graph requires a reader of version {}, this "
                 "one has version {}",
                 versions.min_consumer(), kReaderVersion);
  if (versions.producer() < 0)
    return invalid_argument("[graphdef] its producer has the version {}",
                            versions.producer());
  return {};
}

// Up to this producer version, a Placeholder without a shape was written as a
// scalar.
constexpr int kScalarMeansUnknown = 21;

void open_placeholder(NodeDef& node) {
  if (node.op != "Placeholder") return;
  const auto it = node.attrs.find("shape");
  if (it == node.attrs.end()) return;
  const auto* shape = it->second.get_if<PartialShape>();
  if (shape != nullptr && *shape == PartialShape::scalar())
    node.attrs.insert_or_assign("shape", PartialShape());
}

}  // namespace

Result<NodeDef> node_from_proto(const tensorflow::NodeDef& proto,
                                LimitsLeft& left) {
  const Limits& limits = left.limits;
  TAGFLOW_RETURN_IF_ERROR(check_budget(limits.budget));
  TAGFLOW_RETURN_IF_ERROR(check_length(proto.name(), "node name", limits));
  if (left.nodes == 0)
    return error(Code::kResourceExhausted,
                 "node {} is one more than the limit of {} nodes",
                 shown(proto.name()), limits.max_nodes);
  --left.nodes;
  const auto in_node = [&](Status status) {
    return std::move(status).with_prefix(
        fmt::format("node {}: ", shown(proto.name())));
  };
  if (Status s = check_length(proto.op(), "op", limits); !s.ok())
    return in_node(std::move(s));
  if (Status s = check_length(proto.device(), "device", limits); !s.ok())
    return in_node(std::move(s));
  NodeDef node;
  node.name = proto.name();
  node.op = proto.op();
  node.device = proto.device();
  node.inputs.assign(proto.input().begin(), proto.input().end());
  Result<AttrMap> attrs = attrs_from_proto(proto.attr(), left);
  if (!attrs.ok()) return in_node(std::move(attrs).status());
  node.attrs = std::move(attrs).value();
  return node;
}

Status node_to_proto(const NodeDef& node, tensorflow::NodeDef* proto) {
  proto->set_name(node.name);
  proto->set_op(node.op);
  proto->set_device(node.device);
  const auto inputs = std::ranges::count_if(
      node.inputs, [](const auto& input) { return !input.starts_with('^'); });
  if (size_t(inputs) > kMaxNodePorts)
    return error(Code::kResourceExhausted,
                 "node {} has {} inputs, but nodes run with up to {} only",
                 shown(node.name), inputs, kMaxNodePorts);
  for (const std::string& input : node.inputs) proto->add_input(input);
  return attrs_to_proto(node.attrs, proto->mutable_attr())
      .with_prefix(fmt::format("node \"{}\": ", node.name));
}

Result<FunctionLibrary> library_from_proto(
    const tensorflow::FunctionDefLibrary& proto, LimitsLeft& left) {
  FunctionLibrary library;
  for (const auto& function : proto.function()) {
    Result<FunctionDef> def = function_from_proto(function, left);
    if (!def.ok())
      return std::move(def).status().with_prefix(
          fmt::format("function {}: ", shown(function.signature().name())));
    TAGFLOW_RETURN_IF_ERROR(library.add(std::move(def).value()));
  }
  for (const auto& gradient : proto.gradient())
    TAGFLOW_RETURN_IF_ERROR(library.add_gradient(gradient.function_name(),
                                                 gradient.gradient_func()));
  return library;
}

Result<GraphFile> graph_from_proto(const tensorflow::GraphDef& proto,
                                   const Limits& limits) {
  TAGFLOW_RETURN_IF_ERROR(check_versions(proto.versions()));
  GraphFile file;
  LimitsLeft left(limits);
  file.producer =
      proto.has_versions() ? proto.versions().producer() : proto.version();
  file.nodes.reserve(
      std::min<size_t>(size_t(proto.node_size()), limits.max_nodes));
  std::unordered_map<std::string_view, AttrMap> last;  // by op
  for (const auto& node : proto.node()) {
    TAGFLOW_ASSIGN(NodeDef def, node_from_proto(node, left));
    // Many nodes of an op have the same attributes, which are shared.
    AttrMap& known = last[node.op()];
    if (known == def.attrs) {
      def.attrs = known;
    } else {
      known = def.attrs;
    }
    if (file.producer > 0 && file.producer <= kScalarMeansUnknown)
      open_placeholder(def);
    file.nodes.push_back(std::move(def));
  }
  TAGFLOW_ASSIGN(file.library, library_from_proto(proto.library(), left));
  return file;
}

namespace {

Result<QueueRunnerDef> queue_runner_from(std::string_view bytes) {
  pb::Arena arena;
  auto& proto = *pb::Arena::CreateMessage<tensorflow::QueueRunnerDef>(&arena);
  TAGFLOW_RETURN_IF_ERROR(parse_message(bytes, "QueueRunnerDef", &proto));
  QueueRunnerDef runner;
  runner.queue = proto.queue_name();
  runner.enqueue_ops.assign(proto.enqueue_op_name().begin(),
                            proto.enqueue_op_name().end());
  runner.close_op = proto.close_op_name();
  runner.cancel_op = proto.cancel_op_name();
  // In older files, without this field, only the default is an end of input.
  if (proto.queue_closed_exception_types_size() > 0)
    runner.closed_codes.clear();
  for (const int32_t code : proto.queue_closed_exception_types()) {
    if (code < 1 || code > int32_t(Code::kUnauthenticated))
      return error(Code::kDataLoss,
                   "the queue runner of {} names {} as an error code",
                   shown(runner.queue), code);
    runner.closed_codes.push_back(Code(code));
  }
  if (proto.enqueue_op_name_size() <= kMostEnqueueOps) return runner;
  return error(Code::kResourceExhausted,
               "the queue runner of {} asks for {} threads, at most {} are "
               "possible",
               shown(runner.queue), runner.enqueue_ops.size(), kMostEnqueueOps);
}

// The tensor's name. What else the file says of it is kept if it is valid.
std::string name_of(const tensorflow::TensorInfo& proto, Signature& signature) {
  Signature::Info info;
  if (auto dtype = dtype_from_proto(proto.dtype()); dtype.ok())
    info.dtype = *dtype;
  if (proto.has_tensor_shape())
    if (auto shape = shape_from_proto(proto.tensor_shape()); shape.ok())
      info.shape = *std::move(shape);
  signature.infos[proto.name()] = std::move(info);
  return proto.name();
}

}  // namespace

Result<GraphFile> meta_graph_from_proto(const tensorflow::MetaGraphDef& proto,
                                        const Limits& limits) {
  TAGFLOW_ASSIGN(GraphFile file, graph_from_proto(proto.graph_def(), limits));
  for (const auto& [name, signature] : proto.signature_def()) {
    Signature& entry = file.signatures[name];
    entry.method = signature.method_name();
    for (const auto& [argument, info] : signature.inputs())
      entry.inputs[argument] = name_of(info, entry);
    for (const auto& [result, info] : signature.outputs())
      entry.outputs[result] = name_of(info, entry);
  }
  TAGFLOW_ASSIGN(file.state, state_from_proto(proto));
  TAGFLOW_RETURN_IF_ERROR(use_stored_gradients(proto, file));
  const auto& collections = proto.collection_def();
  const auto runners = collections.find("queue_runners");
  if (runners == collections.end()) return file;
  for (const std::string& bytes : runners->second.bytes_list().value()) {
    TAGFLOW_ASSIGN(QueueRunnerDef runner, queue_runner_from(bytes));
    file.queue_runners.push_back(std::move(runner));
  }
  return file;
}

Status library_to_proto(const FunctionLibrary& library,
                        tensorflow::FunctionDefLibrary* proto) {
  for (const FunctionDef* function : library.functions())
    TAGFLOW_RETURN_IF_ERROR(
        function_to_proto(*function, proto->add_function()));
  for (const auto& [function, name] : library.gradients()) {
    auto* gradient = proto->add_gradient();
    gradient->set_function_name(function);
    gradient->set_gradient_func(name);
  }
  return {};
}

Status graph_to_proto(const Graph& graph, tensorflow::GraphDef* proto) {
  proto->mutable_versions()->set_producer(graph.producer_version());
  for (const Node* node : graph.nodes())
    TAGFLOW_RETURN_IF_ERROR(
        node_to_proto(Graph::to_def(*node), proto->add_node()));
  if (graph.library().empty()) return {};
  return library_to_proto(graph.library(), proto->mutable_library());
}

}  // namespace tagflow::graph
