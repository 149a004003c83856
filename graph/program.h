// Program: the nodes that a signature runs, in a separate copy.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace tagflow::graph {

// `then` fires after `first` has fired or was skipped; if `first` is an Enter,
// after the loop that it enters has ended. Unlike a control edge, it does not
// transmit deadness: Note [Readers first] in graph/partition/readers_first.h.
struct OrderEdge {
  Node* first = nullptr;
  Node* then = nullptr;
};

// The part of a graph that is needed for some fetches and targets, given some
// feeds. Its nodes are numbered from 0, so tables are as small as the program.
// Passes rewrite it; the original graph is unchanged. These endpoints and
// nodes, not names, define what it computes, and passes keep them up to date.
// Movable: nodes keep their addresses.
struct Program {
  std::string name;  // of a function's body; otherwise empty
  // Once the functions are lowered, its library has those that kernels call.
  // That of a body is empty: its kernels call those of the program.
  Graph graph;
  // Outputs of Placeholders, in the order of the signature. The node is null if
  // it is in another partition of the signature; the same holds for fetches.
  std::vector<Endpoint> feeds;
  std::vector<Endpoint> fetches;
  std::vector<Node*> targets;
  // Bodies of functions that run in frames of their own; the attribute "body"
  // of a `_Call` node is an index here. Feeds are the arguments, fetches the
  // results. A body's own list is empty: its calls refer to this one.
  std::vector<std::unique_ptr<Program>> bodies;
  // Set for a finished partition; passes do not handle them.
  std::vector<OrderEdge> order_edges;
};

}  // namespace tagflow::graph
