// A kernel's request: its answer, its wait for locks, and its taking permit.
#include "actors/runtime/kernel_request.h"

#include <doctest/doctest.h>

#include <array>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "actors/runtime/accelerator_actor.h"
#include "tests/actors/runtime/stepwise.h"
#include "tests/failing_new.h"
#include "tests/graph/hand_made.h"

using namespace tagflow;
using namespace tagflow::actors;
using namespace tagflow::graph::testing;

namespace {

using Mode = devices::StateLock::Mode;

class NoKernel : public devices::CheapKernel {
 public:
  Status compute(devices::KernelContext&) const override { return {}; }
};

class Variable : public Resource {
 public:
  std::string describe() const override { return "variable"; }
  devices::StateLock lock;
};

// A step with one request, which returns to `receiver`.
struct Requested {
  Requested() {
    item.node = add(graph, "x", "NoOp");
    item.kernel = &kernel;
    request.item = &item;
    request.owner = receiver.actor();
    request.batch.step = step.get();
    step->on_quiet = [this](Step&) { quiet = true; };
    step->add_activity();  // the test's own
  }

  void claim(Variable& variable, Mode mode = Mode::kExclusive) {
    request.claim.add(variable.lock, mode, variable);
  }
  // Whether it has returned.
  bool answered() { return !receiver.run().empty(); }

  graph::Graph graph;
  NoKernel kernel;
  NodeItem item;
  Receiver receiver;
  std::shared_ptr<Step> step = std::make_shared<Step>(1, 0);
  bool quiet = false;
  KernelRequest request;
};

Status stopped() { return error(Code::kCancelled, "the test"); }

bool is_free(Variable& variable) {
  if (!variable.lock.try_lock(Mode::kExclusive)) return false;
  variable.lock.unlock(Mode::kExclusive);
  return true;
}

// Launches kernels, but never answers.
class Launches : public devices::Accelerator {
 public:
  int count = 0;
  void launch(const devices::Kernel&, devices::KernelContext&,
              devices::Completion) override {
    ++count;
  }
  void copy_to_host(Tensor, Copied, uint64_t) override {}
  void copy_from_host(Tensor, Copied, uint64_t) override {}
  Result<Tensor> upload(const Tensor& tensor) override { return tensor; }
  void observe(Observer) override {}
};

}  // namespace

TEST_CASE("an asynchronous answer ends the step's wait, and is a batch of it") {
  Requested one;
  one.step->begin_wait(one.request.wait);
  one.step->drop_activity();
  REQUIRE(one.step->is_waiting());
  one.request.answer_async(error(Code::kInternal, "of the test"));
  CHECK_FALSE(one.step->is_waiting());
  CHECK_FALSE(one.quiet);
  REQUIRE(one.receiver.run().size() == 1);
  const Batch& batch = *one.receiver.run()[0];
  CHECK(batch.kind == BatchKind::kKernel);
  CHECK(batch.request == &one.request);
  CHECK(one.request.status.message() == "of the test");
  CHECK(one.quiet);
}

TEST_CASE("a request whose locks are free is granted at once") {
  const auto variable = make_ref_counted<Variable>();
  Requested one;
  one.claim(*variable);
  one.request.park();
  CHECK(one.answered());
  CHECK(one.request.is_granted);
  CHECK(one.request.status.ok());
  CHECK_FALSE(is_free(*variable));
  one.request.claim.release();
  CHECK(is_free(*variable));
}

TEST_CASE("a request that waits for one lock keeps those that it has") {
  std::vector<Ref<Variable>> variables;
  for (int i = 0; i < 2; ++i) variables.push_back(make_ref_counted<Variable>());
  // Locks are taken in the order of their addresses.
  if (&variables[1]->lock < &variables[0]->lock)
    std::swap(variables[0], variables[1]);
  for (const auto& variable : variables)
    REQUIRE(variable->lock.try_lock(Mode::kExclusive));
  Requested one;
  for (const auto& variable : variables) one.claim(*variable);
  REQUIRE_FALSE(one.request.claim.take());
  one.request.park();
  one.step->drop_activity();
  CHECK(one.step->waits_for_state());
  CHECK(contains(one.step->describe_waits(), "NoOp \"x\""));
  variables[0]->lock.unlock(Mode::kExclusive);
  CHECK_FALSE(is_free(*variables[0]));
  CHECK_FALSE(one.answered());
  variables[1]->lock.unlock(Mode::kExclusive);
  CHECK(one.answered());
  CHECK(one.request.is_granted);
  CHECK(one.quiet);
}

TEST_CASE("a cancelled request is answered, and others get its turn") {
  const auto variable = make_ref_counted<Variable>();
  REQUIRE(variable->lock.try_lock(Mode::kShared));
  Requested writer, reader;
  writer.claim(*variable);
  writer.request.park();
  reader.claim(*variable, Mode::kShared);
  reader.request.park();
  CHECK_FALSE(writer.answered());
  CHECK_FALSE(reader.answered());
  writer.step->fail(stopped());
  CHECK(writer.answered());
  CHECK(writer.request.status.to_string() ==
        "Cancelled: [NoOp] the step was cancelled");
  CHECK(reader.answered());
  CHECK(reader.request.is_granted);
  reader.request.claim.release();
  variable->lock.unlock(Mode::kShared);
  // The end of a wait that was cancelled grants nothing.
  CHECK(writer.receiver.run().size() == 1);
  CHECK_FALSE(writer.request.is_granted);
  CHECK(is_free(*variable));
}

TEST_CASE("a request of a cancelled step does not wait") {
  const auto variable = make_ref_counted<Variable>();
  REQUIRE(variable->lock.try_lock(Mode::kExclusive));
  Requested one;
  one.step->fail(stopped());
  one.claim(*variable);
  one.request.park();
  CHECK(one.answered());
  CHECK(one.request.status.code() == Code::kCancelled);
  variable->lock.unlock(Mode::kExclusive);
  CHECK(is_free(*variable));
}

TEST_CASE("a request that lacks the memory to wait is answered with that") {
  int failures = 0;
  for (int64_t k = 1;; ++k) {
    CAPTURE(k);
    const auto variable = make_ref_counted<Variable>();
    REQUIRE(variable->lock.try_lock(Mode::kExclusive));
    Requested one;
    one.claim(*variable);
    FailAllocation fail(k);
    one.request.park();
    fail.stop();
    const bool failed = fail.failed();
    CHECK(one.answered() == failed);
    if (failed) {
      ++failures;
      CHECK(one.request.status.code() == Code::kResourceExhausted);
      CHECK_FALSE(one.request.is_granted);
    }
    variable->lock.unlock(Mode::kExclusive);
    CHECK(one.answered());
    one.request.claim.release();
    CHECK(is_free(*variable));
    if (!failed) break;
  }
  CHECK(failures > 0);
}

// Note [Freeing first]: kMostTaking is 4.
TEST_CASE("a kernel that takes memory is launched when a turn has ended") {
  Launches launches;
  Requested one;
  const caf::actor handle =
      one.receiver.system().spawn<AcceleratorActor, caf::lazy_init>(
          HandOff::kDirect, std::ref(launches));
  std::array<KernelRequest, 8> requests;
  for (size_t i = 0; i < requests.size(); ++i) {
    KernelRequest& request = requests[i];
    request.item = &one.item;
    request.owner = one.receiver.actor();
    request.batch.step = one.step.get();
    request.context.emplace(one.item.node, request.inputs, request.outputs,
                            &one.step->info, &request.tag);
    if (i > 0) requests[i - 1].after = &request;
  }
  requests[7].frees = true;
  one.step->add_activity();  // the batch's
  actor_pointer<AcceleratorActor>(handle)->deliver(&requests[0].batch);
  one.receiver.run();
  CHECK(launches.count == 5);  // one of them frees memory
  requests[0].taking.end();
  CHECK(launches.count == 6);
  requests[0].taking.end();  // there is none
  CHECK(launches.count == 6);
  TakingPermit moved = std::move(requests[1].taking);
  CHECK(launches.count == 6);
  moved = std::move(requests[2].taking);  // the end of one
  CHECK(launches.count == 7);
  { const TakingPermit last = std::move(moved); }
  CHECK(launches.count == 8);

  caf::anon_send(handle, Stop{});
  one.receiver.run();
  // The accelerator has a unit for each request that it has not answered.
  for (size_t i = 0; i < requests.size(); ++i) one.step->drop_activity();
  CHECK_FALSE(one.quiet);
  one.step->drop_activity();
  CHECK(one.quiet);
}
