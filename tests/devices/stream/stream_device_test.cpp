// Kernels, copies and their order on the stream device.
#include "devices/stream/stream_device.h"

#include <doctest/doctest.h>

#include <mutex>
#include <set>
#include <thread>

#include "tests/devices/kernel_fixture.h"
#include "tests/devices/stream/launching.h"

namespace tagflow::devices {

using Streams = AcceleratorActivity::Stream;

TEST_CASE("a device of its own memory says so") {
  StreamDevice device(stream_info(3));
  CHECK(device.type() == "STREAM");
  CHECK(device.info().name.to_string() ==
        "/job:localhost/replica:0/task:0/device:STREAM:3");
  CHECK_FALSE(device.info().host_memory);
  CHECK(device.info().memory_limit == int64_t(2) << 30);
  CHECK_FALSE(device.allocator().host_visible());
  CHECK(device.accelerator() == &device);
}

TEST_CASE(
    "a kernel takes inputs from the device's memory, and leaves its "
    "outputs there") {
  StreamDevice device(stream_info());
  const Tensor x = *device.upload(floats(100));
  CHECK_FALSE(host_readable(x));
  Launch add("AddV2", {x, x});
  const Tensor sum = add.on(device).output();
  CHECK_FALSE(host_readable(sum));
  CHECK(sum.buffer()->allocator == &device.allocator());
  const Tensor fetched = *to_host(device, sum);
  CHECK(host_readable(fetched));
  for (int i = 0; i < 100; ++i) CHECK(fetched.data<float>()[i] == 2 * float(i));
}

TEST_CASE(
    "a scalar computed from the device's memory is there, and inline "
    "when it is fetched") {
  StreamDevice device(stream_info());
  Launch sum("Sum", {floats(10), Tensor::scalar(0)});
  const Tensor total = sum.on(device).output();
  CHECK_FALSE(host_readable(total));
  Launch add("AddV2", {total, Tensor::scalar(1.0f)});
  const Tensor fetched = *to_host(device, add.on(device).output());
  CHECK(fetched.is_inline_scalar());
  CHECK(fetched.scalar_value<float>() == 46);
}

TEST_CASE("a stream device keeps inline scalars inline") {
  StreamDevice device(stream_info());
  CHECK(to_device(device, Tensor::scalar(1.5f))->is_inline_scalar());
  CHECK(device.upload(Tensor::scalar(1.5f))->is_inline_scalar());
  Launch add("AddV2", {Tensor::scalar(1.5f), Tensor::scalar(2.0f)});
  CHECK(host_readable(add.on(device).output()));
  CHECK(device.memory().count == 0);
}

TEST_CASE("stream device: launches run in their order") {
  StreamDevice device(stream_info());
  std::vector<int> order;
  std::vector<std::unique_ptr<Launch>> launches;
  for (int i = 0; i < 200; ++i) {
    launches.push_back(std::make_unique<Launch>([&order, i](KernelContext&) {
      order.push_back(i);
      return Status();
    }));
    launches.back()->on(device);
  }
  CHECK(launches.back()->answer().ok());
  for (int i = 0; i < 200; ++i) CHECK(order.at(size_t(i)) == i);
}

TEST_CASE("stream device: the host's inputs are brought over first") {
  StreamDevice device(stream_info());
  std::vector<int64_t> copied;
  device.observe([&](const AcceleratorActivity& activity) {
    if (activity.stream == Streams::kToDevice) copied.push_back(activity.bytes);
  });
  const Tensor x = floats(100);
  Launch add("AddV2", {x, Tensor::scalar(1.0f)});
  const Tensor sum = add.on(device).output();
  CHECK_FALSE(host_readable(add.inputs[0]));
  CHECK(add.inputs[1].is_inline_scalar());
  CHECK(copied == std::vector<int64_t>{400});
  CHECK(to_host(device, sum)->data<float>()[99] == 100);
  CHECK(x.data<float>()[99] == 99);
}

TEST_CASE("stream device: an input is overwritten if nobody else holds it") {
  StreamDevice device(stream_info());
  Launch owned("Neg", {floats(50)});
  const Tensor negated = owned.on(device).output();
  CHECK(negated.buffer() == owned.inputs[0].buffer());
  owned.inputs.clear();
  Launch shared("Neg", {negated});
  CHECK(shared.on(device).output().buffer() != negated.buffer());
  CHECK(to_host(device, negated)->data<float>()[49] == -49);
}

TEST_CASE("stream device: observers come and go, and see what is done") {
  StreamDevice device(stream_info());
  const auto neg = [&] {
    Launch launch("Neg", {floats(10)});
    return launch.on(device).output();
  };
  neg();
  std::vector<std::string> first, second;
  const auto into = [](std::vector<std::string>& seen) {
    return [&seen](const AcceleratorActivity& activity) {
      if (activity.stream == Streams::kExecution)
        seen.emplace_back(activity.what);
    };
  };
  device.observe(into(first));
  neg();
  neg();
  device.observe(into(second));
  neg();
  device.observe({});
  neg();
  CHECK(first == std::vector<std::string>{"op", "op"});
  CHECK(second == std::vector<std::string>{"op"});
}

TEST_CASE("stream device: inputs are copied while a kernel before them runs") {
  StreamDevice device(stream_info());
  Gate copied;
  device.observe([&](const AcceleratorActivity& activity) {
    if (activity.stream == Streams::kToDevice) copied.open();
  });
  Launch first([&](KernelContext&) {
    copied.wait();
    return Status();
  });
  Launch second("Neg", {floats(10)});
  first.on(device);
  second.on(device);
  CHECK(second.answer().ok());
}

TEST_CASE("stream device: copies both ways go on while a kernel runs") {
  StreamDevice device(stream_info());
  const Tensor on_device = *device.upload(floats(10));
  Gate fetched, brought;
  Launch kernel([&](KernelContext&) {
    fetched.wait();
    brought.wait();
    return Status();
  });
  kernel.on(device);
  device.copy_to_host(on_device, [&](Result<Tensor>) { fetched.open(); });
  device.copy_from_host(floats(10), [&](Result<Tensor>) { brought.open(); });
  CHECK(kernel.answer().ok());
}

TEST_CASE("stream device: copies of a direction are answered in their order") {
  StreamDevice device(stream_info());
  std::vector<float> in, out;
  for (int i = 0; i < 50; ++i)
    device.copy_from_host(floats(20, float(i)), [&](Result<Tensor> tensor) {
      in.push_back(tensor->data<float>()[0]);  // a look where none is allowed
    });
  const Tensor last = *to_device(device, floats(20));
  for (int i = 0; i < 50; ++i)
    device.copy_to_host(*device.upload(floats(20, float(i))),
                        [&](Result<Tensor> tensor) {
                          out.push_back(tensor->data<float>()[0]);
                        });
  CHECK(to_host(device, last).ok());
  REQUIRE(in.size() == 50);
  REQUIRE(out.size() == 50);
  for (int i = 0; i < 50; ++i) {
    CHECK(in[size_t(i)] == float(i));
    CHECK(out[size_t(i)] == float(i));
  }
}

TEST_CASE("a stream device gives back a tensor that need not be copied") {
  StreamDevice device(stream_info());
  const Tensor host = floats(10);
  CHECK(to_host(device, host)->buffer() == host.buffer());
  const Tensor there = *to_device(device, host);
  CHECK(to_device(device, there)->buffer() == there.buffer());
  CHECK(device.upload(there)->buffer() == there.buffer());
  const Tensor empty =
      *to_device(device, Tensor::make(DataType::kFloat, {2, 0, 3}));
  CHECK(to_host(device, empty)->shape() == Shape{2, 0, 3});
}

TEST_CASE("a stream device refuses strings, handles and foreign memory") {
  StreamDevice device(stream_info(0)), other(stream_info(1));
  const std::string name = device.info().name.to_string();
  expect_error(to_device(device, Tensor::scalar("text")),
               Code::kInvalidArgument,
               "[stream] string[] cannot be in the memory of " + name);
  expect_error(device.upload(Tensor::make(DataType::kVariant, {2})),
               Code::kInvalidArgument, "variant[2] cannot be in the memory");
  const Tensor foreign = *other.upload(floats(10));
  const std::string text = "[stream] float[10] is not in the memory of " +
                           name + ", but in " + other.info().name.to_string() +
                           " (64 B in use of 2 GiB";
  expect_error(to_device(device, foreign), Code::kInvalidArgument, text);
  expect_error(to_host(device, foreign), Code::kInvalidArgument, text);
  expect_error(device.upload(foreign), Code::kInvalidArgument, text);
  Launch launch("Neg", {foreign});
  expect_error(launch.on(device).answer(), Code::kInvalidArgument, text);
}

TEST_CASE("stream device: outputs made elsewhere come to its memory") {
  StreamDevice device(stream_info());
  Launch launch(
      [](KernelContext& context) {
        context.set_output(0, floats(10, 5));
        return Status();
      },
      {Tensor::scalar(1.0f)});
  const Tensor output = launch.on(device).output();
  CHECK_FALSE(host_readable(output));
  CHECK(to_host(device, output)->data<float>()[0] == 5);
}

TEST_CASE("a kernel sees the device's allocator, its step and no workers") {
  StreamDevice device(stream_info());
  class NoParallel : public Parallel {
    void run(int64_t, double, RangeBody) override {
      FAIL("the device's thread is alone");
    }
  } parallel;
  Launch launch([&](KernelContext& context) {
    int64_t units = 0;
    context.parallel_for(
        10, 1e9, [&](int64_t begin, int64_t end) { units += end - begin; });
    if (units != 10) return context.fail("{} units", units);
    if (&context.allocator() != &device.allocator() ||
        context.step().step_id != 42)
      return context.fail("another context");
    return Status();
  });
  launch.step.step_id = 42;
  launch.step.parallel = &parallel;
  const Status status = launch.on(device).answer();
  CHECK_MESSAGE(status.ok(), status.to_string());
}

TEST_CASE("stream device: an answer may launch and copy what comes next") {
  StreamDevice device(stream_info());
  Launch second("Neg", {floats(10)});
  Copy copy;
  second.then = [&](const Status&) {
    device.copy_to_host(second.outputs[0], copy.callback());
  };
  Launch first("Neg", {floats(10)});
  first.then = [&](const Status&) { second.on(device); };
  first.on(device);
  CHECK(copy.answer()->data<float>()[3] == -3);
}

TEST_CASE("stream device: many threads launch and copy") {
  StreamDevice device(stream_info());
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      Tensor value = *to_device(device, floats(64, float(t)));
      for (int i = 0; i < 100; ++i) {
        // Every other one adds what is still with the host.
        Launch add("AddV2",
                   {value, i % 2 ? floats(64) : *device.upload(floats(64))});
        value = add.on(device).output();
      }
      const Tensor result = *to_host(device, value);
      for (int i = 0; i < 64; ++i)
        if (result.data<float>()[i] != float(t) + 101 * float(i)) ++wrong;
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(device.memory().in_use == 0);
  CHECK(device.memory().live == 0);
}

TEST_CASE("stream device: an observer is told of every kernel and copy") {
  StreamDevice device(stream_info());
  std::mutex mutex;
  std::vector<std::string> seen;
  bool ordered = true;
  device.observe([&](const AcceleratorActivity& activity) {
    std::lock_guard lock(mutex);
    ordered = ordered && activity.start <= activity.end;
    seen.push_back(fmt::format("{} {} {}", int(activity.stream), activity.what,
                               activity.bytes));
  });
  const Tensor x = *to_device(device, floats(16));
  Launch neg("Neg", {x});
  CHECK(to_host(device, neg.on(device).output()).ok());
  CHECK(ordered);
  CHECK(seen == std::vector<std::string>{"1  64", "0 op 0", "2  64"});
}

TEST_CASE("stream device: kernels and copies take the time asked for") {
  StreamOptions options;
  options.launch_latency = std::chrono::microseconds(30);
  options.copy_latency = std::chrono::microseconds(10);
  options.bandwidth = 1000000000;  // a byte per nanosecond
  StreamDevice device(stream_info(), options);
  CHECK(device.info().launch_ns >= 30000);
  CHECK(device.info().link_latency_ns >= 10000);
  CHECK(device.info().link_bytes_per_ns == 1);
  const Tensor x = *to_device(device, floats(250000));
  for (int i = 0; i < 3; ++i) {
    Launch neg("Neg", {x});
    CHECK(neg.on(device).answer().ok());
  }
  CHECK(to_host(device, x).ok());
  CHECK(device.busy(Streams::kExecution) >= std::chrono::microseconds(90));
  CHECK(device.busy(Streams::kToDevice) >= std::chrono::microseconds(1010));
  CHECK(device.busy(Streams::kToHost) >= std::chrono::microseconds(1010));
}

}  // namespace tagflow::devices
