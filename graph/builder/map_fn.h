// map_fn, scan, foldl and foldr: functions applied along the first dimension of
// tensors, as loops over TensorArrays.
//
//   Output squares = map_fn(s, [](const Scope& in, Output x) {
//     return square(in, x);
//   }, xs);
//   Output sums = scan(s, [](const Scope& in, Output sum, Output x) {
//     return add(in, sum, x);
//   }, xs, {.reverse = true});
//
// Elements, accumulators and results may be structures (structure.h): for
// `std::pair(xs, ys)` the function receives pairs of an x and a y. All leaves
// must have the same length; if lengths are not known before, an assertion
// compares them in the run. The function is called once, with the scope of the
// loop's body.
#pragma once

#include <string>
#include <type_traits>
#include <vector>

#include "graph/builder/structured_control_flow.h"

namespace tagflow::graph {

struct MapOptions {
  int64_t parallel_iterations = 10;  // at least 1
  // For scan: runs from the last element to the first; results keep the
  // positions of their elements.
  bool reverse = false;
  // Whether all results have one shape, as is needed to stack them.
  bool infer_shape = true;
};

// The functions below, with leaves instead of structures. `name` is that of the
// scope.
namespace structure {

using MapFn = std::function<std::vector<Leaf>(const Scope&, const Outputs&)>;
using FoldFn = std::function<std::vector<Leaf>(
    const Scope&, const Outputs& accumulator, const Outputs& element)>;

Outputs map_fn(const Scope& scope, const MapFn& fn,
               const std::vector<Leaf>& elems, const MapOptions& options);

struct FoldKind {
  const char* name;
  bool from_the_right = false;
  bool collects = false;  // every accumulator, not only the last
};
// Without an initial accumulator it is the first element.
Outputs fold(const Scope& scope, const FoldFn& fn,
             const std::vector<Leaf>& elems, const std::vector<Leaf>* initial,
             const FoldKind& kind, const MapOptions& options);

template <class A, class T, class Fn>
A fold(const Scope& scope, const Fn& fn, const T& elems, const A* initial,
       const A& like, const FoldKind& kind, const MapOptions& options) {
  std::vector<Leaf> leaves;
  if (initial != nullptr) leaves = leaves_of(*initial);
  const Outputs results = fold(
      scope,
      [&](const Scope& in, const Outputs& accumulator, const Outputs& element) {
        const A next =
            fn(in, with_leaves(like, accumulator), with_leaves(elems, element));
        return leaves_of(next);
      },
      leaves_of(elems), initial == nullptr ? nullptr : &leaves, kind, options);
  return with_leaves(like, results);
}

// The result of a function as a structure: an Output for an OpResult.
template <class T>
using AsStructure =
    std::conditional_t<std::same_as<T, OpResult>, Output, std::decay_t<T>>;

}  // namespace structure

// fn(scope, element) of every element, stacked.
template <class Fn, Structure T>
auto map_fn(const Scope& scope, const Fn& fn, const T& elems,
            const MapOptions& options = {}) {
  using U =
      structure::AsStructure<std::invoke_result_t<Fn, const Scope&, const T&>>;
  U result;
  const Outputs stacked = structure::map_fn(
      scope,
      [&](const Scope& in, const Outputs& element) {
        result = fn(in, with_leaves(elems, element));
        return leaves_of(result);
      },
      leaves_of(elems), options);
  return with_leaves(std::move(result), stacked);
}

// fn(scope, accumulator, element) of every element; the accumulator is the
// previous result, at first `initial`. Returns all results, stacked.
template <class Fn, Structure T, Structure A>
A scan(const Scope& scope, const Fn& fn, const T& elems, const A& initial,
       const MapOptions& options = {}) {
  return structure::fold(scope, fn, elems, &initial, initial,
                         {"scan", options.reverse, true}, options);
}
// The first element is the initial accumulator, and the first result.
template <class Fn, Structure T>
T scan(const Scope& scope, const Fn& fn, const T& elems,
       const MapOptions& options = {}) {
  return structure::fold<T>(scope, fn, elems, nullptr, elems,
                            {"scan", options.reverse, true}, options);
}

// The last result of such a scan.
template <class Fn, Structure T, Structure A>
A foldl(const Scope& scope, const Fn& fn, const T& elems, const A& initial,
        const MapOptions& options = {}) {
  return structure::fold(scope, fn, elems, &initial, initial, {"foldl"},
                         options);
}
template <class Fn, Structure T>
T foldl(const Scope& scope, const Fn& fn, const T& elems,
        const MapOptions& options = {}) {
  return structure::fold<T>(scope, fn, elems, nullptr, elems, {"foldl"},
                            options);
}

// As foldl(), from the last element to the first.
template <class Fn, Structure T, Structure A>
A foldr(const Scope& scope, const Fn& fn, const T& elems, const A& initial,
        const MapOptions& options = {}) {
  return structure::fold(scope, fn, elems, &initial, initial, {"foldr", true},
                         options);
}
template <class Fn, Structure T>
T foldr(const Scope& scope, const Fn& fn, const T& elems,
        const MapOptions& options = {}) {
  return structure::fold<T>(scope, fn, elems, nullptr, elems, {"foldr", true},
                            options);
}

}  // namespace tagflow::graph
