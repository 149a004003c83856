// Homes of state, as placement is told them.
#include "actors/state_homes.h"

#include <doctest/doctest.h>

#include "devices/kernel_catalog.h"
#include "graph/builder/builder.h"
#include "graph/class_labels.h"
#include "tests/actors/sessions.h"

using namespace tagflow;
using namespace tagflow::actors;
using namespace tagflow::graph;
using graph::testing::must;

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
           const devices::ResourceManager& resources) {
  std::vector<Node*> targets;
  for (const char* name : {"w", "slot", "lone"})
    targets.push_back(whole.find(name));
  Pinned result{must(extract(whole, {}, {}, targets)), {}};
  result.warnings =
      must(pin_state(result.program, whole, infos(), catalog, resources));
  return result;
}

}  // namespace

TEST_CASE("what an op of another signature takes together is of one class") {
  const devices::RegisteredKernels kernels;
  const devices::ResourceManager resources;
  const Graph whole = with_slot("");
  Pinned pinned = pin(whole, kernels, resources);
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

TEST_CASE("what is made for an op goes where that has a kernel") {
  const Lacking kernels("ResourceApplyAdagrad");
  const devices::ResourceManager resources;
  Pinned free = pin(with_slot(""), kernels, resources);
  CHECK(free.device("w") == "/device:CPU:*");
  CHECK(free.device("slot") == "/device:CPU:*");
  CHECK(free.device("lone") == "");
  CHECK(free.warnings.empty());
  Pinned tied = pin(with_slot("/device:STREAM:1"), kernels, resources);
  CHECK(tied.device("w") == "/device:CPU:*");
  REQUIRE(tied.warnings.size() == 1);
  CHECK(tied.warnings[0] ==
        "[placement] node \"w\" requests \"/device:STREAM:1\", but some op "
        "that takes it has kernels for CPU only");
}

TEST_CASE("a home of one is the home of all of its group") {
  const devices::RegisteredKernels kernels;
  devices::ResourceManager resources;
  const Graph whole = with_slot("/device:STREAM:1");
  Program program =
      must(extract(whole, {}, {}, std::vector{whole.find("slot")}));
  Placement placement{std::vector<uint32_t>(program.graph.end_id(), 2)};
  must(claim_homes(program, infos(), placement, resources));
  Pinned pinned = pin(whole, kernels, resources);
  const std::string home = infos()[2].name.to_string();
  CHECK(pinned.device("slot") == home);
  CHECK(pinned.device("w") == home);
  CHECK(pinned.device("lone") == "");
  REQUIRE(pinned.warnings.size() == 1);
  CHECK(pinned.warnings[0].find("\"slot\", which some op takes together with "
                                "it, has been on ") != std::string::npos);
}
