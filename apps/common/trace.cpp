#include "apps/common/trace.h"

#include <spdlog/spdlog.h>

#include <array>
#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>

#include "apps/common/trace_events.h"
#include "apps/io/file.h"

namespace tagflow::apps {
namespace {

// The cheapest clock that there is: a third of the price of the system's.
int64_t trace_ticks() {
#ifdef __x86_64__
  return int64_t(__builtin_ia32_rdtsc());
#else
  return std::chrono::steady_clock::now().time_since_epoch().count();
#endif
}

// Two clocks at one moment.
struct TraceMoment {
  int64_t ticks = trace_ticks();
  std::chrono::steady_clock::time_point time = std::chrono::steady_clock::now();
};

// What one thread has open, and its buffer.
struct TraceThread {
  TraceTrack track;
  TraceEvent* firing = nullptr;  // the node's, whose end is not known yet
  int64_t computing_since = 0;
  bool is_active = false;
  int64_t active_since = 0;
  uint64_t dropped = 0;

  // The copies of what was met, and where most of it is found at once.
  std::unordered_map<const graph::Node*, TraceNode> nodes;
  std::set<std::string, std::less<>> frames;
  std::array<std::pair<const graph::Node*, const TraceNode*>, 256> known{};
  const char* last_name = nullptr;
  std::string_view last_frame;

  const TraceNode* copy_of(const graph::Node& node) {
    auto& entry = known[(reinterpret_cast<uintptr_t>(&node) >> 4) % 256];
    if (entry.first != &node) {
      entry = {&node, &nodes.try_emplace(&node, node).first->second};
    }
    return entry.second;
  }

  // The name is of a plan, and has one address as long as that lives.
  std::string_view copy_of(std::string_view frame) {
    if (frame.data() != last_name || frame.size() != last_frame.size()) {
      last_name = frame.data();
      last_frame = *frames.emplace(frame).first;
    }
    return last_frame;
  }
};

// The buffer that this thread used last, and whose it is.
struct TraceCache {
  uint64_t recorder = 0;
  TraceThread* thread = nullptr;
};
thread_local TraceCache trace_cache;

std::atomic<uint64_t> last_recorder{0};

}  // namespace

class TraceRecorder::Impl {
 public:
  explicit Impl(size_t max_events)
      : blocks_left_(int64_t((max_events + TraceTrack::kBlock - 1) /
                             TraceTrack::kBlock)) {}

  TraceThread& mine() {
    if (trace_cache.recorder != id_) [[unlikely]]
      trace_cache = {id_, &find_mine()};
    return *trace_cache.thread;
  }

  // Null where there is no room.
  TraceEvent* add(TraceThread& thread, const TraceEvent& event) {
    TraceTrack& track = thread.track;
    if (track.used == TraceTrack::kBlock) [[unlikely]] {
      if (blocks_left_.fetch_sub(1, std::memory_order_relaxed) <= 0) {
        // Back, so that the count cannot run away.
        blocks_left_.store(0, std::memory_order_relaxed);
        ++thread.dropped;
        return nullptr;
      }
      track.blocks.push_back(
          std::make_unique<std::array<TraceEvent, TraceTrack::kBlock>>());
      track.used = 0;
    }
    TraceEvent& kept = (*track.blocks.back())[track.used++];
    kept = event;
    return &kept;
  }

  void add_frame(const TraceFrame& frame) {
    const std::lock_guard lock(mutex_);
    // As many as events, or fewer: each has an iteration at least.
    if (blocks_left_.load(std::memory_order_relaxed) > 0) {
      frames_.push_back(frame);
    }
  }

  std::string to_text() const {
    const std::lock_guard lock(mutex_);
    std::vector<const TraceTrack*> tracks;
    uint64_t dropped = 0;
    for (const auto& [id, thread] : threads_) {
      tracks.push_back(&thread->track);
      dropped += thread->dropped;
    }
    if (dropped > 0) {
      spdlog::warn("the trace has the first events only; {} more were dropped",
                   dropped);
    }
    const TraceMoment now;
    TraceClock clock{start_.ticks, 1};
    if (now.ticks > start_.ticks) {
      clock.ns_per_tick =
          std::chrono::duration<double, std::nano>(now.time - start_.time)
              .count() /
          double(now.ticks - start_.ticks);
    }
    return format_trace(tracks, frames_, clock, dropped);
  }

 private:
  TraceThread& find_mine() {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, thread] : threads_) {
      if (id == std::this_thread::get_id()) return *thread;
    }
    threads_.emplace_back(std::this_thread::get_id(),
                          std::make_unique<TraceThread>());
    return *threads_.back().second;
  }

  const uint64_t id_ = ++last_recorder;
  const TraceMoment start_;
  std::atomic<int64_t> blocks_left_;
  mutable std::mutex mutex_;  // guards the below, but not what threads hold
  std::vector<std::pair<std::thread::id, std::unique_ptr<TraceThread>>>
      threads_;
  std::vector<TraceFrame> frames_;
};

namespace {

// The iteration's slice begins with the first that happens in it.
void touch(TraceThread& thread, int64_t now) {
  if (thread.is_active) return;
  thread.is_active = true;
  thread.active_since = now;
}

void end_firing(TraceThread& thread, int64_t now) {
  if (thread.firing == nullptr) return;
  thread.firing->end = now;
  thread.firing = nullptr;
}

}  // namespace

TraceRecorder::TraceRecorder(size_t max_events)
    : impl_(std::make_unique<Impl>(max_events)) {}
TraceRecorder::~TraceRecorder() = default;

void TraceRecorder::on_fire(const actors::Place& place, const graph::Node& node,
                            bool dead) {
  TraceThread& thread = impl_->mine();
  const int64_t now = trace_ticks();
  end_firing(thread, now);
  TraceEvent* event =
      impl_->add(thread, {now, now, thread.copy_of(place.frame), place.tag,
                          thread.copy_of(node),
                          dead ? TraceKind::kSkip : TraceKind::kNode});
  if (!dead) thread.firing = event;
}

void TraceRecorder::on_settle(const actors::Place& /*place*/,
                              const actors::IterationView& /*view*/) {
  TraceThread& thread = impl_->mine();
  if (!thread.is_active) [[unlikely]]
    touch(thread, trace_ticks());
}

void TraceRecorder::on_compute(const actors::Place& /*place*/,
                               const graph::Node& /*node*/) {
  TraceThread& thread = impl_->mine();
  thread.computing_since = trace_ticks();
  end_firing(thread, thread.computing_since);
}

void TraceRecorder::on_computed(const actors::Place& place,
                                const graph::Node& node) {
  TraceThread& thread = impl_->mine();
  impl_->add(thread, {thread.computing_since, trace_ticks(),
                      thread.copy_of(place.frame), place.tag,
                      thread.copy_of(node), TraceKind::kCompute});
}

void TraceRecorder::on_arrive(const actors::Place& place,
                              const graph::Node& node, const Tensor& /*value*/,
                              bool /*dead*/) {
  TraceThread& thread = impl_->mine();
  const int64_t now = trace_ticks();
  touch(thread, now);
  impl_->add(thread, {now, now, thread.copy_of(place.frame), place.tag,
                      thread.copy_of(node), TraceKind::kArrive});
}

void TraceRecorder::on_pause(const actors::Place& place) {
  TraceThread& thread = impl_->mine();
  const int64_t now = trace_ticks();
  end_firing(thread, now);
  if (!std::exchange(thread.is_active, false)) return;
  impl_->add(thread, {thread.active_since, now, thread.copy_of(place.frame),
                      place.tag, nullptr, TraceKind::kActivity});
}

void TraceRecorder::on_iteration_start(const actors::Place& /*place*/) {
  touch(impl_->mine(), trace_ticks());
}

void TraceRecorder::on_frame_start(const actors::Place& place,
                                   const actors::Place& caller) {
  impl_->add_frame({place.tag, caller.tag});
}

Status TraceRecorder::write(const std::filesystem::path& path) const {
  return io::write_file(path, impl_->to_text());
}

}  // namespace tagflow::apps
