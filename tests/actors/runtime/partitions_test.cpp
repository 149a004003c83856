// Two hand-cut partitions with a control loop: Send, Recv, the rendezvous, and
// a loop that ends on both sides without a coordinator.
#include <doctest/doctest.h>

#include <caf/actor_registry.hpp>
#include <caf/actor_system.hpp>
#include <deque>
#include <thread>

#include "actors/session/executable.h"
#include "devices/kernel_registry.h"
#include "tests/actors/devices.h"
#include "tests/actors/sessions.h"

using namespace tagflow;
using namespace tagflow::actors;
using graph::Graph;
using graph::NodeDef;

namespace {

AttrMap transfer(const std::string& name, const std::string& from,
                 const std::string& to) {
  return {{"tensor_name", name},
          {"send_device", from},
          {"send_device_incarnation", int64_t(1)},
          {"recv_device", to}};
}

NodeDef send(const std::string& name, const std::string& input,
             const std::string& from, const std::string& to) {
  return {"send_" + name, "_Send", {input}, "", transfer(name, from, to)};
}

NodeDef recv(const std::string& name, DataType type, const std::string& from,
             const std::string& to, std::vector<std::string> controls) {
  AttrMap attrs = transfer(name, from, to);
  attrs["tensor_type"] = type;
  return {"recv_" + name, "_Recv", std::move(controls), "", std::move(attrs)};
}

NodeDef enter(const std::string& name, const std::string& input,
              bool is_constant = false) {
  return {name,
          "Enter",
          {input},
          "",
          {{"frame_name", "loop"}, {"is_constant", is_constant}}};
}

NodeDef constant(const std::string& name, Tensor value) {
  const DataType type = value.dtype();
  return {
      name, "Const", {}, "", {{"value", std::move(value)}, {"dtype", type}}};
}

// while i < n: i = i + 1; x = 2 * x, with the doubling on B.
std::vector<NodeDef> partition_a() {
  return {
      constant("zero", Tensor::scalar(0)),
      {"n", "Placeholder", {}, "", {{"dtype", DataType::kInt32}}},
      {"x0", "Placeholder", {}, "", {{"dtype", DataType::kFloat}}},
      enter("enter_i", "zero"),
      enter("enter_n", "n", true),
      enter("enter_x", "x0"),
      {"merge_i", "Merge", {"enter_i", "next_i"}, "", {}},
      {"merge_x", "Merge", {"enter_x", "next_x"}, "", {}},
      {"less", "Less", {"merge_i", "enter_n"}, "", {}},
      {"cond", "LoopCond", {"less"}, "", {}},
      {"switch_i", "Switch", {"merge_i", "cond"}, "", {}},
      {"switch_x", "Switch", {"merge_x", "cond"}, "", {}},
      {"one",
       "Const",
       {"^switch_i_true"},
       "",
       {{"value", Tensor::scalar(1)}, {"dtype", DataType::kInt32}}},
      {"switch_i_true", "Identity", {"switch_i:1"}, "", {}},
      {"add", "AddV2", {"switch_i_true", "one"}, "", {}},
      {"next_i", "NextIteration", {"add"}, "", {}},
      send("cond", "cond", "A", "B"),
      send("x", "switch_x:1", "A", "B"),
      recv("y", DataType::kFloat, "B", "A", {"^merge_i"}),
      {"next_x", "NextIteration", {"recv_y"}, "", {}},
      {"exit_x", "Exit", {"switch_x"}, "", {}},
      {"exit_i", "Exit", {"switch_i"}, "", {}},
  };
}

std::vector<NodeDef> partition_b() {
  return {
      constant("c", Tensor::scalar(0)),
      enter("enter_c", "c"),
      {"merge_c", "Merge", {"enter_c", "next_c"}, "", {}},
      recv("cond", DataType::kBool, "A", "B", {"^merge_c"}),
      {"switch_c", "Switch", {"merge_c", "recv_cond"}, "", {}},
      {"next_c", "NextIteration", {"switch_c:1"}, "", {}},
      recv("x", DataType::kFloat, "A", "B", {"^merge_c"}),
      {"y", "AddV2", {"recv_x", "recv_x"}, "", {}},
      send("y", "y", "B", "A"),
  };
}

// How much recursion the executables here may do: there is none.
constexpr RunSettings kSettings{1, 1};

struct Cut {
  explicit Cut(const SessionOptions& options)
      : engine(graph::testing::must(Engine::create(
            {.workers = options.workers, .hand_off = options.hand_off}))),
        devices(graph::testing::must(engine->devices("cpu:1"))) {
    const Status a_ok = a.extend(partition_a());
    INFO(a_ok.to_string());
    REQUIRE(a_ok.ok());
    const Status b_ok = b.extend(partition_b());
    INFO(b_ok.to_string());
    REQUIRE(b_ok.ok());
  }

  std::unique_ptr<Plan> plan(Graph& graph,
                             const std::vector<graph::Endpoint>& feeds,
                             const std::vector<graph::Endpoint>& fetches,
                             const std::vector<std::string>& targets,
                             const SessionOptions& options) {
    graph::Program program;
    program.graph = graph.clone();
    const auto twin = [&](const graph::Endpoint& endpoint) {
      return graph::Endpoint{program.graph.find(endpoint.node->name()),
                             endpoint.port};
    };
    for (const auto& feed : feeds) program.feeds.push_back(twin(feed));
    for (const auto& fetch : fetches) program.fetches.push_back(twin(fetch));
    for (const auto& name : targets)
      program.targets.push_back(program.graph.find(name));
    programs.push_back(std::move(program));
    auto made = compile_plan(
        programs.back(),
        {options.passes.has(graph::Pass::kEdges), options.window},
        [this](const graph::Node& node) -> Result<const devices::Kernel*> {
          TAGFLOW_ASSIGN(auto kernel,
                         devices::KernelRegistry::global().make(node, "CPU"));
          kernels.push_back(std::move(kernel));
          return kernels.back().get();
        });
    INFO(made.status().to_string());
    REQUIRE(made.ok());
    return std::move(*made);
  }

  Step::Answer run(Executable& executable, std::vector<Tensor> feeds) {
    auto step = std::make_shared<Step>(++steps, executable.num_fetches());
    step->timeout = std::chrono::seconds(30);
    step->deadline = std::chrono::steady_clock::now() + step->timeout;
    graph::testing::must(
        executable.start(step, feeds, /*lend=*/true, /*count=*/false));
    return step->wait();
  }

  Graph a, b;
  std::deque<graph::Program> programs;
  uint64_t steps = 0;
  std::vector<std::unique_ptr<devices::Kernel>> kernels;
  const std::shared_ptr<Engine> engine;
  const std::shared_ptr<DeviceSet> devices;
};

void for_each_configuration(
    const std::function<void(const SessionOptions&)>& body) {
  for (SessionOptions options : configurations())
    for (const int window : {1, 2, 32}) {
      options.window = window;
      INFO(describe(options));
      body(options);
    }
}

}  // namespace

TEST_CASE("smoke: a loop cut over two partitions gives the uncut result") {
  for_each_configuration([](const SessionOptions& options) {
    Cut cut(options);
    std::vector<std::unique_ptr<Plan>> plans;
    const std::vector<graph::Endpoint> feeds = {{cut.a.find("n"), 0},
                                                {cut.a.find("x0"), 0}};
    plans.push_back(cut.plan(
        cut.a, feeds, {{cut.a.find("exit_x"), 0}, {cut.a.find("exit_i"), 0}},
        {"send_cond", "send_x"}, options));
    plans.push_back(cut.plan(cut.b, {}, {}, {"send_y"}, options));
    auto executable = std::make_shared<LocalExecutable>(
        cut.devices, kSettings, std::move(plans),
        std::vector<std::string>{"exit", "sum"});
    for (int trips : {0, 1, 2, 10}) {
      auto out =
          cut.run(*executable, {Tensor::scalar(trips), Tensor::scalar(3.f)});
      INFO("trips ", trips, ": ", out.status().to_string());
      REQUIRE(out.ok());
      CHECK((*out)[0].scalar_value<float>() == 3.f * float(1 << trips));
      CHECK((*out)[1].scalar_value<int32_t>() == trips);
    }
  });
}

TEST_CASE("smoke: a Recv that nobody serves is a deadlock, and is named") {
  for_each_configuration([](const SessionOptions& options) {
    Cut cut(options);
    std::vector<std::unique_ptr<Plan>> plans;
    plans.push_back(cut.plan(cut.b, {}, {}, {"send_y"}, options));
    auto executable = std::make_shared<LocalExecutable>(
        cut.devices, kSettings, std::move(plans), std::vector<std::string>());
    auto out = cut.run(*executable, {});
    REQUIRE(!out.ok());
    CHECK(out.status().code() == Code::kDeadlock);
    const std::string text(out.status().message());
    INFO(text);
    CHECK(text.find("_Recv \"recv_cond\" in iteration \"loop/0\" waits for "
                    "\"cond\" of A, which nobody sends") != std::string::npos);
  });
}

TEST_CASE("actors end with their executable") {
  for (const SessionOptions& options : configurations()) {
    INFO(describe(options));
    Cut cut(options);
    const auto& registry = cut.engine->system().registry();
    const auto come_down_to = [&](size_t count) {
      while (registry.running() > count) std::this_thread::yield();
      return registry.running();
    };
    const size_t before = registry.running();
    for (int i = 0; i < 100; ++i) {
      std::vector<std::unique_ptr<Plan>> plans;
      plans.push_back(cut.plan(
          cut.a, {{cut.a.find("n"), 0}, {cut.a.find("x0"), 0}},
          {{cut.a.find("exit_x"), 0}}, {"send_cond", "send_x"}, options));
      plans.push_back(cut.plan(cut.b, {}, {}, {"send_y"}, options));
      auto executable = std::make_shared<LocalExecutable>(
          cut.devices, kSettings, std::move(plans),
          std::vector<std::string>{"exit"});
      const auto out =
          cut.run(*executable, {Tensor::scalar(3), Tensor::scalar(1.f)});
      REQUIRE(out.ok());
      // Two partitions and the rendezvous.
      CHECK(registry.running() >= before + 3);
      executable.reset();
      REQUIRE(come_down_to(before) == before);
      cut.programs.clear();
      cut.kernels.clear();
    }
  }
}

TEST_CASE("a tensor that nobody has received is freed with its step") {
  Graph graph;
  REQUIRE(graph
              .extend({constant("x", Tensor::scalar(1.f)),
                       send("t", "x", "A", "B")})
              .ok());
  auto session = make_session({}, graph);
  for (int i = 0; i < 3; ++i)
    CHECK(session->run({}, {}, {"send_t"}).status().to_string() ==
          Status().to_string());
}

TEST_CASE("a transfer from an earlier life of a device is refused") {
  Graph graph;
  const std::string cpu = "/job:localhost/replica:0/task:0/device:CPU:0";
  REQUIRE(graph
              .extend({constant("x", Tensor::scalar(1.f)),
                       send("t", "x", cpu, cpu),
                       recv("t", DataType::kFloat, cpu, cpu, {}),
                       {"y", "Identity", {"recv_t"}, "", {}}})
              .ok());
  auto session = make_session({}, graph);
  const auto out = session->run({}, {"y:0"}, {"send_t"});
  CHECK(out.status().code() == Code::kFailedPrecondition);
  const std::string text(out.status().message());
  CAPTURE(text);
  CHECK(text.find("an earlier instance of device /job") != text.npos);
  CHECK(text.find("device:CPU:0 (incarnation 1, now ") != text.npos);
}

TEST_CASE("a token of another type than the Recv's is refused") {
  Graph graph;
  REQUIRE(graph
              .extend({constant("x", Tensor::scalar(1.f)),
                       send("t", "x", "A", "A"),
                       recv("t", DataType::kString, "A", "A", {}),
                       {"y", "Identity", {"recv_t"}, "", {}}})
              .ok());
  for_each_configuration([&](const SessionOptions& options) {
    auto session = make_session(options, graph);
    const auto out = session->run({}, {"y:0"}, {"send_t"});
    CHECK(out.status().code() == Code::kInvalidArgument);
    const std::string text(out.status().message());
    CAPTURE(text);
    CHECK(text.find("[_Recv] the token is of type float, but must be of string "
                    "(node \"recv_t\"") == 0);
  });
}
