// Failures of the stream device: memory, kernels, cancellation, destruction.
#include <doctest/doctest.h>

#include <atomic>
#include <new>
#include <stdexcept>
#include <thread>

#include "tests/devices/kernel_fixture.h"
#include "tests/devices/stream/launching.h"
#include "tests/failing_new.h"

namespace tagflow::devices {

namespace {

StreamOptions with_memory(int64_t bytes) {
  StreamOptions options;
  options.memory = bytes;
  return options;
}

constexpr int64_t kKiB = 1024;

}  // namespace

TEST_CASE("a stream device goes on after a kernel exceeds its memory") {
  StreamDevice device(stream_info(), with_memory(64 * kKiB));
  const Tensor x = *device.upload(floats(12 * 256));  // 12 KiB
  Launch fill("Fill", {Tensor::vector<int32_t>({20000}), Tensor::scalar(1.0f)});
  expect_error(fill.on(device).answer(), Code::kResourceExhausted,
               "[tensor] out of memory: float[20000] needs 80000 bytes of "
               "/job:localhost/replica:0/task:0/device:STREAM:0 (12 KiB in use "
               "of 64 KiB, peak 12 KiB, 1 buffer)");
  Launch neg("Neg", {x});
  CHECK(neg.on(device).answer().ok());
}

TEST_CASE("a stream device refuses copies beyond its memory") {
  StreamDevice device(stream_info(), with_memory(kKiB));
  const std::string text =
      "float[300] needs 1200 bytes of "
      "/job:localhost/replica:0/task:0/device:STREAM:0 (0 B in use of 1 KiB, "
      "peak 0 B, 0 buffers)";
  expect_error(to_device(device, floats(300)), Code::kResourceExhausted, text);
  expect_error(device.upload(floats(300)), Code::kResourceExhausted, text);
  Launch neg("Neg", {floats(300)});
  expect_error(neg.on(device).answer(), Code::kResourceExhausted, text);
  CHECK(to_device(device, floats(256)).ok());
}

TEST_CASE("inputs that do not fit yet are copied at their kernel's turn") {
  StreamDevice device(stream_info(), with_memory(4 * kKiB));
  Gate gate;
  Launch first(
      [&](KernelContext&) {
        gate.wait();
        return Status();
      },
      {*device.upload(floats(700))});
  first.then = [&](const Status&) { first.inputs.clear(); };
  first.on(device);
  Launch second("Neg", {floats(700)});
  second.on(device);
  // What is copied after the attempt for the second has its answer after it.
  CHECK(to_device(device, floats(10)).ok());
  CHECK(host_readable(second.inputs[0]));
  gate.open();
  CHECK(to_host(device, second.output())->data<float>()[699] == -699);
}

TEST_CASE(
    "a kernel that fails or throws is answered with its error, and the "
    "next one runs") {
  StreamDevice device(stream_info());
  Launch fails(
      [](KernelContext& context) { return context.fail("bad {}", 7); });
  Launch no_memory([](KernelContext&) -> Status { throw std::bad_alloc(); });
  Launch throws(
      [](KernelContext&) -> Status { throw std::runtime_error("unforeseen"); });
  Launch throws_int([](KernelContext&) -> Status { throw 3; });
  Launch works([](KernelContext&) { return Status(); });
  for (Launch* launch : {&fails, &no_memory, &throws, &throws_int, &works})
    launch->on(device);
  expect_error(fails.answer(), Code::kInvalidArgument, "[NoOp] bad 7");
  expect_error(no_memory.answer(), Code::kResourceExhausted,
               "[NoOp] out of memory");
  expect_error(throws.answer(), Code::kInternal,
               "[NoOp] unexpected exception: unforeseen");
  expect_error(throws_int.answer(), Code::kInternal,
               "[NoOp] unexpected exception");
  CHECK(works.answer().ok());
}

TEST_CASE("a launch of a cancelled step is answered without running") {
  StreamDevice device(stream_info());
  Gate gate;
  Launch first([&](KernelContext&) {
    gate.wait();
    return Status();
  });
  int runs = 0;
  Launch second(
      [&](KernelContext&) {
        ++runs;
        return Status();
      },
      {floats(10)});
  first.on(device);
  second.on(device);
  second.cancelled = true;
  gate.open();
  CHECK(first.answer().ok());
  expect_error(second.answer(), Code::kCancelled,
               "[stream] the step was cancelled");
  CHECK(runs == 0);
}

TEST_CASE("a kernel that is told of its step's cancellation can end") {
  StreamDevice device(stream_info());
  Gate running;
  Launch launch([&](KernelContext& context) {
    running.open();
    while (!context.cancelled()) std::this_thread::yield();
    return error(Code::kCancelled, "seen");
  });
  launch.on(device);
  running.wait();
  launch.cancelled = true;
  expect_error(launch.answer(), Code::kCancelled, "seen");
}

TEST_CASE(
    "a device is destroyed with work in flight: each is answered once, "
    "nothing is left") {
  for (int round = 0; round < 20; ++round) {
    auto device = std::make_unique<StreamDevice>(stream_info());
    const Tensor x = *device->upload(floats(1000));
    Gate running, gate;
    std::vector<std::unique_ptr<Launch>> launches;
    launches.push_back(std::make_unique<Launch>([&](KernelContext&) {
      running.open();
      gate.wait();
      return Status();
    }));
    for (int i = 0; i < 20; ++i)
      launches.push_back(
          i % 2 ? std::make_unique<Launch>("Neg", std::vector{floats(1000)})
                : std::make_unique<Launch>("Neg", std::vector{x}));
    for (auto& launch : launches) launch->on(*device);
    std::vector<Copy> copies(20);
    for (size_t i = 0; i < copies.size(); ++i)
      i % 2 ? device->copy_to_host(x, copies[i].callback())
            : device->copy_from_host(floats(1000), copies[i].callback());
    running.wait();
    std::thread opener([&] { gate.open(); });
    device.reset();
    opener.join();

    CHECK(launches[0]->answer().ok());
    for (auto& launch : launches) {
      const Status status = launch->answer();
      if (!status.ok())
        expect_error(status, Code::kCancelled,
                     "[stream] the device is being destroyed");
    }
    for (Copy& copy : copies) {
      const Result<Tensor> tensor = copy.answer();
      if (!tensor.ok())
        expect_error(tensor, Code::kCancelled,
                     "[stream] the device is being destroyed");
    }
  }
}

TEST_CASE(
    "an answer at the device's end may still ask for more, and is "
    "refused") {
  auto owner = std::make_unique<StreamDevice>(stream_info());
  StreamDevice* device = owner.get();
  Gate running, gate;
  Launch after([](KernelContext&) { return Status(); }, {floats(10)});
  Copy copy_in;
  Launch before([&](KernelContext&) {
    running.open();
    gate.wait();
    return Status();
  });
  // Runs while the destructor waits, or before: answered in either case.
  before.then = [&](const Status&) {
    after.on(*device);
    device->copy_from_host(floats(10), copy_in.callback());
  };
  before.on(*device);
  running.wait();
  std::thread opener([&] { gate.open(); });
  owner.reset();
  opener.join();
  CHECK(before.answer().ok());
  for (const Status& status : {after.answer(), copy_in.answer().status()})
    if (!status.ok())
      expect_error(status, Code::kCancelled, "the device is being destroyed");
}

TEST_CASE("tensors outlive their device") {
  Tensor kept;
  {
    StreamDevice device(stream_info());
    Launch neg("Neg", {floats(100)});
    kept = neg.on(device).output();
  }
  const Tensor copy = kept;
  CHECK_FALSE(host_readable(copy));
  CHECK(copy.shape() == Shape{100});
}

TEST_CASE("an observer's exception is the error of the launch or copy") {
  StreamDevice device(stream_info());
  const Tensor x = *device.upload(floats(100));
  device.observe([](const AcceleratorActivity&) { throw 3; });
  Launch neg("Neg", {x});
  expect_error(neg.on(device).answer(), Code::kInternal,
               "[observer] unexpected exception of type int");
  expect_error(to_host(device, x), Code::kInternal, "[observer]");
  expect_error(to_device(device, floats(100)), Code::kInternal, "[observer]");
  device.observe({});
  Launch again("Neg", {x});
  CHECK(again.on(device).answer().ok());
}

TEST_CASE("a stream device answers once, whichever allocation fails") {
  StreamDevice device(stream_info());
  // Without memory of the test's own: callbacks that fit into themselves.
  struct Answers {
    std::atomic<int> count{0};
    std::atomic<int> errors{0};
    void take(bool ok) {
      errors += ok ? 0 : 1;
      ++count;
    }
  };
  Launch launched("Neg", {floats(1000)});
  const Tensor here = *device.upload(floats(1000));
  int64_t k = 1;
  for (;; ++k) {
    Answers answers;
    launched.inputs[0] = floats(1000);
    launched.prepare();
    FailAllocation fail(k);
    device.launch(launched.kernel(), *launched.context,
                  [&answers](Status status) { answers.take(status.ok()); });
    device.copy_to_host(
        here, [&answers](Result<Tensor> copy) { answers.take(copy.ok()); });
    device.copy_from_host(floats(1000), [&answers](Result<Tensor> copy) {
      answers.take(copy.ok());
    });
    while (answers.count < 3) std::this_thread::yield();
    fail.stop();
    CAPTURE(k);
    CHECK(answers.errors <= 1);
    if (!fail.failed()) {
      CHECK(answers.errors == 0);
      break;
    }
  }
  CHECK(k > 3);
  // Nothing comes a second time, and nothing is left in the device's memory
  // but what is held here.
  CHECK(to_host(device, here).ok());
  launched.outputs.clear();
  launched.inputs.clear();
  CHECK(device.memory().live == 1);
}

}  // namespace tagflow::devices
