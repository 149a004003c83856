#include "graph/functions/lower.h"

#include <algorithm>

#include "graph/budget.h"
#include "graph/functions/extended.h"
#include "graph/functions/inlined_size.h"
#include "graph/functions/lowering.h"
#include "graph/functions/ports.h"
#include "graph/functions/remote_call.h"
#include "graph/node_name.h"
#include "graph/op_registry.h"

namespace tagflow::graph {
namespace {

constexpr std::string_view kFunctionalOps[] = {
    "PartitionedCall",  "StatefulPartitionedCall",
    "RemoteCall",       "If",
    "StatelessIf",      "Case",
    "StatelessCase",    "While",
    "StatelessWhile",   "For",
    "SymbolicGradient",
};

// The frame name of an Enter; null for other nodes.
const std::string* frame_of(const AttrMap& attrs) {
  const auto it = attrs.find("frame_name");
  return it == attrs.end() ? nullptr : it->second.get_if<std::string>();
}

}  // namespace

bool is_functional_op(std::string_view op) {
  return std::ranges::find(kFunctionalOps, op) != std::end(kFunctionalOps);
}

bool calls_with_gradient(const FunctionLibrary& library, const Node& node) {
  if (!node.op().ends_with("PartitionedCall"))
    return !library.gradient_of(node.op()).empty();
  const auto it = node.attrs().find("f");
  if (it == node.attrs().end()) return false;
  const auto* function = it->second.get_if<FunctionRef>();
  return function != nullptr && !library.gradient_of(function->name).empty();
}

Status lower_functions(Program& program, const Limits& limits, size_t* nodes,
                       OwnGradients own_gradients) {
  for (const Node* node : program.graph.nodes())
    if (node->op() == "_Call")
      return invalid_argument(
          "[_Call] node \"{}\": a graph cannot have this op, which stands for "
          "a call that runs",
          node->name());
  begin_stage(limits.budget, "functions were inlined");
  TAGFLOW_RETURN_IF_ERROR(check_inlined_size(program.graph, limits, nodes));
  Lowering::Bodies bodies(program, limits, own_gradients);
  Status status = bodies.count(program.graph.size());
  if (status.ok()) status = Lowering(program, bodies, nullptr).run();
  if (status.ok()) status = bodies.lower_all();
  if (nodes != nullptr) *nodes = bodies.num_nodes();
  return status;
}

// --- Bodies -----------------------------------------------------------------

Status Lowering::Bodies::count(size_t more) {
  nodes_ += more;
  TAGFLOW_RETURN_IF_ERROR(check_budget(limits_.budget, more));
  if (nodes_ <= limits_.max_nodes) return {};
  return error(Code::kResourceExhausted,
               "[function] with its functions expanded the graph has more "
               "than {} nodes, the limit",
               limits_.max_nodes);
}

Status Lowering::Bodies::add_functions(const FunctionLibrary& made) {
  if (made.size() == library().size()) return {};
  traits_.reset();
  return program_.graph.library().merge(made);
}

LibraryTraits& Lowering::Bodies::traits() {
  if (!traits_) traits_.emplace(program_.graph.library());
  return *traits_;
}

Traits Lowering::Bodies::traits_of(const Node& node) {
  if (node.op() != "_Call") return traits().of(node.op(), node.attrs());
  return traits().of(functions_[size_t(node.attr<int64_t>("body").value())]);
}

Result<int64_t> Lowering::Bodies::find(const FunctionLibrary& library,
                                       const FunctionInstance& function) {
  const auto hash = uint32_t(hash_of(function));
  const uint32_t known = numbers_.find(
      hash, [&](uint32_t number) { return functions_[number] == function; });
  if (known != HashIndex::kNone) return int64_t(known);
  TAGFLOW_ASSIGN(auto body, make(library, function));
  program_.bodies.push_back(std::move(body));
  numbers_.insert(hash, uint32_t(functions_.size()));
  functions_.push_back(function);
  return int64_t(functions_.size()) - 1;
}

Result<std::unique_ptr<Program>> Lowering::Bodies::make(
    const FunctionLibrary& library, const FunctionInstance& function) {
  auto body = std::make_unique<Program>();
  body->name = function.name();
  body->graph.library() = library;
  Graph& graph = body->graph;
  Site site;
  site.prefix = to_node_name(name_of_body(library, function.function()));
  for (const DataType type : function.arg_types()) {
    // Not below the prefix, where the body may use any name.
    TAGFLOW_ASSIGN(Node * arg, graph.add(fmt::format("{}_arg_{}", site.prefix,
                                                     body->feeds.size()),
                                         "Placeholder", {}, {{"dtype", type}}));
    body->feeds.push_back({arg, 0});
    site.args.push_back(arg->name());
  }
  TAGFLOW_ASSIGN(const Expansion made, function.expand(site, limits_));
  TAGFLOW_RETURN_IF_ERROR(count(graph.size() + made.nodes.size()));
  TAGFLOW_RETURN_IF_ERROR(graph.extend(made.nodes));
  for (size_t i = 0; i < made.results.size(); ++i) {
    TAGFLOW_ASSIGN(const Endpoint result, graph.endpoint(made.results[i]));
    TAGFLOW_RETURN_IF_ERROR(check_result(function.function(), i,
                                         function.result_types()[i], result));
    body->fetches.push_back(result);
  }
  for (const auto* effects : {&made.effects, &made.inner_effects})
    for (const std::string& effect : *effects)
      body->targets.push_back(graph.find(effect));
  return body;
}

Status Lowering::Bodies::lower_all() {
  // Lowering a body may add others.
  for (size_t i = 0; i < program_.bodies.size(); ++i)
    TAGFLOW_RETURN_IF_ERROR(
        Lowering(*program_.bodies[i], *this, &functions_[i].function()).run());
  return {};
}

Status check_result(const FunctionDef& function, size_t result, DataType type,
                    const Endpoint& tensor) {
  const DataType made =
      remove_ref(tensor.node->output_dtypes()[size_t(tensor.port)]);
  if (made == remove_ref(type)) return {};
  return invalid_argument(
      "result {} of function \"{}\" is {}, its body gives {}", result,
      function.name(), dtype_name(type), dtype_name(made));
}

// --- One graph --------------------------------------------------------------

Lowering::Lowering(Program& program, Bodies& bodies,
                   const FunctionDef* function)
    : program_(program), graph_(program.graph), bodies_(bodies) {
  if (function == nullptr) return;
  const Origin* outer = &origins_.emplace_back(Origin{function, nullptr});
  for (const Node* node : graph_.nodes()) origin_of_[node->name()] = outer;
}

bool Lowering::is_functional(std::string_view op) const {
  return is_functional_op(op) ||
         (OpRegistry::global().find_or_null(op) == nullptr &&
          graph_.library().find(op) != nullptr);
}

bool Lowering::is_functional(const Node& node) const {
  return node.op_def().is_registered
             ? is_functional_op(node.op())
             : graph_.library().find(node.op()) != nullptr;
}

bool Lowering::is_replaced(const Node& node) const {
  return is_functional(node) && (!bodies_.keeps_own_gradients() ||
                                 !calls_with_gradient(graph_.library(), node));
}

Status Lowering::run() {
  for (;;) {
    TAGFLOW_RETURN_IF_ERROR(localize_remote_calls(graph_));
    std::vector<Node*> round;
    for (Node* node : graph_.nodes())
      if (is_replaced(*node)) round.push_back(node);
    if (round.empty()) return {};
    find_mortal();
    find_frames();
    num_read_.clear();
    Detour detour(program_);
    for (Node* node : round) TAGFLOW_RETURN_IF_ERROR(replace(node, detour));
    TAGFLOW_RETURN_IF_ERROR(detour.apply());
    std::erase_if(round, [&](Node* node) { return !is_replaced(*node); });
    graph_.remove(round);
  }
}

Status Lowering::replace(Node* node, Detour& detour) {
  const auto origin = origin_of_.find(node->name());
  origin_ = origin == origin_of_.end() ? nullptr : origin->second;
  const std::string& name = node->name();
  const auto about = [&](Status status) {
    return std::move(status).with_prefix(
        fmt::format("[{}] node \"{}\": ", node->op(), name));
  };
  if (has_own_frame(*node)) {
    Status status = keep_call(*node);
    return status.ok() ? status : about(std::move(status));
  }
  Draft draft{.node = node, .prefix = name};
  Status status = dispatch(draft);
  // Doubles the step each time, so that existing names cost few attempts.
  constexpr int64_t kLastSuffix = int64_t(1) << 40;
  for (int64_t i = 1; status.ok() && i <= kLastSuffix; i *= 2) {
    const Clash clash = clash_of(draft);
    if (clash == Clash::kNone) break;
    std::string own = fmt::format("{}_{}", name, i);
    draft = {.node = node,
             .prefix = clash == Clash::kInside ? draft.prefix : own,
             .own = own};
    status = dispatch(draft);
  }
  if (status.ok()) status = add(draft, detour);
  return status.ok() ? status : about(std::move(status));
}

// See Note [Extended functions].
Status Lowering::keep_call(Node& node) {
  TAGFLOW_ASSIGN(const auto reference,
                 get_attr<FunctionRef>(node.attrs(), "f"));
  TAGFLOW_ASSIGN(FunctionInstance function,
                 bind(reference, node.input_dtypes(), node.output_dtypes()));
  TAGFLOW_ASSIGN(function,
                 least_extension(graph_.library(), std::move(function),
                                 num_read(node), bodies_.limits()));
  TAGFLOW_ASSIGN(const int64_t body, bodies_.find(graph_.library(), function));
  const std::vector<Endpoint> inputs(node.inputs().begin(),
                                     node.inputs().end());
  const std::vector<Node*> controls(node.control_inputs().begin(),
                                    node.control_inputs().end());
  return graph_.become(&node, "_Call", inputs, call_attrs(function, body),
                       controls);
}

// The number of outputs up to the last one that is read.
size_t Lowering::num_read(const Node& node) {
  if (num_read_.empty()) {
    const auto read = [&](const Endpoint& tensor) {
      size_t& count = num_read_[tensor.node];
      count = std::max(count, size_t(tensor.port) + 1);
    };
    for (const Node* reader : graph_.nodes())
      for (const Endpoint& input : reader->inputs()) read(input);
    for (const Endpoint& fetch : program_.fetches) read(fetch);
  }
  const auto found = num_read_.find(&node);
  return found == num_read_.end() ? 0 : found->second;
}

Lowering::Clash Lowering::clash_of(const Draft& draft) const {
  std::unordered_set<std::string_view> names;
  Clash clash = Clash::kNone;
  for (const NodeDef& def : draft.defs) {
    if (graph_.find(def.name) != nullptr) return Clash::kWithGraph;
    if (const std::string* frame = frame_of(def.attrs))
      if (frames_.contains(*frame)) return Clash::kWithGraph;
    if (!names.insert(def.name).second) clash = Clash::kInside;
  }
  return clash;
}

Status Lowering::dispatch(Draft& draft) {
  const Node& node = *draft.node;
  start(draft);
  if (!is_functional_op(node.op()))
    return lower_call(draft, {node.op(), node.attrs()});
  if (node.op().ends_with("If")) return lower_if(draft);
  if (node.op().ends_with("Case")) return lower_case(draft);
  if (node.op().ends_with("While")) return lower_while(draft);
  if (node.op() == "For") return lower_for(draft);
  if (node.op() == "SymbolicGradient") return lower_symbolic_gradient(draft);
  TAGFLOW_ASSIGN(const auto function, get_attr<FunctionRef>(node.attrs(), "f"));
  return lower_call(draft, function);
}

Status Lowering::add(const Draft& draft, Detour& detour) {
  TAGFLOW_RETURN_IF_ERROR(bodies_.count(draft.defs.size()));
  TAGFLOW_RETURN_IF_ERROR(graph_.extend(draft.defs));
  for (const Promise& promise : draft.promises) {
    TAGFLOW_ASSIGN(const Endpoint tensor, graph_.endpoint(promise.tensor));
    TAGFLOW_RETURN_IF_ERROR(
        check_result(*promise.function, promise.result, promise.type, tensor));
  }
  for (const auto& [name, origin] : draft.origins) origin_of_[name] = origin;
  for (const NodeDef& def : draft.defs)
    if (const std::string* frame = frame_of(def.attrs)) frames_.insert(*frame);
  for (size_t i = 0; i < draft.outputs.size(); ++i) {
    TAGFLOW_ASSIGN(const Endpoint output, graph_.endpoint(draft.outputs[i]));
    detour.lead({draft.node, int(i)}, output);
  }
  Node* done = graph_.find(draft.done);
  detour.lead_control(draft.node, {done});
  if (draft.must_run) program_.targets.push_back(done);
  for (const std::string& inside : draft.must_run_inside)
    program_.targets.push_back(graph_.find(inside));
  return {};
}

// --- Making drafts ----------------------------------------------------------

std::string Lowering::put(Draft& draft, std::string_view name,
                          std::string_view op, std::vector<std::string> inputs,
                          AttrMap attrs) const {
  NodeDef def{fmt::format("{}/{}", draft.own, name), std::string(op),
              std::move(inputs), draft.node->device(), std::move(attrs)};
  return draft.defs.emplace_back(std::move(def)).name;
}

// An op is computed only if none of its inputs is dead, but its replacement may
// have nodes that do not depend on all inputs: if inputs may be dead, a gate
// that waits for all of them delays the others.
void Lowering::start(Draft& draft) const {
  const Node& node = *draft.node;
  for (const Endpoint& input : node.inputs())
    draft.inputs.push_back(input.to_string());
  for (const Node* control : node.control_inputs())
    draft.controls.push_back(control->name());
  if (draft.inputs.size() + draft.controls.size() < 2 ||
      !mortal_.contains(&node))
    return;
  std::vector<std::string> all;
  for (size_t i = 0; i < draft.inputs.size(); ++i) {
    draft.inputs[i] =
        put(draft, fmt::format("input_{}", i), "Identity", {draft.inputs[i]});
  }
  add_controls(draft.inputs, all);
  add_controls(draft.controls, all);
  draft.controls = {put(draft, "gate", "NoOp", std::move(all))};
}

void Lowering::find_mortal() {
  mortal_.clear();
  std::unordered_map<const Node*, std::vector<const Node*>> users;
  std::vector<const Node*> open;
  for (const Node* node : graph_.nodes()) {
    for (const Endpoint& input : node->inputs())
      users[input.node].push_back(node);
    for (const Node* control : node->control_inputs())
      users[control].push_back(node);
    if (node->op_def().may_die || node->is_enter() || node->is_exit() ||
        ((node->op() == "_Call" || is_functional(*node)) &&
         bodies_.traits_of(*node).may_die))
      open.push_back(node);
  }
  while (!open.empty()) {
    const Node* node = open.back();
    open.pop_back();
    for (const Node* user : users[node])
      if (mortal_.insert(user).second) open.push_back(user);
  }
}

// Names of frames are arbitrary and may equal that of a new loop.
void Lowering::find_frames() {
  if (!frames_.empty()) return;
  for (const Node* node : graph_.nodes())
    if (const std::string* frame = frame_of(node->attrs()))
      frames_.insert(*frame);
}

namespace {

// The prefix of all of a function's nodes, in one part of a draft.
std::string name_in(std::string_view part, std::string_view name) {
  return part.empty() ? std::string(name) : fmt::format("{}_{}", part, name);
}

Status check_types(const FunctionInstance& function, std::string_view what,
                   std::span<const DataType> has,
                   std::span<const DataType> wanted) {
  if (has.size() != wanted.size())
    return invalid_argument("function \"{}\" has {} {}s, the node {}",
                            function.name(), has.size(), what, wanted.size());
  for (size_t i = 0; i < has.size(); ++i)
    if (has[i] != wanted[i])
      return invalid_argument("{} {} of function \"{}\" is {}, the node's {}",
                              what, i, function.name(), dtype_name(has[i]),
                              dtype_name(wanted[i]));
  return {};
}

}  // namespace

Result<FunctionInstance> Lowering::bind(
    const FunctionRef& reference, std::span<const DataType> args,
    std::span<const DataType> results) const {
  TAGFLOW_ASSIGN(
      FunctionInstance function,
      FunctionInstance::bind(graph_.library(), reference, bodies_.limits()));
  TAGFLOW_RETURN_IF_ERROR(
      check_types(function, "argument", function.arg_types(), args));
  TAGFLOW_RETURN_IF_ERROR(
      check_types(function, "result", function.result_types(), results));
  return function;
}

Result<Lowering::Inlined> Lowering::inline_call(
    Draft& draft, const FunctionInstance& function, std::string_view part,
    Site site) {
  int depth = 0;
  for (const Origin* outer = origin_; outer != nullptr; outer = outer->outer) {
    if (outer->function == &function.function())
      return call_body(draft, function, part, site);
    ++depth;
  }
  if (depth >= bodies_.limits().max_function_depth)
    return error(Code::kResourceExhausted,
                 "functions nest deeper than {}, at \"{}\"", depth,
                 function.name());
  site.prefix = draft.prefix;
  if (!part.empty()) site.prefix += fmt::format("/{}", part);
  site.device = draft.node->device();
  TAGFLOW_ASSIGN(Expansion made, function.expand(site, bodies_.limits()));
  const Origin* inner =
      &origins_.emplace_back(Origin{&function.function(), origin_});
  for (NodeDef& def : made.nodes) {
    if (is_functional(def.op)) draft.origins.emplace_back(def.name, inner);
    draft.defs.push_back(std::move(def));
  }
  auto& inside = draft.must_run_inside;
  inside.insert(inside.end(), made.inner_effects.begin(),
                made.inner_effects.end());
  for (size_t i = 0; i < made.results.size(); ++i)
    draft.promises.push_back(
        {&function.function(), i, function.result_types()[i], made.results[i]});
  Inlined inlined{std::move(made.results), {}};
  if (!made.effects.empty()) {
    std::vector<std::string> all;
    add_controls(made.effects, all);
    inlined.effects = {
        put(draft, name_in(part, "effects"), "ControlTrigger", std::move(all))};
  }
  return inlined;
}

AttrMap Lowering::call_attrs(const FunctionInstance& function, int64_t body) {
  return {{"Tin", function.arg_types()},
          {"Tout", function.result_types()},
          {"f", FunctionRef{function.name(), function.attrs()}},
          {"body", body}};
}

Result<Lowering::Inlined> Lowering::call_body(Draft& draft,
                                              const FunctionInstance& function,
                                              std::string_view part,
                                              const Site& site) {
  TAGFLOW_ASSIGN(const int64_t body, bodies_.find(graph_.library(), function));
  std::vector<std::string> inputs = site.args;
  add_controls(site.controls, inputs);
  if (!site.pivot.empty()) inputs.push_back("^" + site.pivot);
  const std::string call = put(draft, name_in(part, "call"), "_Call",
                               std::move(inputs), call_attrs(function, body));
  Inlined made;
  for (size_t i = 0; i < function.result_types().size(); ++i)
    made.results.push_back(fmt::format("{}:{}", call, i));
  if (bodies_.traits().of(function).has_effects) made.effects.push_back(call);
  return made;
}

}  // namespace tagflow::graph
