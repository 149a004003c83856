// Lowering of SymbolicGradient, whose inputs are the arguments of a function
// and the gradients of its results, and whose outputs are the gradients of the
// arguments: the function is computed again, followed by its gradient.
#include "graph/functions/symbolic_gradient.h"

#include <atomic>

#include "graph/functions/lowering.h"
#include "graph/functions/ports.h"

namespace tagflow::graph {
namespace {

std::atomic<GradientMaker*> maker{nullptr};

// The body of a function with its gradient, in a separate graph with
// placeholders for the node's inputs.
class GradientBody {
 public:
  GradientBody(const FunctionInstance& function, std::string prefix)
      : function_(function), prefix_(std::move(prefix)) {}

  Status make(const FunctionLibrary& library, std::span<const DataType> types,
              const Limits& limits) {
    graph_.library() = library;
    TAGFLOW_RETURN_IF_ERROR(add_inputs(types));
    Site site;
    site.prefix = prefix_;
    const size_t args = function_.arg_types().size();
    site.args.assign(inputs_.begin(), inputs_.begin() + long(args));
    TAGFLOW_ASSIGN(const Expansion made, function_.expand(site, limits));
    TAGFLOW_RETURN_IF_ERROR(graph_.extend(made.nodes));
    std::vector<Endpoint> ys, grads, xs;
    for (const std::string& result : made.results) {
      TAGFLOW_ASSIGN(ys.emplace_back(), graph_.endpoint(result));
    }
    for (size_t i = 0; i < inputs_.size(); ++i)
      (i < args ? xs : grads).push_back({graph_.find(inputs_[i]), 0});
    TAGFLOW_ASSIGN(results_,
                   gradient_maker()->make(graph_, prefix_, ys, grads, xs));
    hold_sources(made);
    return {};
  }

  // The library of the graph, with the functions that the gradient calls.
  const FunctionLibrary& library() const { return graph_.library(); }

  // The replacement of a node with these inputs.
  std::vector<NodeDef> nodes(const std::vector<std::string>& inputs) const {
    std::vector<NodeDef> defs;
    for (const Node* node : graph_.nodes()) {
      if (place_of(node->name()) >= 0) continue;
      NodeDef def = Graph::to_def(*node);
      for (std::string& input : def.inputs) input = translated(input, inputs);
      defs.push_back(std::move(def));
    }
    return defs;
  }

  std::vector<std::string> results(
      const std::vector<std::string>& inputs) const {
    std::vector<std::string> texts;
    for (const Endpoint& result : results_)
      texts.push_back(translated(result.to_string(), inputs));
    return texts;
  }

 private:
  Status add_inputs(std::span<const DataType> types) {
    for (const DataType type : types) {
      TAGFLOW_ASSIGN(Node * input,
                     graph_.add(fmt::format("_input_{}", inputs_.size()),
                                "Placeholder", {}, {{"dtype", type}}));
      inputs_.push_back(input->name());
    }
    return {};
  }

  // Puts constants of the gradient into the frame and the branch of the node.
  void hold_sources(const Expansion& made) {
    if (made.args.empty()) return;
    Node* arg = graph_.find(made.args[0]);
    for (Node* node : graph_.nodes())
      if (node->inputs().empty() && node->control_inputs().empty() &&
          place_of(node->name()) < 0)
        graph_.add_control_input(node, arg);
  }

  // The number of an input; -1 for other names.
  int place_of(std::string_view name) const {
    for (size_t i = 0; i < inputs_.size(); ++i)
      if (inputs_[i] == name) return int(i);
    return -1;
  }

  std::string translated(const std::string& input,
                         const std::vector<std::string>& inputs) const {
    const bool is_control = input.starts_with('^');
    const std::string tensor = is_control ? input.substr(1) : input;
    const int place = place_of(split_tensor(tensor).name);
    if (place < 0) return input;
    const std::string& source = inputs[size_t(place)];
    if (!is_control) return source;
    return "^" + std::string(split_tensor(source).name);
  }

  const FunctionInstance& function_;
  const std::string prefix_;
  Graph graph_;
  std::vector<std::string> inputs_;  // names of placeholders
  std::vector<Endpoint> results_;
};

}  // namespace

void set_gradient_maker(GradientMaker* new_maker) { maker = new_maker; }
GradientMaker* gradient_maker() { return maker; }

Status Lowering::lower_symbolic_gradient(Draft& draft) {
  const Node& node = *draft.node;
  TAGFLOW_ASSIGN(const auto reference,
                 get_attr<FunctionRef>(node.attrs(), "f"));
  const std::string gradient(graph_.library().gradient_of(reference.name));
  if (!gradient.empty()) return lower_call(draft, {gradient, reference.attrs});
  if (gradient_maker() == nullptr)
    return error(Code::kUnimplemented,
                 "gradients of functions are made by autodiff/, which the "
                 "program has not enabled: enable_symbolic_gradients()");
  const size_t args = size_t(node.num_outputs());
  const std::span<const DataType> types = node.input_dtypes();
  TAGFLOW_ASSIGN(const FunctionInstance function,
                 bind(reference, types.subspan(0, args), types.subspan(args)));
  GradientBody body(function, draft.prefix);
  // From the library of the whole program, so that new names are unique.
  TAGFLOW_RETURN_IF_ERROR(
      body.make(bodies_.library(), types, bodies_.limits()));
  TAGFLOW_RETURN_IF_ERROR(bodies_.add_functions(body.library()));
  if (graph_.library().size() != body.library().size())
    TAGFLOW_RETURN_IF_ERROR(graph_.library().merge(body.library()));
  const Origin* inner =
      &origins_.emplace_back(Origin{&function.function(), origin_});
  for (NodeDef& def : body.nodes(draft.inputs)) {
    if (is_functional(def.op)) draft.origins.emplace_back(def.name, inner);
    draft.defs.push_back(std::move(def));
  }
  for (const std::string& result : body.results(draft.inputs))
    draft.outputs.push_back(
        put(draft, fmt::format("gradient_{}", draft.outputs.size()), "Identity",
            {result}) +
        ":0");
  std::vector<std::string> last;
  add_controls(draft.outputs, last);
  draft.done = put(draft, "done", "NoOp", std::move(last));
  return {};
}

}  // namespace tagflow::graph
