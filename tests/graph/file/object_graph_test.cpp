#include "graph/file/object_graph.h"

#include "tests/graph/pbtxt.h"

namespace tagflow::graph {
namespace {

using namespace pbtxt;

// "v", which a call of "read" captures.
Graph capturing() {
  auto graph = read_graphdef_text(
      node("v", "VarHandleOp",
           type("dtype", "DT_FLOAT") + attr("shape", "shape {}")) +
      node("call", "StatefulPartitionedCall",
           in("v") + attr("f", "func { name: 'read' }") +
               attr("Tin", "list { type: DT_RESOURCE }") +
               attr("Tout", "list { type: DT_FLOAT }")) +
      R"(library { function {
        signature { name: 'read'
          input_arg { name: 'a' type: DT_RESOURCE }
          output_arg { name: 'y' type: DT_FLOAT } }
        node_def { name: 'it' op: 'ReadVariableOp' input: 'a'
          attr { key: 'dtype' value { type: DT_FLOAT } } }
        ret { key: 'y' value: 'it:value:0' } } })");
  INFO(graph.status().to_string());
  REQUIRE(graph.ok());
  return std::move(graph).value();
}

// Each object has the next one by that name; the last is the variable.
ObjectGraph chain(int count, const std::string& name) {
  ObjectGraph model;
  model.objects.resize(size_t(count));
  for (int i = 1; i < count; ++i)
    model.objects[size_t(i - 1)].children.emplace_back(name, i);
  model.objects.back().is_variable = true;
  model.captures["read"] = {count - 1};
  return model;
}

TEST_CASE("a saved model's variables have bounded paths of captures") {
  const Graph graph = capturing();
  auto variables = captured_variables(graph, chain(3, "a.b/c"), {});
  REQUIRE(variables.ok());
  REQUIRE(variables->size() == 1);
  CHECK((*variables)[0].path == "a..b.Sc/a..b.Sc");
  // All of their paths would take 1 TiB.
  constexpr int kMany = 1'000'000;
  variables = captured_variables(graph, chain(kMany, "a"), {});
  REQUIRE(variables.ok());
  CHECK((*variables)[0].path.size() == 2 * kMany - 3);
  variables =
      captured_variables(graph, chain(50, std::string(1 << 20, 'x')), {});
  CHECK(variables.status().to_string() ==
        "ResourceExhausted: [objects] the paths of the variables have more "
        "than 67108864 bytes");
}

TEST_CASE("many objects that are one object of a checkpoint are soon found") {
  constexpr int kMany = 200'000;
  ObjectGraph checkpoint;
  checkpoint.objects.resize(1);
  checkpoint.objects[0].children.assign(kMany, {"b", 0});
  checkpoint.objects[0].children.emplace_back("a", 0);
  CHECK(same_objects(chain(kMany, "a"), checkpoint) ==
        std::vector<int>(kMany, 0));
}

TEST_CASE("more objects than nodes may be are refused before they are read") {
  std::string bytes;
  for (int i = 0; i < 1 << 20; ++i) bytes += std::string("\x0a\x00", 2);
  CHECK(parse_checkpoint_objects(bytes)->objects.size() == 1 << 20);
  bytes += std::string("\x0a\x02\x0a\x00", 4);
  CHECK(parse_checkpoint_objects(bytes).status().to_string() ==
        "ResourceExhausted: [graphdef] there are 1048578 objects and "
        "references to them, the limit is 1048576");
}

}  // namespace
}  // namespace tagflow::graph
