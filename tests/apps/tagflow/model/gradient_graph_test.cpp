#include "apps/tagflow/model/gradient_graph.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "actors/session/session.h"
#include "graph/builder/builder.h"
#include "graph/file/graphdef.h"

namespace tagflow::apps {
namespace {

namespace ops = graph::ops;

// y = x w^3, and z, on which nothing depends.
graph::Graph make_cubic() {
  graph::Graph graph;
  const graph::Scope s(graph);
  const auto scalar = [&](const char* name) {
    return ops::placeholder(s.named(name), DataType::kDouble,
                            PartialShape::scalar());
  };
  const graph::Output x = scalar("x"), w = scalar("w");
  scalar("z");
  const graph::Output square = ops::mul(s, w, w);
  ops::mul(s.named("y"), ops::mul(s, square, w), x);
  REQUIRE(s.ok());
  return graph;
}

// Of x = 2, w = 3 and z = 5.
double value_of(const graph::Graph& graph, const std::string& fetch) {
  auto session = actors::Session::create({}).value();
  REQUIRE(session->extend(graph).ok());
  const auto results = session->run({{"x", Tensor::scalar(2.0)},
                                     {"w", Tensor::scalar(3.0)},
                                     {"z", Tensor::scalar(5.0)}},
                                    {fetch});
  REQUIRE_MESSAGE(results.ok(), results.status().to_string());
  return (*results)[0].item<double>().value();
}

TEST_CASE("gradients are fetched by their names, in the order of the xs") {
  graph::Graph graph = make_cubic();
  const auto gradients = add_gradients(graph, {{"y"}, {"x:0", "w:0"}});
  REQUIRE_MESSAGE(gradients.ok(), gradients.status().to_string());
  REQUIRE(gradients->size() == 2);
  CHECK((*gradients)[0].output.name() == "grad_0:0");
  CHECK((*gradients)[0].is_connected);
  CHECK(value_of(graph, "grad_0:0") == 27);
  CHECK(value_of(graph, "grad_1:0") == 54);
}

TEST_CASE("order k differentiates the sum of order k - 1 by the same xs") {
  const std::vector<double> by_w = {54, 36, 12, 0, 0};
  for (size_t i = 0; i < by_w.size(); ++i) {
    CAPTURE(i);
    graph::Graph graph = make_cubic();
    const auto made = add_gradients(graph, {{"y"}, {"w"}, int(i) + 1, "d"});
    REQUIRE_MESSAGE(made.ok(), made.status().to_string());
    CHECK(value_of(graph, "d_0") == by_w[i]);
  }
  graph::Graph graph = make_cubic();
  REQUIRE(add_gradients(graph, {{"y"}, {"x", "w"}, 2}).ok());
  CHECK(value_of(graph, "grad_0") == 27);       // of w^3 + 3 x w^2
  CHECK(value_of(graph, "grad_1") == 27 + 36);  // the same
}

TEST_CASE("gradients stop at the limit of nodes, within an order too") {
  size_t first = 0, second = 0;
  for (const int order : {1, 2}) {
    graph::Graph graph = make_cubic();
    REQUIRE(add_gradients(graph, {{"y"}, {"w"}, order}).ok());
    (order == 1 ? first : second) = graph.size();
  }
  REQUIRE(second > first + 4);
  const auto refusal = [](int order, size_t most, size_t& size) {
    graph::Graph graph = make_cubic();
    const Status status = add_gradients(graph, {{"y"}, {"w"}, order}, nullptr,
                                        {.max_nodes = most})
                              .status();
    size = graph.size();
    CHECK(status.code() == Code::kResourceExhausted);
    return std::string(status.message());
  };
  size_t size = 0;
  std::string text = refusal(1, first - 3, size);
  CAPTURE(text);
  CHECK(text.ends_with(
      fmt::format("is one more than the limit of {} nodes", first - 3)));
  CHECK(size == first - 3);
  // The first order has room.
  text = refusal(2, second - 3, size);
  CHECK(text.starts_with("order 2: "));
  CHECK(size == second - 3);
}

TEST_CASE("gradients inline functions within the limit of nodes") {
  const auto made = [](size_t most, graph::Graph& graph) {
    graph = graph::read_graphdef_text(R"(
      node { name: "x" op: "Placeholder"
        attr { key: "dtype" value { type: DT_FLOAT } } }
      node { name: "y" op: "f" input: "x" }
      library {
        function {
          signature { name: "f" input_arg { name: "a" type: DT_FLOAT }
            output_arg { name: "r" type: DT_FLOAT } }
          node_def { name: "p" op: "g" input: "a" }
          node_def { name: "q" op: "g" input: "p:r:0" }
          ret { key: "r" value: "q:r:0" } }
        function {
          signature { name: "g" input_arg { name: "a" type: DT_FLOAT }
            output_arg { name: "r" type: DT_FLOAT } }
          node_def { name: "p" op: "Square" input: "a"
            attr { key: "T" value { type: DT_FLOAT } } }
          ret { key: "r" value: "p:y:0" } } })")
                .value();
    return add_gradients(graph, {{"y"}, {"x"}}, nullptr, {.max_nodes = most})
        .status();
  };
  graph::Graph graph;
  REQUIRE(made(1000, graph).ok());
  const size_t all = graph.size() + 3;  // with those of the functions
  CHECK(made(all, graph).ok());
  // The call becomes 3 + 2 + 2 nodes, which are counted.
  Status status = made(6, graph);
  CHECK(status.message().find("more than 3 nodes, the limit: f \"y\", which "
                              "calls \"f\", becomes 7") != std::string::npos);
  CHECK(graph.size() == 2);
  // More are needed around the bodies.
  status = made(14, graph);
  CHECK(status.message().find("the graph has more than 11 nodes, the limit") !=
        std::string::npos);
  CHECK(status.code() == Code::kResourceExhausted);
  CHECK(graph.size() == 2);
  for (size_t most = 15; most + 1 < all; ++most) {
    CAPTURE(most);
    status = made(most, graph);
    CHECK(status.code() == Code::kResourceExhausted);
    CHECK(graph.size() + 3 <= most);
  }
}

TEST_CASE("added gradients: one by an unconnected x is zeros, and it is said") {
  graph::Graph graph = make_cubic();
  const auto gradients = add_gradients(graph, {{"y"}, {"z", "x"}, 2});
  REQUIRE_MESSAGE(gradients.ok(), gradients.status().to_string());
  CHECK(!(*gradients)[0].is_connected);
  CHECK(!(*gradients)[1].is_connected);
  CHECK(value_of(graph, "grad_0") == 0);
  CHECK(value_of(graph, "grad_1") == 0);
}

TEST_CASE("added gradients: a taken name is an error that adds nothing") {
  graph::Graph graph = make_cubic();
  REQUIRE(add_gradients(graph, {{"y"}, {"x"}}).ok());
  const size_t nodes = graph.size();
  const Status taken = add_gradients(graph, {{"y"}, {"w"}}).status();
  CHECK(taken.code() == Code::kAlreadyExists);
  CHECK(taken.message() ==
        "[gradients] the graph already has a node \"grad_0\", the name of the "
        "gradient by \"w\"");
  CHECK(graph.size() == nodes);
  CHECK(add_gradients(graph, {{"y"}, {"w"}, 1, "more"}).ok());
}

TEST_CASE("added gradients: a tensor that does not exist is named") {
  graph::Graph graph = make_cubic();
  CHECK(add_gradients(graph, {{"y"}, {"xx"}})
            .status()
            .to_string()
            .starts_with("NotFound: [gradients] [graph] no node \"xx\""));
  CHECK(find_outputs(graph, {"x", "y:1"}, "[--y] ")
            .status()
            .message()
            .starts_with("[--y] "));
}

}  // namespace
}  // namespace tagflow::apps
