// Variables and containers whose contents are in a GPU's memory.
#include <map>

#include "actors/checkpoint/restore.h"
#include "actors/checkpoint/saver.h"
#include "devices/training_rules.h"
#include "graph/op_registry.h"
#include "tests/actors/accelerator.h"
#include "tests/actors/cuda/gpu_session.h"
#include "tests/temp_path.h"

using namespace tagflow;
using namespace tagflow::actors;
using namespace tagflow::graph;
using graph::testing::must;

namespace {

const std::string kGpu = "/device:GPU:0";

SessionOptions with_gpu() {
  SessionOptions options;
  options.devices = "cpu:1,cuda:1";
  return options;
}

;

// --- Optimizers -------------------------------------------------------------

// Numbers that no rule divides by zero with, or takes a root of less than that.
Tensor numbers(DataType dtype, int64_t count, double first) {
  Tensor made = Tensor::make(dtype, {count});
  for (int64_t i = 0; i < count; ++i) {
    const double x = first + 0.01 * double(i % 97);
    if (dtype == DataType::kFloat) made.mutable_data<float>()[i] = float(x);
    if (dtype == DataType::kDouble) made.mutable_data<double>()[i] = x;
    if (dtype == DataType::kHalf) made.mutable_data<Half>()[i] = Half(float(x));
    if (dtype == DataType::kBFloat16)
      made.mutable_data<BFloat16>()[i] = BFloat16(float(x));
  }
  return made;
}

Tensor scalar_of(DataType dtype, double value) {
  if (dtype == DataType::kInt64) return Tensor::scalar(int64_t(value));
  if (dtype == DataType::kDouble) return Tensor::scalar(value);
  if (dtype == DataType::kHalf) return Tensor::scalar(Half(float(value)));
  if (dtype == DataType::kBFloat16)
    return Tensor::scalar(BFloat16(float(value)));
  return Tensor::scalar(float(value));
}

// What a scalar input of an optimizer's op may be.
double scalar_named(const std::string& name) {
  static const std::map<std::string, double> kValues = {
      {"lr_power", -0.5},   {"global_step", 3}, {"beta1_power", 0.8},
      {"beta2_power", 0.9}, {"epsilon", 1e-3},  {"rho", 0.9}};
  const auto found = kValues.find(name);
  return found == kValues.end() ? 0.125 : found->second;
}

constexpr int64_t kCount = 5000;

// "init", "step" by a fed "grad", and values "s0", "s1", ...
Graph optimizer_graph(const OpDef& op, DataType dtype,
                      const std::string& device, int& num_states) {
  Graph graph;
  const Scope s = Scope(graph).with_device(device);
  const bool is_reference = op.name.starts_with("Apply");
  Outputs inputs;
  Outputs inits, values;
  num_states = 0;
  for (const ArgDef& arg : op.inputs) {
    if (arg.is_ref || arg.dtype == DataType::kResource) {
      const std::string name = fmt::format("s{}", num_states++);
      const Scope in = s.named(name + "_var");
      const double first = arg.name == "mg" ? 0.25 : num_states;
      const Output start = s.constant(numbers(dtype, kCount, first));
      if (is_reference) {
        const Output v =
            ops::reference_variable(in, dtype, PartialShape({kCount}));
        inits.push_back(ops::assign(s, v, start));
        values.push_back(v);
        inputs.push_back(v);
      } else {
        const ops::Variable v =
            ops::variable(in, dtype, PartialShape({kCount}));
        inits.push_back(ops::assign(s, v, start));
        ops::read(s.named(name), v);
        inputs.push_back(v.handle);
      }
    } else if (devices::rules::is_gradient(arg.name)) {
      inputs.push_back(ops::placeholder(s.named("grad"), dtype, {}));
    } else {
      inputs.push_back(s.constant(
          scalar_of(arg.dtype == DataType::kInvalid ? dtype : arg.dtype,
                    scalar_named(arg.name))));
    }
  }
  for (size_t i = 0; i < values.size(); ++i)
    ops::identity(s.named(fmt::format("s{}", i)), values[i]);
  ops::group(s.named("init"), inits);
  ops::group(s.named("step"), {s.op(op.name, inputs)});
  REQUIRE_MESSAGE(s.status().ok(), s.status().to_string());
  return graph;
}

std::vector<Tensor> three_steps(const OpDef& op, DataType dtype, bool on_gpu) {
  int num_states = 0;
  const Graph graph =
      optimizer_graph(op, dtype, on_gpu ? kGpu : "", num_states);
  const auto session =
      make_session(on_gpu ? with_gpu() : SessionOptions(), graph);
  must(session->run({}, {}, {"init"}, within_a_minute()));
  for (int i = 0; i < 3; ++i)
    must(session->run({{"grad", numbers(dtype, kCount, 0.5 - i)}}, {}, {"step"},
                      within_a_minute()));
  std::vector<std::string> fetches;
  for (int i = 0; i < num_states; ++i) fetches.push_back(fmt::format("s{}", i));
  return must_run(*session, {}, fetches);
}

double tolerance_of(DataType dtype) {
  switch (dtype) {
    case DataType::kDouble:
      return 1e-10;
    case DataType::kHalf:
      return 4e-3;
    case DataType::kBFloat16:
      return 3e-2;
    default:
      return 1e-4;
  }
}

struct CompareOptimizers {
  int compared = 0;

  template <template <class> class Rule>
  void add(const char* name) {
    for (const char* kind : {"Apply", "ResourceApply"}) {
      const OpDef* op =
          OpRegistry::global().find_or_null(fmt::format("{}{}", kind, name));
      if (op == nullptr) continue;
      for (const DataType dtype : {DataType::kFloat, DataType::kDouble,
                                   DataType::kHalf, DataType::kBFloat16}) {
        INFO(op->name, " of ", dtype_name(dtype));
        const auto expected = three_steps(*op, dtype, false);
        const auto actual = three_steps(*op, dtype, true);
        REQUIRE(actual.size() == expected.size());
        for (size_t i = 0; i < actual.size(); ++i)
          expect_near(actual[i], expected[i], tolerance_of(dtype));
        ++compared;
      }
    }
  }
};

}  // namespace

TEST_CASE("an optimizer's step on a GPU is the CPU's") {
  if (!has_gpu_or_skip()) return;
  CompareOptimizers compare;
  devices::rules::visit_all(compare);
  CHECK(compare.compared > 100);
}

// --- Updates ----------------------------------------------------------------

TEST_CASE("updates on a GPU copy nothing, and need one buffer") {
  if (!has_gpu_or_skip()) return;
  constexpr int64_t kSize = 1 << 18;  // floats: 1 MiB
  for (const bool subtracts : {false, true}) {
    Graph graph;
    const Scope s(graph);
    const Scope on_gpu = s.with_device(kGpu);
    Tensor ones = Tensor::make(DataType::kFloat, {kSize});
    std::ranges::fill(ones.mutable_flat<float>(), 1.0F);
    const Output delta = on_gpu.constant(ones);
    const ops::Variable v = ops::variable(on_gpu.named("v"), DataType::kFloat,
                                          PartialShape({kSize}));
    ops::assign(on_gpu.named("init"), v, ops::zeros_like(on_gpu, delta));
    const Output n = ops::placeholder(s.named("n"), DataType::kInt32, {});
    const Outputs loop = while_loop(
        s,
        [&](const Scope& in, const Outputs& i) {
          return ops::less(in, i[0], n);
        },
        [&](const Scope& in, const Outputs& i) -> Outputs {
          const Scope there = in.with_device(kGpu);
          const Output changed = subtracts ? ops::assign_sub(there, v, delta)
                                           : ops::assign_add(there, v, delta);
          return {ops::add(in.with_control_dependencies({changed}), i[0], 1)};
        },
        {0});
    ops::identity(s.named("loop"), loop[0]);
    const Output read = ops::read(on_gpu.named("read"), v);
    ops::reduce_min(on_gpu.named("least"), read, {0});
    REQUIRE_MESSAGE(s.status().ok(), s.status().to_string());
    const auto session = make_session(with_gpu(), graph);
    must(session->run({}, {}, {"init"}, within_a_minute()));
    const auto trips = [&](int count) {
      must(session->run({{"n", Tensor::scalar<int32_t>(count)}}, {}, {"loop"},
                        within_a_minute()));
    };
    trips(2);
    // Whoever read it before has what it was.
    const Tensor before = must_run(*session, {}, {"read"})[0];
    devices::Device& gpu = accelerator_of(*session);
    const int64_t count = gpu.memory().count;
    {
      const Copies copies(gpu);
      trips(1000);
      CHECK(copies.to_device() == 0);
      CHECK(copies.to_host() == 0);
    }
    CHECK(gpu.memory().count <= count + 1);
    const float sign = subtracts ? -1 : 1;
    CHECK(must(must_run(*session, {}, {"least"})[0].item<float>()) ==
          sign * 1002);
    CHECK(before.data<float>()[kSize - 1] == sign * 2);
  }
}

TEST_CASE("a second session reads what lies on a GPU, and so does a file") {
  if (!has_gpu_or_skip()) return;
  Graph graph;
  const Scope s = Scope(graph).with_device(kGpu);
  const ops::Variable v =
      ops::variable(s.named("v"), DataType::kFloat, PartialShape({kCount}));
  ops::assign(s.named("init"), v,
              s.constant(numbers(DataType::kFloat, kCount, 0)));
  ops::assign_add(s.named("add"), v,
                  s.constant(numbers(DataType::kFloat, kCount, 1)));
  ops::read(s.named("read"), v);
  REQUIRE_MESSAGE(s.status().ok(), s.status().to_string());
  auto first = make_session(with_gpu(), graph);
  SessionOptions options = with_gpu();
  options.state = first->shared_state();
  const auto second = make_session(options, graph);
  must(first->run({}, {}, {"init"}, within_a_minute()));
  must(first->run({}, {}, {"add"}, within_a_minute()));
  REQUIRE(first->close().ok());
  first.reset();
  Tensor expected = Tensor::make(DataType::kFloat, {kCount});
  for (int64_t i = 0; i < kCount; ++i)
    expected.mutable_data<float>()[i] = 1 + 0.02F * float(i % 97);
  expect_near(must_run(*second, {}, {"read"})[0], expected, 1e-6);
  const std::filesystem::path folder =
      tagflow::testing::temp_path("gpu_checkpoint");
  {
    const auto saver =
        must(Saver::create(*second, {.folder = folder.string()}));
    must(saver->save(1));
    must(saver->close());
  }
  for (const SessionOptions& other : {SessionOptions(), with_gpu()}) {
    SessionOptions soft = other;
    soft.soft_placement = true;
    const auto third = make_session(soft, graph);
    must(restore_checkpoint(*third, folder.string()));
    expect_near(must_run(*third, {}, {"read"})[0], expected, 1e-6);
  }
  std::filesystem::remove_all(folder);
}

// --- Containers -------------------------------------------------------------

TEST_CASE("arrays, lists and stacks hold what a GPU computes") {
  if (!has_gpu_or_skip()) return;
  std::vector<std::vector<Tensor>> results;
  for (const std::string& device : {std::string(), kGpu}) {
    Graph graph;
    const Scope s = Scope(graph).with_device(device);
    const Output rows = ops::reshape(
        s, s.constant(numbers(DataType::kFloat, 6000, -0.5)), {6, 1000});
    const Output mapped = map_fn(
        s.named("map"),
        [](const Scope& in, const Output& row) -> Output {
          return ops::tanh(in, ops::mul(in, row, 2.0F));
        },
        rows);
    ops::identity(s.named("mapped"), mapped);
    const AttrMap element = {{"element_dtype", DataType::kFloat}};
    Output list =
        s.op("TensorListFromTensor", {rows, ops::constant(s, {1000})})[0];
    const Output last = s.op("TensorListGetItem",
                             {list, 5, ops::constant(s, {1000})}, element)[0];
    list = s.op("TensorListSetItem", {list, 0, ops::exp(s, last)})[0];
    list = s.op("TensorListPushBack", {list, ops::square(s, last)})[0];
    ops::identity(
        s.named("listed"),
        s.op("TensorListStack", {list, ops::constant(s, {1000})}, element)[0]);
    REQUIRE_MESSAGE(s.status().ok(), s.status().to_string());
    SessionOptions options = device.empty() ? SessionOptions() : with_gpu();
    options.soft_placement = true;
    const auto session = make_session(options, graph);
    results.push_back(must_run(*session, {}, {"mapped", "listed"}));
    CHECK((device.empty() || accelerator_of(*session).memory().peak > 0));
  }
  for (size_t i = 0; i < results[0].size(); ++i)
    expect_near(results[1][i], results[0][i], 1e-5);
}

TEST_CASE("a large value that was on the host is there when it is popped") {
  if (!has_gpu_or_skip()) return;
  constexpr int64_t kSize = 1 << 24;  // floats: 64 MiB
  constexpr int kValues = 5;
  Graph graph;
  const Scope s = Scope(graph).with_device(kGpu);
  const Output size = ops::constant(s, {int32_t(kSize)});
  const AttrMap type = {{"elem_type", DataType::kFloat}};
  Output stack = s.op("PersistentStack", {}, type)[0];
  for (int i = 1; i <= kValues; ++i) {
    const Scope next = s.with_control_dependencies({stack});
    const Output value = next.op("Fill", {size, ops::constant(s, float(i))})[0];
    stack = s.op("PersistentStackPush", {stack, value})[0];
  }
  std::vector<std::string> fetches;
  Output last = stack;
  for (int i = kValues; i >= 1; --i) {
    const Scope next = s.with_control_dependencies({last});
    const OpResult popped = next.op("PersistentStackPop", {stack}, type);
    stack = popped[0];
    last = ops::reduce_max(s.named(fmt::format("most{}", i)), popped[1], {0});
    ops::reduce_min(s.named(fmt::format("least{}", i)), popped[1], {0});
    fetches.push_back(fmt::format("most{}", i));
    fetches.push_back(fmt::format("least{}", i));
  }
  REQUIRE_MESSAGE(s.status().ok(), s.status().to_string());
  SessionOptions options;
  options.devices = "cpu:1,cuda:1:memory=224MiB";
  options.passes = PassSet::none();
  const auto session = make_session(options, graph);
  const auto results = must_run(*session, {}, fetches);
  for (int i = kValues; i >= 1; --i)
    for (const int which : {0, 1}) {
      CAPTURE(i);
      const Tensor& result = results[size_t(2 * (kValues - i) + which)];
      CHECK(must(result.item<float>()) == float(i));
    }
  CHECK(accelerator_of(*session).memory().swapped_out > 0);
}
