#include "apps/tagflow/model/model.h"

#include <doctest/doctest.h>

#include "apps/shared/io/file.h"
#include "graph/builder/builder.h"
#include "tests/graph/hand_made_functions.h"
#include "tests/temp_path.h"

namespace tagflow::apps {
namespace {

namespace ops = graph::ops;
constexpr auto kInputs = &graph::Signature::inputs;
constexpr auto kOutputs = &graph::Signature::outputs;

// x -> call of "f" -> y, with the signature "main".
Model make_model() {
  Model model;
  REQUIRE(model.graph.library()
              .add(graph::function("f", {"n: int32"}, {"r: int32"}, {},
                                   {{"r", "n"}}))
              .ok());
  const std::vector<graph::NodeDef> nodes = {
      graph::body_node("main_x", "Placeholder", {},
                       {{"dtype", DataType::kInt32}}),
      graph::body_node("call", "PartitionedCall", {"main_x"},
                       graph::int_ports(1, 1, {{"f", graph::call_of("f")}})),
      graph::body_node("x", "Neg", {"call"}, {{"T", DataType::kInt32}})};
  REQUIRE(model.graph.extend(nodes).ok());
  model.signatures["main"] = {{{"x", "main_x:0"}},
                              {{"a/b", "call:0"}, {"lost", "gone:0"}}};
  return model;
}

std::string message_of(const Result<TensorName>& result) {
  return std::string(result.status().message());
}

}  // namespace

TEST_CASE("the signature is the one named, the default, or the only one") {
  Model model;
  CHECK(choose_signature(model, "").value() == nullptr);
  CHECK(choose_signature(model, "a").status().message() ==
        "[--signature] the file has no signatures; SavedModels and MetaGraphs "
        "have some");
  model.signatures["__saved_model_init_op"];
  CHECK(choose_signature(model, "").value() == nullptr);
  model.signatures["a"];
  CHECK(choose_signature(model, "").value()->first == "a");
  model.signatures["b"];
  CHECK(choose_signature(model, "").value() == nullptr);
  CHECK(choose_signature(model, "b").value()->first == "b");
  CHECK(choose_signature(model, "c").status().to_string() ==
        "NotFound: [--signature] the file has no signature \"c\"; it has "
        "\"a\", \"b\"");
  model.signatures["serving_default"];
  CHECK(choose_signature(model, "").value()->first == "serving_default");
}

TEST_CASE("a signature's names go before those of nodes") {
  const Model model = make_model();
  const NamedSignature* main = choose_signature(model, "main").value();
  const auto fed = find_tensor(model, main, kInputs, "x");
  REQUIRE(fed.ok());
  CHECK(fed->tensor == "main_x:0");
  CHECK(fed->name.label == "x");
  CHECK(fed->name.stem == "x");
  const auto fetched = find_tensor(model, main, kOutputs, "x");
  REQUIRE(fetched.ok());
  CHECK(fetched->tensor == "x:0");
  CHECK(fetched->name.stem == "x_0");
  const auto port = find_tensor(model, main, kInputs, "x:0");
  REQUIRE(port.ok());
  CHECK(port->tensor == "x:0");
  const auto slash = find_tensor(model, main, kOutputs, "a/b");
  REQUIRE(slash.ok());
  CHECK(slash->tensor == "call:0");
  CHECK(slash->name.stem == "a_b");
}

TEST_CASE("a name that nothing has is refused with those that there are") {
  const Model model = make_model();
  const NamedSignature* main = choose_signature(model, "main").value();
  CHECK(message_of(find_tensor(model, main, kInputs, "q")) ==
        "[graph] no node \"q\", did you mean \"x\"?; the inputs of signature "
        "\"main\" are x");
  CHECK(message_of(find_tensor(model, main, kOutputs, "quite")) ==
        "[graph] no node \"quite\"; the outputs of signature \"main\" are "
        "a/b, lost");
  CHECK(message_of(find_tensor(model, nullptr, kOutputs, "quite")) ==
        "[graph] no node \"quite\"; signatures define further names: select a "
        "signature with --signature, one of \"main\"");
  CHECK(message_of(find_tensor(model, main, kOutputs, "lost")) ==
        "output \"lost\" of signature \"main\": [graph] no node \"gone\"");
  CHECK(outputs_of(model, *main).status().message() ==
        "output \"lost\" of signature \"main\": [graph] no node \"gone\"");
}

TEST_CASE("a node inside of a function is known for what it is") {
  const Model model = make_model();
  const std::string why =
      "; PartitionedCall \"call\" calls f, and nodes inside a function can be "
      "neither fed nor fetched: use the inputs and outputs of \"call\", such "
      "as "
      "\"call:0\"";
  CHECK(explain_inner_name(model.graph, "call/n") == why);
  CHECK(explain_inner_name(model.graph, "call/a/b") == why);
  CHECK(explain_inner_name(model.graph, "x/n") == "");
  CHECK(explain_inner_name(model.graph, "other/n") == "");
  CHECK(message_of(find_tensor(model, nullptr, kOutputs, "call/n:0")) ==
        "[graph] no node \"call/n\"" + why);
}

TEST_CASE("a file's unknown ops are all named") {
  const auto path = testing::temp_path("model.pbtxt");
  REQUIRE(io::write_file(path,
                         "node { name: 'a' op: 'NoSuchOpAtAll' }\n"
                         "node { name: 'b' op: 'NorThisOneHere' }\n"
                         "node { name: 'c' op: 'NorThisOneHere' }")
              .ok());
  const auto model = load_model(path.string());
  std::filesystem::remove(path);
  CHECK(model.status().to_string() ==
        "Unimplemented: " + path.string() +
            ": [ops] unknown op \"NoSuchOpAtAll\" (node \"a\"); unknown op "
            "\"NorThisOneHere\" (node \"b\" and 1 more)");
}

TEST_CASE("the unknown ops of functions are named with those of the nodes") {
  const auto path = testing::temp_path("model.pbtxt");
  REQUIRE(io::write_file(path, R"(
      node { name: 'a' op: 'Identty' }
      library { function { signature { name: 'f' }
                           node_def { name: 'p' op: 'Nooopp' } }
                function { signature { name: 'g' }
                           node_def { name: 'q' op: 'Subb' } } })")
              .ok());
  const auto model = load_model(path.string());
  std::filesystem::remove(path);
  CHECK(model.status().message() ==
        path.string() +
            ": [ops] unknown op \"Identty\", did you mean \"Identity\"? (node "
            "\"a\"); unknown op \"Nooopp\" (node \"p\" of function \"f\"); "
            "unknown op \"Subb\", did you mean \"Sub\"? (node \"q\" of "
            "function \"g\")");
}

TEST_CASE("a model that is not there is NotFound") {
  CHECK(load_model("no/such.pb").status().code() == Code::kNotFound);
}

}  // namespace tagflow::apps
