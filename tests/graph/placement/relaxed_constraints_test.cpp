#include "graph/placement/relaxed_constraints.h"

#include "tests/graph/placement/placing.h"

using namespace tagflow;
using namespace tagflow::graph;
using namespace tagflow::graph::testing;

TEST_CASE("soft placement goes to a CPU if a constraint cannot be met") {
  Placing placing;
  placing.options.soft = true;
  Node* a = placing.matrix("a", "/gpu:0");
  Node* b = placing.put("b", "Neg", "/stream:0", {{a, 0}});
  placing.kernels.types["Tanh"] = {"STREAM"};
  Node* c = placing.put("c", "Tanh", "/cpu:0", {{a, 0}});
  const Colocation groups = must(placing.build());
  const auto devices_of = [&](Node* node) {
    return indices(groups.devices_of(groups.group_of(*node)));
  };
  CHECK(devices_of(a) == "0 1");
  CHECK(devices_of(b) == "0 1");
  CHECK(devices_of(c) == "2");
  CHECK(groups.constraint_of(*a) == "/device:CPU:*");
  CHECK(groups.constraint_of(*c).empty());
  CHECK(groups.warnings() ==
        std::vector<std::string>{
            "node \"a\" asks for \"/gpu:0\", which does not exist, and is "
            "placed on a CPU",
            "node \"b\" asks for \"/stream:0\", where Neg cannot run (it has "
            "kernels for CPU), and is placed on a CPU",
            "node \"c\" asks for \"/cpu:0\", where Tanh cannot run (it has "
            "kernels for STREAM), and is placed where there is a kernel"});
}

TEST_CASE("under soft placement colocation wins over a device") {
  Placing placing;
  placing.options.soft = true;
  Node* a = placing.put("a", "NoOp", "/cpu:0", {}, with("x"));
  Node* b = placing.put("b", "NoOp", "/cpu:1", {}, with("x"));
  const Colocation groups = must(placing.build());
  CHECK(indices(groups.devices_of(groups.group_of(*b))) == "0");
  CHECK(groups.is_constrained(*a));
  CHECK_FALSE(groups.is_constrained(*b));
  CHECK(groups.warnings() ==
        std::vector<std::string>{
            "node \"b\" asks for \"/cpu:1\", which gives way to a node on the "
            "same device: \"a\" asks for \"/cpu:0\""});
}

TEST_CASE("soft placement does not join nodes that cannot be together") {
  Placing placing;
  placing.options.soft = true;
  placing.kernels.types["Neg"] = {"STREAM"};
  Node* a = placing.matrix("a");
  placing.put("b", "Neg", "", {{a, 0}}, with("c"));
  placing.put("c", "Tanh", "", {{a, 0}});
  CHECK(placing.error() ==
        "[placement] nodes \"b\" and \"c\" must be on one device, and none "
        "is possible: \"b\" (op Neg) has kernels for STREAM; \"c\" (op Tanh) "
        "has kernels for CPU; they are together because \"b\" has the class "
        "\"loc:@c\"");
}

TEST_CASE("soft placement: a constraint that gave way counts no longer") {
  Placing placing;
  placing.options.soft = true;
  placing.kernels.types["Neg"] = {"STREAM"};
  Node* a = placing.matrix("a");
  Node* b = placing.put("b", "NoOp", "/cpu:0", {}, with("x"));
  placing.put("c", "Neg", "", {{a, 0}}, with("x"));
  placing.put("d", "NoOp", "/gpu:7", {}, with("x"));
  const Colocation groups = must(placing.build());
  CHECK(indices(groups.devices_of(groups.group_of(*b))) == "2");
  REQUIRE(groups.warnings().size() == 2);
  const std::string reason =
      ", which gives way to a node on the same device: \"c\" (op Neg) has "
      "kernels for STREAM";
  CHECK(groups.warnings()[0] == "node \"b\" asks for \"/cpu:0\"" + reason);
  CHECK(groups.warnings()[1] == "node \"d\" asks for \"/gpu:7\"" + reason);
}

TEST_CASE("a device that there is not gives way to one that there is") {
  for (const bool is_first : {false, true}) {
    Placing placing;
    placing.options.soft = true;
    if (is_first) placing.put("a", "NoOp", "/gpu:0", {}, with("x"));
    Node* b = placing.put("b", "NoOp", "/device:STREAM:0", {}, with("x"));
    if (!is_first) placing.put("a", "NoOp", "/gpu:0", {}, with("x"));
    const Colocation groups = must(placing.build());
    CHECK(indices(groups.devices_of(groups.group_of(*b))) == "2");
    REQUIRE(groups.warnings().size() == 1);
    CHECK(groups.warnings()[0].starts_with(
        "node \"a\" asks for \"/gpu:0\", which gives way to a node on the "
        "same device: \"b\" asks for \"/device:STREAM:0\""));
    CHECK(groups.constraint_of(*placing.graph.find("a")) == "");
  }
}

TEST_CASE("nodes that give way for the same reason share a warning") {
  const auto warnings_of = [](int nodes) {
    Placing placing;
    placing.options.soft = true;
    for (int i = 0; i < nodes; ++i)
      placing.put(fmt::format("n{}", i), "NoOp", "/gpu:0");
    return must(placing.build()).warnings();
  };
  const std::string tail =
      " ask for \"/gpu:0\", which does not exist, and are placed on a CPU";
  const auto only = [](std::string text) { return std::vector{text}; };
  CHECK(warnings_of(2) == only("nodes \"n0\" and \"n1\"" + tail));
  CHECK(warnings_of(3) == only("nodes \"n0\", \"n1\" and \"n2\"" + tail));
  CHECK(warnings_of(150) ==
        only("nodes \"n0\", \"n1\", \"n2\" and 147 more" + tail));
}

TEST_CASE("soft placement: the first of very many warnings are given") {
  Placing placing;
  placing.options.soft = true;
  for (int i = 0; i < 150; ++i)
    placing.put(fmt::format("n{}", i), "NoOp", fmt::format("/gpu:{}", i));
  const Colocation groups = must(placing.build());
  REQUIRE(groups.warnings().size() == 101);
  CHECK(groups.warnings()[99].starts_with("node \"n99\" asks"));
  CHECK(groups.warnings()[100] == "the constraints of 50 more nodes gave way");
}
