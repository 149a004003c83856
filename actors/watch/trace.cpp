#include "actors/watch/trace.h"

#include <algorithm>
#include <limits>

#include "actors/plan/plan.h"
#include "graph/node.h"

namespace tagflow::actors {
namespace {

// The buffer that this thread used last, and the trace that owns it.
struct TraceCache {
  uint64_t trace = 0;
  TraceBuffer* buffer = nullptr;
};
thread_local TraceCache trace_cache;

std::atomic<uint64_t> last_trace{0};

TraceNode trace_node(const graph::Node* node) {
  if (node == nullptr) return {};
  TraceNode copy{node->name(),
                 node->op(),
                 node->is_enter(),
                 node->is_exit(),
                 node->is_next_iteration(),
                 {}};
  if (node->op() != "_Recv") return copy;
  Result<std::string> sender = node->attr<std::string>("send_device");
  if (sender.ok()) copy.sender = *std::move(sender);
  return copy;
}

// Converts words to events. All events between two readings of the clock count
// as equally long: their times are counted in steps, and the next reading
// determines the length of a step.
class Decoder {
 public:
  Decoder(const std::vector<TraceFrame>& frames, int64_t start,
          double ns_per_tick)
      : frames_(frames), start_(start), ns_per_tick_(ns_per_tick) {}

  void read(const uint32_t* word, const uint32_t* end) {
    while (word != end) {
      const uint32_t index = *word & TraceBuffer::kIndex;
      const auto kind = TraceBuffer::Word(*word++ & ~TraceBuffer::kIndex);
      if (kind == TraceBuffer::kActivity || kind == TraceBuffer::kLane) {
        switch_to(kind, index, read_long(word));
      } else if (kind == TraceBuffer::kClock) {
        if (index != 0) leave();
        const int64_t ticks = read_long(word);
        look(int64_t(double(ticks - start_) * ns_per_tick_));
      } else if (frame_ != nullptr) {
        add(kind, index);
      }
    }
  }

  std::vector<TraceEvent> take() {
    leave();
    look(last_look_);
    return std::move(events_);
  }

 private:
  // The begin or end of an event, whose time is not known yet.
  struct Mark {
    size_t event;
    int64_t TraceEvent::*time;
    int64_t step;
  };
  static constexpr size_t kNone = size_t(-1);

  static int64_t read_long(const uint32_t*& word) {
    const uint64_t low = *word++;
    return int64_t(low | uint64_t{*word++} << 32);
  }

  void switch_to(TraceBuffer::Word kind, uint32_t frame, int64_t iteration) {
    leave();
    frame_ = frame < frames_.size() ? &frames_[frame] : nullptr;
    if (frame_ == nullptr) return;
    tag_ = frame_->instance;
    tag_.iteration = iteration;
    if (kind == TraceBuffer::kActivity) {
      activity_ = events_.size();
      begin(TraceEvent::kActivity, nullptr);
      ++step_;  // for the hand-over
    }
  }

  void add(TraceBuffer::Word kind, uint32_t index) {
    const TracePlan& plan = *frame_->plan;
    const size_t event = events_.size();
    if (kind == TraceBuffer::kArrival || kind == TraceBuffer::kResult) {
      begin(TraceEvent::kArrive, kind == TraceBuffer::kArrival
                                     ? &plan.arrivals[index]
                                     : &plan.nodes[index]);
    } else {
      begin(kind == TraceBuffer::kNode   ? TraceEvent::kNode
            : kind == TraceBuffer::kSkip ? TraceEvent::kSkip
                                         : TraceEvent::kCompute,
            &plan.nodes[index]);
      if (kind != TraceBuffer::kSkip) ++step_;
    }
    end(event);
  }

  void begin(TraceEvent::Kind kind, const TraceNode* node) {
    TraceEvent event;
    event.kind = kind;
    event.device = frame_->plan->device;
    event.frame = frame_->plan->frame;
    event.tag = tag_;
    event.node = node;
    marks_.push_back({events_.size(), &TraceEvent::begin, step_});
    events_.push_back(event);
  }
  void end(size_t event) { marks_.push_back({event, &TraceEvent::end, step_}); }

  void leave() {
    if (activity_ != kNone) end(activity_);
    activity_ = kNone;
    frame_ = nullptr;
  }

  void look(int64_t now) {
    // The clock of another core may be behind.
    now = std::max(now, last_look_);
    const int64_t steps = std::max<int64_t>(step_, 1);
    for (const Mark& mark : marks_)
      events_[mark.event].*mark.time =
          mark.step == step_
              ? now
              : last_look_ + (now - last_look_) * mark.step / steps;
    marks_.clear();
    step_ = 0;
    last_look_ = now;
  }

  const std::vector<TraceFrame>& frames_;
  const int64_t start_;
  const double ns_per_tick_;
  std::vector<TraceEvent> events_;
  std::vector<Mark> marks_;  // since the last reading
  int64_t step_ = 0;         // as many since then
  int64_t last_look_ = 0;
  const TraceFrame* frame_ = nullptr;  // of the open activity, if any
  size_t activity_ = kNone;            // the open one
  devices::Tag tag_;
};

}  // namespace

bool TraceBuffer::grow() {
  // Once the trace is full, it stays full: only the first words are kept.
  if (is_full_) {
    ++dropped_;
    return false;
  }
  if (!blocks_.empty())
    blocks_.back().used = size_t(at_ - blocks_.back().words);
  uint32_t* words = trace_.take_block();
  try {
    if (words != nullptr) blocks_.push_back({words, 0});
  } catch (...) {
    words = nullptr;  // a failure of the trace must not fail the run
  }
  if (words == nullptr) {
    is_full_ = true;
    at_ = end_;
    ++dropped_;
    return false;
  }
  at_ = words;
  end_ = at_ + kBlock;
  next_look_ = at_;
  return true;
}

Trace::Trace(size_t max_words)
    : id_(++last_trace),
      num_blocks_((max_words + TraceBuffer::kBlock - 1) / TraceBuffer::kBlock),
      words_(std::make_unique<uint32_t[]>(num_blocks_ * TraceBuffer::kBlock)) {}

Trace::~Trace() = default;

TraceBuffer& Trace::buffer() {
  if (trace_cache.trace != id_) [[unlikely]]
    trace_cache = {id_, &find_buffer()};
  return *trace_cache.buffer;
}

TraceBuffer& Trace::find_buffer() {
  const std::lock_guard lock(mutex_);
  for (const auto& [id, buffer] : buffers_)
    if (id == std::this_thread::get_id()) return *buffer;
  buffers_.emplace_back(std::this_thread::get_id(),
                        std::make_unique<TraceBuffer>(*this));
  return *buffers_.back().second;
}

uint32_t* Trace::take_block() {
  if (!is_full_.load(std::memory_order_relaxed)) {
    const size_t block = blocks_taken_.fetch_add(1, std::memory_order_relaxed);
    if (block < num_blocks_) return words_.get() + block * TraceBuffer::kBlock;
    is_full_.store(true, std::memory_order_relaxed);
  }
  return nullptr;
}

uint32_t Trace::add_frame(const FramePlan& plan, std::string_view device,
                          const devices::Tag& instance,
                          const devices::Tag& caller) {
  // No frame has this number: words that name it are left out.
  constexpr uint32_t kNone = TraceBuffer::kIndex;
  const std::lock_guard lock(mutex_);
  if (is_full_.load(std::memory_order_relaxed) || frames_.size() >= kNone)
    return kNone;
  frames_.push_back({copy_of(plan, device), instance, caller});
  return uint32_t(frames_.size() - 1);
}

void Trace::add_activity(std::string_view device,
                         const devices::AcceleratorActivity& activity) {
  constexpr size_t kWordsPerLaunch = 16;
  const auto since_start = [this](std::chrono::steady_clock::time_point time) {
    return int64_t(
        std::chrono::duration_cast<std::chrono::nanoseconds>(time - start_.time)
            .count());
  };
  const std::lock_guard lock(mutex_);
  if (launches_.size() >= num_blocks_ * TraceBuffer::kBlock / kWordsPerLaunch) {
    ++dropped_launches_;
    return;
  }
  launches_.push_back({std::string(device), activity.stream,
                       std::string(activity.what), activity.bytes,
                       since_start(activity.start), since_start(activity.end)});
}

const TracePlan* Trace::copy_of(const FramePlan& plan,
                                std::string_view device) {
  if (const auto known = plans_.find(plan.id); known != plans_.end())
    return &known->second;
  TracePlan copy;
  copy.device = device;
  copy.frame = plan.name;
  copy.is_body = plan.is_body;
  for (const NodeItem& item : plan.nodes)
    copy.nodes.push_back(trace_node(item.node));
  for (const ArrivalItem& arrival : plan.arrivals)
    copy.arrivals.push_back(trace_node(arrival.node));
  for (const ExitItem& exit : plan.exits)
    copy.exits.push_back(exit.node == nullptr ? "" : exit.node->name());
  return &plans_.emplace(plan.id, std::move(copy)).first->second;
}

// Takes the closest pair of several readings: the first may cause a page fault,
// and the thread may be preempted during each. Such a delay would shift the
// times of threads against those of accelerators.
Trace::Moment Trace::now() {
  constexpr int kReadings = 8;
  Moment moment;
  int64_t least = std::numeric_limits<int64_t>::max();
  for (int i = 0; i < kReadings; ++i) {
    const int64_t before = TraceBuffer::ticks();
    const auto time = std::chrono::steady_clock::now();
    const int64_t between = TraceBuffer::ticks() - before;
    if (between >= least) continue;
    least = between;
    moment = {before + between / 2, time};
  }
  return moment;
}

TracePart TracePart::missing() {
  TracePart part;
  part.start = std::chrono::steady_clock::now();
  part.dropped = 1;
  return part;
}

void Trace::add_part(std::string_view process, TracePart part) {
  const int64_t later = std::chrono::duration_cast<std::chrono::nanoseconds>(
                            part.start - start_.time)
                            .count();
  const auto shift = [later](auto& event) {
    event.begin = std::max<int64_t>(event.begin + later, 0);
    event.end = std::max<int64_t>(event.end + later, 0);
  };
  const std::lock_guard lock(mutex_);
  // Events and frames point into them, so they stay if there is no memory for
  // the rest.
  if (!part.plans.empty()) part_plans_.push_back(std::move(part.plans));
  for (TracePart::Track& track : part.tracks) {
    for (TraceEvent& event : track.events) shift(event);
    auto& all = part_tracks_[{std::string(process), track.thread}];
    const auto middle = ptrdiff_t(all.size());
    all.insert(all.end(), track.events.begin(), track.events.end());
    std::ranges::inplace_merge(all, all.begin() + middle, {},
                               &TraceEvent::begin);
    part_events_ += track.events.size();
  }
  for (TraceLaunch& launch : part.launches) {
    shift(launch);
    launches_.push_back(std::move(launch));
  }
  frames_.insert(frames_.end(), part.frames.begin(), part.frames.end());
  part_dropped_ += part.dropped;
}

size_t Trace::room() const {
  const std::lock_guard lock(mutex_);
  const size_t words = num_blocks_ * TraceBuffer::kBlock;
  return words - std::min(words, part_events_);
}

TracePart Trace::part() const {
  const std::lock_guard lock(mutex_);
  const double ns_per_tick = this->ns_per_tick();
  TracePart part;
  part.start = start_.time;
  part.frames = frames_;
  part.launches = launches_;
  for (const auto& [id, buffer] : buffers_)
    part.tracks.push_back(
        {std::hash<std::thread::id>()(id), decode(*buffer, ns_per_tick)});
  part.dropped = count_dropped();
  return part;
}

TracePart Trace::others() const {
  const std::lock_guard lock(mutex_);
  TracePart part;
  part.start = start_.time;
  part.frames = frames_;
  part.launches = launches_;
  for (const auto& [of, events] : part_tracks_) {
    const auto& [process, thread] = of;
    part.tracks.push_back({std::hash<std::string>()(process) ^ thread, events});
  }
  part.dropped = part_dropped_;
  return part;
}

double Trace::ns_per_tick() const {
  const Moment end = now();
  if (end.ticks <= start_.ticks) return 1;
  const std::chrono::duration<double, std::nano> time = end.time - start_.time;
  return time.count() / double(end.ticks - start_.ticks);
}

std::vector<std::vector<TraceEvent>> Trace::tracks() const {
  const std::lock_guard lock(mutex_);
  const double ns_per_tick = this->ns_per_tick();
  std::vector<std::vector<TraceEvent>> tracks;
  for (const auto& [id, buffer] : buffers_)
    tracks.push_back(decode(*buffer, ns_per_tick));
  for (const auto& [thread, events] : part_tracks_) tracks.push_back(events);
  return tracks;
}

std::vector<TraceEvent> Trace::decode(const TraceBuffer& buffer,
                                      double ns_per_tick) const {
  Decoder decoder(frames_, start_.ticks, ns_per_tick);
  for (const TraceBuffer::Block& block : buffer.blocks_) {
    const uint32_t* words = block.words;
    const bool is_open = &block == &buffer.blocks_.back() && !buffer.is_full_;
    decoder.read(words, is_open ? buffer.at_ : words + block.used);
  }
  return decoder.take();
}

uint64_t Trace::dropped() const {
  const std::lock_guard lock(mutex_);
  return count_dropped();
}

uint64_t Trace::count_dropped() const {
  uint64_t dropped = dropped_launches_ + part_dropped_;
  for (const auto& [id, buffer] : buffers_) dropped += buffer->dropped_;
  return dropped;
}

}  // namespace tagflow::actors
