#include "graph/analysis/prune.h"

#include <doctest/doctest.h>

#include "tests/graph/hand_made.h"

using namespace tagflow;
using namespace tagflow::graph;
using namespace tagflow::graph::testing;

namespace {

// The names of the nodes needed, in the order of the graph.
std::string needed(const Graph& graph, std::vector<Endpoint> fetches,
                   std::vector<Node*> targets = {},
                   std::vector<Endpoint> feeds = {}) {
  const NodeSet set = prune(graph, fetches, targets, feeds);
  std::string text;
  size_t count = 0;
  for (const Node* node : graph.nodes()) {
    if (!set.contains(*node)) continue;
    text += (text.empty() ? "" : " ") + node->name();
    ++count;
  }
  CHECK(set.size() == count);
  return text;
}

}  // namespace

TEST_CASE("a fetch needs its inputs and theirs, and nothing else") {
  Graph graph;
  Node* a = constant(graph, "a", Tensor::scalar(1));
  Node* b = add(graph, "b", "Identity", {{a, 0}});
  Node* c = add(graph, "c", "NoOp");
  Node* d = add(graph, "d", "Identity", {{b, 0}}, {}, {c});
  add(graph, "e", "Identity", {{d, 0}});
  CHECK(needed(graph, {{b, 0}}) == "a b");
  CHECK(needed(graph, {{d, 0}}) == "a b c d");
  CHECK(needed(graph, {}, {c}) == "c");
  CHECK(needed(graph, {{a, 0}}, {c}) == "a c");
  CHECK(needed(graph, {}).empty());
}

TEST_CASE("pruning: nodes that a feed replaces are not needed") {
  Graph graph;
  Node* a = constant(graph, "a", Tensor::scalar(1));
  Node* p = constant(graph, "p", Tensor::scalar(true));
  Node* s = add(graph, "s", "Switch", {{a, 0}, {p, 0}});
  Node* x = add(graph, "x", "AddV2", {{s, 0}, {s, 1}});
  CHECK(needed(graph, {{x, 0}}, {}, {{s, 0}, {s, 1}}) == "x");
  CHECK(needed(graph, {{x, 0}}, {}, {{s, 0}}) == "a p s x");
  CHECK(needed(graph, {{s, 0}}, {}, {{s, 0}}).empty());
  // A target runs although what it gives is fed.
  CHECK(needed(graph, {}, {s}, {{s, 0}, {s, 1}}) == "a p s");
}

TEST_CASE("a control edge from a fed node runs it, but for placeholders") {
  Graph graph;
  Node* a = constant(graph, "a", Tensor::scalar(1));
  Node* p = add(graph, "p", "Placeholder", {}, {{"dtype", DataType::kFloat}});
  Node* x = add(graph, "x", "NoOp", {}, {}, {a, p});
  CHECK(needed(graph, {}, {x}, {{a, 0}, {p, 0}}) == "a x");
  CHECK(needed(graph, {}, {x}) == "a p x");
}

TEST_CASE("a fetch of a loop needs the loop, through its back edge") {
  Graph graph;
  Node* start = constant(graph, "start", Tensor::scalar(0));
  Node* limit = constant(graph, "limit", Tensor::scalar(9));
  const Counter c = counter(graph, "loop", {start, 0}, {limit, 0});
  add(graph, "unused", "Exit", {{c.branch, 0}});
  CHECK(needed(graph, {{c.exit, 0}}) ==
        "start limit loop/enter loop/limit loop/merge loop/less loop/cond "
        "loop/switch loop/body loop/one loop/add loop/next loop/exit");
}

TEST_CASE("a loop not yet closed can be pruned") {
  Graph graph;
  Node* a = constant(graph, "a", Tensor::scalar(1));
  Node* merge = add(graph, "merge", "Merge", {{a, 0}, {}});
  CHECK(needed(graph, {{merge, 0}}) == "a merge");
}

TEST_CASE("pruning: needed nodes are listed in order of insertion") {
  Graph graph;
  std::vector<Node*> nodes;
  for (int i = 0; i < 200; ++i)
    nodes.push_back(
        constant(graph, "c" + std::to_string(i), Tensor::scalar(i)));
  // A few of many, and most of them.
  const std::vector<Node*> few = {nodes[150], nodes[3], nodes[70]};
  CHECK(needed_nodes(graph, {}, few, {}) ==
        std::vector{nodes[3], nodes[70], nodes[150]});
  std::vector<Node*> most(nodes.rbegin(), nodes.rend() - 20);
  const std::vector<Node*> in_order(most.rbegin(), most.rend());
  CHECK(needed_nodes(graph, {}, most, {}) == in_order);
}

TEST_CASE("a paged table has pages only at entries that were set") {
  PagedTable<int> table;
  const PagedTable<int>& read = table;
  CHECK(read.at(1'000'000) == 0);
  CHECK(read.num_pages() == 0);
  table[1'000'000] = 7;
  table[3] = 5;
  CHECK(read.at(1'000'000) == 7);
  CHECK(read.at(3) == 5);
  CHECK(read.at(4) == 0);
  CHECK(read.at(2'000'000) == 0);
  CHECK(read.num_pages() == 2);
}
