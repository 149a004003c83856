#include "devices/state/guard.h"

#include <doctest/doctest.h>

#include <functional>
#include <new>
#include <stdexcept>
#include <vector>

#include "graph/graph.h"
#include "tests/devices/kernel_fixture.h"
#include "tests/failing_new.h"

namespace tagflow::devices {
namespace {

class Body : public Kernel {
 public:
  explicit Body(std::function<Status()> body) : body_(std::move(body)) {}
  Status compute(KernelContext&) const override { return body_(); }

 private:
  const std::function<Status()> body_;
};

class AsyncBody : public AsyncKernel {
 public:
  explicit AsyncBody(std::function<void(Completion)> body)
      : body_(std::move(body)) {}
  void compute_async(KernelContext&, Completion done) const override {
    body_(std::move(done));
  }

 private:
  const std::function<void(Completion)> body_;
};

// A context of a node NoOp.
class Context {
 public:
  Context() : node_(*graph_.add("node", "NoOp", {})) {}
  KernelContext& operator*() { return context_; }

 private:
  graph::Graph graph_;
  const graph::Node* node_;
  const StepInfo step_;
  const Tag tag_;
  KernelContext context_{node_, {}, {}, &step_, &tag_};
};

Status run(std::function<Status()> body) {
  Context context;
  return run_kernel(Body(std::move(body)), *context);
}

// All that `done` was called with.
std::vector<std::string> answers(std::function<void(Completion)> body) {
  Context context;
  std::vector<std::string> told;
  run_kernel_async(AsyncBody(std::move(body)), *context,
                   [&](Status status) { told.push_back(status.to_string()); });
  return told;
}

using Answers = std::vector<std::string>;

}  // namespace

TEST_CASE("an exception of a kernel is an error of its op") {
  CHECK(run([] { return Status(); }).ok());
  CHECK(run([] { return invalid_argument("bad"); }).message() == "bad");
  expect_error(run([]() -> Status { throw std::bad_alloc(); }),
               Code::kResourceExhausted, "[NoOp] out of memory");
  expect_error(run([]() -> Status { throw std::runtime_error("as thrown"); }),
               Code::kInternal, "[NoOp] unexpected exception: as thrown");
  expect_error(run([]() -> Status { throw 3; }), Code::kInternal,
               "[NoOp] unexpected exception of type int");
}

TEST_CASE("a kernel that throws when asked for its cost counts as slow") {
  class Unsure final : public Kernel {
   public:
    Status compute(KernelContext&) const override { return {}; }
    double cost(const KernelContext&) const override { throw 3; }
  };
  Context context;
  CHECK(cost_of(Unsure(), *context) == Kernel::kUnknownCost);
}

TEST_CASE("a kernel that has no memory left is out of memory") {
  const auto text = [] { return std::string(100, 'x'); };
  for (int64_t k = 1; k <= 3; ++k) {
    Context context;
    const Body kernel([&]() -> Status { throw std::runtime_error(text()); });
    FailAllocation fail(k);
    const Status status = run_kernel(kernel, *context);
    fail.stop();
    CHECK(fail.failed());
    INFO(status.to_string());
    CHECK(!status.ok());
    if (k == 1) CHECK(status.message() == "[NoOp] out of memory");
  }
}

TEST_CASE("an exception of an asynchronous kernel is its answer") {
  CHECK(answers([](Completion done) { done({}); }) == Answers{"OK"});
  CHECK(answers([](Completion) { throw 3; }) ==
        Answers{"Internal: [NoOp] unexpected exception of type int"});
}

TEST_CASE("an asynchronous kernel is answered for once") {
  CHECK(answers([](Completion done) {
          done({});
          throw 3;
        }) == Answers{"OK"});
  CHECK(answers([](Completion done) {
          done({});
          done(invalid_argument("twice"));
        }) == Answers{"OK"});
  Completion kept;
  CHECK(answers([&](Completion done) {
          kept = std::move(done);
          throw 3;
        }).size() == 1);
  kept({});  // without effect: what `done` would write to is gone
}

TEST_CASE("an asynchronous kernel that loses its completion is answered for") {
  const Answers lost{
      "Internal: [NoOp] the kernel dropped its completion without calling it"};
  CHECK(answers([](Completion) {}) == lost);
  CHECK(answers([](Completion done) {
          const Completion copy = done;
          done = nullptr;
        }) == lost);
  for (int64_t k = 1; k <= 3; ++k) {
    Context context;
    std::vector<Status> told;
    told.reserve(2);
    Completion kept;
    run_kernel_async(
        AsyncBody([&](Completion done) { kept = std::move(done); }), *context,
        [&](Status status) { told.push_back(std::move(status)); });
    CHECK(told.empty());
    FailAllocation fail(k);
    kept = nullptr;
    fail.stop();
    REQUIRE(told.size() == 1);
    CHECK_FALSE(told[0].ok());
  }
}

TEST_CASE("an asynchronous kernel that cannot begin says so") {
  for (int64_t k = 1;; ++k) {
    Context context;
    const AsyncBody kernel([](Completion done) { done({}); });
    std::vector<Status> told;
    told.reserve(2);
    FailAllocation fail(k);
    run_kernel_async(kernel, *context,
                     [&](Status status) { told.push_back(std::move(status)); });
    fail.stop();
    REQUIRE(told.size() == 1);
    if (!fail.failed()) {
      CHECK(k > 1);
      CHECK(told[0].ok());
      break;
    }
    CHECK(told[0].message().ends_with("out of memory"));
  }
}

}  // namespace tagflow::devices
