// Sessions that are extended between runs.
#include <doctest/doctest.h>

#include <atomic>
#include <future>

#include "devices/kernel_registry.h"
#include "graph/op_registry.h"
#include "graph/shape_context.h"
#include "tests/actors/sessions.h"

using namespace tagflow;
using namespace tagflow::actors;
using namespace tagflow::graph;
using namespace tagflow::graph::testing;

namespace {

// A counter from 0 to `limit`, whose frame and nodes have the name. Its Enters
// disagree on parallel_iterations if it is `odd`.
Graph make_piece(const std::string& name, int limit, bool odd) {
  Graph graph;
  Node* zero = constant(graph, name + "/zero", Tensor::scalar(0));
  Node* nine = constant(graph, name + "/n", Tensor::scalar(limit));
  const Counter c = counter(graph, name, {zero, 0}, {nine, 0});
  if (odd)
    add(graph, name + "/odd", "Enter", {{zero, 0}},
        {{"frame_name", name}, {"parallel_iterations", 3}});
  add(graph, name + "/y", "Neg", {{c.exit, 0}});
  return graph;
}

// It takes until it is let go to make one, and so to compile what uses it.
std::atomic<bool> is_being_made{false};
std::atomic<bool> holds{false};

class SlowlyMadeKernel : public devices::CheapKernel {
 public:
  explicit SlowlyMadeKernel(const devices::KernelInfo&) {
    is_being_made = true;
    is_being_made.notify_all();
    holds.wait(true);
  }
  Status compute(devices::KernelContext& context) const override {
    context.set_output(0, context.input(0));
    return {};
  }
};

}  // namespace

TEST_CASE("a session that grows runs what is new and what is old") {
  std::vector<std::string> told;
  SessionOptions options;
  options.workers = 1;
  options.on_warning = [&](const std::string& text) { told.push_back(text); };
  auto session = make_session(options, make_piece("p0", 0, false));
  const auto run = [&](int piece) {
    return must_run(*session, {}, {"p" + std::to_string(piece) + "/y"})[0]
        .scalar_value<int32_t>();
  };
  CHECK(run(0) == 0);
  for (int i = 1; i < 20; ++i) {
    must(session->extend(make_piece("p" + std::to_string(i), i, i % 2 == 1)));
    CHECK(run(i) == -i);
    CHECK(run(i / 2) == -(i / 2));
    // Of each piece that is odd it has been told, once.
    CHECK(told.size() == size_t((i + 1) / 2));
  }
}

TEST_CASE("a growing session runs old signatures though a new piece is wrong") {
  auto session = make_session({}, make_piece("p", 4, false));
  CHECK(must_run(*session, {}, {"p/y"})[0].scalar_value<int32_t>() == -4);
  // One of its inputs is inside the loop.
  must(session->extend(
      std::vector{def("wrong", "AddV2", {"p/body", "p/zero"})}));
  for (int i = 0; i < 2; ++i) {
    const Status refused = session->run({}, {"p/exit"}).status();
    CHECK(contains(message_of(refused, Code::kInvalidArgument),
                   "[AddV2] node \"wrong\": input 0 (\"p/body:0\") is in frame "
                   "\"p\", but input 1"));
    CHECK(must_run(*session, {}, {"p/y"})[0].scalar_value<int32_t>() == -4);
  }
}

TEST_CASE("a growing session runs old signatures while it compiles another") {
  OpRegistry::global().add(OpDefBuilder("TestSlowlyMade")
                               .input("x: int32")
                               .output("y: int32")
                               .stateful()
                               .shape(unchanged_shape));
  devices::KernelRegistry::global().add<SlowlyMadeKernel>("TestSlowlyMade");
  Graph graph;
  Node* one = constant(graph, "one", Tensor::scalar(1));
  add(graph, "slow", "TestSlowlyMade", {{one, 0}});
  auto session = make_session({}, graph);
  CHECK(must_run(*session, {}, {"one"})[0].scalar_value<int>() == 1);
  holds = true;
  auto slow = std::async(std::launch::async,
                         [&] { return session->run({}, {"slow"}).status(); });
  is_being_made.wait(false);
  CHECK(must_run(*session, {}, {"one"})[0].scalar_value<int>() == 1);
  holds = false;
  holds.notify_all();
  CHECK(slow.get().ok());
}
