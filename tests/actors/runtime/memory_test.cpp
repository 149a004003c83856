// Sessions on devices with limited memory: which values are swapped, which
// kernels go first, and which are held back.
#include <doctest/doctest.h>

#include "devices/device.h"
#include "graph/builder/builder.h"
#include "tests/actors/engine_check.h"
#include "tests/actors/sessions.h"

using namespace tagflow;
using namespace tagflow::actors;
using namespace tagflow::graph;  // NOLINT: the builder's vocabulary

namespace {

constexpr int64_t kKiB = 1024;
constexpr int64_t kElements = 16 * kKiB;  // floats: 64 KiB
constexpr int64_t kBytes = 4 * kElements;

devices::MemoryStats memory_of_last(const Session& session) {
  return session.devices().back()->memory();
}

Output count(const Scope& s) {
  return ops::placeholder(s.named("n"), DataType::kInt32,
                          PartialShape::scalar());
}

// A tensor of 64 KiB, all of that number.
Output filled(const Scope& s, const Output& number) {
  return s.op("Fill", {Tensor::vector<int32_t>({int32_t(kElements)}),
                       ops::cast(s, number, DataType::kFloat)})[0];
}

struct Stack {
  const char* name;
  bool is_value;
  std::function<Output(const Scope&)> make;
  std::function<Output(const Scope&, const Output& stack, const Output&)> push;
  // What is left of the stack, and the value.
  std::function<Outputs(const Scope&, const Output& stack, const Output& i)>
      pop;
};

std::vector<Stack> stacks() {
  const AttrMap floats = {{"elem_type", DataType::kFloat}};
  return {
      {"PersistentStack", true,
       [=](const Scope& s) { return s.op("PersistentStack", {}, floats)[0]; },
       [](const Scope& s, const Output& stack, const Output& value) {
         return s.op("PersistentStackPush", {stack, value})[0];
       },
       [=](const Scope& s, const Output& stack, const Output&) -> Outputs {
         const OpResult popped = s.op("PersistentStackPop", {stack}, floats);
         return {popped[0], popped[1]};
       }},
      {"StackV2", false,
       [=](const Scope& s) { return s.op("StackV2", {-1}, floats)[0]; },
       [](const Scope& s, const Output& stack, const Output& value) {
         return s.op("StackPushV2", {stack, value}, {{"swap_memory", true}})[0];
       },
       [=](const Scope& s, const Output& stack, const Output& i) -> Outputs {
         return {stack, s.with_control_dependencies({i}).op(
                            "StackPopV2", {stack}, floats)[0]};
       }},
  };
}

// "sum" of i * (the first element of what was pushed in trip i), of n trips:
// one loop pushes, another one pops.
Graph through_stack(const Stack& kind) {
  Graph graph;
  const Scope s(graph);
  const Scope there = s.with_device("/device:STREAM:0");
  const Output n = count(s);
  const Output stack = kind.make(there);
  const auto loop = [&](auto&& body, const Outputs& from, const Output& first) {
    return while_loop(
        there,
        [&](const Scope& in, const Outputs& v) {
          return ops::less(in, v[0], n);
        },
        [&](const Scope& in, const Outputs& v) -> Outputs {
          return body(in, v);
        },
        {from[0], first, from[1]}, {.parallel_iterations = 1});
  };
  // What a stack that is not a value is waited for by travels in its place.
  const Output zero = ops::constant(s, 0.0f);
  const Outputs pushed = loop(
      [&](const Scope& in, const Outputs& v) -> Outputs {
        const Output now =
            kind.push(in, kind.is_value ? v[1] : stack, filled(in, v[0]));
        const Output next = ops::add(
            kind.is_value ? in : in.with_control_dependencies({now}), v[0], 1);
        return {next, kind.is_value ? now : v[1], v[2]};
      },
      {ops::constant(s, 0), zero}, kind.is_value ? stack : zero);
  const Scope after = there.with_control_dependencies({pushed[0]});
  const Outputs popped = loop(
      [&](const Scope& in, const Outputs& v) -> Outputs {
        const Outputs top = kind.pop(in, kind.is_value ? v[1] : stack, v[0]);
        const Output factor = ops::cast(
            in, ops::sub(in, ops::sub(in, n, v[0]), 1), DataType::kFloat);
        const Output largest =
            in.op("EnsureShape",
                  {ops::reduce_max(in, ops::neg(in, ops::neg(in, top[1])))},
                  {{"shape", PartialShape::scalar()}})[0];
        const Output part = ops::mul(in, factor, largest);
        const Output next = ops::add(
            kind.is_value ? in : in.with_control_dependencies({part}), v[0], 1);
        return {next, kind.is_value ? top[0] : v[1], ops::add(in, v[2], part)};
      },
      {ops::identity(after, ops::constant(s, 0)), zero},
      kind.is_value ? pushed[1] : ops::identity(after, zero));
  ops::identity(s.named("sum"), popped[2]);
  INFO(kind.name, ": ", s.status().to_string());
  REQUIRE(s.status().ok());
  return graph;
}

float sum_of_squares(int n) {
  float sum = 0;
  for (int i = 0; i < n; ++i) sum += float(i) * float(i);
  return sum;
}

}  // namespace

TEST_CASE("values deep in stacks go to the host and come back") {
  constexpr int kTrips = 60;
  for (const Stack& kind : stacks()) {
    const Graph graph = through_stack(kind);
    for (SessionOptions options : hand_offs_by_workers()) {
      options.devices = fmt::format("cpu:1,stream:1:memory={}", 20 * kBytes);
      INFO(kind.name, ", ", describe(options));
      const auto session = make_session(options, graph);
      for (int i = 0; i < 3; ++i) {
        const auto out =
            must_run(*session, {{"n", Tensor::scalar(kTrips)}}, {"sum"});
        CHECK(out[0].scalar_value<float>() == sum_of_squares(kTrips));
      }
      const devices::MemoryStats memory = memory_of_last(*session);
      CHECK(memory.peak <= 20 * kBytes);
      CHECK(memory.swapped_out >= 3 * (kTrips - 20) * kBytes);
      CHECK(memory.swapped_in >= 3 * (kTrips - 20) * kBytes);
    }
  }
}

TEST_CASE("swapping: nothing is swapped if there is enough memory") {
  for (const Stack& kind : stacks()) {
    INFO(kind.name);
    SessionOptions options;
    options.devices = fmt::format("cpu:1,stream:1:memory={}", 100 * kBytes);
    const auto session = make_session(options, through_stack(kind));
    const auto out = must_run(*session, {{"n", Tensor::scalar(60)}}, {"sum"});
    CHECK(out[0].scalar_value<float>() == sum_of_squares(60));
    CHECK(memory_of_last(*session).swapped_out == 0);
  }
}

TEST_CASE("swapping: a value too large for the device fails with its node") {
  SessionOptions options;
  options.devices = fmt::format("cpu:1,stream:1:memory={}", kBytes / 2);
  const auto session = make_session(options, through_stack(stacks()[0]));
  const Status status =
      session->run({{"n", Tensor::scalar(60)}}, {"sum"}, {}, within_a_minute())
          .status();
  CAPTURE(status.to_string());
  CHECK(status.code() == Code::kResourceExhausted);
  CHECK(status.message().find("needs 65536 bytes of") != std::string::npos);
  CHECK(status.message().find("node \"") != std::string::npos);
  // The next run is as good as any.
  const auto out = must_run(*session, {{"n", Tensor::scalar(0)}}, {"sum"});
  CHECK(out[0].scalar_value<float>() == 0);
}

TEST_CASE("memory use: branches with large tensors run a few at a time") {
  constexpr int64_t kLarge = int64_t(1) << 20;  // floats: 4 MiB
  constexpr int kBranches = 32;
  for (const char* device : {"cpu:1:memory=1GiB", "cpu:1,stream:1"}) {
    Graph graph;
    const Scope s(graph);
    const Scope last = s.with_device(std::string(device).starts_with("cpu:1:")
                                         ? "/device:CPU:0"
                                         : "/device:STREAM:0");
    const Output n = ops::reshape(s, count(s), {1});
    std::vector<std::string> sums;
    for (int i = 0; i < kBranches; ++i)
      sums.push_back(
          ops::reduce_sum(last, last.op("Fill", {n, float(i)})[0]).name());
    REQUIRE(s.status().ok());
    for (SessionOptions options : hand_offs_by_workers()) {
      options.devices = device;
      INFO(describe(options));
      const auto session = make_session(options, graph);
      const auto out =
          must_run(*session, {{"n", Tensor::scalar(int32_t(kLarge))}}, sums);
      for (int i = 0; i < kBranches; ++i)
        CHECK(out[size_t(i)].scalar_value<float>() == float(i) * kLarge);
      // A few for each worker, or those that an accelerator has at once.
      CHECK(memory_of_last(*session).peak <= kBranches / 2 * 4 * kLarge);
    }
  }
}

namespace {

// while i < n: s += sum(x), x of 64 KiB, where iterations may overlap.
Graph loop_of_large(const std::string& device) {
  Graph graph;
  const Scope s(graph);
  const Scope there = s.with_device(device);
  const Output n = count(s);
  const Output last = while_loop(
      s,
      [&](const Scope& in, const Outputs& v) { return ops::less(in, v[0], n); },
      [&](const Scope& in, const Outputs& v) -> Outputs {
        const Scope far = in.with_device(device);
        const Output x = filled(far, v[0]);
        const Output y = ops::add(far, x, ops::sqrt(far, x));
        return {ops::add(in, v[0], 1),
                ops::add(far, v[1], ops::reduce_max(far, y))};
      },
      {0, 0.0f}, {.parallel_iterations = 32})[1];
  ops::identity(s.named("sum"), last);
  REQUIRE(s.status().ok());
  return graph;
}

}  // namespace

TEST_CASE("iterations are held back before memory runs out") {
  for (const char* device : {"/device:CPU:0", "/device:STREAM:0"}) {
    const Graph graph = loop_of_large(device);
    const char* spec = std::string(device) == "/device:CPU:0"
                           ? "cpu:1:memory={}"
                           : "cpu:1,stream:1:memory={}";
    for (SessionOptions options : hand_offs_by_workers()) {
      // No pass may take the sum of a constant for one.
      options.passes = graph::PassSet::none();
      options.devices = fmt::format(fmt::runtime(spec), 4 * kBytes);
      INFO(describe(options));
      const auto session = make_session(options, graph);
      for (int i = 0; i < 3; ++i)
        must_run(*session, {{"n", Tensor::scalar(100)}}, {"sum"});
      CHECK(memory_of_last(*session).peak <= 4 * kBytes);
    }
  }
}

TEST_CASE("memory limit: an iteration that waits for a later one goes on") {
  // Each trip puts a number into a queue and takes one out, but the first takes
  // two, and the last none: all wait for the next one's.
  using Types = std::vector<DataType>;
  constexpr int kTrips = 20;
  Graph graph;
  const Scope s(graph);
  const Output n = count(s);
  const Output queue =
      s.op("FIFOQueueV2", {},
           {{"component_types", Types{DataType::kInt32}},
            {"shapes", std::vector<PartialShape>{PartialShape::scalar()}}})[0];
  const auto is = [](const Scope& in, const Output& a, const Input& b) {
    return ops::cast(in, ops::equal(in, a, b), DataType::kInt32);
  };
  const Output last = while_loop(
      s,
      [&](const Scope& in, const Outputs& v) { return ops::less(in, v[0], n); },
      [&](const Scope& in, const Outputs& v) -> Outputs {
        const Outputs put(in.op("QueueEnqueueV2", {queue, v[0]}));
        const Scope after_put = in.with_control_dependencies(put);
        const Output many = ops::sub(in, ops::add(in, is(in, v[0], 0), 1),
                                     is(in, ops::add(in, v[0], 1), n));
        const Output got =
            in.op("QueueDequeueManyV2", {queue, many},
                  {{"component_types", Types{DataType::kInt32}}})[0];
        return {ops::add(after_put, v[0], 1),
                ops::add(in, v[1], ops::reduce_sum(in, got))};
      },
      {0, 0}, {.parallel_iterations = 8})[1];
  ops::identity(s.named("sum"), last);
  INFO(s.status().to_string());
  REQUIRE(s.status().ok());
  for (SessionOptions options : hand_offs_by_workers()) {
    options.devices = "cpu:1:memory=1MiB";
    INFO(describe(options));
    const auto session = make_session(options, graph);
    const auto out =
        must_run(*session, {{"n", Tensor::scalar(kTrips)}}, {"sum"});
    CHECK(out[0].scalar_value<int>() == kTrips * (kTrips - 1) / 2);
  }
}
