// A listing of the compiled plans of a signature: plain data.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "actors/plan/plan.h"

namespace tagflow::apps::stepper {

// Where the tokens of an output go: Notes [Arrivals] and [Compiled edges] in
// actors/plan/plan.h.
struct ListedEdge {
  static constexpr int kControlPort = -1;

  int port = 0;           // the output
  std::string_view kind;  // "input", "control", "next", ...
  // The node. Of "next", "enter" and "exit" the NextIteration, Enter or Exit
  // that was compiled into the edge; "" of "fetch".
  std::string to;
  int index = 0;  // of the node's input, or the fetch
};

// The number of inputs that a node waits for. "steady": once all loop constants
// of a frame have arrived, nodes do not wait for them any more.
struct ListedWaits {
  uint32_t first = 0;  // in iteration 0
  uint32_t later = 0;
  uint32_t steady_first = 0;
  uint32_t steady_later = 0;
  bool operator==(const ListedWaits&) const = default;
};

struct ListedNode {
  std::string name;
  std::string op;
  std::string_view kind;  // "kernel", "switch", ...
  ListedWaits waits;
  // Inputs that are constants of the plan: which, and "int32[2]".
  std::vector<std::pair<int, std::string>> constants;
  std::vector<ListedEdge> edges;
};

// What enters an iteration from outside it.
struct ListedArrival {
  std::string name;
  bool is_constant = false;  // of a loop
  std::vector<ListedEdge> edges;
};

struct ListedFrame {
  std::string name;      // "root" of the root
  std::string parent;    // of a loop's frame; "" of others
  bool is_body = false;  // of a function
  int parallel_iterations = 1;
  uint32_t num_enters = 0;  // that each instance waits for
  std::vector<ListedArrival> arrivals;
  std::vector<ListedNode> nodes;
};

struct ListedPlan {
  std::string device;
  std::vector<ListedFrame> frames;
};

using PlanListing = std::vector<ListedPlan>;

PlanListing list_plans(std::span<const std::unique_ptr<actors::Plan>> plans);

// Lines of text: each frame with its arrivals and nodes, and below each of
// these the targets of its tokens.
std::string to_text(const PlanListing& listing);

}  // namespace tagflow::apps::stepper
