// Compares programs, all but the ids of nodes.
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "graph/program.h"

namespace tagflow::graph::testing {

// The order edges as text, "first < then".
inline std::vector<std::string> order_of(const Program& program) {
  std::vector<std::string> edges;
  for (const OrderEdge& edge : program.order_edges)
    edges.push_back(edge.first->name() + " < " + edge.then->name());
  return edges;
}

// Names of these outputs and nodes; "" for none.
inline std::vector<std::string> names_of(const std::vector<Endpoint>& ends) {
  std::vector<std::string> names;
  for (const Endpoint& end : ends)
    names.push_back(end.node == nullptr ? "" : end.to_string());
  return names;
}
inline std::vector<std::string> names_of(const std::vector<Node*>& nodes) {
  std::vector<std::string> names;
  for (const Node* node : nodes) names.push_back(node->name());
  return names;
}

inline void check_same(const Program& a, const Program& b) {
  CHECK(a.name == b.name);
  REQUIRE(a.graph.size() == b.graph.size());
  for (size_t i = 0; i < a.graph.size(); ++i) {
    const Node& one = *a.graph.nodes()[i];
    const Node& other = *b.graph.nodes()[i];
    CAPTURE(one.name());
    CHECK(Graph::to_def(one) == Graph::to_def(other));
    REQUIRE(one.num_outputs() == other.num_outputs());
    for (int port = 0; port < one.num_outputs(); ++port) {
      CHECK(one.output_dtypes()[size_t(port)] ==
            other.output_dtypes()[size_t(port)]);
      CHECK(one.output_shape(port) == other.output_shape(port));
    }
  }
  CHECK(names_of(a.feeds) == names_of(b.feeds));
  CHECK(names_of(a.fetches) == names_of(b.fetches));
  CHECK(names_of(a.targets) == names_of(b.targets));
  CHECK(order_of(a) == order_of(b));
  REQUIRE(a.bodies.size() == b.bodies.size());
  for (size_t i = 0; i < a.bodies.size(); ++i)
    check_same(*a.bodies[i], *b.bodies[i]);
}

}  // namespace tagflow::graph::testing
