// Conditionals and loops, whose branches and bodies are functions of Python.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "graph/builder/map_fn.h"
#include "graph/builder/ops_array.h"
#include "graph/builder/ops_control_flow.h"
#include "graph/builder/ops_elementwise.h"
#include "graph/builder/tensor_array.h"
#include "python/src/build_scope.h"
#include "python/src/convert.h"
#include "python/src/error.h"

namespace tagflow::python {
namespace {

namespace nb = nanobind;
namespace ops = graph::ops;

using graph::Leaf;
using graph::Output;
using graph::Outputs;
using graph::Scope;
using graph::TensorArray;

using Leaves = std::vector<Leaf>;

// The outputs that a function of Python returned, with the paths of a list.
Leaves leaves_from(const Outputs& outputs,
                   const std::vector<std::string>& paths) {
  Leaves leaves;
  size_t i = 0;
  for (const Output& output : outputs) {
    leaves.push_back(
        {i < paths.size() ? paths[i] : fmt::format("[{}]", i), output});
    ++i;
  }
  return leaves;
}

nb::list cond(const ScopeObject& self, nb::handle pred, const nb::object& then,
              const nb::object& otherwise) {
  Callbacks callbacks(self);
  const auto branch = [&](const nb::object& fn) {
    return [&callbacks, fn](const Scope& in) -> Outputs {
      return callbacks.run(in, [&](const ScopeObject& scope) {
        return scope.take_all(fn(scope));
      });
    };
  };
  const Outputs merged = graph::cond(self.open(), self.take(pred), branch(then),
                                     branch(otherwise));
  callbacks.finish();
  return self.give_all(merged);
}

nb::list switch_case(const ScopeObject& self, nb::handle index,
                     const nb::list& branches) {
  Callbacks callbacks(self);
  std::vector<graph::BranchFn> list;
  for (const nb::handle fn : branches)
    list.push_back([&callbacks, fn](const Scope& in) -> Outputs {
      return callbacks.run(in, [&](const ScopeObject& scope) {
        return scope.take_all(fn(scope));
      });
    });
  const Outputs merged =
      graph::switch_case(self.open(), self.take(index), list);
  callbacks.finish();
  return self.give_all(merged);
}

// "all", "log", or "every:K".
graph::Save save_of(const std::string& text) {
  if (text == "all") return {};
  if (text == "log") return graph::Save::log();
  int64_t k = 0;
  try {
    if (text.starts_with("every:")) k = std::stoll(text.substr(6));
  } catch (const std::exception&) {
    k = 0;
  }
  if (k < 1)
    raise(invalid_argument(
        "[while_loop] save must be \"all\", \"log\" or \"every:K\", not {:?}",
        text));
  return graph::Save::every(k);
}

nb::list while_loop(const ScopeObject& self, const nb::object& predicate,
                    const nb::object& body, nb::handle initial,
                    const std::vector<std::string>& paths,
                    const nb::object& shapes, int64_t parallel_iterations,
                    const nb::object& maximum, const std::string& save) {
  Callbacks callbacks(self);
  graph::WhileOptions options;
  options.parallel_iterations = parallel_iterations;
  options.save = save_of(save);
  if (!maximum.is_none()) options.maximum_iterations = self.take(maximum);
  if (!shapes.is_none())
    for (const nb::handle shape : shapes)
      options.shape_invariants.push_back(to_partial_shape(shape));
  const Outputs last = graph::structure::while_loop(
      graph::Scope(self.open()),
      [&](const Scope& in, const Outputs& values) -> Output {
        return callbacks.run(in, [&](const ScopeObject& scope) {
          return scope.take(predicate(scope, scope.give_all(values)));
        });
      },
      [&](const Scope& in, const Outputs& values,
          const graph::structure::AddVariable&) -> Leaves {
        return leaves_from(callbacks.run(in,
                                         [&](const ScopeObject& scope) {
                                           return scope.take_all(body(
                                               scope, scope.give_all(values)));
                                         }),
                           paths);
      },
      leaves_from(self.take_all(initial), paths), options);
  callbacks.finish();
  return self.give_all(last);
}

// A scan in the style of functional programs: the body gives the next carried
// values, and values that are collected, of which nothing is known before it
// was called. Its variables are the index, the carried values, and the flows of
// the arrays that collect, which the loop gets while its body is built.
class Scan {
 public:
  Scan(const ScopeObject& self, const nb::object& body, bool reverse,
       int64_t parallel_iterations)
      : self_(self),
        scope_(self.open()),
        callbacks_(self),
        body_(body),
        reverse_(reverse) {
    options_.parallel_iterations = parallel_iterations;
  }

  nb::tuple run(const Outputs& initial, const std::vector<std::string>& paths,
                const Outputs& elements, const Output& count) {
    carried_ = initial.size();
    count_ = count;
    for (const Output& element : elements)
      elements_.push_back(
          TensorArray(scope_.named("elements"), count, element.dtype())
              .unstack(scope_, element));
    one_ = scope_.resolve(1, DataType::kInt32, "one");
    Leaves variables = {{"the index", scope_.resolve(0, DataType::kInt32)}};
    for (const Leaf& leaf : leaves_from(initial, paths))
      variables.push_back(leaf);
    check(scope_.status());
    const Outputs last = graph::structure::while_loop(
        scope_,
        [&](const Scope& in, const Outputs& v) -> Output {
          return ops::less(in, v[0], count_);
        },
        [&](const Scope& in, const Outputs& v,
            const graph::structure::AddVariable& add) {
          return body(in, v, add, paths);
        },
        variables, options_);
    callbacks_.finish();
    Outputs carry, collected;
    for (size_t i = 0; i < carried_; ++i) carry.push_back(last[1 + i]);
    for (size_t i = 0; i < arrays_.size(); ++i)
      collected.push_back(stacked(arrays_[i], last[1 + carried_ + i]));
    check(scope_.status());
    return nb::make_tuple(self_.give_all(carry), self_.give_all(collected));
  }

 private:
  // The position of the element that this trip reads, and writes.
  Output position(const Scope& in, const Output& index) const {
    if (!reverse_) return index;
    return ops::sub(in, ops::sub(in, count_, one_), index);
  }

  Leaves body(const Scope& in, const Outputs& v,
              const graph::structure::AddVariable& add,
              const std::vector<std::string>& paths) {
    const Output at = position(in, v[0]);
    Outputs carry, element, next, collected;
    for (size_t i = 0; i < carried_; ++i) carry.push_back(v[1 + i]);
    for (const TensorArray& array : elements_)
      element.push_back(array.read(in, at));
    callbacks_.run(in, [&](const ScopeObject& scope) -> int {
      const auto both = nb::cast<nb::tuple>(
          body_(scope, scope.give_all(carry), scope.give_all(element)));
      next = scope.take_all(both[0]);
      collected = scope.take_all(both[1]);
      return 0;
    });
    Leaves leaves = {{"the index", ops::add(in, v[0], one_)}};
    for (const Leaf& leaf : leaves_from(next, paths)) leaves.push_back(leaf);
    if (!in.ok()) return leaves;
    for (const Output& value : collected) {
      graph::TensorArrayOptions options;
      options.element_shape = value.shape();
      const TensorArray array(scope_.named("results"), count_, value.dtype(),
                              options);
      const std::string path =
          fmt::format("collected value {}", arrays_.size());
      const TensorArray written =
          array.with_flow(add({path, array.flow(), array.handle()}))
              .write(in, at, value);
      leaves.push_back({path, written.flow(), written.handle()});
      arrays_.push_back(array);
    }
    return leaves;
  }

  Output stacked(const TensorArray& array, const Output& flow) const {
    return array.with_flow(flow).stack(scope_);
  }

  const ScopeObject& self_;
  const Scope scope_;
  Callbacks callbacks_;
  const nb::object& body_;
  const bool reverse_;
  graph::WhileOptions options_;
  size_t carried_ = 0;
  Output count_, one_;
  std::vector<TensorArray> elements_, arrays_;
};

nb::tuple scan(const ScopeObject& self, const nb::object& body,
               nb::handle initial, const std::vector<std::string>& paths,
               nb::handle elements, nb::handle count, bool reverse,
               int64_t parallel_iterations) {
  const ScopeObject inner = self.with(self.open().sub_scope("scan"));
  return Scan(inner, body, reverse, parallel_iterations)
      .run(self.take_all(initial), paths, self.take_all(elements),
           self.take(count));
}

nb::list map(const ScopeObject& self, const nb::object& fn, nb::handle elements,
             const std::vector<std::string>& paths,
             int64_t parallel_iterations) {
  Callbacks callbacks(self);
  const Outputs results = graph::structure::map_fn(
      self.open(),
      [&](const Scope& in, const Outputs& element) -> Leaves {
        return leaves_from(callbacks.run(in,
                                         [&](const ScopeObject& scope) {
                                           return scope.take_all(fn(
                                               scope, scope.give_all(element)));
                                         }),
                           {});
      },
      leaves_from(self.take_all(elements), paths),
      {.parallel_iterations = parallel_iterations});
  callbacks.finish();
  return self.give_all(results);
}

}  // namespace

void bind_build_control(nb::class_<ScopeObject>& scope) {
  scope
      .def("cond", &cond, nb::arg("pred"), nb::arg("then"),
           nb::arg("otherwise"),
           "The functions take a scope and return lists of outputs.")
      .def("switch_case", &switch_case, nb::arg("index"), nb::arg("branches"))
      .def("while_loop", &while_loop, nb::arg("predicate"), nb::arg("body"),
           nb::arg("initial"), nb::arg("paths"), nb::arg("shapes").none(),
           nb::arg("parallel_iterations"), nb::arg("maximum").none(),
           nb::arg("save"),
           "The functions take a scope and the list of variables.")
      .def("scan", &scan, nb::arg("body"), nb::arg("initial"), nb::arg("paths"),
           nb::arg("elements"), nb::arg("count"), nb::arg("reverse"),
           nb::arg("parallel_iterations"),
           "The body takes a scope, the carried values and an element, and "
           "returns two lists.")
      .def("map", &map, nb::arg("fn"), nb::arg("elements"), nb::arg("paths"),
           nb::arg("parallel_iterations"));
}

}  // namespace tagflow::python
