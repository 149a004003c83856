// Devices of workers, which their master has not.
#include <doctest/doctest.h>

#include <string>

#include "tests/actors/process_cases.h"
#include "tests/net/local_worker.h"

namespace tagflow::net {
namespace {

using namespace tagflow::graph;  // NOLINT: for tests
using graph::testing::must;

// The error of (double)x on a device of 64 KiB, where x has 128 KiB.
Status feed_too_much(const std::string& device,
                     const actors::SessionOptions& options) {
  actors::Program program;
  const Scope s = program.s.with_device(device);
  const Output x =
      ops::placeholder(s.named("x"), DataType::kFloat, PartialShape());
  const Output y = ops::cast(s.named("y"), x, DataType::kDouble);
  must(program.s.status());
  const auto session = actors::make_session(options, program.graph);
  const Tensor fed = Tensor::make(DataType::kFloat, {32 << 10});
  return session->run({{"x", fed}}, {y.name()}).status();
}

// As a worker says it.
std::string at_worker(std::string_view text) {
  std::string changed(text);
  const auto replace = [&](std::string_view from, std::string_view to) {
    const size_t at = changed.find(from);
    REQUIRE(at != std::string::npos);
    changed.replace(at, from.size(), to);
  };
  replace("/job:localhost/replica:0/task:0", "/job:worker/replica:0/task:0");
  replace(", device /device:", ", device /job:worker/task:0/device:");
  return changed;
}

}  // namespace

TEST_CASE(
    "a feed above the memory of a worker's device fails as in a process") {
  const std::string devices = "cpu:1:memory=64KiB,stream:1:memory=64KiB";
  WorkerOptions options = local_worker(0);
  options.devices = devices;
  const auto worker = must(Worker::start(std::move(options)));
  ClusterOptions cluster = local_cluster();
  cluster.members.push_back({{"worker", 0}, {"localhost", worker->port()}});
  actors::SessionOptions here, there;
  here.devices = devices;
  there.backend = must(Cluster::connect(std::move(cluster)));
  for (const std::string device : {"/device:CPU:0", "/device:STREAM:0"}) {
    CAPTURE(device);
    const Status local = feed_too_much(device, here);
    const Status remote = feed_too_much(device, there);
    CHECK(local.code() == Code::kResourceExhausted);
    CHECK(remote.code() == Code::kResourceExhausted);
    CHECK(remote.message() == at_worker(local.message()));
  }
}

}  // namespace tagflow::net
