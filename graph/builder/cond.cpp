// Note [Structure of a conditional]
//   Switch(p, p) -> switch_f, switch_t     the pivots
//   pred_id = Identity(p)                  what captured tensors switch on
//   Merge([false_i, true_i])               output i
// TensorFlow makes the same structure, so its tools can read our graphs.
#include "graph/builder/ops_array.h"
#include "graph/builder/ops_control_flow.h"
#include "graph/builder/ops_elementwise.h"
#include "graph/builder/ops_reduction.h"
#include "graph/builder/scope_access.h"
#include "graph/builder/structured_control_flow.h"

namespace tagflow::graph {

namespace {

using structure::LeavesFn;

struct BranchScope {
  Scope scope;
  Context* context;
};

// "output 2" of a list, "output state.h" of a structure.
std::string describe(const Leaf& leaf, size_t i) {
  if (leaf.path.empty()) return fmt::format("output {}", i);
  return "output " + leaf.path;
}

Status check_predicate(const Scope& scope, const Output& pred) {
  if (!pred.has_tensor())
    return invalid_argument("[cond] \"{}\": the predicate is not a tensor",
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

BranchScope make_branch(const Scope& scope, Output pivot, Output pred_id,
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
Result<std::vector<Leaf>> build_branch(const BranchScope& branch,
                                       const LeavesFn& fn) {
  const Scope& scope = branch.scope;
  BuilderState& state = ScopeAccess::state(scope);
  std::vector<Leaf> leaves = fn(scope);
  TAGFLOW_RETURN_IF_ERROR(scope.status());
  for (size_t i = 0; i < leaves.size(); ++i) {
    Output& output = leaves[i].output;
    if (output.is_operation())
      output = ops::identity(scope.with_control_dependencies(output),
                             Output(branch.context->pivot));
    TAGFLOW_RETURN_IF_ERROR(scope.status());
    if (!output.has_tensor())
      return invalid_argument(
          "[cond] \"{}\": {} of a branch is an invalid Output",
          branch.context->name, describe(leaves[i], i));
    TAGFLOW_ASSIGN(
        const Endpoint routed,
        state.route(output.endpoint(), branch.context, branch.context->name));
    output = Output(routed);
  }
  return leaves;
}

// Two branches return the same number of outputs; structures, the same paths.
Status check_branches(const std::string& name, const std::vector<Leaf>& on_true,
                      const std::vector<Leaf>& on_false) {
  if (const std::string path = missing_path(on_true, on_false); !path.empty())
    return invalid_argument(
        "[cond] \"{}\": {} is returned if the predicate is true, but not "
        "if it is false",
        name, path);
  if (const std::string path = missing_path(on_false, on_true); !path.empty())
    return invalid_argument(
        "[cond] \"{}\": {} is returned if the predicate is false, but not "
        "if it is true",
        name, path);
  if (on_true.size() != on_false.size())
    return invalid_argument(
        "[cond] \"{}\": {} outputs if the predicate is true, {} if it "
        "is false",
        name, on_true.size(), on_false.size());
  if (on_true.empty())
    return invalid_argument(
        "[cond] \"{}\": the branches return nothing; return an operation to "
        "run one",
        name);
  return {};
}

Status check_pair(const std::string& name, size_t i, const Leaf& t,
                  const Leaf& f) {
  if (t.handle != f.handle)
    return invalid_argument(
        "[cond] \"{}\": {} is the TensorArray \"{}\" if the predicate is "
        "true, \"{}\" if it is false",
        name, describe(t, i), t.handle.name(), f.handle.name());
  if (remove_ref(t.output.dtype()) == remove_ref(f.output.dtype())) return {};
  return invalid_argument(
      "[cond] \"{}\": {} is {} (\"{}\") if the predicate is true, {} "
      "(\"{}\") if it is false",
      name, describe(t, i), dtype_name(t.output.dtype()), t.output.name(),
      dtype_name(f.output.dtype()), f.output.name());
}

Result<Outputs> merge_branches(const Scope& scope,
                               const std::vector<Leaf>& on_true,
                               const std::vector<Leaf>& on_false) {
  const std::string name = ScopeAccess::name(scope);
  TAGFLOW_RETURN_IF_ERROR(check_branches(name, on_true, on_false));
  Outputs merged;
  for (size_t i = 0; i < on_true.size(); ++i) {
    TAGFLOW_RETURN_IF_ERROR(check_pair(name, i, on_true[i], on_false[i]));
    const Output t = on_true[i].output, f = on_false[i].output;
    BuilderState::NodeSpec spec;
    spec.name = "Merge";
    spec.op = is_ref(t.dtype()) && is_ref(f.dtype()) ? "RefMerge" : "Merge";
    spec.inputs = {f.endpoint(), t.endpoint()};
    spec.attrs = {{"N", 2}};
    TAGFLOW_ASSIGN(Node * merge, ScopeAccess::add(scope, std::move(spec),
                                                  ScopeAccess::context(scope)));
    merged.push_back(Output(merge));
  }
  return merged;
}

Result<Outputs> build_cond(const Scope& scope, const Input& pred,
                           const LeavesFn& then_fn, const LeavesFn& else_fn) {
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

  const BranchScope then_branch = make_branch(scope, on_true, pred_id, 1);
  TAGFLOW_ASSIGN(const auto true_outputs, build_branch(then_branch, then_fn));
  const BranchScope else_branch = make_branch(scope, on_false, pred_id, 0);
  TAGFLOW_ASSIGN(const auto false_outputs, build_branch(else_branch, else_fn));
  return merge_branches(scope, true_outputs, false_outputs);
}

std::vector<Leaf> to_leaves(const Outputs& outputs) {
  std::vector<Leaf> leaves;
  for (const Output& output : outputs) leaves.push_back({"", output});
  return leaves;
}

LeavesFn to_leaves(const BranchFn& fn) {
  if (!fn) return {};
  return [fn](const Scope& in) { return to_leaves(fn(in)); };
}

std::vector<LeavesFn> to_leaves(const std::vector<BranchFn>& branches) {
  std::vector<LeavesFn> list;
  for (const BranchFn& fn : branches) list.push_back(to_leaves(fn));
  return list;
}

// A conditional of nested conditionals or branches: the leaves of either side,
// with the merged outputs.
std::vector<Leaf> merged_leaves(const Scope& scope, const Input& pred,
                                const LeavesFn& then_fn,
                                const LeavesFn& else_fn) {
  std::vector<Leaf> leaves;
  const auto keep = [&leaves](const LeavesFn& fn) -> LeavesFn {
    return [&leaves, &fn](const Scope& in) { return leaves = fn(in); };
  };
  const Outputs merged =
      structure::cond(scope, pred, keep(then_fn), keep(else_fn));
  for (size_t i = 0; i < leaves.size(); ++i) leaves[i].output = merged[i];
  return leaves;
}

// Runs the branch among [first, last) that has the index's number.
std::vector<Leaf> search(const Scope& scope, const Output& index, size_t first,
                         size_t last, const std::vector<LeavesFn>& branches) {
  if (last - first == 1) return branches[first](scope);
  const size_t middle = first + (last - first) / 2;
  return merged_leaves(
      scope, ops::less(scope, index, middle),
      [&](const Scope& s) { return search(s, index, first, middle, branches); },
      [&](const Scope& s) { return search(s, index, middle, last, branches); });
}

std::vector<Leaf> first_true(
    const Scope& scope, const std::vector<std::pair<Input, LeavesFn>>& cases,
    size_t at, const LeavesFn& default_fn) {
  if (at == cases.size()) return default_fn(scope);
  // Without a default, one of the other predicates must be true.
  if (at + 1 == cases.size() && !default_fn) return cases[at].second(scope);
  return merged_leaves(
      scope, cases[at].first, cases[at].second,
      [&](const Scope& s) { return first_true(s, cases, at + 1, default_fn); });
}

// The scope with an assertion that the cases satisfy the options.
Scope check_cases(const Scope& scope,
                  const std::vector<std::pair<Input, LeavesFn>>& cases,
                  bool one_must_hold, bool exclusive) {
  if (!one_must_hold && !exclusive) return scope;
  Inputs preds;
  for (const auto& [pred, fn] : cases) preds.add(pred);
  const Output all = ops::pack(scope.named("preds"), preds);
  const auto check = [&](const char* name, const Output& holds,
                         const char* what) {
    return ops::assert_(
        scope.named(name), holds,
        {fmt::format("{} of {}:", what, ScopeAccess::name(scope)), all}, -1);
  };
  Outputs checks;
  if (one_must_hold)
    checks.push_back(check("one_is_true", ops::reduce_any(scope, all),
                           "there is no default, and no predicate is true"));
  if (exclusive) {
    const Output count =
        ops::reduce_sum(scope, ops::cast(scope, all, DataType::kInt32));
    checks.push_back(check("exclusive", ops::less_equal(scope, count, 1),
                           "more than one predicate is true"));
  }
  return scope.with_control_dependencies(checks);
}

}  // namespace

Outputs structure::cond(const Scope& outer, const Input& pred,
                        const LeavesFn& then_fn, const LeavesFn& else_fn) {
  if (!outer.ok()) return {};
  const Scope scope = ScopeAccess::construct_scope(outer, "cond");
  Result<Outputs> outputs = build_cond(scope, pred, then_fn, else_fn);
  if (outputs.ok()) return *std::move(outputs);
  scope.fail(std::move(outputs).status());
  return {};
}

Outputs structure::case_(const Scope& outer,
                         const std::vector<std::pair<Input, LeavesFn>>& cases,
                         const LeavesFn& default_fn,
                         const CaseOptions& options) {
  if (!outer.ok()) return {};
  const Scope scope = ScopeAccess::construct_scope(outer, "case");
  if (cases.empty() && !default_fn) {
    scope.fail(
        invalid_argument("[case_] \"{}\": there are no cases and no default",
                         ScopeAccess::name(scope)));
    return {};
  }
  const Scope checked =
      check_cases(scope, cases, !default_fn, options.exclusive);
  Outputs outputs = outputs_of(first_true(checked, cases, 0, default_fn));
  if (cases.size() != 1 || default_fn) return outputs;
  // No conditional was needed, but the outputs must wait for the check.
  Outputs waiting;
  for (const Output& output : outputs)
    waiting.push_back(
        output.is_operation()
            ? ops::constant(checked.with_control_dependencies(output), true)
            : ops::identity(checked, output));
  return waiting;
}

Outputs structure::switch_case(const Scope& outer, const Input& index,
                               std::vector<LeavesFn> branches,
                               const LeavesFn& default_fn) {
  if (!outer.ok()) return {};
  const Scope scope = ScopeAccess::construct_scope(outer, "switch_case");
  const std::string name = ScopeAccess::name(scope);
  if (default_fn) branches.push_back(default_fn);
  if (branches.empty()) {
    scope.fail(
        invalid_argument("[switch_case] \"{}\": there are no branches", name));
    return {};
  }
  const Output number = scope.resolve(index, DataType::kInvalid, "index");
  if (!scope.ok()) return {};
  const PartialShape shape = number.shape();
  if ((number.dtype() != DataType::kInt32 &&
       number.dtype() != DataType::kInt64) ||
      (shape.has_rank() && shape.rank() != 0)) {
    scope.fail(invalid_argument(
        "[switch_case] \"{}\": the index \"{}\" is {}{}, not an int32 or int64 "
        "scalar",
        name, number.name(), dtype_name(number.dtype()), shape.to_string()));
    return {};
  }
  const size_t last = branches.size() - 1;
  const Output outside = ops::logical_or(scope, ops::less(scope, number, 0),
                                         ops::greater(scope, number, last));
  const Output in_range =
      ops::select(scope.named("index"), outside, last, number);
  return outputs_of(search(scope, in_range, 0, branches.size(), branches));
}

Outputs cond(const Scope& scope, const Input& pred, const BranchFn& then_fn,
             const BranchFn& else_fn) {
  return structure::cond(scope, pred, to_leaves(then_fn), to_leaves(else_fn));
}

Outputs case_(const Scope& scope,
              const std::vector<std::pair<Input, BranchFn>>& cases,
              const BranchFn& default_fn, const CaseOptions& options) {
  std::vector<std::pair<Input, LeavesFn>> list;
  for (const auto& [pred, fn] : cases) list.emplace_back(pred, to_leaves(fn));
  return structure::case_(scope, list, to_leaves(default_fn), options);
}

Outputs switch_case(const Scope& scope, const Input& index,
                    const std::vector<BranchFn>& branches,
                    const BranchFn& default_fn) {
  return structure::switch_case(scope, index, to_leaves(branches),
                                to_leaves(default_fn));
}

}  // namespace tagflow::graph
