#include "apps/tagflow/stepper/plan_listing.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "actors/plan/compile.h"
#include "actors/session/session.h"
#include "graph/builder/builder.h"

using namespace tagflow;
using namespace tagflow::apps::stepper;
namespace tg = tagflow::graph;
namespace ta = tagflow::actors;

namespace {

// while i < limit: i += 1, where the limit is fed.
PlanListing list_loop(tg::PassSet passes) {
  tg::Graph graph;
  const tg::Scope s(graph);
  const tg::Output limit = tg::ops::placeholder(
      s.named("limit"), DataType::kInt32, PartialShape::scalar());
  const tg::Outputs last = tg::while_loop(
      s,
      [&](const tg::Scope& in, const tg::Outputs& v) {
        return tg::ops::less(in.named("less"), v[0], limit);
      },
      [](const tg::Scope& in, const tg::Outputs& v) -> tg::Outputs {
        return {tg::ops::add(in.named("add"), v[0], 1)};
      },
      {0});
  REQUIRE(s.ok());
  ta::SessionOptions options;
  options.workers = 1;
  options.passes = passes;
  const auto session = ta::Session::create(options).value();
  REQUIRE(session->extend(graph).ok());
  ta::Distribution distribution =
      session->explain({"limit"}, {last[0].name()}).value();
  const auto plans = ta::compile(std::move(distribution.partitions), options,
                                 session->devices())
                         .value();
  return list_plans(plans);
}

// The number of each node's inputs to which edges lead. Several lead to one
// if a Merge became edges.
std::map<std::string, int> inputs_of(const ListedFrame& frame) {
  std::map<std::string, int> inputs;
  std::set<std::pair<std::string, int>> met;
  const auto count = [&](const std::vector<ListedEdge>& edges) {
    for (const ListedEdge& edge : edges) {
      const bool is_new =
          edge.kind == "input" && met.insert({edge.to, edge.index}).second;
      if (is_new || edge.kind.ends_with("control")) ++inputs[edge.to];
    }
  };
  for (const ListedArrival& arrival : frame.arrivals) count(arrival.edges);
  for (const ListedNode& node : frame.nodes) count(node.edges);
  return inputs;
}

bool has_edge(const ListedFrame& frame, std::string_view kind) {
  return std::ranges::any_of(frame.nodes, [&](const ListedNode& node) {
    return std::ranges::any_of(
        node.edges, [&](const ListedEdge& edge) { return edge.kind == kind; });
  });
}

}  // namespace

TEST_CASE("a listed node waits for each of its inputs that edges lead to") {
  for (const tg::PassSet passes :
       {tg::PassSet::none(), tg::PassSet::only(tg::Pass::kEdges)}) {
    const PlanListing plans = list_loop(passes);
    REQUIRE(plans.size() == 1);
    REQUIRE(plans[0].frames.size() == 2);
    for (const ListedFrame& frame : plans[0].frames) {
      std::map<std::string, int> inputs = inputs_of(frame);
      CHECK_FALSE(frame.nodes.empty());
      for (const ListedNode& node : frame.nodes) {
        CAPTURE(node.name);
        if (node.kind != "merge")
          CHECK(int(node.waits.first) == inputs[node.name]);
        CHECK(node.waits.steady_later <= node.waits.later);
      }
    }
  }
}

TEST_CASE("a listing says what leaves an iteration, and what comes in") {
  const PlanListing plans = list_loop(tg::PassSet::none());
  REQUIRE(plans.size() == 1);
  const ListedFrame& root = plans[0].frames.at(0);
  const ListedFrame& loop = plans[0].frames.at(1);
  CHECK(root.name == "root");
  CHECK(root.parent.empty());
  CHECK(loop.parent == "root");
  CHECK(has_edge(root, "enter"));
  CHECK(has_edge(loop, "next"));
  CHECK(has_edge(loop, "exit"));
  CHECK(std::ranges::count(loop.arrivals, true, &ListedArrival::is_constant) >=
        1);
  const std::string text = to_text(plans);
  CHECK(text.starts_with("plan of /job:localhost/replica:0/task:0/"));
  CHECK(text.find("\n  frame root: ") != std::string::npos);
  CHECK(text.find("\n  frame " + loop.name +
                  " in root, parallel_iterations ") != std::string::npos);
  CHECK(text.find(", a loop constant\n") != std::string::npos);
}
