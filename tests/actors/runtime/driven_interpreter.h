// Interpreters that a test drives on its own thread, iteration by iteration.
#pragma once

#include <doctest/doctest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "actors/runtime/interpreter.h"
#include "actors/runtime/token_path.h"
#include "devices/kernel_registry.h"
#include "graph/analysis/extract.h"
#include "graph/builder/builder.h"
#include "tests/graph/hand_made.h"

namespace tagflow::actors {

// A program of one partition, compiled as the engine would, with all that an
// interpreter needs of a run.
class Compiled {
 public:
  Compiled(const graph::Graph& graph, const std::vector<std::string>& feeds,
           const std::vector<std::string>& fetches, bool compile_edges)
      : program_(extracted(graph, feeds, fetches)),
        plan_(graph::testing::must(compile_plan(
            program_, {.compile_edges = compile_edges},
            [this](const graph::Node& node) -> Result<const devices::Kernel*> {
              TAGFLOW_ASSIGN(
                  auto kernel,
                  devices::KernelRegistry::global().make(node, "CPU"));
              return kernels_.emplace_back(std::move(kernel)).get();
            }))),
        step_(std::make_shared<Step>(1, fetches.size())) {
    run_.plan = plan_.get();
    run_.allocator = &host_allocator();
    frames_ = std::vector<FrameInstance>(plan_->frames.size());
    for (size_t i = 0; i < frames_.size(); ++i) {
      frames_[i].run = &run_;
      frames_[i].plan = &plan_->frames[i];
    }
  }

  // From the next iteration on.
  void set_observer(Observer& observer) {
    for (FrameInstance& frame : frames_) {
      frame.observer = &observer;
      frame.watched = true;
    }
  }
  const FrameInstance& frame(size_t i) const { return frames_[i]; }
  Step* step() const { return step_.get(); }
  const FetchSlot& fetch(size_t i) const { return step_->fetches[i]; }

 private:
  static graph::Program extracted(const graph::Graph& graph,
                                  const std::vector<std::string>& feeds,
                                  const std::vector<std::string>& fetches) {
    std::vector<graph::Endpoint> fed, fetched;
    for (const std::string& name : feeds)
      fed.push_back(graph::testing::must(graph.endpoint(name)));
    for (const std::string& name : fetches)
      fetched.push_back(graph::testing::must(graph.endpoint(name)));
    return graph::testing::must(graph::extract(graph, fed, fetched, {}));
  }

  std::vector<std::unique_ptr<devices::Kernel>> kernels_;
  graph::Program program_;
  std::unique_ptr<Plan> plan_;
  std::shared_ptr<Step> step_;
  PartitionRun run_;
  std::vector<FrameInstance> frames_;
};

// One iteration after the other, on this thread.
struct Driver {
  // `owner` gets the answers of kernels that run elsewhere.
  explicit Driver(const Compiled& compiled, size_t frame = 0,
                  EngineActor* owner = nullptr)
      : step(compiled.step()),
        interpreter(compiled.frame(frame), pool, owner) {}
  void begin(int64_t iteration) {
    interpreter.begin(step, iteration, nullptr, runner);
  }
  void arrive(uint32_t arrival, Tensor value) {
    interpreter.arrive(arrival, false, std::move(value));
  }
  // Takes the tokens of a batch that another interpreter, or this one, has put
  // out.
  void arrive(Batch* batch, BatchPool& home) {
    for (Token& token : batch->tokens)
      interpreter.arrive(token.slot, token.is_dead, std::move(token.value));
    home.give(batch);
  }
  void run() {
    CHECK_FALSE(interpreter.run(runner));
    CHECK_FALSE(interpreter.is_ready());
  }

  BatchPool pool;
  Runner runner{nullptr, HandOff::kDirect, std::chrono::minutes(1)};
  Step* step;
  Interpreter interpreter;
};

}  // namespace tagflow::actors
