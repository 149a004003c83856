// Trainings of which one replica is slow: it waits for a queue of the test.
// They are the same in one process and over several.
#pragma once

#include <future>
#include <optional>
#include <string>
#include <vector>

#include "tests/autodiff/train/replicated.h"

namespace tagflow::autodiff::testing {

// Trains the number w, which is 10 at first. Replica k has the gradient that
// `slope` builds from its copy of w. The last replica waits for "go" first.
class SlowReplica {
 public:
  using SlopeFn = Output (*)(const Replica& replica, const Output& w);

  SlowReplica(const std::vector<std::string>& devices, SlopeFn slope)
      : slow_(devices.size() - 1), counter_(global_step(s, vars)) {
    const graph::Scope there = s.with_device(devices[0]);
    const graph::ops::Queue gate = graph::ops::fifo_queue(
        there, {DataType::kDouble}, {.shapes = {PartialShape({})}});
    graph::ops::enqueue(there.named("go"), gate, {Tensor::scalar(1.0)});
    replicas.emplace(
        s, vars, ReplicaOptions{devices, {devices[0]}, {}, "replica"},
        [&](const Replica& r) {
          const Output w =
              r.vars
                  .get(r.s, "w", {},
                       {.dtype = DataType::kDouble,
                        .initializer = graph::initializers::constant(10)})
                  .read(r.s);
          const Output loss = slope(r, w);
          if (r.index != slow_) return loss;
          return graph::ops::mul(r.s, loss,
                                 graph::ops::dequeue(there, gate)[0]);
        });
  }

  ApplyOptions options() const { return {.global_step = counter_}; }
  static Optimizer make(const graph::VariableScope& variables) {
    return optimizers::sgd(variables, 0.5);
  }
  void open(const actors::SessionOptions& options) {
    w_ = vars.trainable_variables()[0].read(s).name();
    steps_ = counter_.read(s).name();
    restore = graph::ops::group(s, {vars.trainable_variables()[0].assign(s, 20),
                                    counter_.assign(s, 50)});
    replicas->initialize(s.named("init"));
    session_.emplace(s, options);
    session_->run("init");
  }
  // Starts a run of the operation.
  std::future<void> start(const Output& operation) {
    return std::async(std::launch::async,
                      [this, name = operation.name()] { session_->run(name); });
  }
  void go() { session_->run("go"); }
  double w() { return session_->run({w_}, {})[0].scalar_value<double>(); }
  int32_t count(const std::string& name) {
    return session_->run({name}, {})[0].scalar_value<int32_t>();
  }
  int64_t steps() {
    return session_->run({steps_}, {})[0].scalar_value<int64_t>();
  }

  graph::Graph graph;
  graph::Scope s{graph};
  graph::VariableScope vars;
  std::optional<Replicas> replicas;
  // Sets w to 20, and the number of steps to 50.
  Output restore;

 private:
  const size_t slow_;
  const graph::ScopedVariable counter_;
  std::string w_, steps_;
  std::optional<DeviceSession> session_;
};

// The gradient of the slow replica is of the variable as it was when its step
// began, and is applied to what others have made of it since.
inline void check_asynchronous(const std::vector<std::string>& devices,
                               const actors::SessionOptions& options) {
  SlowReplica p(devices, [](const Replica& r, const Output& w) {
    return graph::ops::mul(r.s, graph::ops::square(r.s, w), 0.5);
  });
  const graph::Outputs steps =
      p.replicas->minimize_each(p.s, p.make, p.options());
  p.open(options);
  auto slow = p.start(steps[1]);
  for (const double wanted : {5.0, 2.5, 1.25}) {
    p.start(steps[0]).get();
    CHECK(p.w() == wanted);
  }
  p.go();
  slow.get();
  CHECK(p.w() == 1.25 - 5);
  CHECK(p.steps() == 4);
}

// The gradients of the slow replica, 100, are dropped until it has caught up.
inline void check_backup(const std::vector<std::string>& devices,
                         const actors::SessionOptions& options) {
  SlowReplica p(devices, [](const Replica& r, const Output& w) {
    constexpr double kSlopes[] = {2, 4, 100};
    return graph::ops::mul(r.s, w, kSlopes[r.index]);
  });
  const BackupSteps steps =
      p.replicas->minimize_first(p.s, 2, p.make, p.options());
  const std::string tokens =
      graph::ops::queue_size(
          p.s, {Output(p.graph.find("minimize/tokens_1")), {DataType::kInt64}})
          .name();
  p.open(options);
  p.start(steps.begin).get();
  const auto update_by = [&](size_t a, size_t b) {
    auto one = p.start(steps.replicas[a]);
    auto other = p.start(steps.replicas[b]);
    p.start(steps.update).get();
    one.get();
    other.get();
  };
  auto slow = p.start(steps.replicas[2]);
  update_by(0, 1);
  CHECK(p.w() == 10 - 1.5);
  update_by(0, 1);
  CHECK(p.w() == 10 - 3);
  p.go();
  slow.get();
  CHECK(p.w() == 10 - 3);
  p.go();
  update_by(2, 0);
  CHECK(p.w() == 10 - 3 - 25.5);
  CHECK(p.steps() == 3);
  // As after a restore: copies are of any step, and so are tokens.
  CHECK(p.count(tokens) == 1);
  p.start(p.restore).get();
  p.start(steps.begin).get();
  CHECK(p.count(tokens) == 0);
  update_by(0, 1);
  CHECK(p.w() == 20 - 1.5);
}

}  // namespace tagflow::autodiff::testing
