#include "autodiff/function_body.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "graph/analysis/class_labels.h"
#include "graph/functions/extended.h"
#include "graph/functions/lower.h"
#include "graph/node_name.h"
#include "graph/program.h"

namespace tagflow::autodiff {

using graph::Endpoint;
using graph::FunctionLibrary;
using graph::Graph;
using graph::LibraryTraits;
using graph::Node;
using graph::NodeDef;
using graph::Program;

namespace {

// Moves a lowered body into a separate graph.
class BodyLoader {
 public:
  BodyLoader(const Program& from, const FunctionRef& function,
             LibraryTraits& traits)
      : from_(from), traits_(traits), body_{.function = function} {
    const FunctionLibrary& library = from.graph.library();
    prefix_ = graph::to_node_name(
                  graph::name_of_body(library, *library.find(function.name))) +
              "/";
  }

  Result<FunctionBody> load() && {
    find_names();
    std::vector<NodeDef> defs;
    for (const Node* node : from_.graph.nodes()) defs.push_back(moved(*node));
    body_.graph.library() = from_.graph.library();
    TAGFLOW_RETURN_IF_ERROR(body_.graph.extend(std::move(defs)));
    for (const Endpoint& feed : from_.feeds) body_.args.push_back(there(feed));
    for (const Endpoint& fetch : from_.fetches)
      body_.results.push_back(there(fetch));
    for (const Node* target : from_.targets)
      body_.effects.push_back(there({const_cast<Node*>(target), 0}).node);
    return std::move(body_);
  }

 private:
  std::string without_prefix(const std::string& name) const {
    return name.starts_with(prefix_) ? name.substr(prefix_.size()) : name;
  }

  // The arguments do not have the prefix, and are renamed on conflict.
  void find_names() {
    std::unordered_set<std::string> taken;
    std::vector<const std::string*> beside;
    for (const Node* node : from_.graph.nodes()) {
      if (node->name().starts_with(prefix_))
        taken.insert(names_[node->name()] = without_prefix(node->name()));
      else
        beside.push_back(&node->name());
    }
    for (const std::string* old : beside) {
      std::string name = *old;
      while (!taken.insert(name).second) name += "_";
      names_[*old] = name;
    }
  }

  NodeDef moved(const Node& node) {
    NodeDef def = Graph::to_def(node);
    if (def.op == "_Call") keep_own_frame(def, traits_);
    def.name = names_.at(def.name);
    for (std::string& input : def.inputs) {
      const size_t begin = input.starts_with('^');
      const size_t end = std::min(input.find(':'), input.size());
      input.replace(begin, end - begin,
                    names_.at(input.substr(begin, end - begin)));
    }
    move_labels(def.attrs);
    return def;
  }

  // Frames and colocation use names.
  void move_labels(AttrMap& attrs) const {
    if (const auto frame = attrs.find("frame_name"); frame != attrs.end())
      if (const auto* name = frame->second.get_if<std::string>())
        attrs.insert_or_assign("frame_name", without_prefix(*name));
    const auto labels = attrs.find(graph::kClassAttr);
    if (labels == attrs.end()) return;
    const auto* old = labels->second.get_if<std::vector<std::string>>();
    if (old == nullptr) return;
    std::vector<std::string> renamed;
    for (const std::string& label : *old) {
      const auto name =
          label.starts_with(graph::kClassPrefix)
              ? names_.find(label.substr(graph::kClassPrefix.size()))
              : names_.end();
      renamed.push_back(name == names_.end()
                            ? label
                            : std::string(graph::kClassPrefix) + name->second);
    }
    attrs.insert_or_assign(std::string(graph::kClassAttr), std::move(renamed));
  }

  Endpoint there(const Endpoint& from) const {
    return {body_.graph.find(names_.at(from.node->name())), from.port};
  }

  const Program& from_;
  LibraryTraits& traits_;
  FunctionBody body_;
  std::string prefix_;
  std::unordered_map<std::string, std::string> names_;
};

// The calls only, with Placeholders for all tensors that they read.
Result<Program> calls_alone(const FunctionLibrary& library,
                            std::span<const Node* const> calls,
                            const graph::Limits& limits) {
  Program program;
  Graph& graph = program.graph;
  graph.library() = library;
  for (const Node* call : calls) {
    std::vector<Endpoint> inputs;
    for (const DataType type : call->input_dtypes()) {
      TAGFLOW_ASSIGN(Node * input,
                     graph.add(graph.unique_name("_input"), "Placeholder", {},
                               {{"dtype", remove_ref(type)}}));
      inputs.push_back({input, 0});
    }
    TAGFLOW_ASSIGN(Node * copy, graph.add(graph.unique_name(call->name()),
                                          call->op(), inputs, call->attrs()));
    for (int port = 0; port < copy->num_outputs(); ++port)
      program.fetches.push_back({copy, port});
    program.targets.push_back(copy);
  }
  TAGFLOW_RETURN_IF_ERROR(graph::lower_functions(program, limits, nullptr,
                                                 graph::OwnGradients::kKept));
  return program;
}

// By body, the functions that its calls name.
std::vector<FunctionRef> functions_of_bodies(const Program& program) {
  std::vector<FunctionRef> functions(program.bodies.size());
  const auto look = [&](const Graph& graph) {
    for (const Node* node : graph.nodes())
      if (node->op() == "_Call")
        functions[size_t(node->attr<int64_t>("body").value())] =
            node->attr<FunctionRef>("f").value();
  };
  look(program.graph);
  for (const auto& body : program.bodies) look(body->graph);
  return functions;
}

}  // namespace

void keep_own_frame(NodeDef& call, LibraryTraits& traits) {
  const bool has_effects =
      traits.of("", {{"f", call.attrs.at("f")}}).has_effects;
  call.op = has_effects ? "StatefulPartitionedCall" : "PartitionedCall";
  AttrMap attrs{{std::string(graph::kOwnFrameAttr), true}};
  for (const char* name : {"Tin", "Tout", "f"})
    attrs.insert_or_assign(name, call.attrs.at(name));
  call.attrs = std::move(attrs);
}

Result<std::vector<FunctionBody>> load_bodies(
    const FunctionLibrary& library, std::span<const Node* const> calls,
    const graph::Limits& limits) {
  TAGFLOW_ASSIGN(const Program program, calls_alone(library, calls, limits));
  const std::vector<FunctionRef> functions = functions_of_bodies(program);
  LibraryTraits traits(library);
  std::vector<FunctionBody> bodies;
  for (size_t i = 0; i < functions.size(); ++i) {
    TAGFLOW_ASSIGN(FunctionBody body,
                   BodyLoader(*program.bodies[i], functions[i], traits).load());
    bodies.push_back(std::move(body));
  }
  return bodies;
}

}  // namespace tagflow::autodiff
