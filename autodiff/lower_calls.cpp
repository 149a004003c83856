#include "autodiff/lower_calls.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "autodiff/analysis.h"
#include "autodiff/function_body.h"
#include "autodiff/recompute.h"
#include "graph/analysis/frames.h"
#include "graph/analysis/node_queries.h"
#include "graph/function.h"
#include "graph/functions/extended.h"
#include "graph/functions/lower.h"
#include "graph/functions/remote_call.h"
#include "graph/program.h"

namespace tagflow::autodiff {

using graph::Endpoint;
using graph::Graph;
using graph::Node;
using graph::NodeDef;
using graph::Program;

namespace {

// Of a node that was a call.
constexpr std::string_view kLoweredAttr = "_lowered";

using Nodes = std::unordered_set<const Node*>;
using Users = std::unordered_map<const Node*, std::vector<Node*>>;

bool is_call(const Graph& graph, const Node& node) {
  return node.op_def().is_registered
             ? graph::is_functional_op(node.op()) && !graph::has_own_frame(node)
             : graph.library().find(node.op()) != nullptr;
}

Users users_of(const Graph& graph) {
  Users users;
  for (Node* node : graph.nodes()) {
    for (const Endpoint& input : node->inputs())
      if (input.node != nullptr) users[input.node].push_back(node);
    for (const Node* control : node->control_inputs())
      users[control].push_back(node);
  }
  return users;
}

// All nodes that depend on one of `from`, these included.
Nodes after(const Users& users, std::vector<const Node*> open) {
  Nodes found(open.begin(), open.end());
  while (!open.empty()) {
    const auto next = users.find(open.back());
    open.pop_back();
    if (next == users.end()) continue;
    for (const Node* user : next->second)
      if (found.insert(user).second) open.push_back(user);
  }
  return found;
}

// All nodes on which one of `open` depends, these included.
Nodes before(std::vector<const Node*> open, bool with_controls = false) {
  Nodes found(open.begin(), open.end());
  while (!open.empty()) {
    const Node* node = open.back();
    open.pop_back();
    const auto find = [&](const Node* source) {
      if (source != nullptr && found.insert(source).second)
        open.push_back(source);
    };
    for (const Endpoint& input : node->inputs()) find(input.node);
    if (with_controls)
      for (const Node* control : node->control_inputs()) find(control);
  }
  return found;
}

std::vector<const Node*> nodes_of(std::span<const Endpoint> tensors) {
  std::vector<const Node*> nodes;
  for (const Endpoint& tensor : tensors) nodes.push_back(tensor.node);
  return nodes;
}

// Lowers one call in a separate graph, with placeholders for its inputs, and
// copies the result back.
class LoweredCall {
 public:
  LoweredCall(Graph& graph, Node& node, bool may_be_dead,
              const graph::Limits& limits)
      : graph_(graph),
        node_(node),
        may_be_dead_(may_be_dead),
        limits_(limits) {}

  // Without `users`, readers of the node are not changed.
  Status run(const Users& users) {
    do {
      TAGFLOW_RETURN_IF_ERROR(isolate());
      TAGFLOW_RETURN_IF_ERROR(graph::lower_functions(
          program_, limits_, nullptr, graph::OwnGradients::kKept));
    } while (find_clashes());
    TAGFLOW_ASSIGN(const graph::FrameMap frames,
                   graph::FrameMap::build(program_.graph));
    order_inner_effects(frames);
    TAGFLOW_RETURN_IF_ERROR(bring_over());
    return lead_over(users, frames);
  }

 private:
  // A copy of the node only, with a placeholder for each tensor and node it
  // reads.
  Status isolate() {
    program_ = {};
    stands_for_.clear();
    Graph& alone = program_.graph;
    for (const std::string& name : taken_) {
      TAGFLOW_RETURN_IF_ERROR(alone.add(name, "NoOp", {}).status());
      stands_for_.emplace(name, "");
    }
    alone.library() = graph_.library();
    std::vector<Endpoint> inputs;
    for (const Endpoint& input : node_.inputs()) {
      TAGFLOW_ASSIGN(const Endpoint source, stand_in(input));
      inputs.push_back(source);
    }
    std::vector<Node*> controls;
    for (Node* control : node_.control_inputs()) {
      TAGFLOW_ASSIGN(Node * source,
                     alone.add(alone.unique_name("_control"), "NoOp", {}));
      stands_for_.emplace(source->name(), control->name());
      controls.push_back(source);
    }
    TAGFLOW_ASSIGN(Node * copy,
                   alone.add(node_.name(), node_.op(), inputs, node_.attrs(),
                             controls, node_.device()));
    for (int port = 0; port < node_.num_outputs(); ++port)
      program_.fetches.push_back({copy, port});
    program_.targets = {copy};
    return {};
  }

  // Whether names collide with those of the graph. Then the lowering must know
  // these, to choose others.
  bool find_clashes() {
    const size_t before = taken_.size();
    for (const Node* node : program_.graph.nodes())
      if (!stands_for_.contains(node->name()) && node->name() != node_.name() &&
          graph_.find(node->name()) != nullptr)
        taken_.push_back(node->name());
    return taken_.size() > before;
  }

  // The output of a Switch where the input may be dead, since the lowering
  // depends on that.
  Result<Endpoint> stand_in(const Endpoint& input) {
    Graph& alone = program_.graph;
    const DataType type =
        remove_ref(input.node->output_dtypes()[size_t(input.port)]);
    TAGFLOW_ASSIGN(
        Node * source,
        alone.add(alone.unique_name("_input"), "Placeholder", {},
                  {{"dtype", type},
                   {"shape", input.node->output_shape(input.port)}}));
    if (!may_be_dead_) {
      stands_for_.emplace(source->name(), input.to_string());
      return Endpoint{source, 0};
    }
    TAGFLOW_ASSIGN(Node * predicate,
                   alone.add(alone.unique_name("_predicate"), "Placeholder", {},
                             {{"dtype", DataType::kBool}}));
    TAGFLOW_ASSIGN(Node * made,
                   alone.add(alone.unique_name("_switch"), "Switch",
                             {{Endpoint{source, 0}, Endpoint{predicate, 0}}}));
    stands_for_.emplace(source->name(), "");
    stands_for_.emplace(predicate->name(), "");
    stands_for_.emplace(made->name(), input.to_string());
    return Endpoint{made, 1};
  }

  // In loops of primitives in a body, nodes with effects run before the next
  // iteration, that is, before its LoopCond.
  void order_inner_effects(const graph::FrameMap& frames) {
    for (Node* target : program_.targets) {
      const graph::FrameId id = frames.of(*target);
      if (id == graph::FrameId::kRoot) continue;
      const graph::StaticFrame& frame = frames.frame(id);
      const Nodes waited_for =
          before({frame.loop_conds.begin(), frame.loop_conds.end()}, true);
      if (waited_for.contains(target)) continue;
      for (Node* next : frame.next_iterations) {
        if (!frame.loop_conds.empty() && !waited_for.contains(next)) continue;
        program_.graph.add_control_input(next, target);
        if (!frame.loop_conds.empty()) break;
      }
    }
  }

  // "name:port" in the graph, for an input of a definition.
  std::string translated(const std::string& input) const {
    const bool is_control = input.starts_with('^');
    const std::string text = is_control ? input.substr(1) : input;
    const std::string name = text.substr(0, text.find(':'));
    const auto found = stands_for_.find(name);
    if (found == stands_for_.end()) return input;
    if (!is_control) return found->second;
    const std::string& source = found->second;
    return "^" + source.substr(0, source.find(':'));
  }

  Status bring_over() {
    if (graph_.size() + program_.graph.size() > limits_.max_nodes)
      return error(
          Code::kResourceExhausted,
          "[{}] node \"{}\": with its {} nodes the graph has more than "
          "{}, the limit",
          node_.op(), node_.name(), program_.graph.size(), limits_.max_nodes);
    const graph::FunctionLibrary& library = program_.graph.library();
    if (library.size() != graph_.library().size())  // by gradients in the body
      TAGFLOW_RETURN_IF_ERROR(graph_.library().merge(library));
    graph::LibraryTraits traits(library);
    std::vector<NodeDef> defs;
    for (const Node* node : program_.graph.nodes()) {
      if (stands_for_.contains(node->name()) || node->name() == node_.name())
        continue;
      NodeDef def = Graph::to_def(*node);
      if (def.op == "_Call") keep_own_frame(def, traits);
      for (std::string& input : def.inputs) input = translated(input);
      take_over_blocks(def);
      defs.push_back(std::move(def));
    }
    return graph_.extend(std::move(defs));
  }

  // The nodes are in the recomputed blocks of the call. A block inside the
  // function gets a new name in each call.
  void take_over_blocks(NodeDef& def) const {
    std::string name(blocks_of(node_.attrs()));
    if (const auto own = blocks_of(def.attrs); !own.empty())
      name +=
          fmt::format("{}{}/{}", name.empty() ? "" : ";", node_.name(), own);
    if (!name.empty()) def.attrs.insert_or_assign(kRecomputeAttr, name);
  }

  Result<Endpoint> there(const Endpoint& made) const {
    return graph_.endpoint(translated(made.to_string()));
  }

  Status lead_over(const Users& users, const graph::FrameMap& frames) {
    std::vector<Endpoint> outputs;
    for (const Endpoint& fetch : program_.fetches) {
      TAGFLOW_ASSIGN(const Endpoint output, there(fetch));
      narrow_shape(graph_, output, node_.output_shape(int(outputs.size())));
      outputs.push_back(output);
    }
    if (const auto found = users.find(&node_); found != users.end())
      for (Node* user : found->second)
        for (size_t i = 0; i < user->inputs().size(); ++i)
          if (user->inputs()[i].node == &node_)
            TAGFLOW_RETURN_IF_ERROR(graph_.set_input(
                user, int(i), outputs[size_t(user->inputs()[i].port)]));
    std::vector<Node*> controls;
    for (const Node* target : program_.targets)
      if (frames.of(*target) == graph::FrameId::kRoot)
        if (Node* done = graph_.find(target->name())) controls.push_back(done);
    return graph_.become(&node_,
                         outputs.empty()       ? "NoOp"
                         : outputs.size() == 1 ? "Identity"
                                               : "IdentityN",
                         outputs, {{std::string(kLoweredAttr), true}},
                         controls);
  }

  Graph& graph_;
  Node& node_;
  const bool may_be_dead_;
  const graph::Limits& limits_;
  Program program_;
  std::vector<std::string> taken_;  // names
  // By the name of a placeholder, the tensor or node that it stands for.
  std::unordered_map<std::string, std::string> stands_for_;
};

}  // namespace

Endpoint lowered_output(Endpoint tensor) {
  while (tensor.node->attrs().find(kLoweredAttr) !=
             tensor.node->attrs().end() &&
         size_t(tensor.port) < tensor.node->inputs().size())
    tensor = tensor.node->inputs()[size_t(tensor.port)];
  return tensor;
}

Status lower_calls(Graph& graph, std::span<const Endpoint> xs,
                   std::span<const Endpoint> ys, const graph::Limits& limits) {
  if (std::ranges::none_of(graph.nodes(), [&](const Node* node) {
        return is_call(graph, *node);
      }))
    return {};
  // A call alone does not know its target.
  TAGFLOW_RETURN_IF_ERROR(graph::localize_remote_calls(graph));
  const Users users = users_of(graph);
  // An x that is the output of a call does not make the call lowered.
  std::vector<const Node*> readers;
  for (const Node* node : nodes_of(xs))
    if (const auto found = users.find(node); found != users.end())
      readers.insert(readers.end(), found->second.begin(), found->second.end());
  const Nodes depending = after(users, std::move(readers));
  const Nodes needed = before(nodes_of(ys));
  std::vector<Node*> calls;
  for (Node* node : graph.nodes())
    if (is_call(graph, *node) && depending.contains(node) &&
        needed.contains(node) &&
        !graph::calls_with_gradient(graph.library(), *node))
      calls.push_back(node);
  if (calls.empty()) return {};
  std::vector<const Node*> control_flow;
  for (const Node* node : graph.nodes())
    if (node->is_switch() || node->is_merge() || node->is_enter() ||
        node->is_exit())
      control_flow.push_back(node);
  const Nodes mortal = after(users, std::move(control_flow));
  // Paths from an x begin at its node.
  const Users none;
  for (Node* call : calls) {
    const bool is_x = std::ranges::any_of(
        xs, [&](const Endpoint& x) { return x.node == call; });
    TAGFLOW_RETURN_IF_ERROR(
        LoweredCall(graph, *call, mortal.contains(call), limits)
            .run(is_x ? none : users));
  }
  return {};
}

}  // namespace tagflow::autodiff
