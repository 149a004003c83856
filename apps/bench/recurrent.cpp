// Workloads: recurrent networks, and what feeds them.
//
//   lstm      one run of an LSTM over a batch of sequences: forward with
//             weights that are constants, or, to --train, loss, gradients by
//             all weights and their updates
//   prefetch  100 batches, each read in 10 ms by a queue runner and used in
//             10 ms by a step: overlapped, it is little more than one of them
#include <algorithm>

#include "actors/session/queue_runners.h"
#include "apps/bench/gradient_graphs.h"
#include "apps/bench/stopwatch.h"
#include "apps/bench/workload.h"

namespace tagflow::apps {
namespace {

constexpr int64_t kReadNanoseconds = 10'000'000;
constexpr int kPrefetched = 4;  // batches in the queue

// Seconds until this many steps have run, while a queue runner reads for them.
Result<double> prefetch_seconds(const BenchGraph& graph,
                                const actors::SessionOptions& options,
                                int64_t batches) {
  TAGFLOW_ASSIGN(auto session, actors::Session::create(options));
  TAGFLOW_RETURN_IF_ERROR(session->extend(graph.graph));
  TAGFLOW_ASSIGN(actors::Callable step,
                 session->make_callable({}, {}, {"step"}));
  const graph::QueueRunnerDef runner{.queue = "queue",
                                     .enqueue_ops = {"fetch"},
                                     .close_op = "close",
                                     .cancel_op = "close"};
  actors::Coordinator threads;
  const Clock::time_point start = Clock::now();
  TAGFLOW_RETURN_IF_ERROR(
      actors::start_queue_runners(*session, {&runner, 1}, threads));
  for (int64_t i = 0; i < batches; ++i)
    TAGFLOW_RETURN_IF_ERROR(step().status());
  const std::chrono::duration<double> took = Clock::now() - start;
  threads.request_stop();
  TAGFLOW_RETURN_IF_ERROR(threads.join());
  return took.count();
}

}  // namespace

LstmSize lstm_size(const BenchOptions& options, int inputs) {
  LstmSize size;
  if (options.batch > 0) size.batch = options.batch;
  if (options.steps > 0) size.steps = options.steps;
  if (options.units > 0) size.units = options.units;
  if (options.inputs > 0) inputs = options.inputs;
  size.inputs = inputs > 0 ? inputs : size.units;
  return size;
}

nlohmann::json lstm_config(const LstmSize& size, const BenchOptions& options) {
  return {{"batch", size.batch},       {"steps", size.steps},
          {"inputs", size.inputs},     {"units", size.units},
          {"train", options.train},    {"workers", options.engine.workers},
          {"repeats", options.repeats}};
}

Result<Measurement> measure_lstm(const BenchOptions& options) {
  const LstmSize size = lstm_size(options);
  TAGFLOW_ASSIGN(const BenchGraph graph,
                 options.train ? make_lstm_train(size) : make_lstm(size));
  TAGFLOW_ASSIGN(actors::SessionOptions session,
                 to_session_options(options.engine));
  TAGFLOW_ASSIGN(PreparedRun run, PreparedRun::make(graph, session));
  TAGFLOW_ASSIGN(const double seconds, run.seconds({}, options.repeats));
  return Measurement{"lstm", seconds * 1e3, "ms", lstm_config(size, options)};
}

Result<Measurement> measure_prefetch(const BenchOptions& options) {
  TAGFLOW_RETURN_IF_ERROR(register_busy_op());
  const int64_t batches = options.trips > 0 ? options.trips : 100;
  TAGFLOW_ASSIGN(const BenchGraph graph,
                 make_prefetch(kReadNanoseconds, kPrefetched));
  TAGFLOW_ASSIGN(actors::SessionOptions session,
                 to_session_options(options.engine));
  std::vector<double> times;
  const int repeats = std::min(options.repeats, 3);
  for (int i = 0; i < repeats; ++i) {
    TAGFLOW_ASSIGN(times.emplace_back(),
                   prefetch_seconds(graph, session, batches));
  }
  return Measurement{"prefetch",
                     median(std::move(times)),
                     "s",
                     {{"batches", batches},
                      {"ms", double(kReadNanoseconds) / 1e6},
                      {"workers", options.engine.workers},
                      {"repeats", repeats}}};
}

}  // namespace tagflow::apps
