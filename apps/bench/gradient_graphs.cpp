#include "apps/bench/gradient_graphs.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "apps/bench/building.h"
#include "autodiff/gradients.h"
#include "autodiff/train/optimizers.h"
#include "autodiff/train/replicas.h"

namespace tagflow::apps {
namespace {

using namespace graph;  // NOLINT: the builder's vocabulary

// The graph, with its results as the compared ones.
Result<BenchGraph> with_compared(Result<BenchGraph> graph,
                                 const Outputs& results) {
  TAGFLOW_RETURN_IF_ERROR(graph.status());
  for (const Output& o : results) graph->compared.push_back(o.name());
  return graph;
}

// --- Loops ------------------------------------------------------------------

// Close enough to 1 that its powers do not overflow.
constexpr float kFactor = 1.000001f;

}  // namespace

Result<BenchGraph> make_loop_grad(int order) {
  Building building;
  const Scope& s = building.scope();
  const Output n = trip_count(s);
  const Output x = opaque(s, Tensor::scalar(1.0f));
  const Output w = opaque(s, Tensor::scalar(kFactor));
  const Output y = while_loop(
      s,
      [&](const Scope& in, const Outputs& v) { return ops::less(in, v[0], n); },
      [&](const Scope& in, const Outputs& v) -> Outputs {
        return {ops::add(in, v[0], 1), ops::mul(in, v[1], w)};
      },
      {0, x})[1];
  Outputs derivatives{y};
  for (int k = 0; k < order; ++k)
    derivatives = autodiff::dense_gradients(s, derivatives, {x, w});
  return with_compared(building.done({"n:0"}, derivatives),
                       {y, derivatives[0], derivatives[1]});
}

Result<BenchGraph> make_map_fn_grad() {
  Building building;
  const Scope& s = building.scope();
  const Output n = trip_count(s);
  const Output x = ops::cast(s, ops::range(s, 0, n, 1), DataType::kFloat);
  const Output y = map_fn(
      s,
      [](const Scope& in, const Output& v) {
        return ops::add(in, ops::square(in, v), 1);
      },
      x);
  const Outputs gradient =
      autodiff::dense_gradients(s, {ops::reduce_sum(s, y)}, {x});
  return with_compared(building.done({"n:0"}, gradient), {y, gradient[0]});
}

Result<BenchGraph> make_loop_grad_of_large(int64_t bytes) {
  Building building;
  const Scope& s = building.scope();
  const Output n = trip_count(s);
  const int64_t elements = std::max<int64_t>(1, bytes / int64_t(sizeof(float)));
  const Output w = opaque(s, pseudo_random({elements}));
  const Output last = while_loop(
      s,
      [&](const Scope& in, const Outputs& v) { return ops::less(in, v[0], n); },
      [&](const Scope& in, const Outputs& v) -> Outputs {
        const Output sum = ops::reduce_sum(in, ops::square(in, w));
        const Output i = ops::cast(in, v[0], DataType::kFloat);
        return {ops::add(in, v[0], 1),
                ops::add(in, v[1], ops::mul(in, i, sum))};
      },
      {0, 0.0f})[1];
  const Outputs gradient = autodiff::dense_gradients(s, {last}, {w});
  return building.done({"n:0"}, {}, gradient);
}

namespace {

PredicateFn below(const Output& n) {
  return
      [n](const Scope& in, const Outputs& v) { return ops::less(in, v[0], n); };
}

// The gradient of a sum of parts, one for each trip.
Result<BenchGraph> sum_grad(
    const Tensor& from,
    const std::function<Output(const Scope&, const Output& i, const Output& w)>&
        part) {
  Building building;
  const Scope& s = building.scope();
  const Output n = trip_count(s);
  const Output w = opaque(s, from);
  const Output last = while_loop(
      s, below(n),
      [&](const Scope& in, const Outputs& v) -> Outputs {
        return {ops::add(in, v[0], 1), ops::add(in, v[1], part(in, v[0], w))};
      },
      {0, 0.0f})[1];
  return building.done({"n:0"}, {}, autodiff::dense_gradients(s, {last}, {w}));
}

}  // namespace

Result<BenchGraph> make_loop_grad_of_values(int64_t bytes, const Save& save) {
  Building building;
  const Scope& s = building.scope();
  const Output n = trip_count(s);
  const int64_t elements = std::max<int64_t>(1, bytes / int64_t(sizeof(float)));
  const Output x = opaque(s, pseudo_random({elements}));
  const Output last =
      while_loop(s, below(n),
                 [](const Scope& in, const Outputs& v) -> Outputs {
                   return {ops::add(in, v[0], 1), ops::sin(in, v[1])};
                 },
                 {0, x}, {.save = save})[1];
  return building.done({"n:0"}, {}, autodiff::dense_gradients(s, {last}, {x}));
}

Result<BenchGraph> make_loop_grad_of_shapes() {
  constexpr int32_t kMost = 262'144;
  return sum_grad(
      Tensor::scalar(0.5f),
      [](const Scope& in, const Output& i, const Output& w) -> Output {
        const Output size = ops::reshape(in, ops::sub(in, kMost, i), {1});
        return ops::reduce_mean(
            in, ops::fill(in, size,
                          ops::mul(in, w, ops::cast(in, i, DataType::kFloat))));
      });
}

Result<BenchGraph> make_loop_grad_of_pushes() {
  Building building;
  const Scope& s = building.scope();
  const Output n = trip_count(s);
  const Output w = opaque(s, pseudo_random({16}));
  const Output any = ops::constant(s, -1);
  const AttrMap type = {{"element_dtype", DataType::kFloat}};
  const Output list = s.op("EmptyTensorList", {any, any}, type);
  const Output last = while_loop(
      s, below(n),
      [&](const Scope& in, const Outputs& v) -> Outputs {
        return {ops::add(in, v[0], 1),
                in.op("TensorListPushBack", {v[1], ops::mul(in, w, w)})};
      },
      {0, list})[1];
  const Output y =
      ops::reduce_sum(s, s.op("TensorListStack", {last, any}, type));
  return building.done({"n:0"}, {}, autodiff::dense_gradients(s, {y}, {w}));
}

Result<BenchGraph> make_loop_grad_of_gathers() {
  constexpr int64_t kRows = 64;
  return sum_grad(
      pseudo_random({kRows, 16}),
      [](const Scope& in, const Output& i, const Output& w) -> Output {
        const Output row = ops::gather(in, w, ops::floor_mod(in, i, kRows));
        return ops::reduce_sum(in, ops::square(in, row));
      });
}

Result<BenchGraph> make_nested_grad(int deep, int order) {
  Building building;
  const Scope& s = building.scope();
  const Output n = trip_count(s);
  const Output x = opaque(s, Tensor::scalar(0.5f));
  const Output w = opaque(s, Tensor::scalar(kFactor));
  const std::function<Output(const Scope&, const Output&, int)> nested =
      [&](const Scope& in, const Output& v, int depth) -> Output {
    if (depth == 0) return ops::sin(in, ops::mul(in, v, w));
    return while_loop(
        in, below(n),
        [&](const Scope& l, const Outputs& a) -> Outputs {
          return {ops::add(l, a[0], 1), nested(l, a[1], depth - 1)};
        },
        {0, v})[1];
  };
  Output y = nested(s, x, deep);
  for (int k = 0; k < order; ++k) y = autodiff::dense_gradients(s, {y}, {x})[0];
  return building.done({"n:0"}, {y});
}

// --- Train steps ------------------------------------------------------------

namespace {

// The initial value of a variable: numbers between -limit and limit.
Initializer pseudo_random_within(double limit) {
  return [limit](const Scope& s, const InitialPart& part) {
    Tensor values = pseudo_random(part.shape);
    for (float& value : values.mutable_flat<float>()) value *= float(limit);
    return ops::constant(s, std::move(values));
  };
}

// The variable's value, scaled for a layer of this many inputs.
Output weight(const Scope& s, const VariableScope& vars, std::string_view name,
              const Shape& shape, int64_t inputs) {
  const Initializer numbers = pseudo_random_within(1 / std::sqrt(inputs));
  return vars.get(s, name, shape, {.initializer = numbers}).read(s);
}
Output bias(const Scope& s, const VariableScope& vars, std::string_view name,
            int64_t size) {
  return vars.get(s, name, {size}, {.initializer = initializers::zeros()})
      .read(s);
}

// The mean of the cross entropy.
Output loss_of(const Scope& s, const Output& logits, int batch) {
  Tensor labels = Tensor::make(DataType::kInt32, {batch});
  int32_t next = 0;
  for (int32_t& label : labels.mutable_flat<int32_t>())
    label = next++ % kClasses;
  const Output losses =
      ops::sparse_softmax_cross_entropy(s, logits, opaque(s, std::move(labels)))
          .loss;
  return ops::reduce_mean(s, losses);
}

// A run of the part, for all variables.
Result<BenchGraph> train_step(Building& building, const VariableScope& vars,
                              const Output& loss, StepPart part) {
  const Scope& s = building.scope();
  std::vector<ops::Variable> weights;
  Outputs handles;
  for (const ScopedVariable& variable : vars.trainable_variables()) {
    weights.push_back(variable.parts()[0].variable);
    handles.push_back(weights.back().handle);
  }
  const Output init = vars.initialize(s);
  if (part == StepPart::kLoss) return building.done({}, {loss}, {}, {init});
  const Outputs gradients = autodiff::dense_gradients(s, {loss}, handles);
  Outputs updates, results{loss};
  for (size_t i = 0; i < weights.size(); ++i) {
    results.push_back(gradients[i]);
    updates.push_back(ops::assign_sub(
        s, weights[i], ops::mul(s, gradients[i], kLearningRate)));
  }
  const Outputs targets = part == StepPart::kUpdates
                              ? Outputs(ops::group(s.named("step"), updates))
                              : gradients;
  return with_compared(building.done({}, {loss}, targets, {init}), results);
}

// So a loop's variables are where their values are, for all who read the graph.
void put_beside_inputs(Graph& graph) {
  for (Node* node : graph.nodes())
    if (node->device().empty() && node->num_inputs() > 0)
      graph.set_device(node, node->inputs()[0].node->device());
}

}  // namespace

Result<BenchGraph> make_lstm_train(const LstmSize& size, StepPart part) {
  Building building;
  const Scope& s = building.scope();
  const VariableScope vars = VariableScope().with_initializer(
      pseudo_random_within(1 / std::sqrt(double(size.units))));
  const int inputs = size.inputs > 0 ? size.inputs : size.units;
  const Output x = opaque(s, pseudo_random({size.steps, size.batch, inputs}));
  const RnnResult last = dynamic_rnn(s, vars, *lstm_cell({.units = size.units}),
                                     x, {.time_major = true});
  const Output loss = ops::reduce_mean(s, ops::square(s, last.outputs));
  return train_step(building, vars, loss, part);
}

Result<BenchGraph> make_layered_lstm(const LstmSize& size,
                                     std::span<const char* const> devices,
                                     StepPart part) {
  constexpr size_t kFirstState = 2;  // after the time and the loss
  Building building;
  const Scope& s = building.scope();
  const auto below = [&](const Scope& in) {
    return in.with_device(devices.front());
  };
  const auto above = [&](const Scope& in) {
    return in.with_device(devices.back());
  };
  const VariableScope vars = VariableScope().with_initializer(
      pseudo_random_within(1 / std::sqrt(double(size.units))));
  const int inputs = size.inputs > 0 ? size.inputs : size.units;
  const Output x =
      opaque(below(s), pseudo_random({size.steps, size.batch, inputs}));
  std::vector<CellFn> layers;
  Outputs first{ops::constant(below(s), 0), ops::constant(above(s), 0.0f)};
  for (size_t k = 0; k < devices.size(); ++k) {
    const Scope here = s.with_device(devices[k]);
    const RnnCellPtr cell = lstm_cell({.units = size.units});
    layers.push_back(
        cell->build(here, vars.sub_scope(fmt::format("layer_{}", k)),
                    k == 0 ? inputs : size.units, DataType::kFloat));
    for (const Output& zeros :
         cell->zero_state(here, size.batch, DataType::kFloat))
      first.push_back(zeros);
  }
  const Outputs last = while_loop(
      s,
      [&](const Scope& in, const Outputs& v) {
        return ops::less(below(in), v[0], size.steps);
      },
      [&](const Scope& in, const Outputs& v) -> Outputs {
        Output seen = ops::gather(below(in), x, v[0]);
        Outputs state;
        for (size_t k = 0; k < layers.size(); ++k) {
          const size_t at = kFirstState + 2 * k;
          const CellStep step =
              layers[k](in.with_device(devices[k]), seen, {v[at], v[at + 1]});
          for (const Output& each : step.state) state.push_back(each);
          seen = step.output;
        }
        const Output squares = ops::square(above(in), seen);
        Outputs next{
            ops::add(below(in), v[0], 1),
            ops::add(above(in), v[1], ops::reduce_mean(above(in), squares))};
        for (const Output& each : state) next.push_back(each);
        return next;
      },
      first, {.parallel_iterations = 32});
  TAGFLOW_RETURN_IF_ERROR(s.status());
  put_beside_inputs(s.graph());
  return train_step(building, vars, last[1], part);
}

namespace {

Output mlp_loss(const Scope& s, const VariableScope& vars, int batch) {
  constexpr int kInputs = 784, kUnits = 512;
  const Output x = opaque(s, pseudo_random({batch, kInputs}));
  const Output v = weight(s, vars, "v", {kInputs, kUnits}, kInputs);
  const Output a = bias(s, vars, "a", kUnits);
  const Output w = weight(s, vars, "w", {kUnits, kClasses}, kUnits);
  const Output b = bias(s, vars, "b", kClasses);
  const Output hidden = ops::relu(s, ops::bias_add(s, ops::matmul(s, x, v), a));
  const Output logits = ops::bias_add(s, ops::matmul(s, hidden, w), b);
  return loss_of(s, logits, batch);
}

Output cnn_loss(const Scope& s, const VariableScope& vars, int batch) {
  constexpr int kSide = 28, kPooledSide = kSide / 4;
  Output x = opaque(s, pseudo_random({batch, kSide, kSide, 1}));
  int channels = 1;
  for (const int next : {32, 64}) {
    const VariableScope own = vars.sub_scope(fmt::format("conv{}", next));
    const Output filter =
        weight(s, own, "filter", {3, 3, channels, next}, 9 * channels);
    const Output convolved = ops::conv2d(s, x, filter, {1, 1, 1, 1}, "SAME");
    const Output shifted =
        ops::bias_add(s, convolved, bias(s, own, "bias", next));
    x = ops::max_pool(s, ops::relu(s, shifted), {1, 2, 2, 1}, {1, 2, 2, 1},
                      "VALID");
    channels = next;
  }
  const int inputs = kPooledSide * kPooledSide * channels;
  const Output w = weight(s, vars, "w", {inputs, kClasses}, inputs);
  const Output b = bias(s, vars, "b", kClasses);
  const Output flat = ops::reshape(s, x, {batch, inputs});
  const Output logits = ops::bias_add(s, ops::matmul(s, flat, w), b);
  return loss_of(s, logits, batch);
}

Output loss_of(const Scope& s, const VariableScope& vars, PictureModel model,
               int batch) {
  return model == PictureModel::kMlp ? mlp_loss(s, vars, batch)
                                     : cnn_loss(s, vars, batch);
}

}  // namespace

Result<BenchGraph> make_train_step(PictureModel model, int batch) {
  Building building;
  const VariableScope vars;
  return train_step(building, vars,
                    loss_of(building.scope(), vars, model, batch),
                    StepPart::kUpdates);
}

Result<BenchGraph> make_replicas(PictureModel model, int batch,
                                 std::span<const char* const> devices) {
  Building building;
  const Scope s = building.scope().with_device(devices.front());
  const VariableScope vars;
  const autodiff::Replicas replicas(
      s, vars, {.devices = {devices.begin(), devices.end()}},
      [&](const autodiff::Replica& r) {
        return loss_of(r.s, r.vars, model, batch);
      });
  const Output loss = ops::reduce_mean(s, ops::pack(s, replicas.losses()));
  const Output step = replicas.minimize(s, [](const VariableScope& own) {
    return autodiff::optimizers::sgd(own, kLearningRate);
  });
  const Output init = replicas.initialize(s);
  return with_compared(building.done({}, {loss}, {step}, {init}), {loss});
}

}  // namespace tagflow::apps
