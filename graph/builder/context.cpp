#include "graph/builder/context.h"

#include <algorithm>

#include "graph/budget.h"

namespace tagflow::graph {

namespace {

bool is_within(const Context* inner, const Context* outer) {
  while (inner != nullptr && inner != outer) inner = inner->parent;
  return inner == outer;
}

bool is_ref_output(Endpoint endpoint) {
  return is_ref(endpoint.node->output_dtypes()[size_t(endpoint.port)]);
}

// `prefix`, or with the first unused number from `suffix` on; `suffix` is
// advanced, so that repeated prefixes do not try all numbers again.
template <class Taken>
std::string first_free(const std::string& prefix, int& suffix,
                       const Taken& taken) {
  if (suffix == 0) {
    ++suffix;
    if (!taken(prefix)) return prefix;
  }
  while (true) {
    std::string name = fmt::format("{}_{}", prefix, suffix++);
    if (!taken(name)) return name;
  }
}

}  // namespace

void BuilderState::fail(Status status) {
  if (status_.ok()) status_ = std::move(status);
}

Status BuilderState::check_own(const Node* node, std::string_view user) const {
  if (graph_.find(node->name()) == node) return {};
  return invalid_argument("\"{}\" uses \"{}\", which is of another graph", user,
                          node->name());
}

void BuilderState::set_context(const Node* node, Context* context) {
  if (context != nullptr) {
    context_of_[node->id()] = context;
  } else {
    context_of_.erase(node->id());
  }
}

Context* BuilderState::context_of(const Node* node) const {
  auto it = context_of_.find(node->id());
  return it == context_of_.end() ? nullptr : it->second;
}

Context* BuilderState::new_context(Context context) {
  contexts_.push_back(std::make_unique<Context>(std::move(context)));
  return contexts_.back().get();
}

NodeId BuilderState::next_id() const {
  return graph_.size() == 0 ? 0 : graph_.nodes().back()->id() + 1;
}

std::string BuilderState::unique_scope(const std::string& prefix) {
  std::string name =
      first_free(prefix, suffixes_[prefix], [&](const auto& candidate) {
        return scopes_.contains(candidate) || graph_.find(candidate) != nullptr;
      });
  scopes_.insert(name);
  return name;
}

std::string BuilderState::unique_node(const std::string& prefix) {
  std::string name = graph_.unique_name(prefix);
  if (!scopes_.contains(name)) return name;
  return first_free(prefix, suffixes_[prefix], [&](const auto& candidate) {
    return scopes_.contains(candidate) || graph_.find(candidate) != nullptr;
  });
}

std::string BuilderState::unique_frame(const std::string& prefix) {
  // Others may have added loops to the graph; nodes are in the order of ids.
  const std::span<Node* const> nodes = graph_.nodes();
  for (size_t i = nodes.size(); i-- > 0 && nodes[i]->id() >= frames_seen_;) {
    if (!nodes[i]->is_enter()) continue;
    Result<std::string> frame = nodes[i]->attr<std::string>("frame_name");
    if (frame.ok()) frames_.insert(std::move(*frame));
  }
  frames_seen_ = next_id();
  std::string name = first_free(
      prefix, suffixes_[prefix],
      [&](const auto& candidate) { return frames_.contains(candidate); });
  frames_.insert(name);
  return name;
}

// The context of `source` for uses in `context`: the innermost one that
// encloses both. An error if this would leave a loop.
Result<Context*> BuilderState::visible_from(const Node* source,
                                            Context* context,
                                            const std::string& user) const {
  TAGFLOW_RETURN_IF_ERROR(check_own(source, user));
  Context* from = context_of(source);
  while (!is_within(context, from)) {
    if (from->kind == Context::Kind::kLoop)
      return invalid_argument(
          "\"{}\" uses \"{}\" from inside the loop \"{}\": only the results of "
          "a loop can be used outside (and inside, only the Scope that its "
          "body is given)",
          user, source->name(), from->name);
    from = from->parent;
  }
  return from;
}

Result<Endpoint> BuilderState::route(Endpoint source, Context* context,
                                     const std::string& user) {
  TAGFLOW_ASSIGN(Context * from, visible_from(source.node, context, user));
  std::vector<Context*> path;
  for (Context* c = context; c != from; c = c->parent) path.push_back(c);
  for (size_t i = path.size(); i-- > 0;) {
    TAGFLOW_ASSIGN(source, capture(source, path[i], user));
  }
  return source;
}

Result<Endpoint> BuilderState::capture(Endpoint outer, Context* context,
                                       const std::string& user) {
  const std::pair key(outer.node->id(), outer.port);
  if (auto it = context->captured.find(key); it != context->captured.end())
    return it->second;
  NodeSpec spec;
  spec.device = outer.node->device();
  if (context->kind == Context::Kind::kBranch) {
    spec.name = user + "/Switch";
    spec.op = is_ref_output(outer) ? "RefSwitch" : "Switch";
    spec.inputs = {outer, context->predicate};
  } else {
    spec.name = user + "/Enter";
    spec.op = is_ref_output(outer) ? "RefEnter" : "Enter";
    spec.inputs = {outer};
    spec.attrs = {{"frame_name", context->frame_name},
                  {"is_constant", true},
                  {"parallel_iterations", context->parallel_iterations}};
    spec.control_inputs = context->control_inputs;
  }
  TAGFLOW_ASSIGN(Node * node, add(std::move(spec), context->parent));
  set_context(node, context);
  const bool branch = context->kind == Context::Kind::kBranch;
  const Endpoint inner{node, branch ? context->branch : 0};
  context->captured.emplace(key, inner);
  return inner;
}

Result<Node*> BuilderState::route_control(Node* source, Context* context,
                                          const std::string& user) {
  TAGFLOW_ASSIGN(Context * from, visible_from(source, context, user));
  std::vector<Context*> path;
  for (Context* c = context; c != from; c = c->parent) path.push_back(c);
  for (size_t i = path.size(); i-- > 0;) {
    // Into a branch, a control edge can go directly.
    if (path[i]->kind == Context::Kind::kLoop) {
      TAGFLOW_ASSIGN(source, capture_control(source, path[i], user));
    }
  }
  return source;
}

// No control edge may enter a frame: a constant that waits for `outer` enters
// instead, and the control edge comes from the Enter.
Result<Node*> BuilderState::capture_control(Node* outer, Context* context,
                                            const std::string& user) {
  auto it = context->captured_controls.find(outer->id());
  if (it != context->captured_controls.end()) return it->second;
  NodeSpec token;
  token.name = user + "/control";
  token.op = "Const";
  token.attrs = {{"value", Tensor::scalar(true)}, {"dtype", DataType::kBool}};
  token.control_inputs = {outer};
  token.device = outer->device();
  TAGFLOW_ASSIGN(Node * constant, add(std::move(token), context->parent));
  TAGFLOW_ASSIGN(const Endpoint entered,
                 capture({constant, 0}, context, user + "/control"));
  context->captured_controls.emplace(outer->id(), entered.node);
  return entered.node;
}

// Whether it is dead, or late, whenever the context's ops must not run.
bool BuilderState::is_gated(const Node* node, const Context* context) const {
  const Context* owner = context_of(node);
  if (!is_within(owner, context) || node->id() < context->gated_from)
    return false;
  return !(owner == context && node->is_constant_enter());
}

Result<Node*> BuilderState::add(NodeSpec spec, Context* context) {
  spec.name = unique_node(spec.name);
  for (Endpoint& input : spec.inputs) {
    if (input.node == nullptr) continue;  // a back edge
    TAGFLOW_ASSIGN(input, route(input, context, spec.name));
  }
  for (Node*& control : spec.control_inputs) {
    TAGFLOW_ASSIGN(control, route_control(control, context, spec.name));
  }
  return add_here(std::move(spec), context);
}

Result<Node*> BuilderState::add_here(NodeSpec spec, Context* context) {
  auto& controls = spec.control_inputs;
  if (context != nullptr && context->pivot != nullptr) {
    const auto gated = [&](const Node* node) {
      return node != nullptr && is_gated(node, context);
    };
    // A constant Enter of an inner loop need not wait: the loop's variables do,
    // and without them it has no effect.
    const auto constant = spec.attrs.find("is_constant");
    const bool enters_constant =
        constant != spec.attrs.end() && constant->second == AttrValue(true);
    if (!enters_constant &&
        std::none_of(spec.inputs.begin(), spec.inputs.end(),
                     [&](Endpoint input) { return gated(input.node); }) &&
        std::none_of(controls.begin(), controls.end(), gated))
      controls.push_back(context->pivot);
  }
  if (graph_.size() >= limits_.max_nodes)
    return error(Code::kResourceExhausted,
                 "[graph] \"{}\" is one more than the limit of {} nodes",
                 spec.name, limits_.max_nodes);
  TAGFLOW_RETURN_IF_ERROR(check_budget(limits_.budget));
  TAGFLOW_ASSIGN(Node * node, graph_.add(std::move(spec.name), spec.op,
                                         spec.inputs, std::move(spec.attrs),
                                         controls, std::move(spec.device)));
  set_context(node, context);
  return node;
}

}  // namespace tagflow::graph
