// Error messages for fetches that are dead because of another device, or
// because a loop gave them no value.
#include <doctest/doctest.h>

#include "tests/actors/program.h"

using namespace tagflow;
using namespace tagflow::actors;
using namespace tagflow::graph;  // NOLINT: the builder's vocabulary

namespace {

SessionOptions on(const std::string& devices, PassSet passes = {}) {
  SessionOptions options;
  options.devices = devices;
  options.passes = passes;
  return options;
}

// The message of the run's error, in which "(root frame, iteration 0" goes on
// with `where`.
void check_dead(const Program& p, const std::vector<Feed>& feeds,
                const Output& fetch, const SessionOptions& options,
                const std::string& cause) {
  const auto out = p.try_run(feeds, {fetch}, options);
  REQUIRE(!out.ok());
  CHECK(out.status().code() == Code::kInvalidArgument);
  CHECK(out.status().message() ==
        fmt::format("[session] the fetched tensor \"{}\" is dead and has "
                    "no value in this run: {}. Fetch the Merge after the "
                    "conditional, which has the value of the branch that was "
                    "taken",
                    fetch.name(), cause));
}

const std::vector<Feed> kFalse = {{"p", Tensor::scalar(false)},
                                  {"x", Tensor::scalar(1.0f)}};

}  // namespace

TEST_CASE("smoke: a dead fetch names the Switch on another device") {
  for (const PassSet passes : {PassSet(), PassSet::none()}) {
    Program p;
    const Scope a = p.s.with_device("/cpu:0"), b = p.s.with_device("/cpu:1"),
                c = p.s.with_device("/cpu:2");
    const Output x = p.input("x", DataType::kFloat);
    const Output pred = p.input("p", DataType::kBool);
    const OpResult sw = a.named("sw").op("Switch", {x, pred});
    const Output y = ops::neg(b.named("y"), sw[1]);
    const Output z = ops::exp(c.named("z"), y);
    const std::string cause =
        "Switch \"sw\" sent its value to output 0, since its predicate \"p:0\" "
        "was false (root frame, iteration 0";
    check_dead(p, kFalse, z, on("cpu:3", passes), cause + ", on CPU:0)");
    Program whole;
    REQUIRE(whole.graph
                .extend([&] {
                  std::vector<NodeDef> nodes;
                  for (const Node* node : p.graph.nodes()) {
                    nodes.push_back(Graph::to_def(*node));
                    nodes.back().device = "";
                  }
                  return nodes;
                }())
                .ok());
    check_dead(whole, kFalse, Output(whole.graph.find("z")), on("", passes),
               cause + ")");
  }
}

TEST_CASE("a dead fetch names the predicate that another device computed") {
  Program p;
  const Scope a = p.s.with_device("/cpu:0"), b = p.s.with_device("/cpu:1");
  const Output x = p.input("x", DataType::kFloat);
  const Output pred = ops::less(b.named("q"), x, x);
  const OpResult sw = a.named("sw").op("Switch", {x, pred});
  const Output y = ops::neg(b.named("y"), sw[1]);
  check_dead(p, {{"x", Tensor::scalar(1.0f)}}, y, on("cpu:2"),
             "Switch \"sw\" sent its value to output 0, since its predicate "
             "\"q:0\" was false (root frame, iteration 0, on CPU:0)");
}

TEST_CASE("a dead fetch names the Switch that killed a loop over devices") {
  for (const PassSet passes : {PassSet(), PassSet::none()}) {
    Program p;
    const Scope a = p.s.with_device("/cpu:0"), b = p.s.with_device("/cpu:1");
    const Output x = p.input("x", DataType::kFloat);
    const Output pred = p.input("p", DataType::kBool);
    const OpResult sw = a.named("sw").op("Switch", {x, pred});
    const Outputs last = while_loop(
        b,
        [](const Scope& in, const Outputs& v) {
          return ops::less(in, v[0], 10.0f);
        },
        [&](const Scope& in, const Outputs& v) -> Outputs {
          return {ops::add(in.with_device("/cpu:2"), v[0], v[0])};
        },
        {sw[1]});
    const Output z = ops::neg(p.s.with_device("/cpu:2").named("z"), last[0]);
    check_dead(p, kFalse, z, on("cpu:3", passes),
               "Switch \"sw\" sent its value to output 0, since its predicate "
               "\"p:0\" was false (root frame, iteration 0, on CPU:0)");
  }
}

// In iteration 3 the predicate dies itself: a Switch on one device kills what
// another one computes of it.
TEST_CASE("a dead fetch names the Switch in the frame and the iteration") {
  for (const std::string there : {"/cpu:0", "/cpu:1"}) {
    Program p;
    const Outputs last = while_loop(
        p.s.with_device("/cpu:0").named("loop"),
        [&](const Scope& in, const Outputs& v) {
          const Output early = ops::less(in.named("early"), v[0], 3);
          const OpResult guard =
              in.named("guard").op("Switch", {ops::less(in, v[0], 4), early});
          return ops::logical_and(in.with_device(there).named("far"), guard[1],
                                  guard[1]);
        },
        [&](const Scope& in, const Outputs& v) -> Outputs {
          return {ops::add(in, v[0], 1)};
        },
        {0}, {.parallel_iterations = 1});
    const bool is_cut = there != "/cpu:0";
    check_dead(p, {}, last[0], on("cpu:2", PassSet::only(Pass::kEdges)),
               fmt::format("Exit \"{}\" was live in no iteration of its loop; "
                           "Switch \"loop/guard\" sent its value to output 0, "
                           "since its predicate \"loop/early:0\" was false "
                           "(iteration \"loop/while_context/3\"{})",
                           last[0].node()->name(), is_cut ? ", on CPU:0" : ""));
  }
}
