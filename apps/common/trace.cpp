#include "apps/common/trace.h"

#include <spdlog/spdlog.h>

#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "apps/io/file.h"
#include "apps/io/json_tensor.h"

namespace tagflow::apps {
namespace {

using Clock = std::chrono::steady_clock;

// Phases of the format: a slice with a duration, and a mark.
enum class Phase : char { kSlice = 'X', kMark = 'i' };

struct Event {
  Phase phase;
  int thread;
  double start_us;
  double duration_us;
  std::string name, category, op;
  int64_t iteration;
};

// A firing in progress: the node, the frame instance and the iteration.
using Firing = std::tuple<graph::NodeId, uint64_t, uint64_t, int64_t>;

Firing key_of(const actors::Place& place, const graph::Node& node) {
  return {node.id(), place.tag.frame_hi, place.tag.frame_lo,
          place.tag.iteration};
}

std::string to_json(const Event& event) {
  std::string text = fmt::format(
      R"({{"name": {}, "cat": {}, "ph": "{}", "pid": 1, "tid": {}, )"
      R"("ts": {:.3f}, )",
      io::json_string(event.name), io::json_string(event.category),
      char(event.phase), event.thread, event.start_us);
  if (event.phase == Phase::kSlice) {
    text += fmt::format(R"("dur": {:.3f}, )", event.duration_us);
  } else {
    text += R"("s": "t", )";
  }
  text += fmt::format(R"("args": {{"op": {}, "iteration": {}}}}})",
                      io::json_string(event.op), event.iteration);
  return text;
}

}  // namespace

// One lock: a trace is for looking at, not for measuring the engine.
class TraceRecorder::Impl {
 public:
  void begin(const Firing& firing) {
    const std::lock_guard lock(mutex_);
    started_[firing] = now_us();
  }

  void end(const Firing& firing, Event event) {
    const std::lock_guard lock(mutex_);
    const auto it = started_.find(firing);
    if (it == started_.end()) return;
    event.start_us = it->second;
    event.duration_us = now_us() - it->second;
    started_.erase(it);
    add(std::move(event));
  }

  void mark(Event event) {
    const std::lock_guard lock(mutex_);
    event.start_us = now_us();
    add(std::move(event));
  }

  std::string to_text() const {
    const std::lock_guard lock(mutex_);
    if (dropped_ > 0) {
      spdlog::warn("the trace has the first {} events; {} more were dropped",
                   events_.size(), dropped_);
    }
    std::string text = R"({"displayTimeUnit": "ns", "traceEvents": [)"
                       "\n";
    for (size_t i = 0; i < events_.size(); ++i) {
      text += to_json(events_[i]);
      text += i + 1 < events_.size() ? ",\n" : "\n";
    }
    return text + "]}\n";
  }

 private:
  double now_us() const {
    return std::chrono::duration<double, std::micro>(Clock::now() - start_)
        .count();
  }

  void add(Event event) {
    if (events_.size() == kMaxEvents) {
      ++dropped_;
      return;
    }
    const auto [it, inserted] =
        threads_.emplace(std::this_thread::get_id(), int(threads_.size()));
    event.thread = it->second;
    events_.push_back(std::move(event));
  }

  const Clock::time_point start_ = Clock::now();
  mutable std::mutex mutex_;
  std::map<Firing, double> started_;
  std::unordered_map<std::thread::id, int> threads_;
  std::vector<Event> events_;
  size_t dropped_ = 0;
};

namespace {

Event make_event(Phase phase, const actors::Place& place, std::string name,
                 std::string op) {
  std::string category(place.frame.empty() ? "root" : place.frame);
  return {phase,
          0,
          0,
          0,
          std::move(name),
          std::move(category),
          std::move(op),
          place.tag.iteration};
}

}  // namespace

TraceRecorder::TraceRecorder() : impl_(std::make_unique<Impl>()) {}
TraceRecorder::~TraceRecorder() = default;

void TraceRecorder::on_fire(const actors::Place& place, const graph::Node& node,
                            bool dead) {
  if (!dead) {
    impl_->begin(key_of(place, node));
    return;
  }
  impl_->mark(
      make_event(Phase::kMark, place, "skip " + node.name(), node.op()));
}

void TraceRecorder::on_fired(const actors::Place& place,
                             const graph::Node& node,
                             std::span<const Tensor> /*outputs*/) {
  impl_->end(key_of(place, node),
             make_event(Phase::kSlice, place, node.name(), node.op()));
}

void TraceRecorder::on_iteration_start(const actors::Place& place) {
  impl_->mark(make_event(Phase::kMark, place, "iteration starts", ""));
}

void TraceRecorder::on_iteration_end(const actors::Place& place) {
  impl_->mark(make_event(Phase::kMark, place, "iteration ends", ""));
}

Status TraceRecorder::write(const std::filesystem::path& path) const {
  return io::write_file(path, impl_->to_text());
}

}  // namespace tagflow::apps
