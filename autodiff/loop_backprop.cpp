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
// It has the loop's window, and ends by its LoopCond alone, so that it can be
// cut over devices as the loop can. N is counted by a variable that is added to
// the loop.
#include <algorithm>

#include "autodiff/backprop.h"
#include "graph/builder/ops_array.h"
#include "graph/builder/ops_math.h"
#include "graph/builder/ops_reduction.h"
#include "graph/node_name.h"

namespace tagflow::autodiff {

namespace ops = graph::ops;
using graph::Leaf;
using graph::Outputs;
using graph::Scope;

namespace {

// What is known of the shape of a tensor's gradient.
PartialShape gradient_shape(const Analysis& analysis, const Endpoint& tensor) {
  if (analysis.is_container(tensor)) return PartialShape::scalar();
  return tensor.node->output_shape(tensor.port);
}

// A gradient has its tensor's shape, also where shape inference does not see
// it. Where it sees another one, the loop refuses it.
void narrow(Analysis& analysis, const Output& value,
            const PartialShape& shape) {
  if (value.has_tensor()) analysis.narrow(value.endpoint(), shape);
}

}  // namespace

// What is the same in all iterations: its gradient is a sum.
struct Backprop::LoopConstant {
  Endpoint inside;       // in the loop
  Endpoint outside;      // what enters
  Gradient at_end = {};  // of what it is in the last iteration
  // Which results of the backward loop have the sum: one, or a list of rows and
  // one of indices.
  size_t result = 0;
  size_t results = 0;
  DataType type = DataType::kInvalid;
  DataType index_type = DataType::kInvalid;
};

// One loop while its gradient is made.
struct Backprop::LoopWork {
  // A variable that changes, and has a gradient of its own in each iteration.
  struct Variable {
    const LoopVariable* of;
    Gradient at_end = {};  // of what it is in the last iteration
  };
  const Loop& loop;
  ForwardLoop& forward;
  std::vector<Variable> variables = {};
  std::vector<LoopConstant> constants = {};
};

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
  run_backward(work);
}

// The gradients by what the last iteration begins with.
void Backprop::end_gradients(LoopWork& work) {
  EndRegion region(region_, work.forward, work.loop, scope());
  Backprop walk(all_, region);
  for (Node* exit : work.loop.exits)
    if (const Gradient grad = total({exit, 0}); grad.valid())
      walk.seed(exit->inputs()[0], grad);
  walk.run();
  for (auto& variable : work.variables)
    variable.at_end = walk.total({variable.of->merge, 0});
  for (auto& constant : work.constants)
    constant.at_end = walk.total(constant.inside);
}

void Backprop::run_backward(LoopWork& work) {
  const graph::StaticFrame& frame = analysis().frame(work.loop.frame);
  auto trips = work.forward.trips();
  if (!trips.ok()) {
    scope().fail(std::move(trips).status());
    return;
  }
  EndRegion end(region_, work.forward, work.loop, scope());
  Backprop at_end(all_, end);
  std::vector<Leaf> vars{{"trips", region_.value(*trips)}};
  graph::WhileOptions options;
  options.name = graph::to_node_name(frame.name) + "_grad";
  options.parallel_iterations = frame.parallel_iterations;
  for (const auto& variable : work.variables) {
    const Endpoint merge{variable.of->merge, 0};
    const Output initial = variable.at_end.valid()
                               ? at_end.dense(merge, variable.at_end)
                               : end.zeros(merge);
    const std::string path =
        fmt::format("gradient of \"{}\"", merge.to_string());
    narrow(analysis(), initial, gradient_shape(analysis(), merge));
    vars.push_back({path, initial});
    options.shapes[path] = gradient_shape(analysis(), merge);
  }
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
    narrow(analysis(), value, gradient_shape(analysis(), merge));
    next.push_back(
        {fmt::format("gradient of \"{}\"", merge.to_string()), value});
  }
  for (auto& constant : work.constants)
    add_to_sum(constant, *this, walk, region, 1 + work.variables.size());
  // In the order in which the loop got them.
  for (Leaf& leaf : region.next_values()) next.push_back(std::move(leaf));
  return next;
}

// What an iteration adds to the gradient of a loop constant. Before the first
// variable of the region the backward loop has `first` others.
void Backprop::add_to_sum(LoopConstant& constant, Backprop& outer,
                          Backprop& walk, BodyRegion& region, size_t first) {
  const Gradient grad = walk.total(constant.inside);
  if (!grad.valid() || !outer.scope().ok()) return;
  Region& around = outer.region_;
  const Scope& in = region.scope();
  constant.result = first + region.next_values().size();
  constant.type = grad.values.dtype();
  const std::string path =
      fmt::format("gradient of \"{}\"", constant.inside.to_string());
  if (!grad.is_sparse()) {
    constant.results = 1;
    const Output initial = constant.at_end.valid()
                               ? outer.dense(constant.outside, constant.at_end)
                               : around.zeros(constant.outside, constant.type);
    constant.at_end = {};
    const Output sum = region.add_variable(path, initial);
    region.next_values().push_back({path, ops::add_n(in, {sum, grad.values})});
    return;
  }
  constant.results = 2;
  constant.index_type = grad.indices.dtype();
  const auto append = [&](const Output& rows, const char* what) {
    const Output empty = outer.scope().op(
        "TensorListReserve",
        {around.constant(Tensor::scalar<int32_t>(-1)),
         around.constant(Tensor::scalar<int32_t>(0))},
        {{"element_dtype", rows.dtype()}, {"shape_type", DataType::kInt32}});
    const std::string name = fmt::format("{} of the {}", what, path);
    const Output list = region.add_variable(name, empty);
    region.next_values().push_back(
        {name, in.op("TensorListPushBack", {list, rows},
                     {{"element_dtype", rows.dtype()}})});
  };
  append(grad.values, "rows");
  append(grad.indices, "indices");
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
    // No trips give no rows, of the right shape.
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
