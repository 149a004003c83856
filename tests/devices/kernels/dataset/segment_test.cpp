// Segments with a worker that works when it is told to.
#include "devices/kernels/dataset/segment.h"

#include <doctest/doctest.h>

#include <deque>
#include <stdexcept>
#include <vector>

#include "devices/files/host_access.h"
#include "devices/kernels/dataset/pipeline.h"
#include "devices/step_resources.h"
#include "graph/builder/builder.h"

namespace tagflow::devices {
namespace {

// Calls what is posted when the test says so.
class ManualHost final : public FunctionHost {
 public:
  struct Group final : CallGroup {
    void cancel() override {}
  };
  Library own_functions() const override { return nullptr; }
  Result<std::shared_ptr<const HostedFunction>> find(const FunctionRef&,
                                                     const Library&) override {
    return error(Code::kNotFound, "there is no function");
  }
  std::shared_ptr<CallGroup> make_group() override {
    return std::make_shared<Group>();
  }
  void post(std::function<void()> work) override {
    posted.push_back(std::move(work));
  }
  int parallelism() const override { return 1; }

  void work_once() {
    const auto work = std::move(posted.front());
    posted.pop_front();
    work();
  }
  void work_until_idle() {
    while (!posted.empty()) work_once();
  }

  std::deque<std::function<void()>> posted;
};

struct Fixture {
  Fixture() {
    const graph::Scope s(graph);
    graph::ops::no_op(s.named("n"));
    resources.set_host_access(
        std::make_shared<HostAccess>()->with_functions(host));
    step.resources = &resources;
    const KernelContext context(graph.find("n"), {}, {}, &step, &tag);
    pipeline = std::make_shared<Pipeline>(context);
  }

  const std::shared_ptr<ManualHost> host = std::make_shared<ManualHost>();
  graph::Graph graph;
  StepResources resources;
  StepInfo step;
  Tag tag;
  std::shared_ptr<Pipeline> pipeline;
};

// Counts how often it works, and does then what it is told to.
class CountingSegment final : public Segment {
 public:
  using Segment::Segment;
  int count = 0;
  std::function<void()> then;
  Status failed;

 protected:
  void work() override {
    ++count;
    if (then) then();
  }
  void fail(const Status& thrown) noexcept override { failed = thrown; }
};

// Gives 1, 2, ... up to `last`; 0 stands for an exception.
class NumberStage final : public Stage {
 public:
  explicit NumberStage(std::vector<int> numbers, bool* is_gone = nullptr)
      : numbers_(std::move(numbers)), is_gone_(is_gone) {}
  ~NumberStage() override {
    if (is_gone_ != nullptr) *is_gone_ = true;
  }
  Progress next(Pull& pull) override {
    if (at_ == numbers_.size()) return Progress::kEnd;
    const int number = numbers_[at_++];
    if (number == 0) throw std::runtime_error("a stage throws");
    return pull.give({Tensor::scalar<int32_t>(number)});
  }

 private:
  const std::vector<int> numbers_;
  size_t at_ = 0;
  bool* const is_gone_;
};

StartStages numbers(std::vector<int> all, bool* is_gone = nullptr) {
  return [=](Segment&) -> Result<StagePtr> {
    return StagePtr(std::make_unique<NumberStage>(all, is_gone));
  };
}

class Request final : public ElementRequest {
 public:
  bool answer(Progress answered, Pull& pull) override {
    progress = answered;
    if (answered == Progress::kElement)
      number = pull.element[0].item<int32_t>().value();
    status = pull.error;
    return true;
  }
  void refuse(const Status& reason) override { status = reason; }

  std::optional<Progress> progress;
  int number = 0;
  Status status;

 protected:
  void on_cancel() override {}
};

}  // namespace

TEST_CASE("a segment that is woken many times before it works, works once") {
  Fixture f;
  const auto segment =
      std::make_shared<CountingSegment>(f.pipeline, StartStages());
  for (int i = 0; i < 3; ++i) segment->wake();
  CHECK(f.host->posted.size() == 1);
  f.host->work_until_idle();
  CHECK(segment->count == 1);
  segment->wake();
  f.host->work_until_idle();
  CHECK(segment->count == 2);
}

TEST_CASE("a segment that is woken while it works, works again behind others") {
  Fixture f;
  const auto segment =
      std::make_shared<CountingSegment>(f.pipeline, StartStages());
  segment->then = [&] {
    segment->then = nullptr;
    segment->wake();
    segment->wake();
  };
  segment->wake();
  f.host->work_once();
  CHECK(segment->count == 1);
  CHECK(f.host->posted.size() == 1);
  f.host->work_until_idle();
  CHECK(segment->count == 2);
}

TEST_CASE("a segment that goes through many elements gives others their turn") {
  Fixture f;
  const auto segment =
      std::make_shared<CountingSegment>(f.pipeline, StartStages());
  int turns = 0;
  segment->then = [&] {
    while (segment->take_turn()) ++turns;
  };
  segment->wake();
  f.host->work_once();
  CHECK(turns > 100);
  CHECK(turns < 10000);
  CHECK(f.host->posted.size() == 1);
  // What is stopped has no turn.
  segment->then = nullptr;
  segment->stop();
  CHECK(!segment->take_turn());
}

TEST_CASE("what work throws is its failure, and the segment goes on") {
  Fixture f;
  const auto segment =
      std::make_shared<CountingSegment>(f.pipeline, StartStages());
  segment->then = [] { throw std::runtime_error("no work"); };
  segment->wake();
  f.host->work_until_idle();
  CHECK(segment->failed.code() == Code::kInternal);
  segment->then = nullptr;
  segment->wake();
  f.host->work_until_idle();
  CHECK(segment->count == 2);
}

TEST_CASE("a stopped segment works no more, and the worker drops its stages") {
  Fixture f;
  bool is_gone = false;
  const auto root =
      std::make_shared<RootSegment>(f.pipeline, numbers({1, 2, 3}, &is_gone));
  const auto first = std::make_shared<Request>();
  root->ask(first);
  f.host->work_until_idle();
  CHECK(first->number == 1);
  const auto waiting = std::make_shared<Request>();
  root->ask(waiting);
  root->end(error(Code::kCancelled, "it ends"));
  CHECK(waiting->status.code() == Code::kCancelled);
  CHECK(!is_gone);
  f.host->work_until_idle();
  CHECK(is_gone);
  const auto late = std::make_shared<Request>();
  root->ask(late);
  CHECK(late->status.code() == Code::kCancelled);
  CHECK(root->position() == 1);
}

TEST_CASE("answers go to requests in their order, and none is lost") {
  Fixture f;
  const auto root =
      std::make_shared<RootSegment>(f.pipeline, numbers({1, 2, 0, 4}));
  std::vector<std::shared_ptr<Request>> all;
  for (int i = 0; i < 6; ++i) {
    all.push_back(std::make_shared<Request>());
    root->ask(all.back());
  }
  // Somebody else has won the wait of the second one.
  CHECK(all[1]->claim());
  f.host->work_until_idle();
  CHECK(all[0]->number == 1);
  CHECK(!all[1]->progress.has_value());
  CHECK(all[2]->number == 2);
  CHECK(all[3]->progress == Progress::kFailed);
  CHECK(all[3]->status.code() == Code::kInternal);
  CHECK(all[4]->number == 4);
  CHECK(all[5]->progress == Progress::kEnd);
  CHECK(root->position() == 4);
}

TEST_CASE("a segment is not asked for elements that nobody wants") {
  Fixture f;
  const auto root =
      std::make_shared<RootSegment>(f.pipeline, numbers({1, 2, 3}));
  root->skip(1);
  root->wake();
  f.host->work_until_idle();
  CHECK(f.host->posted.empty());
  CHECK(root->position() == 1);
  const auto request = std::make_shared<Request>();
  root->ask(request);
  f.host->work_until_idle();
  // The first answer was skipped.
  CHECK(request->number == 2);
  CHECK(root->position() == 2);
}

TEST_CASE("a segment works ahead until it is full, and wakes its consumer") {
  Fixture f;
  const auto consumer =
      std::make_shared<CountingSegment>(f.pipeline, StartStages());
  const auto ahead = std::make_shared<AheadSegment>(
      f.pipeline, numbers({1, 2, 3, 0}), 2, *consumer);
  Pull pull;
  CHECK(ahead->take(pull) == Progress::kWait);
  ahead->wake();
  f.host->work_until_idle();
  CHECK(consumer->count == 1);
  for (int i = 1; i <= 3; ++i) {
    CHECK(ahead->take(pull) == Progress::kElement);
    CHECK(pull.element[0].item<int32_t>().value() == i);
    // Room is filled again.
    f.host->work_until_idle();
  }
  CHECK(ahead->take(pull) == Progress::kFailed);
  f.host->work_until_idle();
  CHECK(ahead->take(pull) == Progress::kEnd);
  CHECK(consumer->count == 1);
  ahead->stop();
  f.host->work_until_idle();
}

}  // namespace tagflow::devices
