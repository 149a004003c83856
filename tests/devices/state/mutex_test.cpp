// Kernels of mutexes, and tensors that a session keeps.
#include <doctest/doctest.h>

#include <memory>
#include <vector>

#include "tests/devices/state/calls.h"
#include "tests/devices/state/no_tensor_memory.h"
#include "tests/failing_new.h"

using namespace tagflow;
using namespace tagflow::devices;
using Types = std::vector<DataType>;

namespace {

struct TestedMutex {
  TestedMutex()
      : lock("MutexLock", {DataType::kResource}),
        consume("ConsumeMutexLock", {DataType::kVariant}),
        handle((*call_op(state, "MutexV2", {}, {{"shared_name", "m"}}))[0]) {}

  Status unlock(const Tensor& held) const {
    return Call(consume, {held}).start().status();
  }
  // Whether nobody has it.
  bool is_free() {
    Call call(lock, {handle});
    call.start();
    if (!call.is_over()) call.cancel();
    return call.status().ok();
  }

  ResourceManager state;
  TestedOp lock, consume;
  Tensor handle;
};

}  // namespace

TEST_CASE("a mutex is one's until its lock is consumed, or gone") {
  for (const bool at_once : {false, true}) {
    TestedMutex mutex;
    Call first(mutex.lock, {mutex.handle});
    first.start(at_once);
    REQUIRE(first.is_over());
    CHECK(first.waits_for() == "mutex \"m\" is locked");
    CHECK_FALSE(mutex.is_free());
    CHECK(mutex.unlock(first.output()).ok());
    CHECK(mutex.is_free());
    expect_error(mutex.unlock(first.output()), Code::kInvalidArgument,
                 "the lock of mutex \"m\" has been consumed before");
    {
      Call second(mutex.lock, {mutex.handle});
      CHECK(second.start(at_once).status().ok());
      CHECK_FALSE(mutex.is_free());
    }  // as a step that failed
    CHECK(mutex.is_free());
  }
}

TEST_CASE("a mutex goes to those that wait in turn, not to cancelled ones") {
  TestedMutex mutex;
  auto first = std::make_unique<Call>(mutex.lock, std::vector{mutex.handle});
  first->start();
  Call second(mutex.lock, {mutex.handle}), third(mutex.lock, {mutex.handle}),
      fourth(mutex.lock, {mutex.handle});
  second.start();
  third.start();
  fourth.start();
  CHECK_FALSE(second.is_over());
  second.cancel();
  CHECK(second.status().code() == Code::kCancelled);
  CHECK_FALSE(third.is_over());
  first.reset();
  CHECK(third.is_over());
  CHECK_FALSE(fourth.is_over());
  CHECK(mutex.unlock(third.output()).ok());
  CHECK(fourth.is_over());
  CHECK(mutex.unlock(fourth.output()).ok());
  CHECK(mutex.is_free());
}

TEST_CASE("very many that wait for a mutex that has ended hear of it") {
  TestedMutex mutex;
  auto first = std::make_unique<Call>(mutex.lock, std::vector{mutex.handle});
  first->start();
  constexpr int kWaiting = 20'000;
  std::vector<std::unique_ptr<Call>> calls;
  for (int i = 0; i < kWaiting; ++i) {
    calls.push_back(
        std::make_unique<Call>(mutex.lock, std::vector{mutex.handle}));
    calls.back()->start();
  }
  mutex.state.reset(std::vector<std::string>{""});
  CHECK_FALSE(calls[0]->is_over());
  first.reset();
  int ended = 0;
  for (const auto& call : calls) {
    REQUIRE(call->is_over());
    ended += call->status().code() == Code::kCancelled;
  }
  CHECK(ended == kWaiting);
  expect_error(Call(mutex.lock, {mutex.handle}).start().status(),
               Code::kCancelled, "");
}

TEST_CASE("a mutex stays free, and a wait has one answer, without memory") {
  for (const bool at_once : {true, false}) {
    TestedMutex mutex;
    for (int64_t k = 1;; ++k) {
      auto call = std::make_unique<Call>(mutex.lock, std::vector{mutex.handle});
      FailAllocation fail(k);
      call->start(at_once);
      fail.stop();
      REQUIRE(call->is_over());
      if (!fail.failed()) break;
      call.reset();
      CHECK(mutex.is_free());
    }
  }
  TestedMutex mutex;
  Call first(mutex.lock, {mutex.handle});
  first.start();
  for (int64_t k = 1;; ++k) {
    Call call(mutex.lock, {mutex.handle});
    FailAllocation fail(k);
    call.start();
    fail.stop();
    call.cancel();
    CHECK(call.answers() == 1);
    if (!fail.failed()) break;
  }
  CHECK(mutex.unlock(first.output()).ok());
  CHECK(mutex.is_free());
  CHECK(without_tensor_memory(mutex.lock, {mutex.handle}).code() ==
        Code::kResourceExhausted);
  CHECK(mutex.is_free());
}

TEST_CASE("a mutex op refuses inputs that are not a mutex or its lock") {
  const TestedMutex mutex;
  expect_error(Call(mutex.lock, {Tensor::make(DataType::kResource, {})})
                   .start()
                   .status(),
               Code::kInvalidArgument,
               "input 0 must be one mutex, not an empty handle");
  expect_error(mutex.unlock(Tensor::make(DataType::kVariant, {})),
               Code::kInvalidArgument,
               "input 0 must be one lock of a mutex, not an empty variant");
}

TEST_CASE("tensors that are left in a session are got by their handles") {
  ResourceManager state;
  const Tensor value = Tensor::vector<float>({1, 2});
  const Tensor a = (*call_op(state, "GetSessionHandle", {value}))[0];
  const Tensor b = (*call_op(state, "GetSessionHandle", {value}))[0];
  const auto text = a.scalar_value<std::string>();
  CHECK(text != b.scalar_value<std::string>());
  CHECK(text.ends_with(";/device:CPU:0"));
  const AttrMap floats{{"dtype", DataType::kFloat}};
  expect_close(call_op(state, "GetSessionTensor", {a}, floats), value);
  expect_error(
      call_op(state, "GetSessionTensor", {a}, {{"dtype", DataType::kInt32}}),
      Code::kInvalidArgument, "is float[2], not of int32");
  CHECK(call_op(state, "DeleteSessionTensor", {a}).ok());
  const std::string none =
      fmt::format("the session has no tensor of handle \"{}\"", text);
  expect_error(call_op(state, "GetSessionTensor", {a}, floats),
               Code::kInvalidArgument, none);
  expect_error(call_op(state, "DeleteSessionTensor", {a}),
               Code::kInvalidArgument, none);
  expect_close(call_op(state, "GetSessionTensor", {b}, floats), value);
  expect_error(call_op(state, "GetSessionTensor",
                       {Tensor::vector<std::string>({"x"})}, floats),
               Code::kInvalidArgument, "");
  const Tensor second = (*call_op(state, "GetSessionHandleV2", {value}))[0];
  CHECK(second.dtype() == DataType::kResource);
  CHECK(state.size() == 1);
  expect_error(run_op("GetSessionTensor", {a}, floats),
               Code::kFailedPrecondition, "there is no session");
}
