// The Fibonacci walk, token by token: while (i < 2) (a, b, i) = (b, a + b,
// i + 1), from (1, 1, 1).
//
//                    +------------- NextIteration <-----------+
//                    v                                        |
//   Const -> Enter -> Merge ----------> Switch --true--> a + b, i + 1, b
//                      |                  ^  |
//                      v                  |  +--false--> Exit -> result
//             i -> Less(i, 2) -> LoopCond +
//
// One trip is made. In iteration 0 the predicate is true: the false outputs
// are dead, and so are the Exits. In iteration 1 it is false: the body is
// skipped, the dead NextIterations start nothing, the Exits deliver 1, 2, 2.
#include <fmt/format.h>

#include <mutex>
#include <string>

#include "actors/session/session.h"
#include "actors/watch/observer.h"
#include "graph/builder/builder.h"

namespace {

using namespace tagflow;         // NOLINT: an example
using namespace tagflow::graph;  // NOLINT

// Writes a line for everything that happens. Several workers may call it.
class Log : public actors::Observer {
 public:
  void on_frame_start(const actors::Location& location,
                      const actors::Location& /*caller*/) override {
    line(location, "the frame starts");
  }
  void on_frame_end(const actors::Location& location) override {
    line(location, "the frame ends");
  }
  void on_iteration_start(const actors::Location& location) override {
    line(location, "the iteration starts");
  }
  void on_iteration_end(const actors::Location& location) override {
    line(location, "the iteration ends");
  }
  void on_arrive(const actors::Location& location, const Node& node,
                 const Tensor& value, bool dead) override {
    line(location, fmt::format("a token arrives through {}: {}", node.name(),
                               dead ? "dead" : value.to_string()));
  }
  void on_fire(const actors::Location& location, const Node& node,
               bool dead) override {
    if (dead) line(location, fmt::format("{} is skipped", node.name()));
  }
  void on_fired(const actors::Location& location, const Node& node,
                std::span<const Tensor> outputs) override {
    std::string values;
    for (const Tensor& value : outputs) {
      values += ' ';
      values += value.valid() ? value.to_string() : "dead";
    }
    line(location, fmt::format("{} fires:{}", node.name(), values));
  }

 private:
  void line(const actors::Location& location, const std::string& what) {
    const std::lock_guard lock(mutex_);
    fmt::print("{:>8}/{}  {}\n",
               location.frame.empty() ? "root" : location.frame,
               location.tag.iteration, what);
  }

  std::mutex mutex_;
};

Result<std::vector<Tensor>> walk() {
  Graph graph;
  const Scope s(graph);
  const Outputs last = while_loop(
      s,
      [](const Scope& in, const Outputs& v) { return ops::less(in, v[2], 2); },
      [](const Scope& in, const Outputs& v) -> Outputs {
        return {v[1], ops::add(in, v[0], v[1]), ops::add(in, v[2], 1)};
      },
      {1, 1, 1});
  TAGFLOW_RETURN_IF_ERROR(s.status());

  actors::SessionOptions options;
  options.workers = 1;
  options.passes = PassSet::none();  // so that every node fires
  TAGFLOW_ASSIGN(auto session, actors::Session::create(options));
  TAGFLOW_RETURN_IF_ERROR(session->extend(graph));
  Log log;
  actors::RunOptions run;
  run.observer = &log;
  return session->run({}, {last[0].name(), last[1].name(), last[2].name()}, {},
                      run);
}

}  // namespace

int main() {
  const Result<std::vector<Tensor>> results = walk();
  if (!results.ok()) {
    fmt::print(stderr, "{}\n", results.status().to_string());
    return 1;
  }
  int values[3];
  for (size_t i = 0; i < 3; ++i) {
    values[i] = (*results)[i].item<int32_t>().value();
  }
  fmt::print("results: {} {} {}\n", values[0], values[1], values[2]);
  return values[0] == 1 && values[1] == 2 && values[2] == 2 ? 0 : 1;
}
