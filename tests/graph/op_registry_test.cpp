#include "graph/op_registry.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <string>
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
  for (const std::string name : {"", "A b", "A\n", "\xff", "-a", "A:0"}) {
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

TEST_CASE("an op with a malformed text is refused with the op and the text") {
  OpRegistry registry;
  const auto refusal = [&](OpDefBuilder builder) {
    return registry.add(builder.build()).to_string();
  };
  const std::string start = "InvalidArgument: [ops] op Bad: malformed ";
  CHECK(refusal(OpDefBuilder("Bad").input("x float")) ==
        start + "\"x float\": \":\" is missing");
  CHECK(refusal(OpDefBuilder("Bad").output("y: flaot")) ==
        start + "\"y: flaot\": \"flaot\" is neither a type nor an attribute");
  CHECK(refusal(OpDefBuilder("Bad").attr("n: integer")) ==
        start + "\"n: integer\": \"integer\" is not an attribute type");
  // The parser does not wait for the end of a list that is broken.
  CHECK(refusal(OpDefBuilder("Bad").attr("n: list(int) = [1, x")) ==
        start + "\"n: list(int) = [1, x\": \"x\" is not a number");
  CHECK(refusal(OpDefBuilder("Bad").changes_input(0)) ==
        start + "\"changes_input\": there is no such input");
  CHECK(refusal(OpDefBuilder("Bad").attr("\xff: int")).starts_with(start));
  CHECK(registry.names().empty());
}

TEST_CASE("a malformed op of an op library does not end the process") {
  // As an op library may add it, whose loader converts exceptions.
  OpRegistry& registry = OpRegistry::global();
  CHECK_THROWS_WITH_AS(registry.add(OpDefBuilder("TestBad").input("x")),
                       "InvalidArgument: [ops] op TestBad: malformed \"x\": "
                       "\":\" is missing",
                       std::invalid_argument);
  CHECK(registry.find_or_null("TestBad") == nullptr);
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
  CHECK(advice("LMDBDataset").find("LMDBReader does") != std::string::npos);
  CHECK(advice("TensorArrayWriteV2").find("TensorArrayV3 and related ops") !=
        std::string::npos);
  CHECK(advice("GeneratorDataset").find("calls Python code") !=
        std::string::npos);
  CHECK(advice("CSVDatasetV2").find("DecodeCSV read") != std::string::npos);
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
