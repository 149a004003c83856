// A foreign device whose methods throw, which violates their contract.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <memory>

#include "actors/watch/trace.h"
#include "devices/device_registry.h"
#include "devices/kernel_registry.h"
#include "devices/stream/stream_device.h"
#include "graph/builder/builder.h"
#include "tests/actors/sessions.h"

using namespace tagflow;
using namespace tagflow::actors;
using namespace tagflow::graph;

namespace {

enum class Throws : uint8_t { kNothing, kLaunch, kCopyToHost, kCopyFromHost };
std::atomic<Throws> throws = Throws::kNothing;

// Whether an observer is set.
std::atomic<bool> is_observed = false;

void maybe_throw(Throws method) {
  if (throws == method) throw 3;
}

// A stream device behind that.
class ThrowingDevice : public devices::Device, public devices::Accelerator {
 public:
  explicit ThrowingDevice(std::unique_ptr<devices::StreamDevice> inner)
      : devices::Device(inner->info()), inner_(std::move(inner)) {}
  Allocator& allocator() override { return inner_->allocator(); }
  devices::MemoryStats memory() const override { return inner_->memory(); }
  devices::Accelerator* accelerator() override { return this; }

  void launch(const devices::Kernel& kernel, devices::KernelContext& context,
              devices::Completion done) override {
    maybe_throw(Throws::kLaunch);
    inner_->launch(kernel, context, std::move(done));
  }
  void copy_to_host(Tensor tensor, Copied done, uint64_t step) override {
    maybe_throw(Throws::kCopyToHost);
    inner_->copy_to_host(std::move(tensor), std::move(done), step);
  }
  void copy_from_host(Tensor tensor, Copied done, uint64_t step) override {
    maybe_throw(Throws::kCopyFromHost);
    inner_->copy_from_host(std::move(tensor), std::move(done), step);
  }
  Result<Tensor> upload(const Tensor& tensor) override {
    return inner_->upload(tensor);
  }
  void observe(Observer observer) override {
    is_observed = bool(observer);
    inner_->observe(std::move(observer));
  }

 private:
  std::unique_ptr<devices::StreamDevice> inner_;
};

void register_throwing_device() {
  static const Status registered = [] {
    devices::KernelRegistry::global().inherit("THROWING", "CPU");
    devices::DeviceType type;
    type.keyword = "throwing";
    type.type = "THROWING";
    type.make =
        [](const devices::DeviceSpec&,
           const DeviceInfo& info) -> Result<std::unique_ptr<devices::Device>> {
      return std::unique_ptr<devices::Device>(std::make_unique<ThrowingDevice>(
          std::make_unique<devices::StreamDevice>(info)));
    };
    return devices::DeviceRegistry::global().add(type);
  }();
  REQUIRE(registered.ok());
}

}  // namespace

TEST_CASE("an exception of an accelerator is an error of its run") {
  register_throwing_device();
  Graph graph;
  const Scope s(graph);
  const Scope there = s.with_device("/device:THROWING:0");
  const Output x =
      ops::placeholder(s.named("x"), DataType::kFloat, PartialShape({1000}));
  // Two copies in each direction: an error that nobody takes, as another came
  // first, is not that of the next run.
  ops::neg(s.named("y"), ops::neg(there, ops::neg(s, x)));
  ops::neg(s.named("z"), ops::neg(there, ops::abs(s, x)));
  REQUIRE(s.status().ok());
  Tensor ones = Tensor::make(DataType::kFloat, {1000});
  std::ranges::fill(ones.mutable_flat<float>(), 1.0F);
  const std::vector<Feed> feeds{{"x", ones}};
  for (SessionOptions options : configurations()) {
    CAPTURE(describe(options));
    options.devices = "cpu:1,throwing:1";
    auto session = make_session(options, graph);
    for (const Throws method :
         {Throws::kLaunch, Throws::kCopyToHost, Throws::kCopyFromHost}) {
      CAPTURE(int(method));
      for (const bool is_traced : {false, true}) {
        throws = method;
        Trace trace;
        RunOptions run = within_a_minute();
        if (is_traced) run.trace = &trace;
        const auto failed = session->run(feeds, {"y", "z"}, {}, run);
        throws = Throws::kNothing;
        INFO(failed.status().to_string());
        CHECK(failed.status().code() == Code::kInternal);
        CHECK_FALSE(is_observed);
        const auto out = must_run(*session, feeds, {"y", "z"});
        CHECK(out[0].data<float>()[999] == -1);
        CHECK(out[1].data<float>()[999] == 1);
      }
    }
    CHECK(session->close().ok());
  }
}
