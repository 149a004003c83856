// Note [Backward loops]
// The gradient of a loop of N trips is a loop of N trips, which begins with the
// last iteration:
//
//   trips      N, N - 1, ... 0, the predicate
//   gradients  of each variable on a path: from that at the loop's end; the
//              body gives its gradient before the iteration
//   stacks     from which the values of the iteration are popped
//   sums       of each loop constant: what each iteration adds. A sparse one is
//              appended to a list, and concatenated once at the end.
//
// It has the loop's window, and only its LoopCond ends it, so that it can be
// cut over devices like the loop. N is counted by a variable that is added to
// the loop.
#include <algorithm>

#include "autodiff/loop_work.h"
#include "autodiff/save_plan.h"
#include "graph/builder/ops_array.h"
#include "graph/builder/ops_elementwise.h"
#include "graph/builder/ops_reduction.h"
#include "graph/node_name.h"

namespace tagflow::autodiff {

namespace ops = graph::ops;
using graph::Leaf;
using graph::Outputs;
using graph::Scope;

void Backprop::visit_loop(FrameId frame) {
  const Loop& loop = analysis().loop(frame);
  const bool has_gradient = std::ranges::any_of(loop.exits, [&](Node* exit) {
    return total({exit, 0}).valid();
  });
  if (!has_gradient || !scope().ok()) return;
  if (!loop.trouble.empty()) {
    scope().fail(error(Code::kUnimplemented,
                       "[gradients] the loop of frame \"{}\" has no gradient, "
                       "since its iterations do not end by its LoopCond: {}",
                       analysis().frame(frame).name, loop.trouble));
    return;
  }
  LoopWork work{loop, all_.forward_loop(frame)};
  for (const LoopVariable& variable : loop.variables) {
    const Endpoint inside{variable.merge, 0};
    if (!all_.paths.has(inside)) continue;
    if (variable.is_invariant())
      work.constants.push_back({inside, variable.enter->inputs()[0]});
    else
      work.variables.push_back({&variable});
  }
  for (Node* enter : loop.constants)
    if (all_.paths.has({enter, 0}))
      work.constants.push_back({{enter, 0}, enter->inputs()[0]});
  end_gradients(work);
  auto plan = SavePlan::of(loop);
  if (!plan.ok())
    scope().fail(std::move(plan).status());
  else if (plan->kind == graph::Save::Kind::kAll)
    run_backward(work);
  else
    run_segments(work, *plan);
}

// The gradients by the initial values of the last iteration.
void Backprop::end_gradients(LoopWork& work) {
  EndRegion region(region_, work.forward, work.loop, scope());
  Backprop walk(all_, region);
  for (Node* exit : work.loop.exits)
    if (const Gradient grad = total({exit, 0}); grad.valid())
      walk.seed(exit->inputs()[0], grad);
  walk.run();
  for (auto& variable : work.variables)
    variable.at_end = walk.total({variable.of->merge, 0});
  for (auto& constant : work.constants) {
    constant.at_end = walk.total(constant.inside);
    const auto sum = sums_.find(constant.outside);
    if (sum == sums_.end() || !scope().ok()) continue;
    // A sum has begun only if the loop is a segment of one. What leaves it are
    // its variables (Recomputation::state_at_end()), so no Exit has a gradient
    // for a constant.
    constant.at_end = sum->second;
    constant.is_begun = true;
    sums_.erase(sum);
  }
}

// The initial values of the backward loop's variables: the gradients at the
// end.
std::vector<Leaf> Backprop::begin_gradients(LoopWork& work,
                                            graph::WhileOptions& options) {
  EndRegion end(region_, work.forward, work.loop, scope());
  Backprop at_end(all_, end);
  std::vector<Leaf> vars;
  for (const auto& variable : work.variables) {
    const Endpoint merge{variable.of->merge, 0};
    const Output initial = variable.at_end.valid()
                               ? at_end.dense(merge, variable.at_end)
                               : end.zeros(merge);
    const std::string path = LoopWork::path_of(merge);
    LoopWork::narrow(analysis(), initial, analysis().derivative_shape(merge));
    vars.push_back({path, initial});
    options.shapes[path] = analysis().derivative_shape(merge);
  }
  return vars;
}

void Backprop::run_backward(LoopWork& work) {
  const graph::StaticFrame& frame = analysis().frame(work.loop.frame);
  auto trips = work.forward.trips();
  if (!trips.ok()) {
    scope().fail(std::move(trips).status());
    return;
  }
  std::vector<Leaf> vars{{"trips", region_.value(*trips)}};
  graph::WhileOptions options;
  options.name = graph::to_node_name(frame.name) + "_grad";
  options.parallel_iterations = frame.parallel_iterations;
  for (Leaf& leaf : begin_gradients(work, options))
    vars.push_back(std::move(leaf));
  if (!scope().ok()) return;
  const Outputs results = graph::structure::while_loop(
      scope(),
      [](const Scope& in, const Outputs& v) {
        return ops::greater(in, v[0], 0);
      },
      [&](const Scope& in, const Outputs& v,
          const graph::structure::AddVariable& grow) {
        return backward_body(work, in, v, grow);
      },
      vars, options);
  if (scope().ok()) hand_out(work, results);
}

std::vector<Leaf> Backprop::backward_body(
    LoopWork& work, const Scope& in, const Outputs& vars,
    const graph::structure::AddVariable& grow) {
  const Output before = ops::sub(in, vars[0], 1);
  BodyRegion region(region_, work.forward, work.loop, in, before, grow);
  Backprop walk(all_, region);
  for (size_t i = 0; i < work.variables.size(); ++i)
    walk.seed(work.variables[i].of->next->inputs()[0], {vars[1 + i]});
  walk.run();

  std::vector<Leaf> next{{"trips", before}};
  for (const auto& variable : work.variables) {
    const Endpoint merge{variable.of->merge, 0};
    const Gradient grad = walk.total(merge);
    const Output value =
        grad.valid() ? walk.dense(merge, grad) : region.zeros(merge);
    LoopWork::narrow(analysis(), value, analysis().derivative_shape(merge));
    next.push_back({LoopWork::path_of(merge), value});
  }
  for (auto& constant : work.constants)
    add_to_sum(constant, *this, walk, region, 1 + work.variables.size());
  // In the order in which they were added to the loop.
  for (Leaf& leaf : region.next_values()) next.push_back(std::move(leaf));
  return next;
}

// Adds an iteration's partial gradient of a loop constant. The backward
// loop has `first` variables before those of the region.
void Backprop::add_to_sum(LoopConstant& constant, Backprop& outer,
                          Backprop& walk, BodyRegion& region, size_t first) {
  const Gradient grad = walk.total(constant.inside);
  if (!grad.valid() || !outer.scope().ok()) return;
  // The owner of the sum gets the rows, and adds them.
  if (grad.is_sparse() && constant.is_begun) constant.at_end = {};
  constant.result = first + region.next_values().size();
  const std::vector<Leaf> sums = outer.begin_sums(constant, grad);
  Outputs before;
  for (const Leaf& sum : sums)
    before.push_back(region.add_variable(sum.path, sum.output));
  for (Leaf& next : next_sums(region.scope(), sums, before, grad))
    region.next_values().push_back(std::move(next));
}

// The initial values of the sum of gradients like `grad`: one, or two lists for
// sparse gradients.
std::vector<Leaf> Backprop::begin_sums(LoopConstant& constant,
                                       const Gradient& grad) {
  const std::string path = LoopWork::path_of(constant.inside);
  constant.type = grad.values.dtype();
  if (!grad.is_sparse()) {
    constant.results = 1;
    const Output initial = constant.at_end.valid()
                               ? dense(constant.outside, constant.at_end)
                               : region_.zeros(constant.outside, constant.type);
    constant.at_end = {};
    return {{path, initial}};
  }
  constant.results = 2;
  constant.index_type = grad.indices.dtype();
  const auto empty = [&](DataType type) -> Output {
    return scope().op(
        "TensorListReserve",
        {region_.constant(Tensor::scalar<int32_t>(-1)),
         region_.constant(Tensor::scalar<int32_t>(0))},
        {{"element_dtype", type}, {"shape_type", DataType::kInt32}});
  };
  return {{fmt::format("rows of the {}", path), empty(constant.type)},
          {fmt::format("indices of the {}", path), empty(constant.index_type)}};
}

std::vector<Leaf> Backprop::next_sums(const Scope& in,
                                      const std::vector<Leaf>& sums,
                                      const Outputs& before,
                                      const Gradient& grad) {
  if (!grad.is_sparse()) {
    // Where the terms are: then only the sum goes elsewhere, and only once.
    const Scope here = in.with_device(grad.values.node()->device());
    return {{sums[0].path, ops::add_n(here, {before[0], grad.values})}};
  }
  const auto appended = [&](size_t i, const Output& rows) -> Leaf {
    return {sums[i].path, in.op("TensorListPushBack", {before[i], rows},
                                {{"element_dtype", rows.dtype()}})};
  };
  return {appended(0, grad.values), appended(1, grad.indices)};
}

// The results of the backward loop, as gradients of what entered the loop.
void Backprop::hand_out(LoopWork& work, const Outputs& results) {
  const Conditions::Set live = analysis().live(*work.loop.loop_cond);
  for (size_t i = 0; i < work.variables.size(); ++i) {
    const Endpoint outside = work.variables[i].of->enter->inputs()[0];
    if (all_.paths.has(outside)) add(outside, live, {results[1 + i]});
  }
  for (const auto& constant : work.constants) {
    if (constant.at_end.valid()) add(constant.outside, live, constant.at_end);
    if (constant.results == 1)
      add(constant.outside, live, {results[constant.result]});
    if (constant.results != 2) continue;
    // For 0 trips: no rows, of the right shape.
    const Scope& s = scope();
    const Output any = region_.constant(Tensor::vector<int32_t>({-1}));
    const Output row =
        ops::slice(s, region_.shape(constant.outside),
                   region_.constant(Tensor::vector<int32_t>({1})), any);
    const auto joined = [&](const Output& list, const Output& element_shape,
                            DataType dtype) -> Output {
      return s.op(
          "TensorListConcatV2",
          {list, element_shape, region_.constant(Tensor::of<int64_t>({0}, {}))},
          {{"element_dtype", dtype}, {"shape_type", DataType::kInt32}});
    };
    add(constant.outside, live,
        {joined(results[constant.result], ops::concat(s, {any, row}, 0),
                constant.type),
         joined(results[constant.result + 1], any, constant.index_type)});
  }
}

}  // namespace tagflow::autodiff
