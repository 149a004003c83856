// The table of state that outlives steps: homes, and the ends of objects.
#include "devices/state/resource_manager.h"

#include <doctest/doctest.h>

#include <thread>
#include <vector>

#include "tests/devices/state/tested_queue.h"
#include "tests/devices/state_fixture.h"
#include "tests/failing_new.h"

using namespace tagflow;
using namespace tagflow::devices;

namespace {

using HomeRequest = ResourceManager::HomeRequest;

ResourceKey variable(std::string name) {
  return {"", "variable", std::move(name)};
}

}  // namespace

TEST_CASE("homes are claimed all together or not at all") {
  ResourceManager manager;
  const ResourceKey a = variable("a"), b = variable("b"), c = variable("c");
  const auto claim = [&](std::vector<HomeRequest> claims) {
    return manager.request_homes(claims);
  };
  CHECK(claim({{a, "cpu", {}}, {b, "stream", {}}}));
  const ResourceManager::Homes homes{{a, "cpu"}, {b, "stream"}};
  CHECK(manager.homes() == homes);
  CHECK_FALSE(claim({{c, "cpu", {}}, {a, "stream", {}}}));
  CHECK(manager.homes() == homes);
  // What is tied is looked at, but gets no home by it.
  CHECK_FALSE(claim({{c, "cpu", {&b, 1}}}));
  CHECK(manager.homes() == homes);
  const ResourceKey other = variable("other");
  CHECK(claim({{c, "cpu", {&other, 1}}, {a, "cpu", {}}}));
  CHECK(manager.homes().size() == 3);
  CHECK(manager.homes().at(c) == "cpu");
  CHECK(manager.size() == 0);
  // Beyond a reset.
  manager.reset(std::vector<std::string>{""});
  CHECK(manager.homes().size() == 3);
}

TEST_CASE("threads that claim the homes of one group never split it") {
  constexpr int kRounds = 500;
  ResourceManager manager;
  const auto keys = [](int round) {
    return std::vector{variable(fmt::format("{}a", round)),
                       variable(fmt::format("{}b", round))};
  };
  std::vector<std::thread> threads;
  for (const size_t mine : {0, 1})
    threads.emplace_back([&, mine] {
      for (int round = 0; round < kRounds; ++round) {
        const std::vector<ResourceKey> group = keys(round);
        const HomeRequest first{group[mine], fmt::format("device {}", mine),
                                group};
        if (manager.request_homes({&first, 1})) continue;
        const HomeRequest then{group[mine], fmt::format("device {}", 1 - mine),
                               group};
        REQUIRE(manager.request_homes({&then, 1}));
      }
    });
  for (std::thread& thread : threads) thread.join();
  const ResourceManager::Homes homes = manager.homes();
  CHECK(homes.size() == 2 * kRounds);
  for (int round = 0; round < kRounds; ++round)
    CHECK(homes.at(keys(round)[0]) == homes.at(keys(round)[1]));
}

namespace {

const std::vector<std::string> kAll = {""};

// Too large to be inline.
Tensor large() { return Tensor::of<float>({32}, std::vector<float>(32, 1.0f)); }

}  // namespace

TEST_CASE("what has ended keeps nothing, though its handle is left") {
  const DataType real = DataType::kFloat, kind = DataType::kResource;
  const Tensor value = large();
  TestedQueue queue("FIFOQueueV2", {real});
  ResourceManager& state = queue.state;
  const AttrMap area{{"dtypes", Types{real}}, {"shared_name", "area"}};
  const TestedOp stage("Stage", {real}, area);
  const Tensor accumulator =
      (*call_op(state, "ResourceConditionalAccumulator", {},
                {{"dtype", real}, {"shape", PartialShape({32})}}))[0];
  const TestedOp apply("ResourceAccumulatorApplyGradient",
                       {kind, DataType::kInt64, real}, {{"dtype", real}});
  const Tensor variable =
      (*call_op(state, "VarHandleOp", {},
                {{"dtype", real}, {"shape", PartialShape()}}))[0];
  const auto refusals = [&] {
    int refused = 0;
    for (const Status& status :
         {queue.must_put({value}),
          Call(stage, {value}, &state).start().status(),
          Call(apply, {accumulator, Tensor::scalar<int64_t>(0), value})
              .start()
              .status(),
          variable_of(variable).set(value)})
      refused += !status.ok();
    return refused;
  };
  CHECK(refusals() == 0);
  CHECK_FALSE(value.unique());
  state.reset(kAll);
  CHECK(value.unique());
  // An area has no handle: the next use of its name makes another.
  CHECK(refusals() == 3);
  CHECK_FALSE(value.unique());
  state.reset(kAll);
  CHECK(value.unique());
}

TEST_CASE("a variable that ends in use is emptied after that, and is free") {
  using Mode = StateLock::Mode;
  const Tensor value = large();
  ResourceManager state;
  const Tensor handle =
      (*call_op(state, "VarHandleOp", {},
                {{"dtype", DataType::kFloat}, {"shape", PartialShape()}}))[0];
  Variable& variable = variable_of(handle);
  REQUIRE(variable.set(value).ok());
  REQUIRE(variable.lock().try_lock(Mode::kShared));
  state.reset(kAll);
  CHECK(identical(variable.value(), value));
  variable.lock().unlock(Mode::kShared);
  CHECK(value.unique());
  CHECK(variable.lock().try_lock(Mode::kExclusive));
  CHECK(variable.set(value).code() == Code::kCancelled);
  CHECK(value.unique());
}

TEST_CASE("a reset for which there is no memory ends all that wait, or none") {
  for (int64_t k = 1;; ++k) {
    CAPTURE(k);
    TestedQueue queue("FIFOQueueV2", {DataType::kInt32});
    const AttrMap area{{"dtypes", Types{DataType::kInt32}},
                       {"shared_name", "area"}};
    const TestedOp stage("Stage", {DataType::kInt32}, area);
    const TestedOp unstage("Unstage", {}, area);
    Call take(queue.take, {queue.handle});
    Call first(unstage, {}, &queue.state);
    take.start();
    first.start();
    FailAllocation fail(k);
    const Status reset = guarded("test", [&] {
      queue.state.reset(kAll);
      return Status();
    });
    fail.stop();
    CHECK(take.is_over() == reset.ok());
    CHECK(first.is_over() == reset.ok());
    CHECK(queue.state.size() == (reset.ok() ? 0 : 2));
    if (!reset.ok()) {
      // They wait for what comes, and get it.
      CHECK(queue.must_put({Tensor::scalar(1)}).ok());
      CHECK(take.output().scalar_value<int32_t>() == 1);
      CHECK(
          Call(stage, {Tensor::scalar(2)}, &queue.state).start().status().ok());
      CHECK(first.output().scalar_value<int32_t>() == 2);
    }
    if (!fail.failed()) break;
  }
}
