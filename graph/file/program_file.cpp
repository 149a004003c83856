#include "graph/file/program_file.h"

#include <google/protobuf/arena.h>

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "graph/analysis/validate.h"
#include "graph/fault.h"
#include "graph/file/graph_proto.h"
#include "graph/file/wire.h"
#include "graph/node_name.h"
#include "graph/node_types.h"
#include "graph/op_registry.h"
#include "graph/proto/graph.pb.h"
#include "graph/proto/program.pb.h"

namespace tagflow::graph {
namespace {

namespace pb = google::protobuf;

constexpr uint32_t kProgramVersion = 2;
// Far more than programs have, and few enough that a plan can count how many of
// them a node waits for.
constexpr size_t kMostOrderEdges = size_t(1) << 24;
constexpr std::string_view kProgram = "[program] ";

template <class T>
Result<T> about_program(Result<T> result) {
  if (result.ok() || result.status().message().starts_with('[')) return result;
  return std::move(result).status().with_prefix(kProgram);
}

// --- Writing ----------------------------------------------------------------

class ProgramWriter {
 public:
  explicit ProgramWriter(wire::ProgramFile& file) : file_(file) {}

  Status run(const Program& program) {
    file_.set_version(kProgramVersion);
    TAGFLOW_RETURN_IF_ERROR(add(program, *file_.mutable_root()));
    for (const auto& body : program.bodies)
      TAGFLOW_RETURN_IF_ERROR(
          add(*body, *file_.add_body())
              .with_prefix(fmt::format("body {:?}: ", body->name)));
    return add_functions(program.graph.library());
  }

 private:
  // The maximum of protocol buffers.
  static constexpr size_t kMostBytes = std::numeric_limits<int32_t>::max();

  Status add(const Program& program, wire::Program& proto) {
    proto.set_name(program.name);
    index_.assign(program.graph.end_id(), 0);
    uint32_t count = 0;
    for (const Node* node : program.graph.nodes()) {
      index_[node->id()] = count++;
      TAGFLOW_RETURN_IF_ERROR(add_node(*node, proto));
    }
    for (const Endpoint& feed : program.feeds) set_end(feed, proto.add_feed());
    for (const Endpoint& fetch : program.fetches)
      set_end(fetch, proto.add_fetch());
    for (const Node* target : program.targets)
      proto.add_target(index_[target->id()]);
    for (const OrderEdge& edge : program.order_edges) {
      auto& made = *proto.add_order_edge();
      made.set_first(index_[edge.first->id()]);
      made.set_then(index_[edge.then->id()]);
    }
    return {};
  }

  Status add_node(const Node& node, wire::Program& proto) {
    size_t elements = 0;
    for (const auto& [name, value] : node.attrs())
      if (const auto* tensor = value.get_if<Tensor>();
          tensor != nullptr && is_plain(tensor->dtype()))
        elements += tensor->bytes();
    // Before the copy.
    TAGFLOW_RETURN_IF_ERROR(check_room(node, elements));
    tensorflow::NodeDef& made = *proto.add_node();
    TAGFLOW_RETURN_IF_ERROR(node_to_proto(Graph::to_def(node), &made));
    const size_t size = made.ByteSizeLong();
    TAGFLOW_RETURN_IF_ERROR(check_room(node, size));
    bytes_ += size;
    for (int port = 0; port < node.num_outputs(); ++port) {
      const PartialShape& shape = node.output_shape(port);
      proto.add_shape(shape.has_rank() ? shape.rank() : -1);
      if (!shape.has_rank()) continue;
      for (const int64_t dim : shape.dims()) proto.add_shape(dim);
    }
    return {};
  }

  Status add_functions(const FunctionLibrary& library) {
    if (library.empty()) return {};
    TAGFLOW_RETURN_IF_ERROR(library_to_proto(library, file_.mutable_library()));
    const size_t size = file_.library().ByteSizeLong();
    if (size <= kMostBytes - bytes_) return {};
    return error(Code::kResourceExhausted,
                 "it needs more than 2 GiB, the maximum of the format; its "
                 "functions have {} bytes",
                 size);
  }

  // Whether the node may have so many bytes.
  Status check_room(const Node& node, size_t size) {
    if (size >= largest_size_) {
      largest_size_ = size;
      largest_ = &node;
    }
    if (size <= kMostBytes - bytes_) return {};
    return error(Code::kResourceExhausted,
                 "it needs more than 2 GiB, the maximum of the format; its "
                 "largest node is \"{}\" ({}) with {} bytes",
                 largest_->name(), largest_->op(), largest_size_);
  }

  void set_end(const Endpoint& end, wire::Program::End* proto) const {
    if (end.node == nullptr) return;
    proto->set_node(index_[end.node->id()] + 1);
    proto->set_port(uint32_t(end.port));
  }

  wire::ProgramFile& file_;
  std::vector<uint32_t> index_;  // by node id, of the present program
  size_t bytes_ = 0;             // of all nodes so far; at most kMostBytes
  const Node* largest_ = nullptr;
  size_t largest_size_ = 0;
};

// --- Reading ----------------------------------------------------------------

std::string prefix_of(const std::string& op, const std::string& name) {
  return fmt::format("[{}] node \"{}\": ", op, name);
}

// Makes the graph and the ends of one program.
//
// Shapes are those of the file and are not inferred again: passes may have
// found shapes that contradict each other, which is an error only if the node
// runs. So each node is added with stand-ins as inputs, of which nothing but
// the type is known. Its edges are set afterwards, in any order.
class ProgramReader {
 public:
  ProgramReader(const wire::Program& proto, LimitsLeft& left, Program& made)
      : proto_(proto), left_(left), made_(made), graph_(made.graph) {}

  Status run() {
    made_.name = proto_.name();
    TAGFLOW_RETURN_IF_ERROR(add_nodes());
    TAGFLOW_RETURN_IF_ERROR(set_edges());
    TAGFLOW_RETURN_IF_ERROR(set_shapes());
    std::vector<Node*> stand_ins;
    for (const auto& [dtype, node] : stand_ins_) stand_ins.push_back(node);
    graph_.remove(stand_ins);
    TAGFLOW_RETURN_IF_ERROR(set_ends());
    return check_frames();
  }

 private:
  Status add_nodes() {
    for (const tensorflow::NodeDef& node : proto_.node())
      index_.emplace(node.name(), uint32_t(index_.size()));
    nodes_.reserve(size_t(proto_.node_size()));
    for (const tensorflow::NodeDef& node : proto_.node()) {
      TAGFLOW_ASSIGN(NodeDef def, node_from_proto(node, left_));
      TAGFLOW_ASSIGN(Node * made, add_node(std::move(def)));
      nodes_.push_back(made);
    }
    return {};
  }

  Result<Node*> add_node(NodeDef def) {
    const auto refuse = [&](Status status) {
      return std::move(status).with_prefix(prefix_of(def.op, def.name));
    };
    const Result<const OpDef*> op = OpRegistry::global().find(def.op);
    if (!op.ok()) return refuse(op.status());
    std::vector<Endpoint> inputs;
    for (const std::string& input : def.inputs)
      if (!input.starts_with('^')) inputs.emplace_back();
    const Result<PortTypes> types = infer_types(**op, inputs, def.attrs);
    if (!types.ok()) return refuse(types.status());
    for (size_t i = 0; i < inputs.size(); ++i) {
      TAGFLOW_ASSIGN(inputs[i].node, stand_in(types->inputs[i]));
    }
    return graph_.add(std::move(def.name), def.op, inputs, std::move(def.attrs),
                      {}, std::move(def.device));
  }

  // A node with an output of that type.
  Result<Node*> stand_in(DataType dtype) {
    if (const auto known = stand_ins_.find(dtype); known != stand_ins_.end())
      return known->second;
    std::string name;
    do {
      name = fmt::format("stand_in_{}", last_stand_in_++);
    } while (index_.contains(name));
    const bool is_reference = is_ref(dtype);
    AttrMap attrs{{"dtype", remove_ref(dtype)}, {"shape", PartialShape()}};
    TAGFLOW_ASSIGN(
        Node * made,
        graph_.add(std::move(name), is_reference ? "VariableV2" : "Placeholder",
                   {}, std::move(attrs)));
    stand_ins_.emplace(dtype, made);
    return made;
  }

  Status set_edges() {
    for (size_t i = 0; i < nodes_.size(); ++i) {
      Node* const node = nodes_[i];
      std::vector<Node*> controls;
      int port = 0;
      for (const std::string& input : proto_.node(int(i)).input()) {
        const Result<InputText> text = split_input(input);
        const auto source = text.ok() ? index_.find(text->name) : index_.end();
        if (source == index_.end())
          return invalid_argument("{}its input {:?} is no output of a node",
                                  prefix_of(node->op(), node->name()), input);
        Node* const from = nodes_[source->second];
        if (text->is_control) {
          controls.push_back(from);
        } else {
          TAGFLOW_RETURN_IF_ERROR(
              graph_.set_input(node, port++, {from, text->port}));
        }
      }
      graph_.set_control_inputs(node, controls);
    }
    return {};
  }

  Status set_shapes() {
    int next = 0;
    const auto left = [&] { return int64_t(proto_.shape_size()) - next; };
    for (Node* node : nodes_)
      for (int port = 0; port < node->num_outputs(); ++port) {
        const auto refuse = [&](std::string_view why) {
          return error(Code::kDataLoss, "{}the shape of output {} {}",
                       prefix_of(node->op(), node->name()), port, why);
        };
        if (left() == 0) return refuse("is missing");
        const int64_t rank = proto_.shape(next++);
        PartialShape shape;
        if (rank != -1) {
          if (rank < 0 || rank > left()) return refuse("is cut off");
          const int64_t* const dims = proto_.shape().data() + next;
          next += int(rank);
          Result<PartialShape> known =
              PartialShape::make(std::span(dims, size_t(rank)));
          if (!known.ok()) return refuse("does not exist");
          shape = std::move(known).value();
        }
        graph_.set_output_shape(node, port, std::move(shape));
      }
    if (left() == 0) return {};
    return error(Code::kDataLoss, "{} numbers follow the last shape", left());
  }

  Result<Node*> node_at(uint32_t index, const char* what) const {
    if (index < nodes_.size()) return nodes_[index];
    return invalid_argument("{} is of node {}, but there are {} nodes", what,
                            index, nodes_.size());
  }

  Result<Endpoint> end_of(const wire::Program::End& end,
                          const char* what) const {
    if (end.node() == 0) return Endpoint();
    TAGFLOW_ASSIGN(Node * node, node_at(end.node() - 1, what));
    if (end.port() >= uint32_t(node->num_outputs()))
      return invalid_argument("{}{} is output {}, but it has {}",
                              prefix_of(node->op(), node->name()), what,
                              end.port(), node->num_outputs());
    return Endpoint{node, int(end.port())};
  }

  Status set_ends() {
    std::set<const Node*> fed;
    for (const auto& proto : proto_.feed()) {
      TAGFLOW_ASSIGN(const Endpoint feed, end_of(proto, "a feed"));
      made_.feeds.push_back(feed);
      if (feed.node == nullptr) continue;
      if (feed.node->op() != "Placeholder" || !fed.insert(feed.node).second)
        return invalid_argument("{}it is fed twice, or is not a Placeholder",
                                prefix_of(feed.node->op(), feed.node->name()));
    }
    for (const auto& proto : proto_.fetch()) {
      TAGFLOW_ASSIGN(const Endpoint fetch, end_of(proto, "a fetch"));
      made_.fetches.push_back(fetch);
    }
    for (const uint32_t index : proto_.target()) {
      TAGFLOW_ASSIGN(Node * target, node_at(index, "a target"));
      made_.targets.push_back(target);
    }
    for (const auto& proto : proto_.order_edge()) {
      OrderEdge edge;
      TAGFLOW_ASSIGN(edge.first, node_at(proto.first(), "an order edge"));
      TAGFLOW_ASSIGN(edge.then, node_at(proto.then(), "an order edge"));
      made_.order_edges.push_back(edge);
    }
    return {};
  }

  // Feeds and fetches are outside of loops, order edges inside one frame.
  Status check_frames() const {
    TAGFLOW_ASSIGN(const FrameMap frames,
                   validated_frames(graph_, left_.limits));
    for (const auto* ends : {&made_.feeds, &made_.fetches})
      for (const Endpoint& end : *ends)
        if (end.node != nullptr &&
            frames.output_of(*end.node) != FrameId::kRoot)
          return invalid_argument("{}it is fed or fetched inside a loop",
                                  prefix_of(end.node->op(), end.node->name()));
    for (const OrderEdge& edge : made_.order_edges)
      if (frames.of(*edge.first) != frames.of(*edge.then))
        return invalid_argument(
            "{}an order edge leads to it from node \"{}\" of another frame",
            prefix_of(edge.then->op(), edge.then->name()), edge.first->name());
    return {};
  }

  const wire::Program& proto_;
  LimitsLeft& left_;
  Program& made_;
  Graph& graph_;
  std::unordered_map<std::string_view, uint32_t> index_;  // by name
  std::vector<Node*> nodes_;
  std::map<DataType, Node*> stand_ins_;
  uint32_t last_stand_in_ = 0;
};

Status in_body(const Program& body, Status status) {
  return std::move(status).with_prefix(fmt::format("body {:?}: ", body.name));
}

// Whether these are outputs of just these types.
bool have_types(const std::vector<Endpoint>& ends,
                std::span<const DataType> types) {
  return std::ranges::equal(ends, types, {}, [](const Endpoint& end) {
    return remove_ref(end.node->output_dtypes()[size_t(end.port)]);
  });
}

// Calls name bodies that take and return what the calls do.
Status check_calls(const Graph& graph, const Program& root) {
  for (const Node* node : graph.nodes()) {
    if (node->op() != "_Call") continue;
    TAGFLOW_ASSIGN(const auto number, node->attr<int64_t>("body"));
    if (size_t(number) >= root.bodies.size())
      return invalid_argument("{}it calls body {}, but there are {} bodies",
                              prefix_of(node->op(), node->name()), number,
                              root.bodies.size());
    const Program& body = *root.bodies[size_t(number)];
    if (!have_types(body.feeds, node->input_dtypes()) ||
        !have_types(body.fetches, node->output_dtypes()))
      return invalid_argument(
          "{}it has other inputs or outputs than the body {:?} that it calls",
          prefix_of(node->op(), node->name()), body.name);
  }
  return {};
}

Result<Program> from_proto(const wire::ProgramFile& file,
                           const Limits& limits) {
  if (file.version() != kProgramVersion)
    return error(Code::kUnimplemented,
                 "it has the version {}, this reader is for version {}",
                 file.version(), kProgramVersion);
  if (!file.root().name().empty())
    return invalid_argument("the root has the name {:?}, as a body has",
                            file.root().name());
  LimitsLeft left(limits);
  Program program;
  TAGFLOW_RETURN_IF_ERROR(ProgramReader(file.root(), left, program).run());
  for (const wire::Program& proto : file.body()) {
    Program& body = *program.bodies.emplace_back(std::make_unique<Program>());
    if (proto.name().empty())
      return invalid_argument("body {} has no name", program.bodies.size() - 1);
    Status status = ProgramReader(proto, left, body).run();
    if (!status.ok()) return in_body(body, std::move(status));
    for (const auto* ends : {&body.feeds, &body.fetches})
      for (const Endpoint& end : *ends)
        if (end.node == nullptr)
          return in_body(body,
                         invalid_argument("an argument or result has no node"));
  }
  // Only now, since no node is a call by the name of a function.
  TAGFLOW_ASSIGN(program.graph.library(),
                 library_from_proto(file.library(), left));
  TAGFLOW_RETURN_IF_ERROR(check_calls(program.graph, program));
  for (const auto& body : program.bodies)
    if (Status status = check_calls(body->graph, program); !status.ok())
      return in_body(*body, std::move(status));
  return program;
}

}  // namespace

Result<std::string> write_program(const Program& program) try {
  pb::Arena arena;
  auto& file = *pb::Arena::CreateMessage<wire::ProgramFile>(&arena);
  Status status = ProgramWriter(file).run(program);
  if (!status.ok()) return std::move(status).with_prefix(kProgram);
  return write_message(file);
} catch (...) {
  return current_fault("program");
}

Result<Program> read_program(std::string_view bytes, const Limits& limits) try {
  // The paths to nodes: in the root, in bodies, and in functions.
  TAGFLOW_RETURN_IF_ERROR(
      check_message(bytes, {{2, 2}, {3, 2}, {4, 1, 3}}, "program", limits));
  // A body without nodes is small in the file, and not in memory.
  TAGFLOW_RETURN_IF_ERROR(
      check_count(bytes, {{3}}, "bodies", limits.max_nodes));
  TAGFLOW_RETURN_IF_ERROR(
      check_count(bytes, {{4, 1}}, "functions", limits.max_nodes));
  TAGFLOW_RETURN_IF_ERROR(
      check_count(bytes, {{2, 7}, {3, 7}}, "order edges", kMostOrderEdges));
  pb::Arena arena;
  auto& file = *pb::Arena::CreateMessage<wire::ProgramFile>(&arena);
  TAGFLOW_RETURN_IF_ERROR(parse_message(bytes, "program", &file, limits));
  return about_program(from_proto(file, limits));
} catch (...) {
  return current_fault("program");
}

}  // namespace tagflow::graph
