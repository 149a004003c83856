#include "apps/bench/graphs.h"

#include <cmath>

#include "apps/bench/building.h"

namespace tagflow::apps {
namespace {

using namespace graph;  // NOLINT: the builder's vocabulary

// The identity matrix: products with it neither grow nor vanish.
Tensor identity_matrix(int size) {
  Tensor tensor = Tensor::make(DataType::kFloat, {size, size});
  auto values = tensor.mutable_flat<float>();
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = i % size_t(size + 1) == 0 ? 1.0f : 0.0f;
  }
  return tensor;
}

// `one` is the other operand, so that there is one node per op.
Result<Output> apply(const Scope& s, const std::string& op, const Output& x,
                     const Output& one) {
  if (op == "Identity") return ops::identity(s, x);
  if (op == "Add") return ops::add(s, x, one);
  return invalid_argument("[bench] --op is Identity or Add, not \"{}\"", op);
}

}  // namespace

Result<BenchGraph> make_loop(int vars, int window) {
  Building building;
  const Scope& s = building.scope();
  const Output n = trip_count(s);
  Inputs start{ops::constant(s, int32_t{0})};
  for (int i = 1; i < vars; ++i) start.add(ops::constant(s, float(i)));
  const Outputs last = while_loop(
      s,
      [&](const Scope& in, const Outputs& v) { return ops::less(in, v[0], n); },
      [](const Scope& in, const Outputs& v) {
        Outputs next;
        for (const Output& value : v) next.push_back(ops::add(in, value, 1));
        return next;
      },
      start, {.parallel_iterations = window});
  return building.done({"n:0"}, {}, {ops::group(s, last)});
}

Result<BenchGraph> make_nested_loop() {
  Building building;
  const Scope& s = building.scope();
  const Output n = trip_count(s);
  const auto more = [&](const Scope& in, const Outputs& v) {
    return ops::less(in, v[0], n);
  };
  const auto count = [](const Scope& in, const Outputs& v) -> Outputs {
    return {ops::add(in, v[0], 1), ops::add(in, v[1], 1)};
  };
  const Outputs last =
      while_loop(s, more,
                 [&](const Scope& in, const Outputs& v) -> Outputs {
                   const Outputs inner = while_loop(in, more, count, {0, v[1]});
                   return {ops::add(in, v[0], 1), inner[1]};
                 },
                 {0, 0});
  return building.done({"n:0"}, {last[1]});
}

Result<BenchGraph> make_loop_with_cond() {
  Building building;
  const Scope& s = building.scope();
  const Output n = trip_count(s);
  const Outputs last = while_loop(
      s,
      [&](const Scope& in, const Outputs& v) { return ops::less(in, v[0], n); },
      [](const Scope& in, const Outputs& v) -> Outputs {
        const Output is_even = ops::equal(in, ops::floor_mod(in, v[0], 2), 0);
        const Outputs value = cond(
            in, is_even,
            [&](const Scope& b) -> Outputs { return ops::add(b, v[1], 1); },
            [&](const Scope& b) -> Outputs { return ops::mul(b, v[1], 0.5); });
        return {ops::add(in, v[0], 1), value[0]};
      },
      {0, 1.0});
  return building.done({"n:0"}, {last[1]});
}

Result<BenchGraph> make_loop_over_devices(int window) {
  Building building;
  const Scope s = building.scope().with_device("/cpu:0");
  const Output n = trip_count(s);
  const Outputs last = while_loop(
      s,
      [&](const Scope& in, const Outputs& v) { return ops::less(in, v[0], n); },
      [](const Scope& in, const Outputs& v) -> Outputs {
        return {ops::add(in, v[0], 1),
                ops::add(in.with_device("/cpu:1"), v[1], 1)};
      },
      {0, 0.0f}, {.parallel_iterations = window});
  return building.done({"n:0"}, {}, {ops::group(s, last)});
}

Result<BenchGraph> make_device_pingpong() {
  Building building;
  const Scope s = building.scope().with_device("/cpu:0");
  const Output n = trip_count(s);
  const Outputs last = while_loop(
      s,
      [&](const Scope& in, const Outputs& v) { return ops::less(in, v[0], n); },
      [](const Scope& in, const Outputs& v) -> Outputs {
        const Output there = ops::add(in.with_device("/cpu:1"), v[1], 1);
        return {ops::add(in, v[0], 1), ops::mul(in, there, 1.0001f)};
      },
      {0, 0.0f}, {.parallel_iterations = 1});
  return building.done({"n:0"}, {}, {ops::group(s, last)});
}

Result<BenchGraph> make_device_hops(int nodes) {
  Building building;
  const Scope& s = building.scope();
  const Scope devices[] = {s.with_device("/cpu:0"), s.with_device("/cpu:1")};
  Output x = opaque(devices[0], Tensor::scalar(1.0f));
  for (int i = 0; i < nodes; ++i) x = ops::add(devices[i % 2], x, 1.0f);
  return building.done({}, {}, {ops::identity(devices[0], x)});
}

Result<BenchGraph> make_busy_loop(const BusyLoop& loop) {
  Building building;
  const Scope s = loop.device.empty()
                      ? building.scope()
                      : building.scope().with_device(loop.device);
  const Output n = trip_count(building.scope());
  const Outputs last = while_loop(
      s,
      [&](const Scope& in, const Outputs& v) { return ops::less(in, v[0], n); },
      [&](const Scope& in, const Outputs& v) -> Outputs {
        const Output x =
            loop.in_a_row ? v[1] : ops::cast(in, v[0], DataType::kFloat);
        return {ops::add(in, v[0], 1), busy(in, x, loop.nanoseconds, loop.how)};
      },
      {0, 0.0f}, {.parallel_iterations = loop.window});
  return building.done({"n:0"}, {}, {ops::group(s, last)});
}

Result<BenchGraph> make_loop_of_products(int size) {
  Building building;
  const Scope& s = building.scope();
  const Output n = trip_count(s);
  const Output w = opaque(s, identity_matrix(size));
  const Output x = opaque(s, pseudo_random({size, size}));
  const Outputs last = while_loop(
      s,
      [&](const Scope& in, const Outputs& v) { return ops::less(in, v[0], n); },
      [&](const Scope& in, const Outputs& v) -> Outputs {
        return {ops::add(in, v[0], 1), ops::matmul(in, v[1], w),
                ops::matmul(in, v[2], w)};
      },
      {0, x, x});
  return building.done({"n:0"}, {}, {ops::group(s, last)});
}

Result<BenchGraph> make_loop_of_writes() {
  Building building;
  const Scope& s = building.scope();
  const Output n = trip_count(s);
  const PartialShape scalar = PartialShape::scalar();
  const OpResult array =
      s.op("TensorArrayV3", {n},
           {{"dtype", DataType::kFloat}, {"element_shape", scalar}});
  const Outputs last = while_loop(
      s,
      [&](const Scope& in, const Outputs& v) { return ops::less(in, v[0], n); },
      [&](const Scope& in, const Outputs& v) -> Outputs {
        const Output value = ops::cast(in, v[0], DataType::kFloat);
        return {ops::add(in, v[0], 1),
                in.op("TensorArrayWriteV3", {array[0], v[0], value, v[1]})};
      },
      {0, array[1]});
  const Output all =
      s.op("TensorArrayGatherV3", {array[0], ops::range(s, 0, n, 1), last[1]},
           {{"dtype", DataType::kFloat}, {"element_shape", scalar}});
  return building.done({"n:0"}, {all});
}

Result<BenchGraph> make_loop_of_updates() {
  Building building;
  const Scope& s = building.scope();
  const Output n = trip_count(s);
  const ops::Variable v =
      ops::variable(s.named("v"), DataType::kFloat, PartialShape::scalar());
  const Output init = ops::assign(s, v, 0.0f);
  const Output start =
      ops::identity(s.with_control_dependencies({init}), ops::constant(s, 0));
  const Outputs last = while_loop(
      s,
      [&](const Scope& in, const Outputs& i) { return ops::less(in, i[0], n); },
      [&](const Scope& in, const Outputs& i) -> Outputs {
        // Without the control input, the update would not wait for the trip.
        const Output updated =
            ops::assign_add(in.with_control_dependencies({i[0]}), v, 1.0f);
        return {ops::add(in.with_control_dependencies({updated}), i[0], 1)};
      },
      {start});
  return building.done({"n:0"}, {last[0]});
}

Result<BenchGraph> make_loop_of_queue() {
  Building building;
  const Scope& s = building.scope();
  const Output n = trip_count(s);
  const std::vector<DataType> types = {DataType::kInt32};
  const Output queue = s.named("queue").op(
      "FIFOQueueV2", {}, {{"component_types", types}, {"capacity", 10}});
  const Outputs last = while_loop(
      s,
      [&](const Scope& in, const Outputs& i) { return ops::less(in, i[0], n); },
      [&](const Scope& in, const Outputs& i) -> Outputs {
        const Outputs put(in.op("QueueEnqueueV2", {queue, i[0]}));
        const Output taken = in.with_control_dependencies(put).op(
            "QueueDequeueV2", {queue}, {{"component_types", types}});
        return {ops::add(in, taken, 1)};
      },
      {ops::constant(s, 0)}, {.shape_invariants = {PartialShape()}});
  return building.done({"n:0"}, {last[0]});
}

Result<BenchGraph> make_map_fn() {
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
  return building.done({"n:0"}, {y});
}

Result<BenchGraph> make_chain(const std::string& op, int nodes) {
  Building building;
  const Scope& s = building.scope();
  Output x = opaque(s, Tensor::scalar(1.0f));
  const Output one = ops::constant(s, 1.0f);
  for (int i = 0; i < nodes; ++i) {
    TAGFLOW_ASSIGN(x, apply(s, op, x, one));
  }
  return building.done({}, {x});
}

Result<BenchGraph> make_dead_chain(const std::string& op, int nodes) {
  Building building;
  const Scope& s = building.scope();
  const auto [on_false, on_true] = ops::switch_(
      s, opaque(s, Tensor::scalar(1.0f)), opaque(s, Tensor::scalar(false)));
  Output y = on_true;
  const Output one = ops::constant(s, 1.0f);
  for (int i = 0; i < nodes; ++i) {
    TAGFLOW_ASSIGN(y, apply(s, op, y, one));
  }
  return building.done({}, {ops::merge(s, {on_false, y}).output});
}

Result<BenchGraph> make_fan_out(const std::string& op, int nodes) {
  Building building;
  const Scope& s = building.scope();
  const Output x = opaque(s, Tensor::scalar(1.0f));
  const Output one = ops::constant(s, 1.0f);
  Outputs all;
  for (int i = 0; i < nodes; ++i) {
    TAGFLOW_ASSIGN(const Output y, apply(s, op, x, one));
    all.push_back(y);
  }
  return building.done({}, {}, {ops::group(s, all)});
}

Result<BenchGraph> make_one_kernel() {
  Building building;
  const Scope& s = building.scope();
  const Output x =
      ops::placeholder(s.named("x"), DataType::kFloat, PartialShape::scalar());
  return building.done({"x:0"}, {ops::add(s, x, 1)});
}

Result<BenchGraph> make_empty() {
  Building building;
  return building.done({}, {}, {ops::no_op(building.scope())});
}

Result<BenchGraph> make_empty_on(std::span<const char* const> devices) {
  Building building;
  Outputs all;
  for (const char* device : devices)
    all.push_back(ops::no_op(building.scope().with_device(device)));
  return building.done({}, {}, all);
}

Result<BenchGraph> make_product(int size) {
  Building building;
  const Scope& s = building.scope();
  const Output a = opaque(s, pseudo_random({size, size}));
  const Output b = opaque(s, pseudo_random({size, size}));
  return building.done({}, {}, {ops::matmul(s, a, b)});
}

Result<BenchGraph> make_elementwise(int count) {
  Building building;
  const Scope& s = building.scope();
  const Output x = opaque(s, pseudo_random({count}));
  const Output y = ops::add(s, ops::mul(s, ops::tanh(s, x), x), 1);
  return building.done({}, {}, {y});
}

Result<BenchGraph> make_sum(int count) {
  Building building;
  const Scope& s = building.scope();
  const Output x = opaque(s, pseudo_random({count}));
  return building.done({}, {}, {ops::reduce_sum(s, x)});
}

Result<BenchGraph> make_lstm(const LstmSize& size) {
  Building building;
  const Scope& s = building.scope();
  const double limit = 1 / std::sqrt(double(size.units));
  const VariableScope weights =
      VariableScope().with_values([limit](const Scope& in, const std::string&,
                                          const Shape& shape, DataType) {
        Tensor values = pseudo_random(shape);
        for (float& value : values.mutable_flat<float>()) value *= float(limit);
        return ops::constant(in, std::move(values));
      });
  const int inputs = size.inputs > 0 ? size.inputs : size.units;
  const Output x = opaque(s, pseudo_random({size.steps, size.batch, inputs}));
  const RnnResult last = dynamic_rnn(
      s, weights, *lstm_cell({.units = size.units}), x, {.time_major = true});
  return building.done(
      {}, {}, {ops::group(s, {last.outputs, last.state[0], last.state[1]})});
}

Result<BenchGraph> make_prefetch(int64_t nanoseconds, int capacity) {
  Building building;
  const Scope& s = building.scope();
  const ops::Queue queue = ops::fifo_queue(
      s, {DataType::kFloat}, {.capacity = capacity, .shapes = {{1024}}});
  const Output batch = ops::fill(s, {1024}, opaque(s, Tensor::scalar(1.0f)));
  const Output fetched = busy(s, batch, nanoseconds, Busy::kSleeps);
  const Output fetch = ops::enqueue(s.named("fetch"), queue, {fetched});
  const Output taken = ops::dequeue(s, queue)[0];
  const Output step =
      ops::group(s.named("step"), busy(s, taken, nanoseconds, Busy::kSleeps));
  const Output close = ops::close_queue(s.named("close"), queue, {true});
  return building.done({}, {}, {step, fetch, close});
}

Result<BenchGraph> make_large(int nodes) {
  Building building;
  const Scope& s = building.scope();
  Output x = opaque(s, Tensor::scalar(1.0f));
  while (int(s.graph().size()) < nodes && s.ok()) {
    const Outputs last = while_loop(
        s,
        [](const Scope& in, const Outputs& v) {
          return ops::less(in, v[0], 3);
        },
        [](const Scope& in, const Outputs& v) -> Outputs {
          return {ops::add(in, v[0], 1), ops::mul(in, v[1], 0.5)};
        },
        {0, x});
    const Outputs chosen = cond(
        s, ops::greater(s, last[1], 1),
        [&](const Scope& b) -> Outputs { return ops::neg(b, last[1]); },
        [&](const Scope& b) -> Outputs { return ops::square(b, last[1]); });
    x = chosen[0];
    for (int i = 0; i < 50; ++i) x = ops::add(s, x, 0.5);
  }
  return building.done({}, {x});
}

}  // namespace tagflow::apps
