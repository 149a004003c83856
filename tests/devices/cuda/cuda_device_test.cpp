// A GPU as an accelerator: copies, their order, memory, and its destruction.
#include <doctest/doctest.h>

#include <chrono>
#include <latch>
#include <map>
#include <mutex>

#include "devices/tracking_allocator.h"
#include "tests/devices/cuda/gpu.h"
#include "tests/devices/kernel_fixture.h"

namespace tagflow::devices {

namespace {

constexpr int64_t kMebi = int64_t(1) << 20;

// Adds 1 to each element of x, `times` times, each launch on the result of the
// one before, as soon as that is answered.
Tensor add_ones(Accelerator& accelerator, Tensor x, int times) {
  for (int i = 0; i < times; ++i) {
    GpuLaunch launch("AddV2", {std::move(x), Tensor::scalar(1.0F)});
    x = launch.on(accelerator).output();
  }
  return x;
}

}  // namespace

TEST_CASE("GPU: copies of any size come back as they went") {
  const auto gpu = gpu_or_skip();
  if (gpu == nullptr) return;
  // Around the sizes of pinned pieces, and beyond all of them.
  for (const int64_t bytes :
       {int64_t(0), int64_t(4), int64_t(1000), kMebi, 4 * kMebi - 4, 4 * kMebi,
        4 * kMebi + 4, 40 * kMebi}) {
    CAPTURE(bytes);
    const Tensor there = floats(bytes / 4, 1);
    const auto sent = to_device(*gpu->accelerator(), there);
    REQUIRE_MESSAGE(sent.ok(), sent.status().to_string());
    const auto back = to_host(*gpu->accelerator(), *sent);
    REQUIRE_MESSAGE(back.ok(), back.status().to_string());
    CHECK(identical(*back, there));
  }
  CHECK(gpu->memory().in_use == 0);
}

TEST_CASE("GPU: many copies at once share the pinned memory") {
  const auto gpu = gpu_or_skip();
  if (gpu == nullptr) return;
  constexpr int kCopies = 200;
  std::vector<std::unique_ptr<Copy>> sent, fetched;
  for (int i = 0; i < kCopies; ++i) {
    sent.push_back(std::make_unique<Copy>());
    gpu->accelerator()->copy_from_host(floats(100000, float(i)),
                                       sent.back()->callback());
  }
  for (int i = 0; i < kCopies; ++i) {
    fetched.push_back(std::make_unique<Copy>());
    gpu->accelerator()->copy_to_host(*sent[size_t(i)]->answer(),
                                     fetched.back()->callback());
  }
  for (int i = 0; i < kCopies; ++i)
    CHECK(identical(*fetched[size_t(i)]->answer(), floats(100000, float(i))));
}

TEST_CASE("GPU: small values stay with the host, others go where kernels are") {
  const auto gpu = gpu_or_skip();
  if (gpu == nullptr) return;
  Accelerator& accelerator = *gpu->accelerator();
  CHECK(host_readable(*to_device(accelerator, Tensor::scalar(1.0F))));
  CHECK(host_readable(
      *to_device(accelerator, Tensor::make(DataType::kInt32, {64}))));
  CHECK_FALSE(host_readable(*to_device(accelerator, floats(10))));
  CHECK_FALSE(host_readable(*accelerator.upload(floats(10))));
  const Tensor there = *accelerator.upload(floats(10));
  CHECK(to_device(accelerator, there)->buffer() == there.buffer());
  const Tensor here = floats(10);
  CHECK(to_host(accelerator, here)->buffer() == here.buffer());
  CHECK(there.to_string() == "float[10] on a device");
}

TEST_CASE("GPU: results are handed on before they are computed, in order") {
  const auto gpu = gpu_or_skip();
  if (gpu == nullptr) return;
  constexpr int kTimes = 5000;  // more than may be in flight
  const Tensor end =
      add_ones(*gpu->accelerator(),
               *to_device(*gpu->accelerator(), floats(1000)), kTimes);
  const auto fetched = to_host(*gpu->accelerator(), end);
  REQUIRE(fetched.ok());
  expect_close(*fetched, floats(1000, float(kTimes)));
}

TEST_CASE("GPU: a copy to the host waits for its own launch only") {
  const auto gpu = gpu_or_skip();
  if (gpu == nullptr) return;
  Accelerator& accelerator = *gpu->accelerator();
  Tensor x = *to_device(accelerator, floats(1000));
  std::vector<std::unique_ptr<Copy>> copies;
  for (int i = 0; i < 100; ++i) {
    x = add_ones(accelerator, std::move(x), 1);
    copies.push_back(std::make_unique<Copy>());
    accelerator.copy_to_host(x, copies.back()->callback());
  }
  for (int i = 0; i < 100; ++i)
    expect_close(*copies[size_t(i)]->answer(), floats(1000, float(i + 1)));
}

TEST_CASE("GPU: an observer hears of kernels and copies, and when they were") {
  const auto gpu = gpu_or_skip();
  if (gpu == nullptr) return;
  using Stream = AcceleratorActivity::Stream;
  Accelerator& accelerator = *gpu->accelerator();
  std::mutex mutex;
  std::vector<std::pair<AcceleratorActivity, std::string>> seen;
  const auto begin = std::chrono::steady_clock::now();
  accelerator.observe([&](const AcceleratorActivity& activity) {
    const std::lock_guard lock(mutex);
    seen.emplace_back(activity, activity.what);
  });
  const auto run = [&] {
    const Tensor x = *to_device(accelerator, floats(kMebi, 1));
    CHECK(to_host(accelerator, add_ones(accelerator, x, 3)).ok());
  };
  run();
  accelerator.observe({});
  run();  // unseen
  const auto end = std::chrono::steady_clock::now();
  const std::lock_guard lock(mutex);
  std::map<Stream, int> count;
  auto last = begin;
  // Two clocks agree no better than this.
  constexpr std::chrono::milliseconds kApart{1};
  for (const auto& [activity, what] : seen) {
    ++count[activity.stream];
    CHECK(activity.start + kApart >= begin);
    CHECK(activity.start <= activity.end);
    CHECK(activity.end <= end + kApart);
    if (activity.stream != Stream::kExecution) {
      CHECK(activity.bytes == 4 * kMebi);
      continue;
    }
    CHECK(what == "op");
    CHECK(activity.start + kApart >= last);
    last = activity.end;
  }
  CHECK(count[Stream::kExecution] == 3);
  CHECK(count[Stream::kToDevice] == 1);
  CHECK(count[Stream::kToHost] == 1);
}

TEST_CASE("GPU: launches from many threads do not disturb one another") {
  const auto gpu = gpu_or_skip();
  if (gpu == nullptr) return;
  std::vector<Tensor> ends(4);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < ends.size(); ++t)
    threads.emplace_back([&, t] {
      Accelerator& accelerator = *gpu->accelerator();
      Tensor x = *to_device(accelerator, floats(500, float(t)));
      ends[t] = *to_host(accelerator, add_ones(accelerator, std::move(x), 300));
    });
  for (std::thread& thread : threads) thread.join();
  for (size_t t = 0; t < ends.size(); ++t)
    expect_close(ends[t], floats(500, 300 + float(t)));
  CHECK(gpu->memory().in_use == 0);
}

TEST_CASE("GPU: large inputs of the host come along with a launch") {
  const auto gpu = gpu_or_skip();
  if (gpu == nullptr) return;
  for (const int64_t count : {int64_t(7), int64_t(50000), 10 * kMebi}) {
    GpuLaunch launch("AddV2", {floats(count), floats(count, 1)});
    const auto sum =
        to_host(*gpu->accelerator(), launch.on(*gpu->accelerator()).output());
    REQUIRE(sum.ok());
    CHECK(sum->data<float>()[count - 1] == float(count - 1) + float(count));
  }
  // Many in one launch: more than the memory for them holds at a time.
  std::vector<Tensor> parts(40, floats(50000));
  parts.push_back(Tensor::scalar(0));
  GpuLaunch join("ConcatV2", parts, {{"N", int64_t(40)}});
  const auto joined =
      to_host(*gpu->accelerator(), join.on(*gpu->accelerator()).output());
  REQUIRE(joined.ok());
  for (int i = 0; i < 40; ++i)
    CHECK(joined->data<float>()[50000 * i + 49999] == 49999);
}

TEST_CASE(
    "GPU: a wait for pinned memory is not an error of the launch after it") {
  const auto gpu = gpu_or_skip();
  if (gpu == nullptr) return;
  // They have to wait for one another, and then for a kernel of our own.
  constexpr int kTerms = 40;
  GpuLaunch sum("AddN", std::vector<Tensor>(kTerms, floats(50000)),
                {{"N", int64_t(kTerms)}});
  const Status status = sum.on(*gpu->accelerator()).answer();
  REQUIRE_MESSAGE(status.ok(), status.to_string());
  const auto fetched = to_host(*gpu->accelerator(), sum.output());
  REQUIRE_MESSAGE(fetched.ok(), fetched.status().to_string());
  CHECK(fetched->data<float>()[1000] == 1000 * kTerms);
}

TEST_CASE("GPU: an axis on the GPU is fetched, later launches go on") {
  const auto gpu = gpu_or_skip();
  if (gpu == nullptr) return;
  Accelerator& accelerator = *gpu->accelerator();
  GpuLaunch sum("Sum",
                {*to_device(accelerator, floats(100)),
                 in_gpu(*gpu, Tensor::vector<int32_t>({0}))},
                {{"keep_dims", true}});
  const Tensor total = *to_host(accelerator, sum.on(accelerator).output());
  expect_close(total, Tensor::vector<float>({4950}));
}

TEST_CASE("GPU: small values make small values, or what is large on the GPU") {
  const auto gpu = gpu_or_skip();
  if (gpu == nullptr) return;
  for (const int32_t size : {3, 1000}) {
    GpuLaunch fill(
        "Fill", {Tensor::vector<int32_t>({size}), Tensor::scalar(int64_t(7))});
    const Tensor filled = fill.on(*gpu->accelerator()).output();
    CHECK(host_readable(filled) == (size == 3));
    expect_close(
        *to_host(*gpu->accelerator(), filled),
        Tensor::of<int64_t>({size}, std::vector<int64_t>(size_t(size), 7)));
  }
}

TEST_CASE("GPU: results of large work on the host come to the GPU") {
  const auto gpu = gpu_or_skip();
  if (gpu == nullptr) return;
  GpuLaunch range("Range", {Tensor::scalar(0.0F), Tensor::scalar(1000.0F),
                            Tensor::scalar(1.0F)});
  const Tensor there = range.on(*gpu->accelerator()).output();
  CHECK_FALSE(host_readable(there));
  expect_close(*to_host(*gpu->accelerator(), there), floats(1000));
}

TEST_CASE("GPU: memory is counted, limited, and there again when it is freed") {
  const auto gpu = gpu_or_skip({.memory = 16 * kMebi});
  if (gpu == nullptr) return;
  Accelerator& accelerator = *gpu->accelerator();
  {
    const Tensor x = *to_device(accelerator, floats(2 * kMebi));  // 8 MiB
    CHECK(gpu->memory().in_use == 8 * kMebi);
    CHECK(gpu->memory().live == 1);
    expect_error(to_device(accelerator, floats(3 * kMebi)),
                 Code::kResourceExhausted,
                 "device:GPU:0 (8 MiB in use of 16 MiB, peak 8 MiB, 1 buffer)");
    GpuLaunch twice("ConcatV2", {x, x, Tensor::scalar(0)}, {{"N", int64_t(2)}});
    expect_error(twice.on(accelerator).answer(), Code::kResourceExhausted,
                 "[tensor] out of memory: float[4194304] needs 16777216 bytes");
  }
  CHECK(gpu->memory().in_use == 0);
  // In stream order: 1000 times the memory that there is.
  Tensor x = *to_device(accelerator, floats(kMebi));
  x = add_ones(accelerator, std::move(x), 1000);
  expect_close(*to_host(accelerator, x), floats(kMebi, 1000), 1e-6);
  CHECK(gpu->memory().peak <= 16 * kMebi);
}

TEST_CASE("a GPU refuses a tensor beyond its memory, and says what is used") {
  const auto gpu = gpu_or_skip();
  if (gpu == nullptr) return;
  expect_error(Tensor::allocate(DataType::kInt8, {2 * gpu->info().memory_limit},
                                gpu->allocator()),
               Code::kResourceExhausted, "device:GPU:0 (0 B in use, peak 0 B");
  // Nothing of it is left.
  CHECK(to_device(*gpu->accelerator(), floats(100)).ok());
}

TEST_CASE("a GPU refuses a tensor that its memory cannot hold") {
  const auto gpu = gpu_or_skip();
  if (gpu == nullptr) return;
  expect_error(
      to_device(*gpu->accelerator(), Tensor::of<std::string>({2}, {"a", "b"})),
      Code::kInvalidArgument,
      "[cuda] string[2] cannot be in the memory of "
      "/job:localhost/replica:0/task:0/device:GPU:0");
  const auto elsewhere = TrackingAllocator::make({"elsewhere", 0, false});
  const Tensor foreign = *Tensor::allocate(DataType::kFloat, {10}, *elsewhere);
  for (const auto& copied : {to_device(*gpu->accelerator(), foreign),
                             to_host(*gpu->accelerator(), foreign)})
    expect_error(copied, Code::kInvalidArgument,
                 "[cuda] float[10] is not in the memory of "
                 "/job:localhost/replica:0/task:0/device:GPU:0, but in "
                 "elsewhere");
  GpuLaunch launch("Neg", {foreign});
  expect_error(launch.on(*gpu->accelerator()).answer(), Code::kInvalidArgument,
               "but in elsewhere");
}

TEST_CASE("GPU: a cancelled step's launch is answered, and others go on") {
  const auto gpu = gpu_or_skip();
  if (gpu == nullptr) return;
  GpuLaunch cancelled("Neg", {floats(100)});
  cancelled.cancelled = true;
  expect_error(cancelled.on(*gpu->accelerator()).answer(), Code::kCancelled,
               "[cuda] the step was cancelled");
  GpuLaunch next("Neg", {floats(100)});
  CHECK(next.on(*gpu->accelerator()).answer().ok());
}

TEST_CASE("tensors outlive their GPU") {
  auto gpu = gpu_or_skip();
  if (gpu == nullptr) return;
  Tensor x = *to_device(*gpu->accelerator(), floats(1000));
  GpuLaunch launch("Neg", {x});
  Tensor y = launch.on(*gpu->accelerator()).output();
  gpu.reset();
  launch.outputs.clear();
  launch.inputs.clear();
  CHECK(y.describe() == "float[1000]");
  x.reset();
  y.reset();
}

TEST_CASE("GPU: a callback may launch while a GPU goes") {
  auto gpu = gpu_or_skip();
  if (gpu == nullptr) return;
  Accelerator& accelerator = *gpu->accelerator();
  std::atomic<bool> going{false};
  GpuLaunch large("Neg", {floats(kMebi)});
  std::promise<void> launched;
  accelerator.copy_from_host(floats(1000), [&](const Result<Tensor>&) {
    while (!going) std::this_thread::yield();
    // Until the thread of launches is gone, should it be the first.
    bool here = false;
    for (int i = 0; i < 1000 && !here; ++i) {
      GpuLaunch probe("Neg", {floats(10)});
      probe.then = [&, self = std::this_thread::get_id()](const Status&) {
        here = std::this_thread::get_id() == self;
      };
      probe.on(accelerator);
      static_cast<void>(probe.answer());
    }
    large.on(accelerator);
    launched.set_value();
  });
  going = true;
  gpu.reset();
  launched.get_future().wait();
  const Status status = large.answer();
  if (!status.ok())
    expect_error(status, Code::kCancelled,
                 "[cuda] the device is being destroyed");
}

TEST_CASE("a GPU that is destroyed answers all that waits, once") {
  auto gpu = gpu_or_skip();
  if (gpu == nullptr) return;
  Accelerator& accelerator = *gpu->accelerator();
  const Tensor x = *to_device(accelerator, floats(1000));
  std::vector<std::unique_ptr<GpuLaunch>> launches;
  std::vector<std::unique_ptr<Copy>> copies;
  for (int i = 0; i < 200; ++i) {
    launches.push_back(
        std::make_unique<GpuLaunch>("Neg", std::vector<Tensor>{x}));
    launches.back()->on(accelerator);
    copies.push_back(std::make_unique<Copy>());
    accelerator.copy_to_host(x, copies.back()->callback());
  }
  gpu.reset();
  for (auto& launch : launches) {
    const Status status = launch->answer();
    if (!status.ok())
      expect_error(status, Code::kCancelled,
                   "[cuda] the device is being destroyed");
  }
  for (auto& copy : copies) {
    const auto answer = copy->answer();
    if (!answer.ok())
      expect_error(answer, Code::kCancelled,
                   "[cuda] the device is being destroyed");
  }
}

}  // namespace tagflow::devices
