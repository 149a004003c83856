// Stacks, tensor arrays and lists in loops, in every configuration of the
// engine: they are freed with their step.
#include <doctest/doctest.h>

#include <atomic>
#include <mutex>
#include <set>

#include "devices/kernel.h"
#include "devices/step_resources.h"
#include "graph/builder/builder.h"
#include "graph/handle.h"
#include "tests/actors/sessions.h"
#include "tests/actors/test_op.h"

using namespace tagflow;
using namespace tagflow::actors;
using namespace tagflow::graph;

namespace {

// The most objects that any execution of the op saw alive in its step.
std::atomic<size_t> most_alive{0};

class AliveKernel : public devices::Kernel {
 public:
  explicit AliveKernel(const devices::KernelInfo&) {}
  Status compute(devices::KernelContext& context) const override {
    const size_t alive = context.step().resources->alive();
    size_t most = most_alive.load();
    while (most < alive && !most_alive.compare_exchange_weak(most, alive)) {
    }
    context.set_output(0, context.input(0));
    return {};
  }
};

// The values that executions of the op saw in its input, by identity.
std::mutex seen_mutex;
std::set<const VariantValue*> seen;

class SeeKernel : public devices::Kernel {
 public:
  explicit SeeKernel(const devices::KernelInfo&) {}
  Status compute(devices::KernelContext& context) const override {
    {
      std::lock_guard lock(seen_mutex);
      seen.insert(context.input(0).data<Variant>()->get());
    }
    context.set_output(0, context.input(0));
    return {};
  }
};

void register_container_test_ops() {
  static const bool registered = [] {
    add_test_op<AliveKernel>("TestCountAlive");
    add_test_op<SeeKernel>("TestSee", "variant");
    return true;
  }();
  CHECK(registered);
}

// What is known to be one only at run time.
Output as_scalar(const Scope& s, const Output& x) {
  return s.op("EnsureShape", {x}, {{"shape", PartialShape::scalar()}});
}

// while i < n, over `state` after i; the results without i.
Outputs counted_loop(
    const Scope& s, const Output& n, const Outputs& state,
    const std::function<Outputs(const Scope&, const Outputs&)>& body) {
  Inputs variables{0};
  for (const Output& output : state) variables.add(output);
  return while_loop(
      s,
      [&](const Scope& in, const Outputs& v) { return ops::less(in, v[0], n); },
      [&](const Scope& in, const Outputs& v) -> Outputs {
        Outputs next{ops::add(in, v[0], 1)};
        for (const Output& output : body(in, v)) next.push_back(output);
        return next;
      },
      variables);
}

}  // namespace

TEST_CASE("a loop writes a tensor array that is gathered after it") {
  Graph graph;
  Scope s(graph);
  const Output n = ops::placeholder(s.named("n"), DataType::kInt32, {});
  const OpResult array =
      s.op("TensorArrayV3", {n},
           {{"dtype", DataType::kInt32}, {"identical_element_shapes", true}});
  const Outputs loop = counted_loop(
      s, n, {array[1]}, [&](const Scope& in, const Outputs& v) -> Outputs {
        return {in.op("TensorArrayWriteV3",
                      {array[0], v[0], ops::mul(in, v[0], v[0]), v[1]})};
      });
  s.named("squares").op(
      "TensorArrayGatherV3", {array[0], ops::range(s, 0, n, 1), loop[1]},
      {{"dtype", DataType::kInt32}, {"element_shape", PartialShape::scalar()}});
  INFO(s.status().to_string());
  REQUIRE(s.ok());
  for (const SessionOptions& options : hand_offs_by_workers()) {
    auto session = make_session(options, graph);
    for (int count : {0, 1, 100}) {
      const Tensor squares = must_run(
          *session, {{"n:0", Tensor::scalar(count)}}, {"squares:0"})[0];
      REQUIRE(squares.num_elements() == count);
      for (int i = 0; i < count; ++i)
        CHECK(squares.data<int32_t>()[i] == i * i);
    }
  }
}

TEST_CASE("objects of a long loop do not pile up") {
  register_container_test_ops();
  Graph graph;
  Scope s(graph);
  const Output n = ops::placeholder(s.named("n"), DataType::kInt32, {});
  const Outputs loop = counted_loop(
      s, n, {s.constant(Tensor::scalar(0))},
      [&](const Scope& in, const Outputs& v) -> Outputs {
        const Output stack =
            in.op("StackV2", {1}, {{"elem_type", DataType::kInt32}});
        const Output pushed =
            in.op("StackPushV2", {stack, ops::mul(in, v[0], 3)});
        const Output alive = in.with_control_dependencies({pushed}).op(
            "TestCountAlive", {stack});
        const Output popped =
            in.op("StackPopV2", {alive}, {{"elem_type", DataType::kInt32}});
        return {as_scalar(in, popped)};
      });
  ops::identity(s.named("last"), loop[1]);
  INFO(s.status().to_string());
  REQUIRE(s.ok());
  for (const SessionOptions& options : hand_offs_by_workers()) {
    auto session = make_session(options, graph);
    most_alive = 0;
    const Tensor last =
        must_run(*session, {{"n:0", Tensor::scalar(3000)}}, {"last:0"})[0];
    CHECK(last.scalar_value<int32_t>() == 2999 * 3);
    // Not many more than iterations overlap, ten.
    CHECK(most_alive.load() >= 1);
    CHECK(most_alive.load() <= 32);
  }
}

TEST_CASE("a step that fails leaves nothing in its tensor arrays") {
  Graph graph;
  Scope s(graph);
  const Output value =
      ops::placeholder(s.named("value"), DataType::kFloat, {100});
  const OpResult array =
      s.op("TensorArrayV3", {3}, {{"dtype", DataType::kFloat}});
  const Output written =
      s.op("TensorArrayWriteV3", {array[0], 0, value, array[1]});
  s.named("again").op("TensorArrayWriteV3", {array[0], 0, value, written});
  INFO(s.status().to_string());
  REQUIRE(s.ok());
  for (const SessionOptions& options : hand_offs_by_workers()) {
    auto session = make_session(options, graph);
    const Tensor fed = Tensor::make(DataType::kFloat, {100});
    const auto result = session->run({{"value:0", fed}}, {"again:0"});
    CHECK(result.status().code() == Code::kInvalidArgument);
    CHECK(result.status().message().find(
              "cannot write to index 0 a second time (node \"again\"") !=
          std::string::npos);
    CHECK(fed.unique());
  }
}

TEST_CASE("a step that is cancelled in a loop leaves nothing in its stack") {
  Graph graph;
  Scope s(graph);
  const Output value =
      ops::placeholder(s.named("value"), DataType::kFloat, {100});
  const Output stack = s.op("StackV2", {-1}, {{"elem_type", DataType::kFloat}});
  const Output endless = s.constant(Tensor::scalar(1'000'000'000));
  const Outputs loop = counted_loop(
      s, endless, {s.constant(Tensor::scalar(0.0f))},
      [&](const Scope& in, const Outputs& v) -> Outputs {
        const Output pushed = in.op("StackPushV2", {stack, value});
        return {ops::identity(in.with_control_dependencies({pushed}), v[1])};
      });
  ops::identity(s.named("never"), loop[1]);
  INFO(s.status().to_string());
  REQUIRE(s.ok());
  auto session = make_session({}, graph);
  const Tensor fed = Tensor::make(DataType::kFloat, {100});
  RunOptions run;
  run.timeout = std::chrono::milliseconds(50);
  const auto result = session->run({{"value:0", fed}}, {"never:0"}, {}, run);
  CHECK(result.status().code() == Code::kDeadlineExceeded);
  // The session waits for what is left of its steps.
  session.reset();
  CHECK(fed.unique());
}

TEST_CASE("a tensor array that holds its own handle is gone with its step") {
  Graph graph;
  Scope s(graph);
  const Output value =
      ops::placeholder(s.named("value"), DataType::kFloat, {100});
  const Output inner = s.op("StackV2", {-1}, {{"elem_type", DataType::kFloat}});
  const Output pushed = s.op("StackPushV2", {inner, value});
  const OpResult outer =
      s.op("TensorArrayV3", {2}, {{"dtype", DataType::kResource}});
  const Output first = s.with_control_dependencies({pushed}).op(
      "TensorArrayWriteV3", {outer[0], 0, inner, outer[1]});
  s.named("done").op("TensorArrayWriteV3", {outer[0], 1, outer[0], first});
  s.named("escaped").op("Identity", {inner});
  INFO(s.status().to_string());
  REQUIRE(s.ok());
  for (const SessionOptions& options : hand_offs_by_workers()) {
    auto session = make_session(options, graph);
    const Tensor fed = Tensor::make(DataType::kFloat, {100});
    const auto fetched =
        must_run(*session, {{"value:0", fed}}, {"done:0", "escaped:0"});
    CHECK(fed.unique());
    // A handle that leaves its step is of no use.
    const auto* handle = fetched[1].data<ResourceHandle>();
    CHECK(handle->get()->describe() ==
          "stack \"StackV2\" of float with 0 elements");
  }
}

TEST_CASE("the old stacks go by names that loops carry as references") {
  Graph graph;
  const AttrMap ints{{"elem_type", DataType::kInt32}};
  const AttrMap frame{{"frame_name", "f"}, {"is_constant", true}};
  const std::vector<NodeDef> nodes = {
      {"one",
       "Const",
       {},
       "",
       {{"value", Tensor::scalar(1)}, {"dtype", DataType::kInt32}}},
      {"two",
       "Const",
       {},
       "",
       {{"value", Tensor::scalar(2)}, {"dtype", DataType::kInt32}}},
      {"stack", "Stack", {}, "", ints},
      {"push_1", "StackPush", {"stack", "one"}, "", {}},
      {"push_2", "StackPush", {"stack", "two", "^push_1"}, "", {}},
      {"pop_2", "StackPop", {"stack", "^push_2"}, "", ints},
      {"pop_1", "StackPop", {"stack", "^pop_2"}, "", ints},
      {"close", "StackClose", {"stack", "^pop_1"}, "", {}},
      {"late", "StackPop", {"stack", "^close"}, "", ints},
      {"enter", "RefEnter", {"stack"}, "", frame},
      {"inside", "StackPush", {"enter", "one_inside"}, "", {}},
      {"one_inside", "Enter", {"one"}, "", frame},
      {"exit", "Exit", {"inside"}, "", {}},
      {"pop_exit", "StackPop", {"stack", "^exit"}, "", ints},
      {"other", "Stack", {}, "", {{"elem_type", DataType::kFloat}}},
      {"wrong", "StackPop", {"other"}, "", ints},
  };
  const Status extended = graph.extend(nodes);
  INFO(extended.to_string());
  REQUIRE(extended.ok());
  for (const SessionOptions& options : hand_offs_by_workers()) {
    auto session = make_session(options, graph);
    const auto popped = must_run(*session, {}, {"pop_2:0", "pop_1:0"});
    CHECK(popped[0].scalar_value<int32_t>() == 2);
    CHECK(popped[1].scalar_value<int32_t>() == 1);
    CHECK(must_run(*session, {}, {"pop_exit:0"})[0].scalar_value<int32_t>() ==
          1);
    const auto late = session->run({}, {"late:0"});
    CHECK(late.status().message().find(
              "[StackPop] stack \"stack\" has been closed") !=
          std::string::npos);
    const auto wrong = session->run({}, {"wrong:0"});
    CHECK(wrong.status().message().find(
              "cannot pop a int32 from stack \"other\" of float") !=
          std::string::npos);
    const Tensor name = must_run(*session, {}, {"stack:0"})[0];
    CHECK(name.describe() == "string[2]");
    CHECK(name.data<std::string>()[0] == "_stacks");
  }
}

TEST_CASE("a persistent stack is a loop variable: what goes up comes down") {
  Graph graph;
  Scope s(graph);
  const Output n = ops::placeholder(s.named("n"), DataType::kInt32, {});
  const Output empty =
      s.op("PersistentStack", {}, {{"elem_type", DataType::kInt32}});
  const Outputs up = counted_loop(
      s, n, {empty}, [&](const Scope& in, const Outputs& v) -> Outputs {
        return {in.op("PersistentStackPush", {v[1], v[0]})};
      });
  const Outputs down = counted_loop(
      s, n, {up[1], s.constant(Tensor::scalar(int64_t{0}))},
      [&](const Scope& in, const Outputs& v) -> Outputs {
        const OpResult pop = in.op("PersistentStackPop", {v[1]},
                                   {{"elem_type", DataType::kInt32}});
        // Each value once with its place: order matters.
        const Output term = ops::cast(
            in, ops::mul(in, as_scalar(in, pop[1]), v[0]), DataType::kInt64);
        return {pop[0], ops::add(in, v[2], term)};
      });
  ops::identity(s.named("sum"), down[2]);
  s.named("size").op("PersistentStackSize", {down[1]});
  INFO(s.status().to_string());
  REQUIRE(s.ok());
  for (const SessionOptions& options : hand_offs_by_workers()) {
    auto session = make_session(options, graph);
    const int64_t count = 1000;
    const auto fetched =
        must_run(*session, {{"n:0", Tensor::scalar(int32_t(count))}},
                 {"sum:0", "size:0"});
    int64_t expected = 0;
    for (int64_t i = 0; i < count; ++i) expected += i * (count - 1 - i);
    CHECK(fetched[0].scalar_value<int64_t>() == expected);
    CHECK(fetched[1].scalar_value<int64_t>() == 0);
  }
}

TEST_CASE("a loop never copies a list that it only pushes onto") {
  register_container_test_ops();
  Graph graph;
  Scope s(graph);
  const Output n = ops::placeholder(s.named("n"), DataType::kInt32, {});
  const Output empty =
      s.op("EmptyTensorList",
           {s.constant(Tensor::scalar(-1)), s.constant(Tensor::scalar(-1))},
           {{"element_dtype", DataType::kInt32}});
  const Outputs loop = counted_loop(
      s, n, {empty}, [&](const Scope& in, const Outputs& v) -> Outputs {
        const Output list = in.op("TestSee", {v[1]});
        return {in.op("TensorListPushBack", {list, v[0]})};
      });
  s.named("all").op("TensorListStack",
                    {loop[1], s.constant(Tensor::scalar(-1))},
                    {{"element_dtype", DataType::kInt32}});
  INFO(s.status().to_string());
  REQUIRE(s.ok());
  for (const SessionOptions& options : hand_offs_by_workers()) {
    auto session = make_session(options, graph);
    seen.clear();
    const Tensor all =
        must_run(*session, {{"n:0", Tensor::scalar(20'000)}}, {"all:0"})[0];
    CHECK(seen.size() == 1);
    REQUIRE(all.num_elements() == 20'000);
    CHECK(all.data<int32_t>()[19'999] == 19'999);
  }
}
