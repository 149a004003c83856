// Conditionals and loops whose values are structures (structure.h), so that
// variables have names and can be nested:
//
//   struct State {
//     Output i, sum;
//     TAGFLOW_FIELDS(i, sum)
//   };
//   const State last = while_loop(
//       s, [](const Scope& in, const State& v) { return less(in, v.i, 10); },
//       [](const Scope& in, State v) {
//         v.sum = add(in, v.sum, v.i);
//         v.i = add(in, v.i, 1);
//         return v;
//       },
//       State{constant(s, 0), constant(s, 0)});
//
// They work as in control_flow.h, leaf by leaf; errors name the path of the
// leaf. A TensorArray is a leaf: its elements pass through loops and branches,
// and it stays the same array.
#pragma once

#include <concepts>
#include <functional>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "graph/builder/control_flow.h"
#include "graph/builder/structure.h"

namespace tagflow::graph {

// The functions below, with leaves instead of structures; leaves from
// control_flow.h have no path. Null functions as there.
namespace structure {

using LeavesFn = std::function<std::vector<Leaf>(const Scope&)>;
// Adds a variable to the loop while its body is built: maps an initial value
// outside of the loop to the value in the body. The body returns its next value
// after those of the others.
using AddVariable = std::function<Output(const Leaf& initial)>;
using GrowingBodyFn = std::function<std::vector<Leaf>(
    const Scope&, const Outputs&, const AddVariable&)>;

Outputs cond(const Scope& scope, const Input& pred, const LeavesFn& then_fn,
             const LeavesFn& else_fn);
Outputs case_(const Scope& scope,
              const std::vector<std::pair<Input, LeavesFn>>& cases,
              const LeavesFn& default_fn, const CaseOptions& options);
Outputs switch_case(const Scope& scope, const Input& index,
                    std::vector<LeavesFn> branches, const LeavesFn& default_fn);
Outputs while_loop(const Scope& scope, const PredicateFn& predicate,
                   const GrowingBodyFn& body, const std::vector<Leaf>& vars,
                   const WhileOptions& options);

// Lists of tensors use the functions of control_flow.h.
template <class T>
concept Variables = Structure<T> && !std::same_as<T, Outputs> &&
                    !std::same_as<T, std::vector<Output>>;
template <class F, class T>
concept Maps = std::is_invocable_r_v<T, const F&, const Scope&, const T&>;
template <class T>
concept BranchResult = Variables<T> && !std::same_as<T, Output>;

// Stores the branch's value in `result`; null if `fn` is.
template <class T>
LeavesFn leaves_fn(const std::function<T(const Scope&)>& fn, T& result) {
  if (!fn) return {};
  return [fn, &result](const Scope& in) { return leaves_of(result = fn(in)); };
}

}  // namespace structure

// One of the two structures that the branches return; they have the same
// leaves.
template <class Then, class Else,
          structure::BranchResult T = std::invoke_result_t<Then, const Scope&>>
T cond(const Scope& scope, const Input& pred, const Then& then_fn,
       const Else& else_fn) {
  T result;
  const Outputs merged =
      structure::cond(scope, pred, structure::leaves_fn<T>(then_fn, result),
                      structure::leaves_fn<T>(else_fn, result));
  return with_leaves(std::move(result), merged);
}

// A branch of case_<T>(s, {{p, f}, {q, g}}, h) and switch_case<T>(s, i, {f,
// g}), for which the result type must be given.
template <class T>
using Branch = std::function<T(const Scope&)>;

template <structure::BranchResult T>
T case_(const Scope& scope,
        const std::vector<std::pair<Input, Branch<T>>>& cases,
        const Branch<T>& default_fn, const CaseOptions& options = {}) {
  T result;
  std::vector<std::pair<Input, structure::LeavesFn>> list;
  for (const auto& [pred, fn] : cases)
    list.emplace_back(pred, structure::leaves_fn<T>(fn, result));
  const Outputs merged = structure::case_(
      scope, list, structure::leaves_fn<T>(default_fn, result), options);
  return with_leaves(std::move(result), merged);
}

template <structure::BranchResult T>
T switch_case(const Scope& scope, const Input& index,
              const std::vector<Branch<T>>& branches,
              const Branch<T>& default_fn = {}) {
  T result;
  std::vector<structure::LeavesFn> list;
  for (const Branch<T>& fn : branches)
    list.push_back(structure::leaves_fn<T>(fn, result));
  const Outputs merged =
      structure::switch_case(scope, index, std::move(list),
                             structure::leaves_fn<T>(default_fn, result));
  return with_leaves(std::move(result), merged);
}

// The last values of the variables. The functions take the variables by value
// or const reference; the body returns the same leaves, with their initial
// types and with shapes that their invariants allow.
template <structure::Variables T, class Predicate, structure::Maps<T> Body>
T while_loop(const Scope& scope, const Predicate& predicate, const Body& body,
             const T& vars, const WhileOptions& options = {}) {
  const Outputs last = structure::while_loop(
      scope,
      [&](const Scope& in, const Outputs& v) -> Output {
        return predicate(in, with_leaves(vars, v));
      },
      [&](const Scope& in, const Outputs& v, const structure::AddVariable&) {
        const T next = body(in, with_leaves(vars, v));
        return leaves_of(next);
      },
      leaves_of(vars), options);
  return with_leaves(vars, last);
}

}  // namespace tagflow::graph
