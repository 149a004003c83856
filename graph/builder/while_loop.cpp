// Note [Structure of a loop]
// Per variable:
//   Enter -> Merge([Enter, NextIteration]) -> Switch(Merge, LoopCond)
//   Switch:0 -> Exit                       the result
//   Switch:1 -> Identity -> body -> NextIteration
// The predicate reads the Merges, the body the Identities. TensorFlow makes the
// same structure, so its tools can read our graphs.
#include <algorithm>

#include "graph/builder/ops_control_flow.h"
#include "graph/builder/ops_elementwise.h"
#include "graph/builder/scope_access.h"
#include "graph/builder/structured_control_flow.h"
#include "graph/op_registry.h"

namespace tagflow::graph {

namespace {

// Whether every tensor of the first shape also has the second one.
bool implies(const PartialShape& shape, const PartialShape& invariant) {
  if (!invariant.has_rank()) return true;
  if (!shape.has_rank() || shape.rank() != invariant.rank()) return false;
  for (int i = 0; i < shape.rank(); ++i) {
    if (invariant.dim_known(i) && shape.dim(i) != invariant.dim(i))
      return false;
  }
  return true;
}

// Builds one loop, step by step; a member per row of the structure.
class LoopBuilder {
 public:
  // `leaves` is empty if the variables are a plain list.
  LoopBuilder(const Scope& scope, const WhileOptions& options,
              std::vector<Leaf> leaves)
      : scope_(scope),
        name_(ScopeAccess::name(scope)),
        options_(options),
        leaves_(std::move(leaves)) {}

  Result<Outputs> build(const PredicateFn& predicate,
                        const structure::GrowingBodyFn& body,
                        const Inputs& vars) {
    TAGFLOW_RETURN_IF_ERROR(check_options(vars));
    TAGFLOW_RETURN_IF_ERROR(open_context());
    TAGFLOW_RETURN_IF_ERROR(enter(vars));
    TAGFLOW_RETURN_IF_ERROR(add_merges());
    TAGFLOW_RETURN_IF_ERROR(add_predicate(predicate));
    TAGFLOW_RETURN_IF_ERROR(add_switches());
    TAGFLOW_RETURN_IF_ERROR(add_body(body));
    return exits();
  }

 private:
  Status check_options(const Inputs& vars);
  Status open_context();
  Status enter(const Inputs& vars);
  Status set_invariants(size_t vars);
  Status enter_one(size_t i);
  Status add_merge(size_t i);
  Status add_merges();
  Status add_predicate(const PredicateFn& predicate);
  Status add_save();
  Status add_switch(size_t i);
  Status add_body_value(size_t i);
  Status add_switches();
  Status add_body(const structure::GrowingBodyFn& body);
  Status add_variable(const Leaf& leaf);
  Status check_leaves(const std::vector<Leaf>& returned) const;
  Status close(size_t i, const Output& next);
  Result<Outputs> exits();

  // A node of the loop.
  Result<Output> add(std::string_view op, std::vector<Endpoint> inputs,
                     AttrMap attrs = {});
  // The user's variables, without the counter.
  Outputs user_vars(const Outputs& all) const;
  // 'variable 1 ("x:0")', by the user's numbers, or the path of a leaf.
  std::string describe(size_t i) const;
  bool counted() const { return maximum_.valid(); }

  const Scope scope_;
  const std::string name_;
  const WhileOptions& options_;
  std::vector<Leaf> leaves_;
  BuilderState& state_ = ScopeAccess::state(scope_);
  Context* loop_ = nullptr;
  Output maximum_;
  Outputs initial_, enters_, merges_, switches_, bodies_;
  std::vector<PartialShape> invariants_;
  Output loop_cond_;
};

Result<Output> LoopBuilder::add(std::string_view op,
                                std::vector<Endpoint> inputs, AttrMap attrs) {
  BuilderState::NodeSpec spec;
  spec.name = op;
  spec.op = op;
  spec.inputs = std::move(inputs);
  spec.attrs = std::move(attrs);
  TAGFLOW_ASSIGN(Node * node, ScopeAccess::add(scope_, std::move(spec), loop_));
  return Output(node);
}

Outputs LoopBuilder::user_vars(const Outputs& all) const {
  return std::vector<Output>(all.begin() + (counted() ? 1 : 0), all.end());
}

std::string LoopBuilder::describe(size_t i) const {
  if (counted() && i == 0) return "the iteration counter";
  const size_t user = counted() ? i - 1 : i;
  if (!leaves_.empty() && !leaves_[user].path.empty())
    return leaves_[user].path;
  return fmt::format("variable {} (\"{}\")", user, initial_[i].name());
}

Status LoopBuilder::check_options(const Inputs& vars) {
  if (vars.size() == 0)
    return invalid_argument("[while_loop] \"{}\": there are no variables",
                            name_);
  if (options_.parallel_iterations < 1)
    return invalid_argument(
        "[while_loop] \"{}\": parallel_iterations is {}, not at least 1", name_,
        options_.parallel_iterations);
  const size_t invariants = options_.shape_invariants.size();
  if (invariants != 0 && invariants != vars.size())
    return invalid_argument(
        "[while_loop] \"{}\": {} shape invariants for {} variables", name_,
        invariants, vars.size());
  return {};
}

Status LoopBuilder::open_context() {
  Context context;
  context.kind = Context::Kind::kLoop;
  context.parent = ScopeAccess::context(scope_);
  context.name = name_;
  context.frame_name = state_.unique_frame(name_ + "/while_context");
  context.parallel_iterations = options_.parallel_iterations;
  context.control_inputs = ScopeAccess::control_inputs(scope_);
  loop_ = state_.new_context(std::move(context));
  return {};
}

Status LoopBuilder::enter(const Inputs& vars) {
  const Input& maximum = options_.maximum_iterations;
  if (maximum.is_literal() || maximum.output().valid()) {
    maximum_ =
        scope_.resolve(maximum, DataType::kInvalid, "maximum_iterations");
    TAGFLOW_RETURN_IF_ERROR(scope_.status());
    const DataType dtype = maximum_.dtype();
    const PartialShape shape = maximum_.shape();
    if ((dtype != DataType::kInt32 && dtype != DataType::kInt64) ||
        (shape.has_rank() && shape.rank() != 0))
      return invalid_argument(
          "[while_loop] \"{}\": maximum_iterations (\"{}\") is {}{}, not an "
          "int32 or int64 scalar",
          name_, maximum_.name(), dtype_name(dtype), shape.to_string());
    initial_.push_back(scope_.resolve(0, dtype, "iteration_counter"));
    invariants_.push_back(PartialShape::scalar());
  }
  for (const Input& var : vars) initial_.push_back(scope_.resolve(var));
  TAGFLOW_RETURN_IF_ERROR(scope_.status());
  for (size_t i = 0; i < initial_.size(); ++i) {
    if (!initial_[i].has_tensor())
      return invalid_argument("[while_loop] \"{}\": {} is not a tensor", name_,
                              describe(i));
  }
  TAGFLOW_RETURN_IF_ERROR(set_invariants(vars.size()));
  for (size_t i = 0; i < initial_.size(); ++i)
    TAGFLOW_RETURN_IF_ERROR(enter_one(i));
  return {};
}

Status LoopBuilder::set_invariants(size_t vars) {
  for (const PartialShape& shape : options_.shape_invariants)
    invariants_.push_back(shape);
  while (invariants_.size() < initial_.size())
    invariants_.push_back(initial_[invariants_.size()].shape());
  if (options_.shapes.empty()) return {};

  std::vector<std::string> paths;
  for (size_t i = 0; i < vars; ++i)
    paths.push_back(leaves_.empty() ? structure::indexed("", i)
                                    : leaves_[i].path);
  const size_t first = initial_.size() - vars;
  for (const auto& [path, shape] : options_.shapes) {
    const auto found = std::find(paths.begin(), paths.end(), path);
    if (found != paths.end()) {
      invariants_[first + size_t(found - paths.begin())] = shape;
      continue;
    }
    const std::string nearest = nearest_name(path, paths);
    return invalid_argument(
        "[while_loop] \"{}\": a shape is given for \"{}\", which is not a "
        "variable{}",
        name_, path,
        nearest.empty() ? "" : fmt::format(", did you mean \"{}\"?", nearest));
  }
  return {};
}

Status LoopBuilder::enter_one(size_t i) {
  const Output initial = initial_[i];
  if (!implies(initial.shape(), invariants_[i]))
    return invalid_argument(
        "[while_loop] \"{}\": {} enters with shape {}, which its invariant {} "
        "does not allow",
        name_, describe(i), initial.shape().to_string(),
        invariants_[i].to_string());
  BuilderState::NodeSpec spec;
  spec.name = "Enter";
  spec.op = "Enter";
  spec.inputs = {initial.endpoint()};
  spec.attrs = {{"frame_name", loop_->frame_name},
                {"is_constant", false},
                {"parallel_iterations", loop_->parallel_iterations}};
  spec.control_inputs = loop_->control_inputs;
  TAGFLOW_ASSIGN(Node * node,
                 ScopeAccess::add(scope_, std::move(spec), loop_->parent));
  state_.set_context(node, loop_);
  enters_.push_back(Output(node));
  return {};
}

Status LoopBuilder::add_merge(size_t i) {
  TAGFLOW_ASSIGN(const Output merge,
                 add("Merge", {enters_[i].endpoint(), Endpoint()},
                     {{"N", 2}, {"T", enters_[i].dtype()}}));
  state_.graph().set_output_shape(merge.node(), 0, invariants_[i]);
  merges_.push_back(merge);
  return {};
}

Status LoopBuilder::add_merges() {
  for (size_t i = 0; i < enters_.size(); ++i)
    TAGFLOW_RETURN_IF_ERROR(add_merge(i));
  loop_->pivot = merges_[0].node();
  return {};
}

Status LoopBuilder::add_predicate(const PredicateFn& predicate) {
  const Scope inside = ScopeAccess::inside(scope_, loop_);
  Output below;
  if (counted()) below = ops::less(inside, merges_[0], maximum_);
  Output result = predicate(inside, user_vars(merges_));
  TAGFLOW_RETURN_IF_ERROR(scope_.status());
  if (!result.has_tensor())
    return invalid_argument(
        "[while_loop] \"{}\": the predicate returns no tensor", name_);
  if (result.dtype() != DataType::kBool)
    return invalid_argument(
        "[while_loop] \"{}\": the predicate \"{}\" is {}, not bool", name_,
        result.name(), dtype_name(result.dtype()));
  if (result.shape().has_rank() && result.shape().rank() != 0)
    return invalid_argument(
        "[while_loop] \"{}\": the predicate \"{}\" is of shape {}, not a "
        "scalar",
        name_, result.name(), result.shape().to_string());
  if (counted()) result = ops::logical_and(inside, below, result);
  TAGFLOW_RETURN_IF_ERROR(scope_.status());
  TAGFLOW_ASSIGN(loop_cond_, add("LoopCond", {result.endpoint()}));
  return add_save();
}

// Records in the graph which values gradients save.
Status LoopBuilder::add_save() {
  const Save& save = options_.save;
  const auto note = [&](std::string text) {
    state_.graph().set_attr(loop_cond_.node(), std::string(kSaveAttr),
                            std::move(text));
  };
  if (save.kind == Save::Kind::kLog) note("log");
  if (save.kind != Save::Kind::kEvery) return {};
  if (save.k.is_literal() && save.k.literal().num_elements() == 1 &&
      save.k.literal().dtype() == DataType::kInt64) {
    note(fmt::format(
        "every:{}", std::max<int64_t>(1, save.k.literal().flat<int64_t>()[0])));
    return {};
  }
  const Output k = scope_.resolve(save.k, DataType::kInvalid, "save_every");
  TAGFLOW_RETURN_IF_ERROR(scope_.status());
  const PartialShape shape = k.shape();
  if (!k.has_tensor() ||
      (k.dtype() != DataType::kInt32 && k.dtype() != DataType::kInt64) ||
      (shape.has_rank() && shape.rank() != 0))
    return invalid_argument(
        "[while_loop] \"{}\": save every \"{}\" is {}{}, not an int32 or "
        "int64 scalar",
        name_, k.name(), dtype_name(k.dtype()), shape.to_string());
  note("every");
  TAGFLOW_ASSIGN(const Endpoint inside,
                 state_.route(k.endpoint(), loop_, name_ + "/save_every"));
  state_.graph().set_attr(inside.node, std::string(kSaveEveryAttr), true);
  return {};
}

Status LoopBuilder::add_switch(size_t i) {
  TAGFLOW_ASSIGN(const Output node,
                 add("Switch", {merges_[i].endpoint(), loop_cond_.endpoint()}));
  switches_.push_back(node);
  return {};
}

Status LoopBuilder::add_body_value(size_t i) {
  TAGFLOW_ASSIGN(const Output body,
                 add("Identity", {{switches_[i].node(), 1}}));
  bodies_.push_back(body);
  return {};
}

Status LoopBuilder::add_switches() {
  loop_->gated_from = state_.next_id();
  loop_->pivot = nullptr;
  for (size_t i = 0; i < merges_.size(); ++i)
    TAGFLOW_RETURN_IF_ERROR(add_switch(i));
  for (size_t i = 0; i < merges_.size(); ++i)
    TAGFLOW_RETURN_IF_ERROR(add_body_value(i));
  loop_->pivot = bodies_[0].node();
  return {};
}

// Adds a variable while the loop's body is built.
Status LoopBuilder::add_variable(const Leaf& leaf) {
  const size_t i = initial_.size();
  leaves_.push_back(leaf);
  initial_.push_back(leaf.output);
  invariants_.push_back(leaf.output.shape());
  TAGFLOW_RETURN_IF_ERROR(enter_one(i));
  Node* pivot = std::exchange(loop_->pivot, nullptr);
  TAGFLOW_RETURN_IF_ERROR(add_merge(i));
  TAGFLOW_RETURN_IF_ERROR(add_switch(i));
  TAGFLOW_RETURN_IF_ERROR(add_body_value(i));
  loop_->pivot = pivot;
  return {};
}

Status LoopBuilder::add_body(const structure::GrowingBodyFn& body) {
  const Scope inside = ScopeAccess::inside(scope_, loop_);
  Outputs next;
  if (counted()) next.push_back(ops::add(inside, bodies_[0], 1));
  const auto grow = [this](const Leaf& leaf) {
    if (!scope_.ok()) return Output();
    if (Status status = add_variable(leaf); !status.ok()) {
      scope_.fail(std::move(status));
      return Output();
    }
    return bodies_[bodies_.size() - 1];
  };
  const std::vector<Leaf> results = body(inside, user_vars(bodies_), grow);
  TAGFLOW_RETURN_IF_ERROR(scope_.status());
  TAGFLOW_RETURN_IF_ERROR(check_leaves(results));
  for (const Leaf& result : results) next.push_back(result.output);
  for (size_t i = 0; i < next.size(); ++i) {
    TAGFLOW_RETURN_IF_ERROR(close(i, next[i]));
  }
  return {};
}

Status LoopBuilder::check_leaves(const std::vector<Leaf>& returned) const {
  const size_t vars = user_vars(bodies_).size();
  if (leaves_.empty()) {
    if (returned.size() == vars) return {};
    return invalid_argument(
        "[while_loop] \"{}\": the body returns {} outputs for {} variables",
        name_, returned.size(), vars);
  }
  if (const std::string path = missing_path(leaves_, returned); !path.empty())
    return invalid_argument("[while_loop] \"{}\": the body returns no {}",
                            name_, path);
  if (const std::string path = missing_path(returned, leaves_); !path.empty())
    return invalid_argument(
        "[while_loop] \"{}\": the body returns {}, which is not a variable",
        name_, path);
  for (size_t i = 0; i < vars; ++i) {
    if (returned[i].handle == leaves_[i].handle) continue;
    return invalid_argument(
        "[while_loop] \"{}\": {}: the body returns the TensorArray \"{}\" for "
        "\"{}\"; a variable stays the same array",
        name_, describe(counted() ? i + 1 : i), returned[i].handle.name(),
        leaves_[i].handle.name());
  }
  return {};
}

// 'state.h: float[3] became float[4] ("while/ConcatV2:0") in the body'.
Status LoopBuilder::close(size_t i, const Output& next) {
  if (!next.has_tensor())
    return invalid_argument(
        "[while_loop] \"{}\": the body returns no tensor for {}", name_,
        describe(i));
  const DataType wanted = remove_ref(merges_[i].dtype());
  const DataType dtype = remove_ref(next.dtype());
  if (dtype != wanted || !implies(next.shape(), invariants_[i]))
    return invalid_argument(
        "[while_loop] \"{}\": {}: {}{} became {}{} (\"{}\") in the body{}",
        name_, describe(i), dtype_name(wanted), invariants_[i].to_string(),
        dtype_name(dtype), next.shape().to_string(), next.name(),
        dtype == wanted ? "; give a wider shape invariant" : "");
  TAGFLOW_ASSIGN(const Output back, add("NextIteration", {next.endpoint()}));
  return state_.graph().set_input(merges_[i].node(), 1, back.endpoint());
}

Result<Outputs> LoopBuilder::exits() {
  Outputs all;
  for (const Output& node : switches_) {
    TAGFLOW_ASSIGN(const Output exit, add("Exit", {{node.node(), 0}}));
    state_.set_context(exit.node(), loop_->parent);
    all.push_back(exit);
  }
  return user_vars(all);
}

Outputs build_loop(const Scope& outer, const PredicateFn& predicate,
                   const structure::GrowingBodyFn& body, const Inputs& vars,
                   const std::vector<Leaf>& leaves,
                   const WhileOptions& options) {
  if (!outer.ok()) return {};
  const Scope scope = ScopeAccess::construct_scope(
      outer, options.name.empty() ? "while" : options.name);
  Result<Outputs> results =
      LoopBuilder(scope, options, leaves).build(predicate, body, vars);
  if (results.ok()) return *std::move(results);
  scope.fail(std::move(results).status());
  return {};
}

}  // namespace

Outputs while_loop(const Scope& scope, const PredicateFn& predicate,
                   const BodyFn& body, const Inputs& vars,
                   const WhileOptions& options) {
  const auto leaves = [&](const Scope& in, const Outputs& v,
                          const structure::AddVariable&) {
    std::vector<Leaf> results;
    for (const Output& output : body(in, v)) results.push_back({"", output});
    return results;
  };
  return build_loop(scope, predicate, leaves, vars, {}, options);
}

Outputs structure::while_loop(const Scope& scope, const PredicateFn& predicate,
                              const GrowingBodyFn& body,
                              const std::vector<Leaf>& vars,
                              const WhileOptions& options) {
  return build_loop(scope, predicate, body, outputs_of(vars), vars, options);
}

}  // namespace tagflow::graph
