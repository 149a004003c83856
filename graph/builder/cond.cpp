// Note [Structure of a conditional]
//   Switch(p, p) -> switch_f, switch_t     the pivots
//   pred_id = Identity(p)                  what captured tensors switch on
//   Merge([false_i, true_i])               output i
// As TensorFlow makes it, so that tools that know its graphs know ours.
#include "graph/builder/control_flow.h"
#include "graph/builder/ops_control.h"
#include "graph/builder/ops_math.h"
#include "graph/builder/scope_access.h"

namespace tagflow::graph {

namespace {

struct Branch {
  Scope scope;
  Context* context;
};

Status check_predicate(const Scope& scope, const Output& pred) {
  if (!pred.has_tensor())
    return invalid_argument("[cond] \"{}\": the predicate is no tensor",
                            ScopeAccess::name(scope));
  if (pred.dtype() != DataType::kBool)
    return invalid_argument(
        "[cond] \"{}\": the predicate \"{}\" is {}, not "
        "bool",
        ScopeAccess::name(scope), pred.name(), dtype_name(pred.dtype()));
  if (pred.shape().has_rank() && pred.shape().rank() != 0)
    return invalid_argument(
        "[cond] \"{}\": the predicate \"{}\" is of shape {}, not a scalar",
        ScopeAccess::name(scope), pred.name(), pred.shape().to_string());
  return {};
}

Branch make_branch(const Scope& scope, Output pivot, Output pred_id,
                   int which) {
  BuilderState& state = ScopeAccess::state(scope);
  Context context;
  context.kind = Context::Kind::kBranch;
  context.parent = ScopeAccess::context(scope);
  context.name = ScopeAccess::name(scope);
  context.pivot = pivot.node();
  context.predicate = pred_id.endpoint();
  context.branch = which;
  Context* stored = state.new_context(std::move(context));
  state.set_context(pivot.node(), stored);
  return {ScopeAccess::inside(scope, stored), stored};
}

// The branch's outputs as tensors of the branch.
Result<std::vector<Endpoint>> build_branch(const Branch& branch,
                                           const BranchFn& fn) {
  const Scope& scope = branch.scope;
  BuilderState& state = ScopeAccess::state(scope);
  const Outputs outputs = fn(scope);
  TAGFLOW_RETURN_IF_ERROR(scope.status());
  std::vector<Endpoint> result;
  for (Output output : outputs) {
    if (output.is_operation())
      output = ops::identity(scope.with_control_dependencies(output),
                             Output(branch.context->pivot));
    TAGFLOW_RETURN_IF_ERROR(scope.status());
    if (!output.has_tensor())
      return invalid_argument(
          "[cond] \"{}\": output {} of a branch is an "
          "invalid Output",
          branch.context->name, result.size());
    TAGFLOW_ASSIGN(
        const Endpoint routed,
        state.route(output.endpoint(), branch.context, branch.context->name));
    result.push_back(routed);
  }
  return result;
}

DataType plain_dtype(Endpoint endpoint) {
  return remove_ref(Output(endpoint).dtype());
}

Result<Outputs> merge_branches(const Scope& scope,
                               const std::vector<Endpoint>& on_true,
                               const std::vector<Endpoint>& on_false) {
  const std::string name = ScopeAccess::name(scope);
  if (on_true.size() != on_false.size())
    return invalid_argument(
        "[cond] \"{}\": {} outputs where the predicate is true, {} where it "
        "is false",
        name, on_true.size(), on_false.size());
  if (on_true.empty())
    return invalid_argument(
        "[cond] \"{}\": the branches return nothing; return an operation to "
        "run one",
        name);
  Outputs merged;
  for (size_t i = 0; i < on_true.size(); ++i) {
    const Output t(on_true[i]);
    const Output f(on_false[i]);
    if (plain_dtype(on_true[i]) != plain_dtype(on_false[i]))
      return invalid_argument(
          "[cond] \"{}\": output {} is {} (\"{}\") where the predicate is "
          "true, {} (\"{}\") where it is false",
          name, i, dtype_name(t.dtype()), t.name(), dtype_name(f.dtype()),
          f.name());
    const bool refs = is_ref(t.dtype()) && is_ref(f.dtype());
    BuilderState::NodeSpec spec;
    spec.name = "Merge";
    spec.op = refs ? "RefMerge" : "Merge";
    spec.inputs = {on_false[i], on_true[i]};
    spec.attrs = {{"N", 2}};
    TAGFLOW_ASSIGN(Node * merge, ScopeAccess::add(scope, std::move(spec),
                                                  ScopeAccess::context(scope)));
    merged.push_back(Output(merge));
  }
  return merged;
}

Result<Outputs> build_cond(const Scope& scope, const Input& pred,
                           const BranchFn& then_fn, const BranchFn& else_fn) {
  const Output p = scope.resolve(pred, DataType::kInvalid, "pred");
  TAGFLOW_RETURN_IF_ERROR(scope.status());
  TAGFLOW_RETURN_IF_ERROR(check_predicate(scope, p));
  const auto pivots = ops::switch_(scope, p, p);
  const Scope after = scope.without_control_dependencies();
  const Output on_true = ops::identity(after.named("switch_t"), pivots.on_true);
  const Output on_false =
      ops::identity(after.named("switch_f"), pivots.on_false);
  const Output pred_id = ops::identity(scope.named("pred_id"), p);
  TAGFLOW_RETURN_IF_ERROR(scope.status());

  const Branch then_branch = make_branch(scope, on_true, pred_id, 1);
  TAGFLOW_ASSIGN(const auto true_outputs, build_branch(then_branch, then_fn));
  const Branch else_branch = make_branch(scope, on_false, pred_id, 0);
  TAGFLOW_ASSIGN(const auto false_outputs, build_branch(else_branch, else_fn));
  return merge_branches(scope, true_outputs, false_outputs);
}

// The one of branches [first, last) that has the index's number.
Outputs search(const Scope& scope, const Output& index, size_t first,
               size_t last, const std::vector<BranchFn>& branches) {
  if (last - first == 1) return branches[first](scope);
  const size_t middle = first + (last - first) / 2;
  return cond(
      scope, ops::less(scope, index, middle),
      [&](const Scope& s) { return search(s, index, first, middle, branches); },
      [&](const Scope& s) { return search(s, index, middle, last, branches); });
}

Outputs first_true(const Scope& scope,
                   const std::vector<std::pair<Input, BranchFn>>& cases,
                   size_t at, const BranchFn& default_fn) {
  if (at == cases.size()) return default_fn(scope);
  return cond(scope, cases[at].first, cases[at].second, [&](const Scope& s) {
    return first_true(s, cases, at + 1, default_fn);
  });
}

}  // namespace

Outputs cond(const Scope& outer, const Input& pred, const BranchFn& then_fn,
             const BranchFn& else_fn) {
  if (!outer.ok()) return {};
  const Scope scope = ScopeAccess::construct_scope(outer, "cond");
  Result<Outputs> outputs = build_cond(scope, pred, then_fn, else_fn);
  if (outputs.ok()) return *std::move(outputs);
  scope.fail(std::move(outputs).status());
  return {};
}

Outputs case_(const Scope& outer,
              const std::vector<std::pair<Input, BranchFn>>& cases,
              const BranchFn& default_fn) {
  if (!outer.ok()) return {};
  const Scope scope = ScopeAccess::construct_scope(outer, "case");
  return first_true(scope, cases, 0, default_fn);
}

Outputs switch_case(const Scope& outer, const Input& index,
                    const std::vector<BranchFn>& branches) {
  if (!outer.ok()) return {};
  const Scope scope = ScopeAccess::construct_scope(outer, "switch_case");
  if (branches.empty()) {
    scope.fail(invalid_argument("[switch_case] \"{}\": there are no branches",
                                ScopeAccess::name(scope)));
    return {};
  }
  const Output number = scope.resolve(index, DataType::kInvalid, "index");
  if (!scope.ok()) return {};
  if (number.dtype() != DataType::kInt32 &&
      number.dtype() != DataType::kInt64) {
    scope.fail(invalid_argument(
        "[switch_case] \"{}\": the index \"{}\" is {}, not int32 or int64",
        ScopeAccess::name(scope), number.name(), dtype_name(number.dtype())));
    return {};
  }
  const size_t last = branches.size() - 1;
  const Output outside = ops::logical_or(scope, ops::less(scope, number, 0),
                                         ops::greater(scope, number, last));
  const Output in_range =
      ops::select(scope.named("index"), outside, last, number);
  return search(scope, in_range, 0, branches.size(), branches);
}

}  // namespace tagflow::graph
