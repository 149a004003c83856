// Workload: many sessions on one engine.
//
//   sessions  --nodes sessions (1,000) are open at once, on the default device,
//             then on cpu:2,stream:1 (--devices: on those). Each was extended
//             by a graph of 10 nodes and has run it once. Of each device text
//             it says
//               us                  to make a session, extend it by those
//                                   nodes, run them and destroy it, beside the
//                                   others: the median of --repeats, each the
//                                   mean of 100; us_alone: beside none;
//                                   cpu_us: the processors' time of it, of all
//                                   threads, which does not grow if other
//                                   processes take the processors away
//               threads             of the process, and threads_of_one, with
//                                   one session open
//               heap_kib            per idle session, in use of the heap as the
//                                   C library counts it; resident_kib: growth
//                                   of what is resident
//               switches            context switches per second of all threads
//                                   while nothing runs, those of the thread
//                                   that counts included; the median over up to
//                                   5 seconds
//             heap_bytes_per_run is the growth by each of --trips (200,000)
//             run_async() with a time-out of an hour, 64 at a time.
// The value is `us` on the first of the devices.
#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
#include <semaphore>
#include <thread>

#include "apps/bench/process_figures.h"
#include "apps/bench/stopwatch.h"
#include "apps/bench/workload.h"

namespace tagflow::apps {
namespace {

using Sessions = std::vector<std::unique_ptr<actors::Session>>;

constexpr int kAdditions = 7;  // which with their operands are 10 nodes
constexpr int kInner = 100;

Result<std::unique_ptr<actors::Session>> make_session(
    const BenchGraph& graph, const actors::SessionOptions& options) {
  TAGFLOW_ASSIGN(auto session, actors::Session::create(options));
  TAGFLOW_RETURN_IF_ERROR(session->extend(graph.graph));
  TAGFLOW_RETURN_IF_ERROR(session->run({}, graph.fetches).status());
  return session;
}

Result<Took> cycle_time(const BenchGraph& graph,
                        const actors::SessionOptions& options, int repeats) {
  std::vector<double> times, cpu_times;
  for (int i = -1; i < repeats; ++i) {
    const double cpu_start = cpu_seconds();
    const Clock::time_point start = Clock::now();
    for (int k = 0; k < kInner; ++k)
      TAGFLOW_RETURN_IF_ERROR(make_session(graph, options).status());
    const std::chrono::duration<double> time = Clock::now() - start;
    if (i < 0) continue;
    times.push_back(time.count() / kInner);
    cpu_times.push_back((cpu_seconds() - cpu_start) / kInner);
  }
  return Took{median(std::move(times)), median(std::move(cpu_times))};
}

Result<double> idle_switches(int seconds) {
  std::vector<double> counts;
  for (int i = 0; i < seconds; ++i) {
    TAGFLOW_ASSIGN(const int64_t before, context_switches());
    std::this_thread::sleep_for(std::chrono::seconds(1));
    TAGFLOW_ASSIGN(const int64_t after, context_switches());
    counts.push_back(double(after - before));
  }
  return median(std::move(counts));
}

struct Memory {
  int64_t heap = 0;
  int64_t resident = 0;
};

Result<Memory> memory_in_use() {
  trim_heap();
  TAGFLOW_ASSIGN(const int64_t resident, resident_bytes());
  return Memory{heap_bytes(), resident};
}

Result<nlohmann::json> measure_devices(const BenchGraph& graph,
                                       const actors::SessionOptions& options,
                                       int count, int repeats) {
  // The first session makes the shared devices and their threads.
  TAGFLOW_ASSIGN(const auto first, make_session(graph, options));
  TAGFLOW_ASSIGN(const Took alone, cycle_time(graph, options, repeats));
  TAGFLOW_ASSIGN(const int64_t threads_of_one, thread_count());
  Sessions sessions;
  sessions.reserve(size_t(count));
  TAGFLOW_ASSIGN(const Memory before, memory_in_use());
  for (int i = 0; i < count; ++i) {
    TAGFLOW_ASSIGN(sessions.emplace_back(), make_session(graph, options));
  }
  TAGFLOW_ASSIGN(const Memory after, memory_in_use());
  TAGFLOW_ASSIGN(const int64_t threads, thread_count());
  constexpr int kMostSeconds = 5;
  TAGFLOW_ASSIGN(const double switches,
                 idle_switches(std::min(repeats, kMostSeconds)));
  TAGFLOW_ASSIGN(const Took beside, cycle_time(graph, options, repeats));
  const auto kibibytes_each = [&](int64_t from, int64_t to) {
    return double(to - from) / 1024 / count;
  };
  return nlohmann::json{
      {"devices", options.devices.empty() ? "cpu" : options.devices},
      {"us", beside.seconds * 1e6},
      {"us_alone", alone.seconds * 1e6},
      {"cpu_us", beside.cpu_seconds * 1e6},
      {"threads", threads},
      {"threads_of_one", threads_of_one},
      {"heap_kib", kibibytes_each(before.heap, after.heap)},
      {"resident_kib", kibibytes_each(before.resident, after.resident)},
      {"switches", switches}};
}

constexpr int kInFlight = 64;

// Shared by the caller and the answers of asynchronous runs: an answer may
// still be in release() when the caller has all.
struct InFlight {
  std::counting_semaphore<kInFlight> places{kInFlight};
  std::mutex mutex;  // guards the below
  Status failed;
};

// `runs` asynchronous runs with a time-out that is far away.
Status run_with_timeouts(const PreparedRun& run, int64_t runs) {
  const auto shared = std::make_shared<InFlight>();
  const Tensor x = Tensor::scalar(1.0f);
  actors::RunOptions options;
  options.timeout = std::chrono::hours(1);
  for (int64_t i = 0; i < runs; ++i) {
    shared->places.acquire();
    run.run_async({&x, 1}, options, [shared](auto results, auto) {
      if (!results.ok()) {
        std::lock_guard lock(shared->mutex);
        shared->failed = results.status();
      }
      shared->places.release();
    });
  }
  for (int i = 0; i < kInFlight; ++i) shared->places.acquire();
  std::lock_guard lock(shared->mutex);
  return shared->failed;
}

// The heap's growth in bytes per run.
Result<double> growth_by_timeouts(const actors::SessionOptions& options,
                                  int64_t runs) {
  TAGFLOW_ASSIGN(const BenchGraph graph, make_one_kernel());
  TAGFLOW_ASSIGN(const PreparedRun run, PreparedRun::make(graph, options));
  // Warms up: memory that is kept for later runs is allocated.
  TAGFLOW_RETURN_IF_ERROR(
      run_with_timeouts(run, std::max<int64_t>(runs / 10, kInFlight)));
  TAGFLOW_ASSIGN(const Memory before, memory_in_use());
  TAGFLOW_RETURN_IF_ERROR(run_with_timeouts(run, runs));
  TAGFLOW_ASSIGN(const Memory after, memory_in_use());
  return double(after.heap - before.heap) / double(runs);
}

}  // namespace

Result<Measurement> measure_sessions(const BenchOptions& options) {
  constexpr int kDefaultSessions = 1000;
  constexpr int64_t kDefaultRuns = 200'000;
  const int count = options.nodes > 0 ? options.nodes : kDefaultSessions;
  const int64_t runs = options.trips > 0 ? options.trips : kDefaultRuns;
  TAGFLOW_ASSIGN(actors::SessionOptions session, on_one_engine(options.engine));
  TAGFLOW_ASSIGN(const BenchGraph graph, make_chain("Add", kAdditions));
  std::vector<std::string> devices = {"", "cpu:2,stream:1"};
  if (!session.devices.empty()) devices = {session.devices};
  nlohmann::json each = nlohmann::json::array();
  for (const std::string& spec : devices) {
    session.devices = spec;
    TAGFLOW_ASSIGN(each.emplace_back(),
                   measure_devices(graph, session, count, options.repeats));
  }
  session.devices = devices.front();
  TAGFLOW_ASSIGN(const double growth, growth_by_timeouts(session, runs));
  const double value = each.front()["us"];
  return Measurement{"sessions",
                     value,
                     "us",
                     {{"sessions", count},
                      {"nodes_of_each", graph.graph.size()},
                      {"workers", session.engine->workers()},
                      {"timed_runs", runs},
                      {"heap_bytes_per_run", growth},
                      {"repeats", options.repeats},
                      {"each", std::move(each)}}};
}

}  // namespace tagflow::apps
