// Program: what a signature runs, in a copy of its own.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace tagflow::graph {

// `then` fires after `first` has, or was skipped; where that is an Enter, after
// the loop that it enters is over. Unlike a control edge it says nothing of
// deadness: Note [Readers first] in graph/partition/readers_first.h.
struct Turn {
  Node* first = nullptr;
  Node* then = nullptr;
};

// The part of a graph that some fetches and targets need, given some feeds.
// Its nodes are numbered from 0 on: what is made of it costs by what it uses.
// Passes rewrite it; the graph that it comes from stays as it is. What it
// computes is said by these endpoints and nodes, which passes keep true, and
// not by names. Movable: nodes stay where they are.
struct Program {
  std::string name;  // of a function's body; else empty
  Graph graph;
  // Of Placeholders, in the order of the signature. Of null where another
  // partition of the signature has it; so with fetches.
  std::vector<Endpoint> feeds;
  std::vector<Endpoint> fetches;
  std::vector<Node*> targets;
  // Of functions that run in frames of their own; a node `_Call` says which by
  // its attribute "body". Their feeds are the arguments, their fetches the
  // results. A body has none itself: its calls mean these.
  std::vector<std::unique_ptr<Program>> bodies;
  // Of a partition, once it is as it will run: no pass knows of them.
  std::vector<Turn> turns;
};

// Every fed tensor becomes the output of a Placeholder, which has the name of
// the fed node unless that is needed beside: a target that is fed still runs,
// but a Placeholder. InvalidArgument where a tensor is fed twice.
// Of `graph` it looks at what is needed only. It may be called by several
// threads at once while nobody changes the graph.
// REQUIRES: all are of `graph`, and none is inside a loop.
Result<Program> extract(const Graph& graph, std::span<const Endpoint> feeds,
                        std::span<const Endpoint> fetches,
                        std::span<Node* const> targets);

}  // namespace tagflow::graph
