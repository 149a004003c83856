// Homes of state, as the placement gets them.
#include "actors/plan/state_homes.h"

#include <doctest/doctest.h>

#include <barrier>
#include <thread>

#include "actors/plan/distribute.h"
#include "actors/shared_state.h"
#include "devices/device_registry.h"
#include "devices/kernel_catalog.h"
#include "devices/state/resource_op.h"
#include "graph/analysis/class_labels.h"
#include "graph/analysis/extract.h"
#include "graph/builder/builder.h"
#include "tests/actors/sessions.h"

using namespace tagflow;
using namespace tagflow::actors;
using namespace tagflow::graph;
using graph::testing::must;
using Homes = devices::ResourceManager::Homes;

namespace {

// As registered, but that one op has kernels for CPUs only.
class Lacking final : public KernelCatalog {
 public:
  explicit Lacking(std::string op) : op_(std::move(op)) {}
  bool has_kernel(const Node& node, std::string_view type) const override {
    return kernels_.has_kernel(node, type) &&
           (node.op() != op_ || type == "CPU");
  }
  std::vector<std::string> types_of(std::string_view op) const override {
    if (op == op_) return {"CPU"};
    return kernels_.types_of(op);
  }

 private:
  std::string op_;
  devices::RegisteredKernels kernels_;
};

std::vector<DeviceInfo> infos() {
  std::vector<DeviceInfo> result;
  for (const char* type : {"CPU", "STREAM"})
    for (int id : {0, 1}) {
      DeviceInfo info;
      info.name = DeviceName::local(type, id);
      info.host_memory = info.name.type == "CPU";
      result.push_back(info);
    }
  return result;
}

// A variable on a device and its slot, and an op that takes both.
Graph with_slot(const std::string& device) {
  Graph graph;
  const Scope s(graph);
  const auto variable = [](const Scope& scope, const char* name) {
    return ops::variable(scope.named(name), DataType::kFloat,
                         PartialShape({2}));
  };
  const ops::Variable w = variable(s.with_device(device), "w");
  const ops::Variable slot = variable(s, "slot");
  ops::variable(s.named("lone"), DataType::kFloat, PartialShape({2}));
  s.named("train").op("ResourceApplyAdagrad",
                      {w.handle, slot.handle, s.constant(Tensor::scalar(1.0f)),
                       s.constant(Tensor::vector<float>({2, 3}))});
  REQUIRE(s.status().ok());
  return graph;
}

struct Pinned {
  Program program;
  std::vector<std::string> warnings;
  std::string device(std::string_view node) {
    return program.graph.find(node)->device();
  }
};

// The makers alone, as a program.
Pinned pin(const Graph& whole, const KernelCatalog& catalog,
           const Homes& homes = {}) {
  std::vector<Node*> targets;
  for (const char* name : {"w", "slot", "lone"})
    targets.push_back(whole.find(name));
  Pinned result{must(extract(whole, {}, {}, targets)), {}};
  const StateGroups groups(whole, infos(), catalog);
  result.warnings =
      must(pin_state(result.program, groups, infos(), homes, false));
  return result;
}

// Claims homes for one node alone, on a device by its number.
Status claim(const Graph& whole, const char* node, uint32_t device,
             const Homes& seen, devices::ResourceManager& resources) {
  const Program program =
      must(extract(whole, {}, {}, std::vector{whole.find(node)}));
  const StateGroups groups(whole, infos(), devices::RegisteredKernels());
  const Placement placement{
      std::vector<uint32_t>(program.graph.end_id(), device)};
  return request_homes(program, groups, infos(), placement, seen, resources);
}

}  // namespace

TEST_CASE("state homes: an op of another signature ties its variables") {
  Pinned pinned = pin(with_slot(""), devices::RegisteredKernels());
  CHECK(pinned.warnings.empty());
  const auto labels_of = [&](const char* name) {
    return must(class_labels(*pinned.program.graph.find(name)));
  };
  REQUIRE(labels_of("w").size() == 1);
  CHECK(labels_of("w")[0] == labels_of("slot")[0]);
  CHECK(labels_of("lone").empty());
  for (const char* name : {"w", "slot", "lone"})
    CHECK(pinned.device(name) == "");
}

TEST_CASE("state homes: a variable is on a device where its ops have kernels") {
  const Lacking kernels("ResourceApplyAdagrad");
  Pinned free = pin(with_slot(""), kernels);
  CHECK(free.device("w") == "/device:CPU:*");
  CHECK(free.device("slot") == "/device:CPU:*");
  CHECK(free.device("lone") == "");
  CHECK(free.warnings.empty());
  Pinned tied = pin(with_slot("/device:STREAM:1"), kernels);
  CHECK(tied.device("w") == "/device:CPU:*");
  REQUIRE(tied.warnings.size() == 1);
  CHECK(tied.warnings[0] ==
        "[placement] node \"w\" requests \"/device:STREAM:1\", but some op "
        "that takes it has kernels for CPU only");
}

TEST_CASE("state homes: ops of functions and of calls in them count") {
  Graph graph = with_slot("");
  const Scope s(graph);
  const auto function = [&](const char* name, const auto& body) {
    define_function(s, {.name = name,
                        .args = {{"count", DataType::kInt32, {}},
                                 {"table", DataType::kResource, {}}},
                        .results = {{DataType::kFloat, PartialShape({2})}},
                        .body = body});
  };
  function("gathers", [](const Scope& in, const Outputs& a) -> Outputs {
    return {in.op("ResourceGather",
                  {ops::identity(in, a[1]), ops::constant(in, {0, 1})},
                  {{"dtype", DataType::kFloat}})};
  });
  function("reads", [](const Scope& in, const Outputs& a) -> Outputs {
    return {in.op("ReadVariableOp", {a[1]}, {{"dtype", DataType::kFloat}})};
  });
  function("calls", [](const Scope& in, const Outputs& a) -> Outputs {
    return cond(
        in, ops::less(in, a[0], 1),
        [&](const Scope& then) -> Outputs {
          return {call(then, "gathers", {a[0], a[1]})[0]};
        },
        [&](const Scope& then) -> Outputs {
          return {call(then, "reads", {a[0], a[1]})[0]};
        });
  });
  const auto handle = [&](const char* name) {
    return Output(graph.find(name), 0);
  };
  call(s, "calls", {1, handle("w")});
  call(s, "reads", {1, handle("lone")});
  REQUIRE_MESSAGE(s.status().ok(), s.status().to_string());
  Pinned pinned = pin(graph, Lacking("ResourceGather"));
  CHECK(pinned.device("w") == "/device:CPU:*");
  CHECK(pinned.device("slot") == "/device:CPU:*");
  CHECK(pinned.device("lone") == "");
}

TEST_CASE("state homes: the home of one variable is that of its group") {
  devices::ResourceManager resources;
  const Graph whole = with_slot("/device:STREAM:1");
  must(claim(whole, "slot", 2, {}, resources));
  Pinned pinned = pin(whole, devices::RegisteredKernels(), resources.homes());
  const std::string home = infos()[2].name.to_string();
  CHECK(pinned.device("slot") == home);
  CHECK(pinned.device("w") == home);
  CHECK(pinned.device("lone") == "");
  REQUIRE(pinned.warnings.size() == 1);
  CHECK(pinned.warnings[0].find("\"slot\", which some op takes together with "
                                "it, has been on ") != std::string::npos);
}

TEST_CASE("state homes: a variable that gave way does so in later signatures") {
  const auto stays = [](const KernelCatalog& catalog, const Homes& homes) {
    Pinned pinned = pin(with_slot("/device:STREAM:1"), catalog, homes);
    CHECK(pinned.device("w") == homes.at({"", "variable", "w"}));
    REQUIRE(pinned.warnings.size() == 1);
    CHECK(pinned.warnings[0] ==
          fmt::format("[placement] node \"w\" requests \"/device:STREAM:1\", "
                      "but \"w\" has been on {} since it was made",
                      pinned.device("w")));
  };
  const devices::ResourceKey w{"", "variable", "w"},
      slot{"", "variable", "slot"};
  const std::string cpu = infos()[0].name.to_string();
  stays(devices::RegisteredKernels(), {{slot, cpu}, {w, cpu}});
  stays(Lacking("ResourceApplyAdagrad"), {{w, cpu}});
  // Nothing else keeps it there.
  const Graph whole = with_slot("/device:STREAM:1");
  Program program = must(extract(whole, {}, {}, std::vector{whole.find("w")}));
  const devices::RegisteredKernels kernels;
  const StateGroups groups(whole, infos(), kernels);
  CHECK(
      pin_state(program, groups, infos(), {{w, cpu}}, false).status().code() ==
      Code::kInvalidArgument);
}

TEST_CASE("state homes: two sessions that place a group do not split it") {
  devices::ResourceManager resources;
  const Graph whole = with_slot("");
  // Neither has seen a home.
  must(claim(whole, "w", 2, {}, resources));
  const Status late = claim(whole, "slot", 0, {}, resources);
  CHECK(late.code() == Code::kAborted);
  CHECK(resources.homes().size() == 1);
  // What is of no group is nobody else's matter.
  must(claim(whole, "lone", 0, {}, resources));
  // The next try has seen it.
  const Homes seen = resources.homes();
  Pinned pinned = pin(whole, devices::RegisteredKernels(), seen);
  CHECK(pinned.device("slot") == infos()[2].name.to_string());
  must(claim(whole, "slot", 2, seen, resources));
  // What is elsewhere now is so for good.
  const Status elsewhere = claim(whole, "w", 3, resources.homes(), resources);
  CHECK(elsewhere.code() == Code::kFailedPrecondition);
  CHECK(elsewhere.message() ==
        fmt::format("[placement] \"w\" has been on {} since it was made, but "
                    "some nodes of this run that use it can only be on {}",
                    infos()[2].name.to_string(), infos()[3].name.to_string()));
}

TEST_CASE("sessions that share a state agree on homes, whoever is first") {
  constexpr int kRounds = 60;
  SessionOptions options;
  options.devices = "cpu:1,stream:1";
  options.on_warning = [](const std::string&) {};
  Graph graph;
  const Scope s(graph);
  const auto name = [](const char* what, int round) {
    return fmt::format("{}{}", what, round);
  };
  for (int round = 0; round < kRounds; ++round) {
    const auto make = [&](const Scope& scope, const char* what) {
      const ops::Variable made = ops::variable(
          scope.named(name(what, round)), DataType::kFloat, PartialShape({1}));
      ops::assign(s.named(name("init_", round) + what), made,
                  Tensor::vector<float>({1}));
      return made;
    };
    const ops::Variable w = make(s.with_device("/device:STREAM:0"), "w");
    const ops::Variable slot = make(s, "slot");
    s.named(name("train", round))
        .op("ResourceApplyAdagrad",
            {w.handle, slot.handle, s.constant(Tensor::scalar(1.0f)),
             s.constant(Tensor::vector<float>({2}))});
  }
  must(s.status());
  const auto first = make_session(options, graph);
  options.state = first->shared_state();
  const auto second = make_session(options, graph);
  std::barrier together(2);
  const auto work = [&](Session& session, const char* what) {
    for (int round = 0; round < kRounds; ++round) {
      together.arrive_and_wait();
      must(session.run({}, {}, {name("init_", round) + what},
                       within_a_minute()));
    }
  };
  std::thread other([&] { work(*second, "slot"); });
  work(*first, "w");
  other.join();
  const Homes homes = options.state->resources().homes();
  CHECK(homes.size() == 2 * kRounds);
  for (int round = 0; round < kRounds; ++round) {
    CAPTURE(round);
    CHECK(homes.at({"", "variable", name("w", round)}) ==
          homes.at({"", "variable", name("slot", round)}));
  }
  must(second->run({}, {}, {"train0"}, within_a_minute()));
}

TEST_CASE("state homes: ops of two generations share a name's home") {
  Graph graph;
  const Scope s(graph);
  const AttrMap queue{{"component_types", std::vector{DataType::kInt32}},
                      {"shared_name", std::string("q")}};
  const AttrMap table{{"key_dtype", DataType::kInt64},
                      {"value_dtype", DataType::kInt64},
                      {"shared_name", std::string("t")}};
  const AttrMap variable{{"dtype", DataType::kInt32},
                         {"shape", PartialShape({1})},
                         {"shared_name", std::string("v")}};
  for (const std::string op : {"Variable", "VariableV2"})
    s.named(op).op(op, {}, variable);
  for (const std::string op : {"FIFOQueue", "FIFOQueueV2"})
    s.named(op).op(op, {}, queue);
  for (const std::string op : {"HashTable", "HashTableV2"})
    s.named(op).op(op, {}, table);
  // A variable of the other kind, which is another.
  s.named("handle").op("VarHandleOp", {}, variable);
  must(s.status());
  for (const char* pair : {"Variable", "FIFOQueue", "HashTable"}) {
    CAPTURE(pair);
    devices::ResourceManager resources;
    must(claim(graph, pair, 1, {}, resources));
    CHECK(resources.homes().size() == 1);
    const std::string newer = std::string(pair) + "V2";
    Program program =
        must(extract(graph, {}, {}, std::vector{graph.find(newer)}));
    const StateGroups groups(graph, infos(), devices::RegisteredKernels());
    must(pin_state(program, groups, infos(), resources.homes(), false));
    CHECK(program.graph.find(newer)->device() == infos()[1].name.to_string());
  }
  devices::ResourceManager resources;
  must(claim(graph, "VariableV2", 1, {}, resources));
  must(claim(graph, "handle", 2, resources.homes(), resources));
  CHECK(resources.homes().size() == 2);
}

TEST_CASE("state homes: resources without a name have none, and tie nothing") {
  Graph graph;
  const Scope s(graph);
  const ops::VariableArgs anonymous{
      .container = "", .shared_name = std::string(devices::kAnonymousName)};
  for (const char* name : {"a", "b"})
    ops::variable(s.named(name), DataType::kFloat, PartialShape({2}),
                  anonymous);
  must(s.status());
  devices::ResourceManager resources;
  must(claim(graph, "a", 2, {}, resources));
  must(claim(graph, "b", 0, {}, resources));
  CHECK(resources.homes().empty());
}

TEST_CASE("state homes: groups cover the graph until it is extended") {
  Graph graph = with_slot("");
  const StateGroups groups(graph, infos(), devices::RegisteredKernels());
  const devices::ResourceKey lone{"", "variable", "lone"};
  REQUIRE(groups.of({"", "variable", "w"}) != nullptr);
  CHECK(groups.of({"", "variable", "w"})->resources.size() == 2);
  REQUIRE(groups.of(lone) != nullptr);
  CHECK(groups.of(lone)->resources == std::vector{lone});
  CHECK(groups.of({"", "queue", "w"}) == nullptr);
  CHECK(groups.covers(graph));
  must(graph.extend(std::vector<NodeDef>{{"more", "NoOp", {}, "", {}}}));
  CHECK_FALSE(groups.covers(graph));
}

TEST_CASE("a graph with a state is distributed by groups that nobody gave") {
  const Graph graph = with_slot("");
  SessionOptions options;
  options.devices = "cpu:1,stream:1";
  const auto session = make_session(options, graph);
  options.state = session->shared_state();
  must(distribute({graph, must(FrameMap::build(graph)), options,
                   devices::infos_of(session->devices()),
                   devices::RegisteredKernels(), CostModel()},
                  {{}, {}, {graph.find("train")}}));
  const Homes homes = options.state->resources().homes();
  REQUIRE(homes.size() == 2);
  CHECK(homes.begin()->second == homes.rbegin()->second);
}
