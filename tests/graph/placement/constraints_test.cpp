#include "graph/placement/constraints.h"

#include <doctest/doctest.h>

#include <map>

#include "graph/analysis/validate.h"
#include "graph/passes/passes.h"
#include "graph/placement/colocation.h"
#include "tests/graph/functions/lowered.h"
#include "tests/graph/placement/check_placement.h"
#include "tests/graph/placement/random_program.h"

using namespace tagflow;
using namespace tagflow::graph;
using namespace tagflow::graph::testing;

namespace {

// A program, and what becomes of its constraints on two CPUs and a STREAM.
struct Resolving {
  Program program;
  Kernels kernels = Kernels::on_both({"Const", "Identity", "Neg"});
  std::vector<DeviceInfo> devices = make_devices(2, 1);
  bool soft = false;

  Node* put(std::string name, std::string_view op, std::string device = "",
            std::vector<Endpoint> inputs = {}, const std::string& label = "") {
    AttrMap attrs;
    if (!label.empty())
      attrs["_class"] = std::vector<std::string>{"loc:@" + label};
    return on(program.graph,
              add(program.graph, std::move(name), op, std::move(inputs), attrs),
              std::move(device));
  }
  Node* number(std::string name, std::string device = "") {
    return on(program.graph,
              constant(program.graph, std::move(name), Tensor::scalar(1.0f)),
              std::move(device));
  }
  Result<std::vector<std::string>> resolve() {
    return resolve_constraints(program, devices, kernels, soft);
  }
  // "/cpu:1 loc:@a": what the node asks for afterwards.
  static std::string asks(const Node* node) {
    std::string text = node->device();
    if (node->attrs().contains("_class"))
      for (const std::string& label :
           must(node->attr<std::vector<std::string>>("_class")))
        text += (text.empty() ? "" : " ") + label;
    return text;
  }
};

}  // namespace

TEST_CASE("a program without constraints is left as it is") {
  Resolving r;
  r.number("a");
  CHECK(must(r.resolve()).empty());
  CHECK(r.kernels.questions == 0);
}

TEST_CASE("constraints: a class has one label, and all that its members ask") {
  Resolving r;
  Node* a = r.number("a");
  Node* b = r.put("b", "Neg", "/device:*:1", {{a, 0}}, "a");
  Node* c = r.put("c", "Neg", "", {{a, 0}}, "b");
  Node* d = r.put("d", "Neg", "/cpu:*", {{a, 0}}, "gone");
  Node* e = r.put("e", "Neg", "/device:CPU:1", {{a, 0}}, "gone");
  Node* f = r.put("f", "Neg", "/cpu:0", {{a, 0}});
  must(r.resolve());
  for (Node* node : {a, b, c}) CHECK(r.asks(node) == "/device:*:1 loc:@a");
  CHECK(r.asks(d) == "/device:CPU:1 loc:@d");
  CHECK(r.asks(e) == "/device:CPU:1 loc:@d");
  CHECK(r.asks(f) == "/cpu:0");
}

TEST_CASE("a member of a class that asks for less takes nothing back") {
  // The vague ones come last, and first.
  for (const bool vague_first : {false, true}) {
    Resolving r;
    Node* a = r.number("a");
    std::vector<std::string> asked = {"/job:localhost/device:CPU:1", "/cpu:*",
                                      "/job:localhost", "/device:*:1", ""};
    if (vague_first) std::ranges::reverse(asked);
    std::vector<Node*> members;
    for (size_t i = 0; i < asked.size(); ++i)
      members.push_back(
          r.put(fmt::format("m{}", i), "Neg", asked[i], {{a, 0}}, "x"));
    must(r.resolve());
    for (Node* node : members) {
      CAPTURE(node->name());
      CHECK(must(DeviceName::parse(node->device())) ==
            must(DeviceName::parse("/job:localhost/device:CPU:1")));
      CHECK(r.asks(node).ends_with(" loc:@m0"));
    }
  }
}

TEST_CASE("constraints: those that no longer count are removed") {
  Resolving r;
  Node* a = r.number("a", "/job:localhost");  // which all are
  Node* text =
      on(r.program.graph,
         constant(r.program.graph, "text", Tensor::scalar(std::string())),
         "/stream:0");
  must(r.resolve());
  CHECK(r.asks(a).empty());
  CHECK(r.asks(text).empty());

  Resolving soft;
  soft.soft = true;
  Node* b = soft.number("b", "/gpu:0");
  Node* c = soft.put("c", "Neg", "/cpu:0", {{b, 0}}, "x");
  Node* d = soft.put("d", "Neg", "/cpu:1", {{b, 0}}, "x");
  CHECK(must(soft.resolve()).size() == 2);
  CHECK(soft.asks(b) == "/device:CPU:*");
  CHECK(soft.asks(c) == "/cpu:0 loc:@c");
  CHECK(soft.asks(d) == "/device:CPU:0 loc:@c");
  // So there is nothing left to warn of.
  CHECK(must(soft.resolve()).empty());
}

TEST_CASE("constraints: on one device those that can be met are removed") {
  Resolving r;
  r.devices = make_devices(1);
  Node* a = r.number("a", "/cpu:0");
  Node* b = r.put("b", "Neg", "", {{a, 0}}, "a");
  must(r.resolve());
  CHECK(r.asks(a).empty());
  CHECK(r.asks(b).empty());
  on(r.program.graph, a, "/cpu:1");
  CHECK(message_of(r.resolve().status(), Code::kInvalidArgument)
            .starts_with("[placement] node \"a\" asks for \"/cpu:1\", and "
                         "there is no such device"));
}

TEST_CASE("constraints: a host's node loses the class of an accelerator") {
  Resolving r;
  Node* a = r.number("a");
  Node* neg = r.put("neg", "Neg", "/stream:0", {{a, 0}});
  Node* text = constant(r.program.graph, "text", Tensor::scalar(std::string()));
  r.program.graph.set_attr(text, "_class",
                           std::vector<std::string>{"loc:@neg"});
  must(r.resolve());
  CHECK(r.asks(neg) == "/stream:0 loc:@neg");
  CHECK(r.asks(text).empty());
}

TEST_CASE("the nodes of a function's body all have its device") {
  Lowered l;
  FunctionDef again =
      function("again", {"n: float"}, {"r: float"},
               {body_node("neg", "Neg", {"n"}, {{"T", DataType::kFloat}}),
                body_node("call", "again", {"neg:y:0"})},
               {{"r", "call:r:0"}});
  again.nodes[0].device = "/cpu:1";
  again.nodes[0].attrs["_class"] = std::vector<std::string>{"loc:@n"};
  l.define(std::move(again));
  l.expect_lowered({testing::placeholder("x", DataType::kFloat),
                    body_node("y", "again", {"x"})},
                   "y");
  REQUIRE(l.program.bodies.size() == 1);
  const Kernels kernels;
  must(resolve_constraints(l.program, make_devices(2), kernels));
  for (const Node* node : l.program.bodies[0]->graph.nodes()) {
    CAPTURE(node->name());
    CHECK(DeviceName::parse(node->device()).value() ==
          DeviceName::parse("/cpu:1").value());
    CHECK(!Resolving::asks(node).ends_with("n"));
  }
}

TEST_CASE("constraints: a class stays together when passes remove nodes") {
  // "anchor" is folded away, and with it all that ties a to b.
  Resolving r;
  Node* x =
      add(r.program.graph, "x", "Placeholder", {},
          {{"dtype", DataType::kFloat}, {"shape", PartialShape::scalar()}});
  Node* one = r.number("one");
  Node* anchor = r.put("anchor", "Identity", "/device:*:1", {{one, 0}}, "b");
  Node* a = r.put("a", "Neg", "", {{x, 0}}, "anchor");
  Node* b = r.put("b", "Tanh", "", {{x, 0}});
  Node* sum = r.put("sum", "Identity", "", {{anchor, 0}});
  r.program.feeds = {{x, 0}};
  r.program.fetches = {{a, 0}, {b, 0}, {sum, 0}};
  must(r.resolve());
  must(optimize(r.program, PassSet(), {}));
  CHECK(r.program.graph.find("anchor") == nullptr);
  const Colocation groups =
      must(Colocation::build(r.program, r.devices, r.kernels));
  CHECK(groups.group_of(*a) == groups.group_of(*b));
  REQUIRE(groups.devices_of(groups.group_of(*a)).size() == 1);
  CHECK(groups.devices_of(groups.group_of(*a))[0] == 1);
}

TEST_CASE("random programs: nodes may be where they might, passes or not") {
  const auto label_of = [](const Node* node) {
    const std::string text = Resolving::asks(node);
    return text.substr(std::min(text.find("loc:@"), text.size()));
  };
  size_t removed = 0;
  for (uint32_t seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    Program program = RandomProgram(seed).make(150, true);
    for (Node* node : program.graph.nodes())
      if (node->is_exit() || node->op() == "MatMul")
        program.targets.push_back(node);
    const Kernels kernels = Kernels::on_both({"MatMul", "AddV2", "Identity"});
    const auto devices = make_devices(3, 1);
    Program plain = whole(program.graph.clone());
    const Result<Colocation> before =
        Colocation::build(plain, devices, kernels);
    const auto resolved = resolve_constraints(program, devices, kernels);
    // Both refuse what the other refuses.
    REQUIRE(resolved.ok() == before.ok());
    if (!before.ok()) {
      CHECK(resolved.status().message() == before.status().message());
      continue;
    }
    // Nothing is lost by writing it down: sets and groups are the same.
    const Colocation after = must(Colocation::build(program, devices, kernels));
    CHECK(after.size() == before->size());
    for (const Node* node : program.graph.nodes()) {
      const auto was = before->devices_of(before->group_of(*node));
      const auto is = after.devices_of(after.group_of(*node));
      CHECK(std::vector(was.begin(), was.end()) ==
            std::vector(is.begin(), is.end()));
    }
    std::map<NodeId, DeviceName> asked;
    std::map<NodeId, std::string> labels;
    for (const Node* node : program.graph.nodes()) {
      asked[node->id()] = must(DeviceName::parse(node->device()));
      labels[node->id()] = label_of(node);
    }
    must(optimize(program, PassSet(), {}));
    must(validate(program.graph));
    const Colocation optimized =
        must(Colocation::build(program, devices, kernels));
    std::map<std::string, uint32_t> groups;
    for (const Node* node : program.graph.nodes()) {
      const uint32_t group = optimized.group_of(*node);
      if (const std::string label = label_of(node); !label.empty())
        CHECK(groups.emplace(label, group).first->second == group);
      const auto known = asked.find(node->id());
      if (known == asked.end()) continue;  // a pass has made it
      CHECK(label_of(node) == labels.at(node->id()));
      for (const uint32_t device : optimized.devices_of(group))
        CHECK(known->second.matches(devices[device].name));
    }
    removed +=
        plain.graph.size() - std::min(plain.graph.size(), program.graph.size());
  }
  CHECK(removed > 0);
}
