#include "graph/op_registry.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <thread>

using namespace tagflow;
using namespace tagflow::graph;

TEST_CASE("a registered op is found by its name") {
  OpRegistry registry;
  registry.add(OpDefBuilder("Twist").input("x: float").output("y: float"));
  CHECK(registry.find_or_null("Twist")->inputs.size() == 1);
  CHECK(*registry.find("Twist") == registry.find_or_null("Twist"));
  CHECK(registry.find_or_null("twist") == nullptr);
}

TEST_CASE("an op's name can be taken once") {
  OpRegistry registry;
  CHECK(registry.add(OpDefBuilder("Twist").build()).ok());
  CHECK(registry.add(OpDefBuilder("Twist").build()).to_string() ==
        "AlreadyExists: [ops] op Twist is registered already");
  CHECK(registry.names() == std::vector<std::string>{"Twist"});
}

TEST_CASE("an op's names must be usable") {
  OpRegistry registry;
  for (const std::string name : {"", "A b", "A\n", "\xff", "-a"}) {
    OpDef def;
    def.name = name;
    CHECK(registry.add(std::move(def)).to_string() ==
          fmt::format("InvalidArgument: [ops] \"{}\" is not a valid name of an "
                      "op",
                      name));
  }
  const Status twice = registry.add(
      OpDefBuilder("Twice").input("x: int32").input("x: int32").build());
  CHECK(twice.to_string() == "InvalidArgument: [ops] op Twice has \"x\" twice");
}

TEST_CASE("an op of a program cannot be fusible") {
  const OpDef op = OpDefBuilder("TestFusible")
                       .input("x: T")
                       .output("y: T")
                       .attr("T: {float}")
                       .fusible()
                       .build();
  CHECK(OpRegistry::global().add(op).to_string() ==
        "InvalidArgument: [ops] op TestFusible cannot be fusible: only kernels "
        "of tagflow's own ops can be fused");
  CHECK(OpRegistry::global().find_or_null("TestFusible") == nullptr);
  CHECK(OpRegistry().add(op).ok());
}

TEST_CASE("an unknown op is unimplemented, with the nearest name") {
  OpRegistry registry;
  registry.add(OpDefBuilder("MatMul"));
  registry.add(OpDefBuilder("Relu"));
  CHECK(registry.find("Matmul").status().to_string() ==
        "Unimplemented: [ops] unknown op \"Matmul\", did you mean "
        "\"MatMul\"?");
  CHECK(registry.find("Convolution").status().message() ==
        "[ops] unknown op \"Convolution\"");
}

TEST_CASE("an op that TensorFlow has and we do not comes with advice") {
  const auto advice = [](std::string_view op) {
    return OpRegistry().find(op).status().to_string();
  };
  CHECK(advice("ParseExampleV2").find("readers") != std::string::npos);
  CHECK(advice("TensorArrayWriteV2").find("TensorArrayV3 and related ops") !=
        std::string::npos);
  CHECK(advice("RemoteCall").find("other machines") != std::string::npos);
  CHECK(advice("Iffy") == "Unimplemented: [ops] unknown op \"Iffy\"");
}

TEST_CASE("the nearest name is that of the fewest changes") {
  const std::vector<std::string> names = {"Add", "AddN", "AddV2", "Softmax"};
  CHECK(nearest_name("AddV3", names) == "AddV2");
  CHECK(nearest_name("add", names) == "Add");
  CHECK(nearest_name("SoftMax", names) == "Softmax");
  CHECK(nearest_name("Sotfmax", names) == "Softmax");
  CHECK(nearest_name("Addd", names) == "Add");
  CHECK(nearest_name("trian", {"train"}) == "train");
  CHECK(nearest_name("tairn", {"train"}).empty());
  CHECK(nearest_name("Zzz", names).empty());
  CHECK(nearest_name("", names).empty());
  CHECK(nearest_name("x", {}).empty());
  CHECK(nearest_name(std::string(100000, 'A'), names).empty());
}

TEST_CASE("the built-in ops are there, sorted") {
  const auto names = OpRegistry::global().names();
  CHECK(std::ranges::is_sorted(names));
  for (const char* name : {"Const", "Switch", "Merge", "Enter", "Exit",
                           "NextIteration", "LoopCond", "MatMul"})
    CHECK(OpRegistry::global().find_or_null(name) != nullptr);
}

TEST_CASE("ops are found while others are registered") {
  OpRegistry registry;
  registry.add(OpDefBuilder("First"));
  std::atomic<bool> done = false;
  std::thread reader([&] {
    while (!done) CHECK(registry.find_or_null("First") != nullptr);
  });
  for (int i = 0; i < 500; ++i)
    registry.add(OpDefBuilder("Op" + std::to_string(i)));
  done = true;
  reader.join();
  CHECK(registry.names().size() == 501);
}
