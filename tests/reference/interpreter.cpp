#include "tests/reference/interpreter.h"

#include <map>
#include <memory>
#include <optional>
#include <unordered_set>

#include "devices/kernel_registry.h"
#include "devices/state/guard.h"
#include "graph/functions/instance.h"
#include "tests/reference/static_frames.h"

namespace tagflow::reference {

using graph::Endpoint;
using graph::Node;

namespace {

// What became of a node at one tag.
struct Firing {
  State state = State::kAbsent;
  std::vector<Outcome> outputs;

  // All outputs like the node.
  Firing(State s, int num_outputs) : state(s) {
    outputs.resize(size_t(num_outputs));
    for (Outcome& output : outputs) output.state = s;
  }
};

struct Iteration;

// An execution of a loop.
struct Instance {
  StaticFrame* frame = nullptr;
  Iteration* parent = nullptr;
  bool done = false;
  std::map<const Node*, Firing> exits;
};

struct Iteration {
  Instance* instance = nullptr;  // null: the root
  int64_t number = 0;
  Iteration* previous = nullptr;
  std::vector<std::optional<Firing>> firings;  // as StaticFrame::nodes
  std::vector<bool> asked;
  std::map<StaticFrame*, std::unique_ptr<Instance>> children;

  Iteration(const StaticFrame& frame, Instance* of, int64_t n,
            Iteration* before)
      : instance(of),
        number(n),
        previous(before),
        firings(frame.nodes.size()),
        asked(frame.nodes.size()) {}
};

// A function's body as a graph: its arguments are fed, its results fetched.
struct Body {
  graph::FunctionInstance function;
  graph::Graph graph;
  std::vector<std::string> args;
  std::vector<std::string> results;
};

bool calls_functions(const graph::Graph& graph, const Node& node) {
  static const std::set<std::string_view> ops = {"PartitionedCall",
                                                 "StatefulPartitionedCall",
                                                 "If",
                                                 "StatelessIf",
                                                 "Case",
                                                 "StatelessCase",
                                                 "While",
                                                 "StatelessWhile"};
  return ops.contains(node.op()) || graph.library().find(node.op()) != nullptr;
}

class Interpreter {
 public:
  Interpreter(const graph::Graph& graph, const InterpreterOptions& options)
      : graph_(graph), options_(options) {}

  Result<Interpretation> run(
      const std::vector<std::pair<std::string, Tensor>>& feeds,
      const std::vector<std::string>& fetches);

 private:
  using Key = std::pair<const Node*, int>;

  Status add_feed(const std::string& name, const Tensor& value);
  std::vector<const Node*> needed(const std::vector<Endpoint>& fetches) const;
  bool is_fed_placeholder(const Node& node) const;

  // The token on an edge: what iteration `it` has of an output.
  Result<Outcome> token(Endpoint source, Iteration& it);
  // What iteration `it` has of a node of which outputs arrive in its frame.
  Result<Firing> seen(const Node& node, Iteration& it);
  // What the node does in the iteration in which its inputs arrive.
  Result<Firing> fire(const Node& node, Iteration& it);
  Result<Firing> evaluate(const Node& node, Iteration& it);
  Result<Firing> merge(const Node& node, const std::vector<Outcome>& inputs,
                       bool controls_came, const Iteration& it);
  Result<Firing> compute(const Node& node, std::vector<Tensor> inputs,
                         const Iteration& it);
  Result<devices::Kernel*> kernel(const Node& node);
  // A node that calls functions, with its live inputs.
  Result<Firing> call_functions(const Node& node, std::vector<Tensor> inputs);
  Result<std::vector<Outcome>> call(const FunctionRef& function,
                                    std::span<const Tensor> args);
  // The same if all results must be live.
  Result<std::vector<Tensor>> call_live(const FunctionRef& function,
                                        std::span<const Tensor> args);
  Result<std::vector<Tensor>> loop(const Node& node,
                                   std::vector<Tensor> values);
  Result<const Body*> body(const FunctionRef& function);
  // The loop's execution for one iteration of its parent, all of it.
  Result<Instance*> execute(StaticFrame& frame, Iteration& parent);
  Result<bool> step(Instance& instance, Iteration& it);

  static std::string tag(const Iteration& it);

  const graph::Graph& graph_;
  const InterpreterOptions options_;
  StaticFrames frames_;
  std::map<Key, Tensor> feeds_;
  std::map<const Node*, std::unique_ptr<devices::Kernel>> kernels_;
  std::vector<std::unique_ptr<Body>> bodies_;
  Interpretation result_;
  int64_t firings_ = 0;
  int depth_ = 0;
};

std::string Interpreter::tag(const Iteration& it) {
  if (it.instance == nullptr) return "";
  return fmt::format("{}/{}/{}", tag(*it.instance->parent),
                     it.instance->frame->name, it.number);
}

bool Interpreter::is_fed_placeholder(const Node& node) const {
  return node.num_inputs() == 0 && feeds_.contains({&node, 0});
}

Status Interpreter::add_feed(const std::string& name, const Tensor& value) {
  TAGFLOW_ASSIGN(const Endpoint endpoint, graph_.endpoint(name));
  const DataType wanted =
      remove_ref(endpoint.node->output_dtypes()[size_t(endpoint.port)]);
  if (value.dtype() != wanted)
    return invalid_argument("[reference] \"{}\" is {}, fed with {}", name,
                            dtype_name(wanted), value.describe());
  feeds_[{endpoint.node, endpoint.port}] = value;
  return {};
}

std::vector<const Node*> Interpreter::needed(
    const std::vector<Endpoint>& fetches) const {
  std::vector<const Node*> list;
  std::unordered_set<const Node*> seen;
  const auto need = [&](const Node* node) {
    if (node != nullptr && seen.insert(node).second) list.push_back(node);
  };
  for (const Endpoint& fetch : fetches)
    if (!feeds_.contains({fetch.node, fetch.port})) need(fetch.node);
  for (size_t i = 0; i < list.size(); ++i) {
    const Node& node = *list[i];
    for (const Endpoint& input : node.inputs())
      if (!feeds_.contains({input.node, input.port})) need(input.node);
    for (const Node* control : node.control_inputs())
      if (!is_fed_placeholder(*control)) need(control);
  }
  return list;
}

Result<Interpretation> Interpreter::run(
    const std::vector<std::pair<std::string, Tensor>>& feeds,
    const std::vector<std::string>& fetches) {
  for (const auto& [name, value] : feeds)
    TAGFLOW_RETURN_IF_ERROR(add_feed(name, value));
  std::vector<Endpoint> wanted;
  for (const std::string& fetch : fetches) {
    TAGFLOW_ASSIGN(const Endpoint endpoint, graph_.endpoint(fetch));
    wanted.push_back(endpoint);
  }
  TAGFLOW_RETURN_IF_ERROR(frames_.place(needed(wanted)));
  for (const auto& [key, value] : feeds_)
    wanted.push_back({const_cast<Node*>(key.first), key.second});
  for (const Endpoint& endpoint : wanted) {
    TAGFLOW_ASSIGN(const StaticFrame* frame,
                   frames_.output_frame(*endpoint.node));
    if (frame != &frames_.root())
      return invalid_argument("[reference] \"{}\" is inside frame \"{}\"",
                              endpoint.to_string(), frame->name);
  }
  Iteration root(frames_.root(), nullptr, 0, nullptr);
  for (size_t i = 0; i < fetches.size(); ++i) {
    TAGFLOW_ASSIGN(Outcome outcome, token(wanted[i], root));
    result_.fetches.push_back(std::move(outcome));
  }
  return std::move(result_);
}

Result<Outcome> Interpreter::token(Endpoint source, Iteration& it) {
  const auto fed = feeds_.find({source.node, source.port});
  if (fed != feeds_.end()) return Outcome{State::kLive, fed->second};
  TAGFLOW_ASSIGN(const Firing firing, seen(*source.node, it));
  return firing.outputs[size_t(source.port)];
}

Result<Firing> Interpreter::seen(const Node& node, Iteration& it) {
  const Firing absent(State::kAbsent, node.num_outputs());
  if (node.is_enter()) {
    if (it.number > 0 && !is_loop_constant(node)) return absent;
    return fire(node, *it.instance->parent);
  }
  if (node.is_next_iteration()) {
    if (it.number == 0) return absent;
    TAGFLOW_ASSIGN(Firing firing, fire(node, *it.previous));
    return firing.state == State::kLive ? firing : absent;
  }
  if (node.is_exit()) {
    TAGFLOW_ASSIGN(const Instance* instance, execute(*frames_.of(node), it));
    return instance->exits.at(&node);
  }
  return fire(node, it);
}

Result<Firing> Interpreter::fire(const Node& node, Iteration& it) {
  const size_t index = frames_.index(node);
  if (it.firings[index].has_value()) return *it.firings[index];
  if (it.asked[index])
    return invalid_argument("[reference] \"{}\" waits for itself", node.name());
  it.asked[index] = true;
  if (++firings_ > options_.max_firings)
    return error(Code::kResourceExhausted, "[reference] more than {} firings",
                 options_.max_firings);
  if (++depth_ > options_.max_depth)
    return error(Code::kResourceExhausted,
                 "[reference] a chain of more than {} ops", options_.max_depth);
  TAGFLOW_ASSIGN(Firing firing, evaluate(node, it));
  --depth_;
  if (firing.state == State::kLive) ++result_.counts.computed;
  if (firing.state == State::kDead) ++result_.counts.skipped;
  it.firings[index] = firing;
  return firing;
}

Result<Firing> Interpreter::evaluate(const Node& node, Iteration& it) {
  std::vector<Outcome> inputs;
  bool any_absent = false;
  bool any_dead = false;
  for (const Endpoint& input : node.inputs()) {
    TAGFLOW_ASSIGN(Outcome outcome, token(input, it));
    any_absent |= outcome.state == State::kAbsent;
    any_dead |= outcome.state == State::kDead;
    inputs.push_back(std::move(outcome));
  }
  bool controls_came = true;
  for (const Node* control : node.control_inputs()) {
    if (is_fed_placeholder(*control)) continue;
    TAGFLOW_ASSIGN(const Firing firing, seen(*control, it));
    controls_came &= firing.state != State::kAbsent;
    any_dead |= firing.state == State::kDead;
  }
  const int outputs = node.num_outputs();
  if (node.is_merge()) return merge(node, inputs, controls_came, it);
  if (any_absent || !controls_came) return Firing(State::kAbsent, outputs);
  if (node.is_control_trigger()) return Firing(State::kLive, outputs);
  if (any_dead) return Firing(State::kDead, outputs);

  if (node.op() == "Switch" || node.op() == "RefSwitch") {
    const Tensor& pred = inputs[1].value;
    if (!pred.is_scalar() || pred.dtype() != DataType::kBool)
      return invalid_argument("[reference] \"{}\": the predicate is {}",
                              node.name(), pred.describe());
    Firing firing(State::kLive, outputs);
    const bool taken = pred.scalar_value<bool>();
    firing.outputs[size_t(taken)] = inputs[0];
    firing.outputs[size_t(!taken)].state = State::kDead;
    return firing;
  }
  if (node.is_enter() || node.is_exit() || node.is_next_iteration() ||
      node.is_loop_cond() || node.is_identity()) {
    Firing firing(State::kLive, outputs);
    firing.outputs[0] = inputs[0];
    return firing;
  }
  std::vector<Tensor> values;
  for (Outcome& input : inputs) values.push_back(std::move(input.value));
  if (calls_functions(graph_, node))
    return call_functions(node, std::move(values));
  return compute(node, std::move(values), it);
}

Result<Firing> Interpreter::merge(const Node& node,
                                  const std::vector<Outcome>& inputs,
                                  bool controls_came, const Iteration& it) {
  const int outputs = node.num_outputs();
  if (!controls_came) return Firing(State::kAbsent, outputs);
  int live = -1;
  int expected = 0;
  int dead = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].state == State::kLive) {
      result_.is_ambiguous |= live >= 0;
      if (live < 0) live = int(i);
    }
    const Node& source = *node.inputs()[i].node;
    const bool can_come =
        source.is_next_iteration()
            ? it.number > 0
            : it.number == 0 || !source.is_enter() || is_loop_constant(source);
    expected += can_come;
    dead += can_come && inputs[i].state == State::kDead;
  }
  if (live >= 0) {
    Firing firing(State::kLive, outputs);
    firing.outputs[0] = inputs[size_t(live)];
    firing.outputs[1].value = Tensor::scalar(int32_t(live));
    return firing;
  }
  return Firing(
      expected > 0 && dead == expected ? State::kDead : State::kAbsent,
      outputs);
}

// --- Functions --------------------------------------------------------------

Result<const Body*> Interpreter::body(const FunctionRef& function) {
  TAGFLOW_ASSIGN(const auto instance,
                 graph::FunctionInstance::bind(graph_.library(), function));
  for (const auto& known : bodies_)
    if (known->function == instance) return known.get();
  Body& body = *bodies_.emplace_back(std::make_unique<Body>());
  body.function = instance;
  body.graph.library() = graph_.library();
  graph::Site site;
  site.prefix = "body";
  for (const DataType type : instance.arg_types()) {
    TAGFLOW_ASSIGN(const Node* arg,
                   body.graph.add(fmt::format("arg_{}", body.args.size()),
                                  "Placeholder", {}, {{"dtype", type}}));
    body.args.push_back(arg->name());
  }
  site.args = body.args;
  TAGFLOW_ASSIGN(graph::Expansion made, instance.expand(site));
  TAGFLOW_RETURN_IF_ERROR(body.graph.extend(made.nodes));
  body.results = std::move(made.results);
  return &body;
}

Result<std::vector<Outcome>> Interpreter::call(const FunctionRef& function,
                                               std::span<const Tensor> args) {
  InterpreterOptions options = options_;
  if (--options.max_calls < 0)
    return error(Code::kResourceExhausted, "[reference] too many calls");
  options.max_firings -= firings_;
  options.max_depth -= depth_;
  TAGFLOW_ASSIGN(const Body* body, this->body(function));
  std::vector<std::pair<std::string, Tensor>> feeds;
  for (size_t i = 0; i < args.size(); ++i)
    feeds.emplace_back(body->args[i], args[i]);
  Interpreter inner(body->graph, options);
  TAGFLOW_ASSIGN(Interpretation made, inner.run(feeds, body->results));
  firings_ += inner.firings_;
  result_.is_ambiguous |= made.is_ambiguous;
  return std::move(made.fetches);
}

Result<std::vector<Tensor>> Interpreter::call_live(
    const FunctionRef& function, std::span<const Tensor> args) {
  TAGFLOW_ASSIGN(std::vector<Outcome> outcomes, call(function, args));
  std::vector<Tensor> values;
  for (Outcome& outcome : outcomes) {
    if (outcome.state != State::kLive)
      return error(Code::kUnimplemented, "[reference] a dead loop variable");
    values.push_back(std::move(outcome.value));
  }
  return values;
}

Result<std::vector<Tensor>> Interpreter::loop(const Node& node,
                                              std::vector<Tensor> values) {
  TAGFLOW_ASSIGN(const auto cond, node.attr<FunctionRef>("cond"));
  TAGFLOW_ASSIGN(const auto body, node.attr<FunctionRef>("body"));
  for (;;) {
    TAGFLOW_ASSIGN(const std::vector<Tensor> more, call_live(cond, values));
    TAGFLOW_ASSIGN(const bool go_on, more.at(0).item<bool>());
    if (!go_on) return values;
    TAGFLOW_ASSIGN(values, call_live(body, values));
  }
}

Result<Firing> Interpreter::call_functions(const Node& node,
                                           std::vector<Tensor> inputs) {
  Firing firing(State::kLive, node.num_outputs());
  if (node.op().ends_with("While")) {
    TAGFLOW_ASSIGN(std::vector<Tensor> values, loop(node, std::move(inputs)));
    for (size_t i = 0; i < values.size(); ++i)
      firing.outputs[i].value = std::move(values[i]);
    return firing;
  }
  FunctionRef function{node.op(), node.attrs()};
  std::span<const Tensor> args(inputs);
  if (node.op().ends_with("If")) {
    TAGFLOW_ASSIGN(const bool taken, inputs[0].item<bool>());
    TAGFLOW_ASSIGN(function, node.attr<FunctionRef>(taken ? "then_branch"
                                                          : "else_branch"));
    args = args.subspan(1);
  } else if (node.op().ends_with("Case")) {
    TAGFLOW_ASSIGN(const auto branches,
                   node.attr<std::vector<FunctionRef>>("branches"));
    TAGFLOW_ASSIGN(const int32_t index, inputs[0].item<int32_t>());
    const bool in_range = index >= 0 && size_t(index) < branches.size();
    function = in_range ? branches[size_t(index)] : branches.back();
    args = args.subspan(1);
  } else if (node.op().ends_with("PartitionedCall")) {
    TAGFLOW_ASSIGN(function, node.attr<FunctionRef>("f"));
  }
  TAGFLOW_ASSIGN(std::vector<Outcome> outcomes, call(function, args));
  for (size_t i = 0; i < outcomes.size(); ++i)
    firing.outputs[i] = std::move(outcomes[i]);
  return firing;
}

Result<devices::Kernel*> Interpreter::kernel(const Node& node) {
  std::unique_ptr<devices::Kernel>& kernel = kernels_[&node];
  if (kernel == nullptr) {
    TAGFLOW_ASSIGN(kernel, devices::KernelRegistry::global().make(node, "CPU"));
  }
  return kernel.get();
}

Result<Firing> Interpreter::compute(const Node& node,
                                    std::vector<Tensor> inputs,
                                    const Iteration& it) {
  Firing firing(State::kLive, node.num_outputs());
  if (node.is_const()) {
    TAGFLOW_ASSIGN(firing.outputs[0].value, node.attr<Tensor>("value"));
    return firing;
  }
  TAGFLOW_ASSIGN(devices::Kernel * kernel, this->kernel(node));
  // Kernels may write into inputs that nobody else holds.
  const std::vector<Tensor> held = inputs;
  std::vector<Tensor> outputs(size_t(node.num_outputs()));
  const devices::StepInfo step;
  const devices::Tag at{0, 0, it.number};
  devices::KernelContext context(&node, inputs, outputs, &step, &at);
  Status status;
  if (const auto* async = dynamic_cast<devices::AsyncKernel*>(kernel)) {
    bool done = false;
    devices::run_kernel_async(*async, context, [&](Status s) {
      status = std::move(s);
      done = true;
    });
    if (!done)
      return error(Code::kUnimplemented, "[reference] \"{}\" ({}) waits",
                   node.name(), node.op());
  } else {
    status = devices::run_kernel(*kernel, context);
  }
  if (!status.ok())
    return std::move(status).with_prefix(
        fmt::format("node \"{}\" at \"{}\": ", node.name(), tag(it)));
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].bytes() > options_.max_bytes)
      return error(Code::kResourceExhausted,
                   "[reference] \"{}\": output {} is {}", node.name(), i,
                   outputs[i].describe());
    firing.outputs[i].value = std::move(outputs[i]);
  }
  return firing;
}

// Iterations go up, and each is evaluated whole before the next: nothing asks
// further back than to the previous one.
Result<Instance*> Interpreter::execute(StaticFrame& frame, Iteration& parent) {
  std::unique_ptr<Instance>& slot = parent.children[&frame];
  if (slot != nullptr) {
    if (slot->done) return slot.get();
    return invalid_argument("[reference] frame \"{}\" waits for itself",
                            frame.name);
  }
  slot = std::make_unique<Instance>();
  Instance& instance = *slot;
  instance.frame = &frame;
  instance.parent = &parent;
  size_t entered = 0;
  for (const Node* enter : frame.enters) {
    TAGFLOW_ASSIGN(const Firing firing, fire(*enter, parent));
    entered += firing.state != State::kAbsent;
  }
  for (const Node* node : frame.nodes) {
    if (node->is_exit())
      instance.exits.emplace(node, Firing(State::kAbsent, 1));
  }
  if (entered > 0) {
    ++result_.counts.frames;
    std::unique_ptr<Iteration> last;
    bool more = true;
    for (int64_t n = 0; more; ++n) {
      auto it = std::make_unique<Iteration>(frame, &instance, n, last.get());
      TAGFLOW_ASSIGN(more, step(instance, *it));
      last = std::move(it);
    }
  }
  // A frame that misses an Enter does not end, and its Exits stay silent.
  if (entered == frame.enters.size()) {
    for (auto& [node, firing] : instance.exits)
      if (firing.state != State::kLive) firing = Firing(State::kDead, 1);
  }
  instance.done = true;
  return &instance;
}

// Evaluates one iteration; true if there is a next one.
Result<bool> Interpreter::step(Instance& instance, Iteration& it) {
  ++result_.counts.iterations;
  bool more = false;
  for (const Node* node : instance.frame->nodes) {
    TAGFLOW_ASSIGN(Firing firing, fire(*node, it));
    if (firing.state != State::kLive) continue;
    more |= node->is_next_iteration();
    if (!node->is_exit()) continue;
    Firing& exit = instance.exits.at(node);
    if (exit.state == State::kLive)
      return error(Code::kInternal,
                   "[reference] Exit \"{}\" is live a second time, at \"{}\"",
                   node->name(), tag(it));
    exit = std::move(firing);
  }
  return more;
}

}  // namespace

Result<Interpretation> interpret(
    const graph::Graph& graph,
    const std::vector<std::pair<std::string, Tensor>>& feeds,
    const std::vector<std::string>& fetches,
    const InterpreterOptions& options) {
  return Interpreter(graph, options).run(feeds, fetches);
}

}  // namespace tagflow::reference
