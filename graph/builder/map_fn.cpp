#include "graph/builder/map_fn.h"

#include "graph/builder/ops_array.h"
#include "graph/builder/ops_control_flow.h"
#include "graph/builder/ops_elementwise.h"
#include "graph/builder/ops_reduction.h"
#include "graph/builder/scope_access.h"
#include "graph/builder/tensor_array.h"

namespace tagflow::graph {

namespace {

constexpr int64_t kUnknown = PartialShape::kUnknown;

// The checked inputs of one map, scan or fold.
class Elements {
 public:
  // On an error the scope fails.
  Elements(const Scope& scope, const char* what, const std::vector<Leaf>& elems)
      : scope_(scope), what_(what) {
    if (Status status = take_apart(elems); !status.ok())
      scope.fail(std::move(status));
  }

  // The number of elements, an int32 scalar.
  const Output& count() const { return count_; }
  // The number of elements if the graph knows it, else kUnknown.
  int64_t static_count() const { return static_count_; }

  Outputs read(const Scope& in, const Input& index) const {
    Outputs element;
    for (const TensorArray& array : arrays_)
      element.push_back(array.read(in, index));
    return element;
  }

 private:
  std::string name() const { return ScopeAccess::name(scope_); }

  Status take_apart(const std::vector<Leaf>& elems) {
    TAGFLOW_RETURN_IF_ERROR(scope_.status());
    if (elems.empty())
      return invalid_argument("[{}] \"{}\": there are no elements", what_,
                              name());
    for (size_t i = 0; i < elems.size(); ++i)
      TAGFLOW_RETURN_IF_ERROR(check(elems, i));
    count_elements(elems);
    for (const Leaf& leaf : elems) {
      const TensorArray array(scope_.named("elems"), count_,
                              remove_ref(leaf.output.dtype()));
      arrays_.push_back(array.unstack(scope_, leaf.output));
    }
    return scope_.status();
  }

  Status check(const std::vector<Leaf>& elems, size_t i) {
    const Leaf& leaf = elems[i];
    if (leaf.handle.valid())
      return invalid_argument(
          "[{}] \"{}\": {} is a TensorArray; pass its stack() instead", what_,
          name(), describe(leaf));
    if (!leaf.output.has_tensor())
      return invalid_argument("[{}] \"{}\": {} is not a tensor", what_, name(),
                              describe(leaf));
    const PartialShape shape = leaf.output.shape();
    if (!shape.has_rank()) return {};
    if (shape.rank() == 0)
      return invalid_argument(
          "[{}] \"{}\": {} is a scalar, which has no elements", what_, name(),
          describe(leaf));
    if (!shape.dim_known(0)) return {};
    if (static_count_ == kUnknown) {
      static_count_ = shape.dim(0);
      counted_ = i;
    }
    if (static_count_ == shape.dim(0)) return {};
    return invalid_argument("[{}] \"{}\": {} has {} elements, but {} has {}",
                            what_, name(), describe(elems[counted_]),
                            static_count_, describe(leaf), shape.dim(0));
  }

  // If some lengths are unknown, the step fails unless all are equal.
  void count_elements(const std::vector<Leaf>& elems) {
    Inputs lengths;
    for (const Leaf& leaf : elems) {
      const PartialShape shape = leaf.output.shape();
      if (shape.has_rank() && shape.dim_known(0)) continue;
      lengths.add(ops::gather(scope_, ops::shape(scope_, leaf.output), 0));
    }
    if (static_count_ != kUnknown)
      count_ = scope_.resolve(static_count_, DataType::kInt32, "n");
    else
      count_ = ops::identity(scope_.named("n"), lengths[0]);
    if (lengths.size() == 0 || elems.size() == 1) return;
    const Output all = ops::pack(scope_, lengths);
    const Output same =
        ops::reduce_all(scope_, ops::equal(scope_, all, count_));
    const Output check = ops::assert_(
        scope_.named("lengths"), same,
        {fmt::format("[{}] {}: inputs differ in length:", what_, name()),
         count_, all},
        -1);
    count_ = ops::with_dependencies(scope_.named("n"), check, count_);
  }

  static std::string describe(const Leaf& leaf) {
    return leaf.path.empty() ? fmt::format("\"{}\"", leaf.output.name())
                             : leaf.path;
  }

  const Scope& scope_;
  const char* what_;
  Output count_;
  int64_t static_count_ = kUnknown;
  size_t counted_ = 0;  // the leaf with static_count_ elements
  std::vector<TensorArray> arrays_;
};

TensorArray results_array(const Scope& scope, const Elements& elements,
                          const Output& like, bool infer_shape) {
  TensorArrayOptions options;
  options.infer_shape = infer_shape;
  if (infer_shape) options.element_shape = like.shape();
  return TensorArray(scope.named("results"), elements.count(),
                     remove_ref(like.dtype()), options);
}

Status check_result(const Scope& scope, const char* what, const Leaf& leaf) {
  const std::string path = leaf.path.empty() ? "the result" : leaf.path;
  if (leaf.handle.valid())
    return invalid_argument(
        "[{}] \"{}\": {} is a TensorArray, which cannot be stacked", what,
        ScopeAccess::name(scope), path);
  if (leaf.output.has_tensor()) return {};
  return invalid_argument("[{}] \"{}\": {} is not a tensor", what,
                          ScopeAccess::name(scope), path);
}

// Whether an accumulator's next value has the type and shape of this one.
bool stays(const Output& next, const Output& value) {
  return remove_ref(next.dtype()) == remove_ref(value.dtype()) &&
         next.shape().compatible(value.shape());
}

Output stacked(const Scope& scope, const TensorArray& array,
               const Elements& elements) {
  const Output all = array.stack(scope);
  if (!all.valid() || !all.shape().has_rank()) return all;
  PartialShape shape = all.shape();
  if (shape.dim_known(0)) return all;
  shape.set_dim(0, elements.static_count());
  scope.graph().set_output_shape(all.node(), all.port(), shape);
  return all;
}

// A scan or fold: a loop whose variables are the index of the next element, the
// leaves of the accumulator and, for a scan, the flows of the arrays of
// results.
class Fold {
 public:
  Fold(const Scope& scope, const structure::FoldFn& fn,
       const std::vector<Leaf>& elems, const structure::FoldKind& kind,
       const MapOptions& options)
      : scope_(scope),
        fn_(fn),
        elems_(elems),
        kind_(kind),
        options_(options),
        elements_(scope, kind.name, elems) {}

  Outputs run(const std::vector<Leaf>* initial) {
    if (!scope_.ok()) return {};
    if (Status status = start(initial); !status.ok()) {
      scope_.fail(std::move(status));
      return {};
    }
    const Outputs last = structure::while_loop(
        scope_,
        [this](const Scope& in, const Outputs& v) {
          return kind_.from_the_right ? ops::greater_equal(in, v[0], 0)
                                      : ops::less(in, v[0], elements_.count());
        },
        [this](const Scope& in, const Outputs& v,
               const structure::AddVariable&) { return body(in, v); },
        vars_, {.parallel_iterations = options_.parallel_iterations});
    Outputs all;
    for (size_t i = 0; i < count_; ++i)
      all.push_back(kind_.collects
                        ? stacked(scope_,
                                  results_[i].with_flow(last[1 + count_ + i]),
                                  elements_)
                        : last[1 + i]);
    return all;
  }

 private:
  // Makes the initial values of the variables.
  Status start(const std::vector<Leaf>* initial) {
    step_ =
        scope_.resolve(kind_.from_the_right ? -1 : 1, DataType::kInt32, "step");
    Output index = kind_.from_the_right
                       ? ops::sub(scope_, elements_.count(), 1)
                       : scope_.resolve(0, DataType::kInt32, "zero");
    std::vector<Leaf> accumulator;
    if (initial != nullptr) {
      accumulator = *initial;
    } else {
      accumulator = elems_;
      const Outputs element = elements_.read(scope_, index);
      for (size_t i = 0; i < elems_.size(); ++i)
        accumulator[i].output = element[i];
    }
    count_ = accumulator.size();
    vars_ = {{kIndex, {}}};
    for (const Leaf& leaf : accumulator) vars_.push_back(named(leaf));
    for (const Leaf& leaf : accumulator) {
      if (!kind_.collects) break;
      TAGFLOW_RETURN_IF_ERROR(check_result(scope_, kind_.name, leaf));
      TensorArray array =
          results_array(scope_, elements_, leaf.output, options_.infer_shape);
      results_.push_back(array);
      // The first element is the first result.
      if (initial == nullptr) array = array.write(scope_, index, leaf.output);
      vars_.push_back(
          {"results of " + named(leaf).path, array.flow(), array.handle()});
    }
    if (initial == nullptr) index = next(scope_, index);
    vars_[0].output = index;
    return scope_.status();
  }

  std::vector<Leaf> body(const Scope& in, const Outputs& v) const {
    Outputs accumulator;
    for (size_t i = 0; i < count_; ++i) accumulator.push_back(v[1 + i]);
    const std::vector<Leaf> values =
        fn_(in, accumulator, elements_.read(in, v[0]));
    std::vector<Leaf> all = {{kIndex, next(in, v[0])}};
    for (const Leaf& value : values) all.push_back(named(value));
    for (size_t i = 0; i < results_.size() && i < values.size(); ++i) {
      TensorArray array = results_[i].with_flow(v[1 + count_ + i]);
      // The loop rejects an accumulator whose type or shape has changed.
      if (stays(values[i].output, accumulator[i]))
        array = array.write(in, v[0], values[i].output);
      all.push_back({vars_[1 + count_ + i].path, array.flow(), array.handle()});
    }
    return all;
  }

  Output next(const Scope& s, const Output& index) const {
    return ops::add(s, index, step_);
  }
  static Leaf named(Leaf leaf) {
    if (leaf.path.empty()) leaf.path = "the accumulator";
    return leaf;
  }

  static constexpr const char* kIndex = "the index";

  const Scope& scope_;
  const structure::FoldFn& fn_;
  const std::vector<Leaf>& elems_;
  const structure::FoldKind& kind_;
  const MapOptions& options_;
  const Elements elements_;
  size_t count_ = 0;  // leaves of the accumulator
  // Outside of the loop, so that iterations need not make it.
  Output step_;
  std::vector<Leaf> vars_;
  std::vector<TensorArray> results_;
};

}  // namespace

Outputs structure::map_fn(const Scope& outer, const MapFn& fn,
                          const std::vector<Leaf>& elems,
                          const MapOptions& options) {
  if (!outer.ok()) return {};
  const Scope scope = ScopeAccess::construct_scope(outer, "map");
  const Elements elements(scope, "map_fn", elems);
  if (!scope.ok()) return {};
  // Outside of the loop, so that iterations need not make it.
  const Output one = scope.resolve(1, DataType::kInt32, "one");
  // The structure of the results is only known after the call, in the body.
  std::vector<TensorArray> results;
  const auto body = [&](const Scope& in, const Outputs& v,
                        const AddVariable& add_variable) {
    std::vector<Leaf> next;
    const std::vector<Leaf> values = fn(in, elements.read(in, v[0]));
    if (!in.ok()) return next;
    next.push_back({"i", ops::add(in, v[0], one)});
    for (const Leaf& value : values) {
      if (Status status = check_result(scope, "map_fn", value); !status.ok()) {
        scope.fail(std::move(status));
        return next;
      }
      const TensorArray array =
          results_array(scope, elements, value.output, options.infer_shape);
      const Leaf initial{value.path, array.flow(), array.handle()};
      const TensorArray written =
          array.with_flow(add_variable(initial)).write(in, v[0], value.output);
      next.push_back({value.path, written.flow(), written.handle()});
      results.push_back(array);
    }
    return next;
  };
  const Outputs last =
      while_loop(scope,
                 [&](const Scope& in, const Outputs& v) {
                   return ops::less(in, v[0], elements.count());
                 },
                 body, {{"i", scope.resolve(0, DataType::kInt32, "zero")}},
                 {.parallel_iterations = options.parallel_iterations});
  Outputs all;
  for (size_t i = 0; i < results.size(); ++i)
    all.push_back(stacked(scope, results[i].with_flow(last[i + 1]), elements));
  return all;
}

Outputs structure::fold(const Scope& outer, const FoldFn& fn,
                        const std::vector<Leaf>& elems,
                        const std::vector<Leaf>* initial, const FoldKind& kind,
                        const MapOptions& options) {
  if (!outer.ok()) return {};
  const Scope scope = ScopeAccess::construct_scope(outer, kind.name);
  return Fold(scope, fn, elems, kind, options).run(initial);
}

}  // namespace tagflow::graph
