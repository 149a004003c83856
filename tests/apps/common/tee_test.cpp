#include "apps/common/tee.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <mutex>
#include <string>
#include <vector>

#include "actors/session.h"
#include "graph/builder/builder.h"

namespace tagflow::apps {
namespace {

// Writes down which of its methods were called, in order.
class Diary final : public actors::Observer {
 public:
  std::vector<std::string> calls;

  void on_fire(const actors::Place&, const graph::Node& node, bool) override {
    note("fire " + node.name());
  }
  void on_fired(const actors::Place&, const graph::Node& node,
                std::span<const Tensor>) override {
    note("fired " + node.name());
  }
  void on_arrive(const actors::Place&, const graph::Node& node, const Tensor&,
                 bool) override {
    note("arrive " + node.name());
  }
  void on_settle(const actors::Place&, const actors::IterationView&) override {
    note("settle");
  }
  void on_pause(const actors::Place&) override { note("pause"); }
  void on_iteration_start(const actors::Place&) override { note("start"); }
  void on_iteration_end(const actors::Place&) override { note("end"); }
  void on_frame_start(const actors::Place&, const actors::Place&) override {
    note("frame start");
  }
  void on_frame_end(const actors::Place&) override { note("frame end"); }

 private:
  void note(std::string call) {
    const std::scoped_lock lock(mutex_);
    calls.push_back(std::move(call));
  }
  std::mutex mutex_;
};

}  // namespace

TEST_CASE("every observer sees all of a run, in the same order") {
  graph::Graph graph;
  const graph::Scope scope(graph);
  const graph::Output x = graph::ops::placeholder(
      scope.named("x"), DataType::kInt32, PartialShape::scalar());
  graph::ops::add(scope.named("y"), x, x);
  REQUIRE(scope.ok());
  actors::SessionOptions options;
  options.workers = 1;
  auto session = actors::Session::create(options).value();
  REQUIRE(session->extend(graph).ok());
  Diary first, second;
  Tee tee({&first, &second});
  actors::RunOptions run;
  run.observer = &tee;
  REQUIRE(
      session->run({{"x", Tensor::scalar<int32_t>(2)}}, {"y"}, {}, run).ok());
  session.reset();
  CHECK(first.calls == second.calls);
  for (const char* call : {"frame start", "start", "arrive x", "settle",
                           "fire y", "fired y", "end", "frame end"}) {
    CAPTURE(call);
    CHECK(std::ranges::find(first.calls, call) != first.calls.end());
  }
}

}  // namespace tagflow::apps
