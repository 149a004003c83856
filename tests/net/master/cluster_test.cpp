// One step over several workers of this process, through sockets.
#include "net/master/cluster.h"

#include <doctest/doctest.h>

#include <bit>
#include <chrono>
#include <limits>
#include <thread>

#include "actors/watch/observer.h"
#include "autodiff/gradients.h"
#include "autodiff/train/optimizers.h"
#include "graph/builder/rnn_cell.h"
#include "tests/actors/process_cases.h"
#include "tests/net/link/test_certificates.h"
#include "tests/net/local_worker.h"

namespace tagflow::net {
namespace {

using namespace tagflow::graph;  // NOLINT: for tests
using graph::testing::contains;
using graph::testing::must;

// Workers, and their master, which goes first.
class Sockets final : public actors::Backend {
 public:
  Sockets(int count, const std::string& devices, int threads,
          bool has_local_door = true, bool has_tls = false) {
    if (has_tls) options_.tls = master_tls();
    for (uint32_t task = 0; task < uint32_t(count); ++task) {
      WorkerOptions worker = local_worker(task);
      worker.devices = devices;
      worker.workers = threads;
      worker.has_local_door = has_local_door;
      if (has_tls) worker.tls = worker_tls(task);
      workers_.push_back(must(Worker::start(std::move(worker))));
      options_.members.push_back(
          {{"worker", task}, {"localhost", workers_.back()->port()}});
    }
    cluster_ = must(Cluster::connect(options_));
  }

  std::span<const DeviceInfo> devices() const override {
    return cluster_->devices();
  }
  const KernelCatalog& kernels() const override { return cluster_->kernels(); }
  Result<Made> make(std::vector<Partition> partitions,
                    std::vector<std::string> fetches,
                    const actors::SessionOptions& options,
                    Budget* budget) override {
    return cluster_->make(std::move(partitions), std::move(fetches), options,
                          budget);
  }
  Status reset(const std::vector<std::string>& containers) override {
    return cluster_->reset(containers);
  }
  bool has_local_files() const override { return false; }
  void close_worker(size_t task) { workers_[task].reset(); }
  const ClusterOptions& options() const { return options_; }
  // Another master takes the place of the present one, when the workers have
  // ended what they had for it.
  void reconnect() {
    cluster_.reset();
    for (;;) {
      auto cluster = Cluster::connect(options_);
      if (!cluster.ok()) continue;
      cluster_ = std::move(*cluster);
      return;
    }
  }

 private:
  ClusterOptions options_ = local_cluster();
  std::vector<std::unique_ptr<Worker>> workers_;
  std::shared_ptr<Cluster> cluster_;
};

std::shared_ptr<actors::Backend> over_sockets(int count,
                                              const std::string& devices,
                                              int workers, uint64_t /*seed*/) {
  return std::make_shared<Sockets>(count, devices, workers);
}

std::shared_ptr<actors::Backend> over_tcp(int count, const std::string& devices,
                                          int workers, uint64_t /*seed*/) {
  return std::make_shared<Sockets>(count, devices, workers, false);
}

std::shared_ptr<actors::Backend> over_tls(int count, const std::string& devices,
                                          int workers, uint64_t /*seed*/) {
  return std::make_shared<Sockets>(count, devices, workers, true, true);
}

// A loop on one device that adds 1 to a number on another one, with a window
// of 32.
struct Trips : actors::Program {
  explicit Trips(int trips, const std::string& home = "/job:worker/task:0",
                 const std::string& away = "/job:worker/task:1") {
    out = while_loop(
        s.named("loop"),
        [&](const Scope& in, const Outputs& v) {
          return ops::less(in.with_device(home), v[0], trips);
        },
        [&](const Scope& in, const Outputs& v) -> Outputs {
          const Scope here = in.with_device(home);
          const Scope there = in.with_device(away);
          return {ops::add(here, v[0], 1),
                  ops::identity(here, ops::add(there, v[1], 1.f))};
        },
        {ops::constant(s, 0), ops::constant(s, 1.f)},
        {.parallel_iterations = 32})[1];
    must(s.status());
  }
  Output out;
};

// Two layers of an LSTM over "n" rows of "x", in one loop: the loss, its
// gradients by all weights, and "train", a step of descent. Each layer and its
// weights are on a worker of their own, or all are where placement puts them.
struct Lstm : actors::Program {
  static constexpr int64_t kBatch = 3, kInputs = 4;

  explicit Lstm(bool over_workers) {
    const auto at = [&](const Scope& in, int layer) {
      return over_workers
                 ? in.with_device(fmt::format("/job:worker/task:{}", layer))
                 : in;
    };
    const VariableScope vars = VariableScope().with_initializer(
        initializers::random_uniform(-0.5, 0.5, {.seed = 7, .seed2 = 11}));
    const RnnCellPtr cells[] = {lstm_cell({.units = 5}),
                                lstm_cell({.units = 6})};
    const CellFn steps[] = {cells[0]->build(at(s, 0), vars.sub_scope("first"),
                                            kInputs, DataType::kFloat),
                            cells[1]->build(at(s, 1), vars.sub_scope("second"),
                                            5, DataType::kFloat)};
    const Output n = input("n", DataType::kInt32, PartialShape({}));
    const Output x = input("x", DataType::kFloat, {-1, kBatch, kInputs});
    Outputs first{ops::constant(at(s, 0), 0), ops::constant(at(s, 1), 0.f)};
    for (int k = 0; k < 2; ++k)
      for (const Output& zeros :
           cells[k]->zero_state(at(s, k), int(kBatch), DataType::kFloat))
        first.push_back(zeros);
    const Output loss = while_loop(
        s.named("loop"),
        [&](const Scope& in, const Outputs& v) {
          return ops::less(at(in, 0), v[0], n);
        },
        [&](const Scope& in, const Outputs& v) -> Outputs {
          const Scope here = at(in, 0), there = at(in, 1);
          const CellStep lower =
              steps[0](here, ops::gather(here, x, v[0]), {v[2], v[3]});
          const CellStep upper = steps[1](there, lower.output, {v[4], v[5]});
          const Output error = ops::reduce_mean(
              there, ops::square(there, ops::sub(there, upper.output, 0.25f)));
          return {ops::add(here, v[0], 1), ops::add(there, v[1], error),
                  lower.state[0],          lower.state[1],
                  upper.state[0],          upper.state[1]};
        },
        first)[1];
    fetches.push_back(loss.name());
    const auto gradients =
        autodiff::compute_gradients(s, loss, vars.trainable_variables());
    for (const auto& by : gradients)
      fetches.push_back(by.gradient.values.name());
    autodiff::optimizers::sgd(vars, 0.1).apply_gradients(s.named("train"),
                                                         gradients);
    vars.initialize(s.named("init"));
    must(s.status());
  }

  // The fetches of so many steps of training.
  std::vector<std::vector<Tensor>> train(const actors::SessionOptions& options,
                                         std::span<const int> lengths) const {
    const auto session = actors::make_session(options, graph);
    must(session->run({}, {}, {"init"}, actors::within_a_minute()));
    std::vector<std::vector<Tensor>> results;
    for (const int n : lengths) {
      Tensor x = Tensor::make(DataType::kFloat, {n, kBatch, kInputs});
      const auto flat = x.mutable_flat<float>();
      for (size_t i = 0; i < flat.size(); ++i) flat[i] = float(i % 17) / 8 - 1;
      results.push_back(
          must(session->run({{"n", Tensor::scalar(n)}, {"x", x}}, fetches,
                            {"train"}, actors::within_a_minute())));
    }
    return results;
  }

  std::vector<std::string> fetches;  // the loss, and the gradients
};

// If x > 0, doubles it until it is above 100, else negates it: task 1 decides,
// and task 0 computes.
struct Decided : actors::Program {
  Decided() {
    const auto here = [](const Scope& in) {
      return in.with_device("/job:worker/task:0");
    };
    const auto there = [](const Scope& in) {
      return in.with_device("/job:worker/task:1");
    };
    const Output x = input("x", DataType::kFloat, PartialShape({}));
    const Outputs results = cond(
        s.named("way"), ops::greater(there(s), x, 0.f),
        [&](const Scope& branch) {
          return while_loop(
              branch.named("loop"),
              [&](const Scope& in, const Outputs& v) {
                return ops::less_equal(there(in), v[1], 100.f);
              },
              [&](const Scope& in, const Outputs& v) -> Outputs {
                return {ops::add(here(in), v[0], 1),
                        ops::add(here(in), v[1], v[1])};
              },
              {ops::constant(here(branch), 0), ops::identity(here(branch), x)});
        },
        [&](const Scope& branch) -> Outputs {
          return {ops::constant(here(branch), -1), ops::neg(here(branch), x)};
        });
    const Output gradient = autodiff::dense_gradients(s, {results[1]}, {x})[0];
    must(s.status());
    for (const Output& o : {results[0], results[1], gradient})
      fetches.push_back(o.name());
  }

  std::vector<std::string> fetches;  // trips, the result, its gradient by x
};

}  // namespace

TEST_CASE("random graphs over workers agree with the reference") {
  actors::processes::check_random_graphs(over_sockets);
  actors::processes::check_random_graphs(over_tcp);
  actors::processes::check_random_graphs(over_tls);
}

TEST_CASE("an error at one worker ends the parts of all, which run again") {
  actors::processes::check_errors(over_sockets);
  actors::processes::check_errors(over_tcp);
  actors::processes::check_errors(over_tls);
}

TEST_CASE(
    "an error of a part names its task, and a dead fetch what came dead") {
  actors::Program p;
  const Scope here = p.s.with_device("/job:worker/task:0");
  const Scope there = p.s.with_device("/job:worker/task:1");
  const Output x = p.input("x", DataType::kInt32);
  ops::floor_div(there.named("quotient"), ops::add(here, x, 1), 0);
  const auto [on_false, on_true] = ops::switch_(
      here.named("way"), x, ops::greater(here, x, ops::constant(here, 0)));
  ops::identity(there.named("taken"), on_true);
  must(p.s.status());
  actors::SessionOptions options;
  options.backend = std::make_shared<Sockets>(2, "cpu:1", 1);
  options.passes = PassSet::none();
  const auto session = actors::make_session(options, p.graph);
  const auto fails_with = [&](const std::string& fetch, std::string_view part) {
    const Status status =
        session->run({{"x", Tensor::scalar<int32_t>(-1)}}, {fetch}).status();
    CHECK_MESSAGE(status.message().find(part) != std::string::npos,
                  status.to_string());
  };
  fails_with("quotient", "device /job:worker/task:1/device:CPU:0)");
  fails_with("taken",
             "received a dead token of \"way:1\" from "
             "/job:worker/replica:0/task:0/device:CPU:0");
}

TEST_CASE("a RemoteCall runs at the worker that its target names") {
  actors::Program p;
  define_function(p.s,
                  {.name = "quotient",
                   .args = {{"a", DataType::kInt32, {}}},
                   .results = {{DataType::kInt32, {}}},
                   .body = [](const Scope& in, const Outputs& a) -> Outputs {
                     return ops::floor_div(in, 12, a[0]);
                   }});
  const Scope here = p.s.with_device("/job:worker/task:0");
  const Output x = p.input("x", DataType::kInt32);
  const Output target = ops::constant(here, "/job:worker/task:1/device:CPU:0");
  const std::vector<DataType> types{DataType::kInt32};
  here.named("y").op(
      "RemoteCall", {target, x},
      {{"Tin", types}, {"Tout", types}, {"f", FunctionRef{"quotient"}}});
  must(p.s.status());
  actors::SessionOptions options;
  options.backend = std::make_shared<Sockets>(2, "cpu:1", 1);
  const auto session = actors::make_session(options, p.graph);
  const auto four = Tensor::scalar<int32_t>(4);
  CHECK(identical(actors::must_run(*session, {{"x", four}}, {"y"})[0],
                  Tensor::scalar<int32_t>(3)));
  const Status by_zero =
      session->run({{"x", Tensor::scalar<int32_t>(0)}}, {"y"}).status();
  CHECK_MESSAGE(
      contains(by_zero.message(), "device /job:worker/task:1/device:CPU:0)"),
      by_zero.to_string());
}

TEST_CASE("a worker obeys the limits and the hand-off of the session") {
  actors::Program p;
  define_function(
      p.s,
      {.name = "down",
       .args = {{"n", DataType::kInt32, {}}},
       .results = {{DataType::kInt32, {}}},
       .body = [](const Scope& in, const Outputs& a) -> Outputs {
         return cond(
             in, ops::less(in, a[0], 1),
             [&](const Scope& s) -> Outputs { return ops::identity(s, a[0]); },
             [&](const Scope& s) -> Outputs {
               return call(s, "down", {ops::sub(s, a[0], 1)});
             });
       }});
  const Output x = p.input("x", DataType::kInt32);
  const Scope there = p.s.with_device("/job:worker/task:1");
  ops::identity(there.named("y"), call(there, "down", {x})[0]);
  must(p.s.status());
  const auto backend = std::make_shared<Sockets>(2, "cpu:1", 1);
  for (const auto hand_off :
       {actors::HandOff::kDirect, actors::HandOff::kMailbox}) {
    actors::SessionOptions options;
    options.backend = backend;
    options.hand_off = hand_off;
    options.max_call_depth = 20;
    const auto session = actors::make_session(options, p.graph);
    CHECK(session->run({{"x", Tensor::scalar(10)}}, {"y"}).ok());
    const Status deep =
        session->run({{"x", Tensor::scalar(30)}}, {"y"}).status();
    CHECK_MESSAGE(deep.code() == Code::kResourceExhausted, deep.to_string());
  }
}

TEST_CASE("a lossy transfer between workers carries 16 bits") {
  actors::Program p;
  const Output x = p.input("x", DataType::kFloat);
  const Output one = ops::neg(p.s.with_device("/job:worker/task:0"), x);
  ops::neg(p.s.with_device("/job:worker/task:1").named("y"), one);
  must(p.s.status());
  actors::SessionOptions options;
  options.backend = std::make_shared<Sockets>(2, "cpu:1", 1);
  options.passes = PassSet::none();
  options.lossy = {"*"};
  const auto session = actors::make_session(options, p.graph);
  const auto fed = Tensor::vector<float>({1.F / 3, 1.5F});
  const auto cut = Tensor::vector<float>(
      {std::bit_cast<float>(std::bit_cast<uint32_t>(1.F / 3) & 0xffff0000U),
       1.5F});
  CHECK(identical(actors::must_run(*session, {{"x", fed}}, {"y"})[0], cut));
}

TEST_CASE("a variable of one worker keeps its value from step to step") {
  actors::processes::check_variables(over_sockets);
}

TEST_CASE("a wait at one worker is named by the step, and can be cancelled") {
  actors::processes::check_waits(over_sockets);
}

TEST_CASE("tensors of 64 MiB go to a worker, between two, and back") {
  actors::Program p;
  const Output x = p.input("x", DataType::kFloat);
  const Output there = ops::add(p.s.with_device("/job:worker/task:1"), x, 1.f);
  const Output here =
      ops::add(p.s.with_device("/job:worker/task:0"), there, -1.f);
  ops::identity(p.s.with_device("/job:worker/task:1").named("y"), here);
  must(p.s.status());
  actors::SessionOptions options;
  options.passes = PassSet::none();
  Tensor value = Tensor::make(DataType::kFloat, {16 << 20});
  const auto flat = value.mutable_flat<float>();
  for (size_t i = 0; i < flat.size(); ++i) flat[i] = float(i % 1000);
  for (const auto connect : {over_sockets, over_tls}) {
    CAPTURE((connect == over_tls));
    options.backend = connect(2, "cpu:1", 1, 0);
    const auto session = actors::make_session(options, p.graph);
    const auto results = actors::must_run(*session, {{"x", value}}, {"y"});
    CHECK(identical(results[0], value));
  }
}

TEST_CASE("strings, bools and scalars without elements arrive as they were") {
  actors::Program p;
  const Scope there = p.s.with_device("/job:worker/task:1");
  const Scope here = p.s.with_device("/job:worker/task:0");
  const Tensor values[] = {
      Tensor::vector<std::string>({"a", std::string(40'000, 'b'), ""}),
      Tensor::vector<bool>({true, false}), Tensor::make(DataType::kInt64, {0})};
  std::vector<actors::Feed> feeds;
  std::vector<std::string> fetches;
  for (size_t i = 0; i < std::size(values); ++i) {
    const std::string name = fmt::format("x{}", i);
    const Output x = p.input(name.c_str(), values[i].dtype());
    fetches.push_back(fmt::format("y{}", i));
    ops::identity(here.named(fetches.back()), ops::identity(there, x));
    feeds.push_back({name, values[i]});
  }
  must(p.s.status());
  actors::SessionOptions options;
  options.backend = std::make_shared<Sockets>(2, "cpu:1", 1);
  options.passes = PassSet::none();
  const auto session = actors::make_session(options, p.graph);
  const auto results = actors::must_run(*session, feeds, fetches);
  for (size_t i = 0; i < std::size(values); ++i)
    CHECK(identical(results[i], values[i]));
}

TEST_CASE("10,000 trips of a loop cross two workers with a window of 32") {
  const Trips p(10'000);
  actors::SessionOptions options;
  options.backend = std::make_shared<Sockets>(2, "cpu:1", 1);
  const auto session = actors::make_session(options, p.graph);
  const auto results = actors::must_run(*session, {}, {p.out.name()});
  CHECK(must(results[0].item<float>()) == 10'001.f);
}

TEST_CASE("statistics of a step over workers are the sums of all its parts") {
  const auto stats_of = [](const Trips& p, int workers, const char* devices) {
    actors::SessionOptions options;
    options.backend = std::make_shared<Sockets>(workers, devices, 1);
    options.passes = PassSet::none();
    const auto session = actors::make_session(options, p.graph);
    actors::RunStats stats;
    must(session->run({}, {p.out.name()}, {}, actors::within_a_minute(),
                      &stats));
    return stats;
  };
  const auto together = stats_of(Trips(10, "/job:worker/task:0/device:CPU:0",
                                       "/job:worker/task:0/device:CPU:1"),
                                 1, "cpu:2");
  const auto apart = stats_of(Trips(10), 2, "cpu:1");
  CHECK(apart.fired == together.fired);
  CHECK(apart.dead == together.dead);
  CHECK(apart.frames == together.frames);
  CHECK(apart.iterations == together.iterations);
  CHECK(together.iterations >= 20);
}

TEST_CASE("an observer of a run over workers is refused as local") {
  const Trips p(3);
  actors::SessionOptions options;
  options.backend = std::make_shared<Sockets>(2, "cpu:1", 1);
  const auto session = actors::make_session(options, p.graph);
  actors::RunOptions run = actors::within_a_minute();
  actors::Observer observer;
  run.observer = &observer;
  const Status status = session->run({}, {p.out.name()}, {}, run).status();
  CHECK(status.code() == Code::kUnimplemented);
  CHECK(contains(status.message(), "an observer is local"));
  const auto results = actors::must_run(*session, {}, {p.out.name()});
  CHECK(must(results[0].item<float>()) == 4.f);
}

TEST_CASE("an LSTM with a layer at each worker learns as in one process") {
  const int lengths[] = {7, 12, 1, 0, 7};
  const Lstm cut(true), whole(false);
  for (const PassSet passes : {PassSet::none(), PassSet()}) {
    CAPTURE(passes.to_string());
    actors::SessionOptions options;
    options.passes = passes;
    const auto expected = whole.train(options, lengths);
    const auto processes = std::make_shared<actors::processes::CountingBackend>(
        over_sockets(2, "cpu:1", 1, 0));
    options.backend = processes;
    const auto results = cut.train(options, lengths);
    CHECK(processes->parts() == 2);
    for (size_t step = 0; step < std::size(lengths); ++step) {
      CAPTURE(step);
      REQUIRE(results[step].size() == 5);  // by two kernels and two biases
      for (size_t i = 0; i < results[step].size(); ++i) {
        CAPTURE(i);
        CHECK(identical(results[step][i], expected[step][i]));
      }
    }
    CHECK(must(results.back()[0].item<float>()) <
          must(results.front()[0].item<float>()));
  }
}

TEST_CASE("a worker decides the trips of a loop in a branch of another one") {
  const Decided p;
  const auto processes = std::make_shared<actors::processes::CountingBackend>(
      over_sockets(2, "cpu:1", 1, 0));
  actors::SessionOptions options;
  options.backend = processes;
  const auto session = actors::make_session(options, p.graph);
  for (const float x : {1.5f, 200.f, -3.f, 0.01f, 99.f}) {
    CAPTURE(x);
    int trips = x > 0 ? 0 : -1;
    float y = x > 0 ? x : -x, gradient = x > 0 ? 1.f : -1.f;
    for (; x > 0 && y <= 100; ++trips) {
      y += y;
      gradient += gradient;
    }
    const auto results =
        actors::must_run(*session, {{"x", Tensor::scalar(x)}}, p.fetches);
    CHECK(processes->parts() == 2);
    CHECK(must(results[0].item<int32_t>()) == trips);
    CHECK(must(results[1].item<float>()) == y);
    CHECK(must(results[2].item<float>()) == gradient);
  }
}

TEST_CASE("a worker that is closed ends a loop that crosses it") {
  const Trips p(std::numeric_limits<int32_t>::max());
  for (const size_t victim : {0, 1}) {
    const auto sockets = std::make_shared<Sockets>(2, "cpu:1", 1);
    actors::SessionOptions options;
    options.backend = sockets;
    const auto session = actors::make_session(options, p.graph);
    Status status;
    std::thread runner([&] {
      status = session->run({}, {p.out.name()}, {}, actors::within_a_minute())
                   .status();
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    sockets->close_worker(victim);
    runner.join();
    INFO(status.to_string());
    CHECK(status.code() == Code::kUnavailable);
    CHECK(contains(status.message(), fmt::format("task:{}", victim)));
  }
}

TEST_CASE(
    "a worker that is closed fails the step that uses it, and later ones") {
  const actors::processes::Waiting p;
  const auto sockets = std::make_shared<Sockets>(2, "cpu:1", 1);
  actors::SessionOptions options;
  options.backend = sockets;
  const auto session = actors::make_session(options, p.graph);
  Status status;
  {
    std::thread runner([&] {
      status =
          session->run({}, {"taken"}, {}, actors::within_a_minute()).status();
    });
    // It may also be closed before the step has begun: the answer is the same.
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    sockets->close_worker(1);
    runner.join();
  }
  INFO(status.to_string());
  CHECK(status.code() == Code::kUnavailable);
  CHECK(contains(status.message(), "/job:worker/task:1"));
  const Status later =
      session->run({}, {"taken"}, {}, actors::within_a_minute()).status();
  CHECK(later.code() == Code::kUnavailable);
  CHECK(contains(later.message(), "/job:worker/task:1"));
}

TEST_CASE("workers forget a master that leaves, and serve the next one") {
  actors::Program p;
  const Scope there = p.s.with_device("/job:worker/task:1");
  const ops::Variable v =
      ops::variable(there.named("v"), DataType::kInt32, PartialShape({}));
  ops::assign(there.named("init"), v, 1);
  ops::identity(p.s.with_device("/job:worker/task:0").named("read"),
                ops::read(there, v));
  must(p.s.status());
  const auto sockets = std::make_shared<Sockets>(2, "cpu:1", 1);
  actors::SessionOptions options;
  options.backend = sockets;
  {
    const auto session = actors::make_session(options, p.graph);
    must(session->run({}, {}, {"init"}, actors::within_a_minute()));
    CHECK(must(actors::must_run(*session, {}, {"read"})[0].item<int32_t>()) ==
          1);
  }
  sockets->reconnect();
  const auto session = actors::make_session(options, p.graph);
  CHECK_FALSE(session->run({}, {"read"}, {}, actors::within_a_minute()).ok());
  must(session->run({}, {}, {"init"}, actors::within_a_minute()));
}

TEST_CASE("a worker refuses a second master, and one with another secret") {
  const Sockets sockets(1, "cpu:1", 1);
  const Status second = Cluster::connect(sockets.options()).status();
  INFO(second.to_string());
  CHECK(contains(second.message(), "/job:worker/task:0"));
  CHECK(contains(second.message(), "the worker has another master"));
  ClusterOptions other = sockets.options();
  other.secret = "another secret";
  CHECK_FALSE(Cluster::connect(other).ok());
  other.secret = "";
  CHECK(Cluster::connect(other).status().code() == Code::kInvalidArgument);
  other = sockets.options();
  other.members[0].task.index = 3;
  CHECK_FALSE(Cluster::connect(other).ok());
}

TEST_CASE("a graph that reads files is refused by a worker") {
  actors::Program p;
  ops::identity(p.s.with_device("/job:worker/task:0").named("y"),
                p.s.with_device("/job:worker/task:0")
                    .op("ReadFile", {p.input("name", DataType::kString)})[0]);
  must(p.s.status());
  actors::SessionOptions options;
  options.backend = std::make_shared<Sockets>(1, "cpu:1", 1);
  const auto session = actors::make_session(options, p.graph);
  const Status status =
      session
          ->run({{"name", Tensor::scalar(std::string("/etc/hostname"))}}, {"y"},
                {}, actors::within_a_minute())
          .status();
  INFO(status.to_string());
  CHECK(status.code() == Code::kPermissionDenied);
}

}  // namespace tagflow::net
