// What processes say of themselves, by a cluster of this process.
#include "net/metrics/pages.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "net/metrics/link_probe.h"
#include "tests/actors/process_cases.h"
#include "tests/net/control/cluster_of.h"
#include "tests/net/metrics/metric_parser.h"
#include "tests/net/service/service.h"

namespace tagflow::net {
namespace {

using namespace tagflow::graph;  // NOLINT: for tests
using graph::testing::must;

constexpr char kHere[] = "/job:worker/task:0";
constexpr char kThere[] = "/job:worker/task:1";

template <class Figures>
ParsedMetrics parsed(void (*write)(MetricText&, const Figures&),
                     const Figures& figures) {
  MetricText text;
  write(text, figures);
  auto metrics = MetricParser::parse(text.text());
  INFO(metrics.status().to_string());
  REQUIRE(metrics.ok());
  return std::move(*metrics);
}

ParsedMetrics of(const Worker& worker) {
  return parsed(write_worker, worker.figures());
}
ParsedMetrics of(const Cluster& cluster) {
  return parsed(write_cluster, cluster.figures());
}
ParsedMetrics of(MasterService& service) {
  return parsed(write_service, service.figures());
}

std::string with(const std::string& name, const std::string& label,
                 const std::string& value) {
  return name + "{" + label + "=\"" + value + "\"}";
}

// 12 / x, of which each worker has a half: 0 is an error of task 1.
struct Quotient : actors::Program {
  Quotient() {
    const Output x = ops::placeholder(s.with_device(kHere).named("x"),
                                      DataType::kInt32, PartialShape::scalar());
    const Scope there = s.with_device(kThere);
    ops::identity(s.with_device(kHere).named("y"),
                  ops::floor_div(there, ops::constant(there, 12), x));
    must(s.status());
  }
};

struct Running {
  Running() {
    ClusterOptions options = local_cluster();
    for (uint32_t task = 0; task < 2; ++task) {
      WorkerOptions worker = local_worker(task);
      worker.devices = "cpu:1:memory=64MiB";
      workers.push_back(start_worker(std::move(worker)));
      options.members.push_back({{"worker", task}, workers.back().address()});
    }
    cluster = must(Cluster::connect(std::move(options)));
    actors::SessionOptions session_options;
    session_options.backend = cluster;
    session_options.passes = PassSet::none();
    session = actors::make_session(session_options, quotient.graph);
  }
  Status run(int x) {
    return session
        ->run({{"x", Tensor::scalar<int32_t>(x)}}, {"y"}, {},
              actors::within_a_minute())
        .status();
  }
  const Worker& worker(size_t task) const { return *workers[task].worker; }

  const Quotient quotient;
  std::vector<Joined> workers;
  std::shared_ptr<Cluster> cluster;
  std::unique_ptr<actors::Session> session;
};

TEST_CASE("workers and their master count steps by how they end") {
  Running running;
  CHECK(of(running.worker(0))["tagflow_steps_begun_total"] == 0);
  for (int i = 0; i < 3; ++i) must(running.run(4));
  REQUIRE(running.run(0).code() == Code::kInvalidArgument);
  const std::string failed =
      with("tagflow_steps_failed_total", "code", "InvalidArgument");
  ParsedMetrics master = of(*running.cluster);
  CHECK(master["tagflow_steps_begun_total"] == 4);
  CHECK(master["tagflow_steps_finished_total"] == 3);
  CHECK(master[failed] == 1);
  CHECK(master["tagflow_steps_running"] == 0);
  CHECK(master["tagflow_executables"] == 1);
  CHECK(master[with("tagflow_steps_failed_total", "code", "Deadlock")] == 0);
  for (size_t task = 0; task < 2; ++task) {
    const ParsedMetrics worker = of(running.worker(task));
    CHECK(worker["tagflow_steps_begun_total"] == 4);
    CHECK(worker["tagflow_steps_finished_total"] == 3);
    CHECK(worker[failed] == 1);
    CHECK(worker["tagflow_executables"] == 1);
    CHECK(worker["tagflow_serving"] == 1);
    CHECK(worker["tagflow_has_master"] == 1);
    CHECK(worker["tagflow_leaving"] == 0);
  }
}

TEST_CASE("counts of a worker outlive its master") {
  Running running;
  must(running.run(4));
  running.session.reset();
  running.cluster.reset();
  wait_until(
      [&] { return of(running.worker(0))["tagflow_incarnations_total"] == 2; });
  const ParsedMetrics worker = of(running.worker(0));
  CHECK(worker["tagflow_steps_finished_total"] == 1);
  CHECK(worker["tagflow_has_master"] == 0);
  CHECK(worker["tagflow_executables"] == 0);
}

TEST_CASE("links are counted at both of their ends") {
  Running running;
  must(running.run(4));
  const ParsedMetrics here = of(running.worker(0)),
                      there = of(running.worker(1));
  const ParsedMetrics master = of(*running.cluster);
  for (const char* name :
       {"tagflow_link_received_bytes_total", "tagflow_link_sent_bytes_total",
        "tagflow_link_received_frames_total",
        "tagflow_link_sent_frames_total"}) {
    CAPTURE(name);
    CHECK(here[with(name, "peer", kThere)] > 0);
    CHECK(there[with(name, "peer", kHere)] > 0);
    CHECK(here[with(name, "peer", "the master")] > 0);
    CHECK(master[with(name, "peer", kHere)] > 0);
    CHECK(master[with(name, "peer", kThere)] > 0);
  }
  // Each step brings a feed, a token each way, and the answers.
  for (int i = 0; i < 10; ++i) must(running.run(4));
  const std::string sent =
      with("tagflow_link_sent_frames_total", "peer", kThere);
  CHECK(of(running.worker(0))[sent] >= here[sent] + 10);
  const std::string round_trip =
      with("tagflow_link_round_trip_seconds", "peer", kHere);
  wait_until([&] { return of(*running.cluster)[round_trip] > 0; });
}

TEST_CASE("links to one peer are one") {
  Traffic first, second;
  first.bytes_in = 5;
  first.frames_out = 1;
  first.round_trip_ns = 2'000;
  second.bytes_in = 6;
  MetricText text;
  write_links(text, {{"a", first}, {"b", first}, {"a", second}});
  const auto metrics = MetricParser::parse(text.text());
  REQUIRE(metrics.ok());
  const char* received = "tagflow_link_received_bytes_total";
  CHECK((*metrics)[with(received, "peer", "a")] == 11);
  CHECK((*metrics)[with(received, "peer", "b")] == 5);
  CHECK((*metrics)[with("tagflow_link_sent_frames_total", "peer", "a")] == 1);
  CHECK((*metrics)[with("tagflow_link_round_trip_seconds", "peer", "a")] ==
        2e-6);
}

TEST_CASE("a master says in which state its workers are") {
  Running running;
  const auto state = [&](const char* task, const char* name) {
    return of(
        *running.cluster)["tagflow_member_state{state=\"" + std::string(name) +
                          "\",task=\"" + task + "\"}"];
  };
  CHECK(state(kHere, "ready") == 1);
  CHECK(state(kThere, "ready") == 1);
  CHECK(state(kThere, "lost") == 0);
  running.workers[1].worker.reset();
  wait_until([&] { return state(kThere, "lost") == 1; });
  CHECK(state(kThere, "ready") == 0);
  CHECK(state(kHere, "ready") == 1);
  // It has no link any more; and what needs it fails by its loss.
  CHECK(!(of(*running.cluster)[with("tagflow_link_sent_bytes_total", "peer",
                                    kThere)] >= 0));
  CHECK(running.run(4).code() == Code::kUnavailable);
}

TEST_CASE("a worker says that it leaves, and that it has left") {
  Running running;
  Worker& worker = *running.workers[0].worker;
  CHECK(worker.figures().is_serving);
  CHECK(worker.drain(std::chrono::minutes(2)));
  const WorkerFigures figures = worker.figures();
  CHECK(figures.is_leaving);
  CHECK(figures.has_ended);
  CHECK(!figures.is_serving);
  CHECK(of(worker)["tagflow_leaving"] == 1);
}

TEST_CASE("a worker says what its devices have") {
  const Running running;
  actors::Program p;
  const Scope here = p.s.with_device(kHere);
  constexpr int kMany = 1 << 18;
  const Output large =
      ops::fill(here, ops::constant(here, Tensor::of<int32_t>({1}, {kMany})),
                ops::constant(here, 3.f));
  ops::identity(here.named("large"), large);
  must(p.s.status());
  actors::SessionOptions options;
  options.backend = running.cluster;
  options.passes = PassSet::none();
  const auto session = actors::make_session(options, p.graph);
  must(session->run({}, {"large"}, {}, actors::within_a_minute()));
  const ParsedMetrics worker = of(running.worker(0));
  const std::string device = "/job:worker/replica:0/task:0/device:CPU:0";
  CHECK(worker[with("tagflow_device_memory_limit_bytes", "device", device)] ==
        64 << 20);
  CHECK(worker[with("tagflow_device_memory_in_use_bytes", "device", device)] >=
        0);
  CHECK(worker[with("tagflow_device_memory_peak_bytes", "device", device)] >=
        double(kMany) * sizeof(float));
}

TEST_CASE("a service counts its clients, sessions and runs") {
  const auto service = service_of({.active_runs = 1});
  CHECK(of(*service)["tagflow_clients"] == 0);
  actors::Program p;
  const ops::Queue queue =
      ops::fifo_queue(p.s.named("queue"), {DataType::kFloat}, {.capacity = 8});
  ops::identity(p.s.named("take"), ops::dequeue(p.s, queue)[0]);
  const Output last = while_loop(
      p.s,
      [](const Scope& in, const Outputs& i) { return ops::less(in, i[0], 2); },
      // The sign changes, so that it has no end.
      [](const Scope& in, const Outputs& i) -> Outputs {
        return {ops::mul(in, i[0], -1)};
      },
      {ops::constant(p.s, 1)})[0];
  ops::identity(p.s.named("loop"), last);
  must(p.s.status());
  ServedClient one(*service, p.graph), two(*service, p.graph);
  const uint64_t loop = one.prepare({"loop"});
  Answered runs[3];
  for (uint64_t i = 0; i < 3; ++i)
    must(one.client->run(loop, i, {}, runs[i].done()));
  ParsedMetrics figures = of(*service);
  CHECK(figures["tagflow_clients"] == 2);
  CHECK(figures["tagflow_sessions"] == 2);
  CHECK(figures["tagflow_signatures"] == 1);
  CHECK(figures["tagflow_runs_begun"] == 1);
  CHECK(figures["tagflow_runs_queued"] == 2);
  one.client->leave();
  CHECK(of(*service)["tagflow_runs_begun"] == 0);
  CHECK(of(*service)["tagflow_runs_queued"] == 0);
  // A run that waits for an event has begun, too.
  must(two.client->run(two.prepare({"take"}), 1, {}, runs[0].done()));
  wait_until([&] {
    service->look();
    return of(*service)["tagflow_runs_waiting"] == 1;
  });
  CHECK(of(*service)["tagflow_runs_begun"] == 1);
}

TEST_CASE("a process says what the system gives it") {
  const auto figures = [] {
    MetricText text;
    write_process(text);
    auto metrics = MetricParser::parse(text.text());
    INFO(metrics.status().to_string());
    REQUIRE(metrics.ok());
    return std::move(*metrics);
  };
  const ParsedMetrics before = figures();
  const double now = double(::time(nullptr));
  CHECK(before["process_start_time_seconds"] > 1e9);
  CHECK(before["process_start_time_seconds"] <= now + 1);
  CHECK(before["process_resident_memory_bytes"] > 1e6);
  CHECK(before["process_virtual_memory_bytes"] >
        before["process_resident_memory_bytes"]);
  CHECK(before["process_cpu_seconds_total"] >= 0);
  CHECK(before["process_max_fds"] >= before["process_open_fds"]);
  int opened[2];
  REQUIRE(::pipe(opened) == 0);
  CHECK(figures()["process_open_fds"] == before["process_open_fds"] + 2);
  for (const int descriptor : opened) ::close(descriptor);
}

TEST_CASE("a probe names the thread that does not answer") {
  const IoThreads threads = must(IoThreads::start());
  LinkProbe probe(threads);
  must(probe.check());
  for (const bool is_small : {true, false}) {
    CAPTURE(is_small);
    std::promise<void> begins, goes_on;
    (is_small ? *threads.small : *threads.bulk).post([&] {
      begins.set_value();
      goes_on.get_future().wait();
    });
    begins.get_future().wait();
    // On a busy machine the other one may be late, too.
    for (int i = 0; i < 3; ++i)
      wait_until([&] {
        const Status status = probe.check(std::chrono::milliseconds(20));
        CHECK(status.code() == Code::kUnavailable);
        return mentions(status, is_small ? "small links" : "bulk links");
      });
    goes_on.set_value();
    wait_until([&] { return probe.check().ok(); });
  }
}

}  // namespace
}  // namespace tagflow::net
