// Workloads: large variables.
//
//   embedding      steps that gather 128 rows of a variable of --nodes x 64 and
//                  subtract from them, beside a thread that reads all of it
//                  again and again. The value is the time of a step; the config
//                  has how long one takes alone, and how many bytes of the
//                  variable were copied: no more than what was read
//   stream_assign  a loop that adds 1 MiB to a variable on a stream device. The
//                  value is the time of an update; the config has how many
//                  bytes were copied to and from the device, and how many
//                  buffers it gave out, after the first two
#include <algorithm>
#include <atomic>
#include <numeric>
#include <thread>

#include "apps/bench/stopwatch.h"
#include "apps/bench/workload.h"
#include "devices/device.h"
#include "devices/state/variable.h"

namespace tagflow::apps {
namespace {

constexpr int64_t kWidth = 64;
constexpr int kRows = 128;  // of a step

// Reads the variable in a separate thread until the destructor.
class DenseReader {
 public:
  explicit DenseReader(actors::Callable read)
      : read_(std::move(read)), thread_([this] { work(); }) {}
  DenseReader(const DenseReader&) = delete;
  DenseReader& operator=(const DenseReader&) = delete;
  ~DenseReader() { (void)stop(); }

  // Whether it was read once, or reading failed.
  bool has_read() const { return reads_ > 0; }
  // How many times it was read.
  Result<int64_t> stop() {
    is_stopped_ = true;
    if (thread_.joinable()) thread_.join();
    TAGFLOW_RETURN_IF_ERROR(status_);
    return reads_.load();
  }

 private:
  void work() {
    while (!is_stopped_ && status_.ok()) {
      status_ = read_().status();
      ++reads_;
    }
  }

  const actors::Callable read_;
  std::atomic<bool> is_stopped_{false};
  std::atomic<int64_t> reads_{0};
  Status status_;  // the thread's
  std::thread thread_;
};

// Counts copies and buffers of an accelerator from now on.
class StreamUse {
 public:
  explicit StreamUse(devices::Device& device)
      : device_(device), buffers_(device.memory().count) {
    device.accelerator()->observe(
        [this](const devices::AcceleratorActivity& activity) {
          using Stream = devices::AcceleratorActivity::Stream;
          if (activity.stream == Stream::kToDevice)
            to_device_ += activity.bytes;
          if (activity.stream == Stream::kToHost) to_host_ += activity.bytes;
        });
  }
  StreamUse(const StreamUse&) = delete;
  StreamUse& operator=(const StreamUse&) = delete;
  ~StreamUse() { device_.accelerator()->observe({}); }

  int64_t to_device() const { return to_device_; }
  int64_t to_host() const { return to_host_; }
  int64_t buffers() const { return device_.memory().count - buffers_; }

 private:
  devices::Device& device_;
  const int64_t buffers_;
  std::atomic<int64_t> to_device_{0}, to_host_{0};
};

devices::Device* accelerator_of(const actors::Session& session) {
  for (const auto& device : session.devices())
    if (device->accelerator() != nullptr) return device.get();
  return nullptr;
}

}  // namespace

Result<Measurement> measure_embedding(const BenchOptions& options) {
  const int64_t rows = options.nodes > 0 ? options.nodes : 1'000'000;
  const int64_t steps = options.trips > 0 ? options.trips : 2000;
  TAGFLOW_ASSIGN(const BenchGraph graph, make_embedding(rows, kWidth, kRows));
  TAGFLOW_ASSIGN(const actors::SessionOptions session,
                 to_session_options(options.engine));
  TAGFLOW_ASSIGN(PreparedRun step, PreparedRun::make(graph, session));
  // Includes the first update, after which reads copy the variable.
  TAGFLOW_ASSIGN(
      const double alone,
      step.seconds({}, options.repeats, int(std::min<int64_t>(steps, 1000))));
  TAGFLOW_ASSIGN(actors::Callable read,
                 step.session().make_callable({}, {}, {"read"}));
  const int64_t before = devices::Variable::bytes_copied();
  DenseReader reader(std::move(read));
  std::vector<double> times;
  while (int64_t(times.size()) < steps || !reader.has_read()) {
    TAGFLOW_ASSIGN(times.emplace_back(), step.time({}));
  }
  TAGFLOW_ASSIGN(const int64_t reads, reader.stop());
  const int64_t copied = devices::Variable::bytes_copied() - before;
  const double mean =
      std::accumulate(times.begin(), times.end(), 0.0) / double(times.size());
  return Measurement{
      "embedding",
      mean * 1e6,
      "us",
      {{"rows", rows},
       {"steps", int64_t(times.size())},
       {"us_alone", alone * 1e6},
       {"reads", reads},
       {"bytes_read", reads * rows * kWidth * int64_t(sizeof(float))},
       {"bytes_copied", copied},
       {"workers", options.engine.workers},
       {"repeats", options.repeats}}};
}

Result<Measurement> measure_stream_assign(const BenchOptions& options) {
  constexpr int64_t kBytes = int64_t{1} << 20;
  const int64_t trips = options.trips > 0 ? options.trips : 1000;
  BenchOptions there = options;
  if (there.engine.devices.empty()) there.engine.devices = "cpu:1,stream:1";
  TAGFLOW_ASSIGN(const BenchGraph graph, make_loop_of_large_updates(kBytes));
  TAGFLOW_ASSIGN(const actors::SessionOptions session,
                 to_session_options(there.engine));
  TAGFLOW_ASSIGN(PreparedRun run, PreparedRun::make(graph, session));
  devices::Device* device = accelerator_of(run.session());
  if (device == nullptr)
    return invalid_argument(
        "[bench] stream_assign needs an accelerator; --devices has none");
  const Tensor two = Tensor::scalar<int32_t>(2);
  const Tensor all = Tensor::scalar(int32_t(trips));
  TAGFLOW_RETURN_IF_ERROR(run.run({&two, 1}));
  const StreamUse use(*device);
  std::vector<double> times;
  for (int i = 0; i < options.repeats; ++i) {
    TAGFLOW_ASSIGN(times.emplace_back(), run.time({&all, 1}));
  }
  return Measurement{"stream_assign",
                     median(std::move(times)) / double(trips) * 1e6,
                     "us",
                     {{"trips", trips},
                      {"bytes", kBytes},
                      {"bytes_to_device", use.to_device()},
                      {"bytes_to_host", use.to_host()},
                      {"new_buffers", use.buffers()},
                      {"workers", options.engine.workers},
                      {"repeats", options.repeats}}};
}

}  // namespace tagflow::apps
