#include "actors/session/inspector.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "actors/runtime/iteration_view.h"
#include "actors/runtime/run_context.h"
#include "graph/node.h"

namespace tagflow::actors {
namespace {

// Runs that may be looked at; older ones cannot.
constexpr size_t kMostHolds = 64;

// Calls f(frame) for each frame that runs.
template <class F>
void each_live_frame(RunContext& context, F f) {
  for (PartitionActor* partition : context.partitions) {
    if (!partition->root().live()) continue;
    std::vector<FrameActor*> open = {&partition->root()};
    while (!open.empty()) {
      FrameActor& frame = *open.back();
      open.pop_back();
      f(frame);
      for (const caf::actor& actor : frame.instance().iterations) {
        const auto& iteration = *actor_pointer<IterationActor>(actor);
        if (!iteration.busy()) continue;
        for (uint32_t c = 0; c < iteration.children().size(); ++c)
          if (iteration.child_live(c)) open.push_back(iteration.children()[c]);
      }
    }
  }
}

}  // namespace

// Keeps the last value of each watched tensor, by counted references.
class Inspector::Watch final : public Observer {
 public:
  bool is_wanted() const { return is_wanted_.load(std::memory_order_relaxed); }

  void set(std::vector<std::pair<std::string, int>> tensors) {
    const std::lock_guard lock(mutex_);
    std::vector<Seen> seen;
    for (auto& tensor : tensors) {
      const auto known = std::ranges::find_if(seen_, [&](const Seen& one) {
        return one.node == tensor.first && one.port == tensor.second;
      });
      if (known != seen_.end()) {
        seen.push_back(std::move(*known));
      } else {
        seen.push_back({std::move(tensor.first), tensor.second});
      }
    }
    seen_ = std::move(seen);
    is_wanted_ = !seen_.empty();
  }

  std::vector<Watched> values() const {
    const std::lock_guard lock(mutex_);
    std::vector<Watched> values;
    for (const Seen& one : seen_)
      values.push_back({fmt::format("{}:{}", one.node, one.port), one.tag,
                        one.times == 0 ? std::string()
                                       : value_text(one.value, one.is_on_host),
                        one.times});
    return values;
  }

  void on_fired(const Location& location, const graph::Node& node,
                std::span<const Tensor> outputs) override {
    if (!is_wanted() || outputs.empty()) return;
    const std::lock_guard lock(mutex_);
    for (Seen& one : seen_) {
      if (one.node != node.name()) continue;
      // Of a Switch, either output is its only value.
      one.value = outputs[std::min(size_t(one.port), outputs.size() - 1)];
      one.tag = tag_text(location);
      one.is_on_host =
          location.instance == nullptr || !location.instance->run->accelerated;
      ++one.times;
    }
  }

 private:
  struct Seen {
    std::string node;
    int port = 0;
    std::string tag;
    Tensor value;
    bool is_on_host = true;
    uint64_t times = 0;
  };

  std::atomic<bool> is_wanted_{false};
  mutable std::mutex mutex_;  // guards the below
  std::vector<Seen> seen_;
};

Inspector::Inspector() : watch_(std::make_unique<Watch>()) {}
Inspector::~Inspector() = default;

std::shared_ptr<Hold> Inspector::add_step() {
  const std::lock_guard lock(mutex_);
  auto hold = std::make_shared<Hold>(stop_);
  std::erase_if(holds_, [](const auto& one) { return one.expired(); });
  if (holds_.size() == kMostHolds) holds_.erase(holds_.begin());
  holds_.push_back(hold);
  return hold;
}

std::vector<std::shared_ptr<Hold>> Inspector::open_holds() {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<Hold>> open;
  for (auto one = holds_.rbegin(); one != holds_.rend(); ++one)
    if (auto hold = one->lock()) open.push_back(std::move(hold));
  return open;
}

std::optional<StepView> Inspector::look(std::chrono::nanoseconds patience,
                                        bool* is_running) {
  for (SeenPart& part : look_at_parts(patience, is_running))
    if (part.view) return std::move(part.view);
  return {};
}

std::vector<SeenPart> Inspector::look_at_parts(
    std::chrono::nanoseconds patience, bool* is_running) {
  const auto open = open_holds();
  if (is_running != nullptr) *is_running = !open.empty();
  for (const auto& hold : open) {
    if (const auto remote = hold->remote()) {
      auto parts = remote->look(patience);
      if (!parts.empty()) return parts;
      continue;
    }
    StepView view;
    if (hold->look(patience, [&](Step& step) {
          attach_watch(step);
          view = view_of(step);
        }))
      return {{"", std::move(view)}};
  }
  if (open.empty()) return {};
  return {SeenPart()};
}

void Inspector::attach_watch(Step& step) {
  Observer* const observer = watch_->is_wanted() ? watch_.get() : nullptr;
  const bool is_others =
      step.observer != nullptr && step.observer != watch_.get();
  if (is_others || step.observer == observer) return;
  step.observer = observer;
  each_live_frame(step.hold->context(),
                  [&](FrameActor& frame) { frame.watch(observer); });
}

void Inspector::stop_at(StopPoint stop) {
  {
    const std::lock_guard lock(mutex_);
    stop_ = stop;
  }
  tell(stop);
}

void Inspector::go_on() {
  {
    const std::lock_guard lock(mutex_);
    stop_.reset();
  }
  tell(std::nullopt);
}

void Inspector::tell(const std::optional<StopPoint>& stop) {
  for (const auto& hold : open_holds()) {
    hold->stop_at(stop);
    if (const auto remote = hold->remote()) remote->stop_at(stop);
  }
}

void Inspector::advance(const std::string& frame) {
  {
    const std::lock_guard lock(mutex_);
    stop_ = StopPoint{frame, 0};
  }
  for (const auto& hold : open_holds()) {
    hold->advance(frame);
    if (const auto remote = hold->remote()) remote->advance(frame);
  }
}

std::optional<StopPoint> Inspector::stop() const {
  const std::lock_guard lock(mutex_);
  return stop_;
}

Status Inspector::watch(const std::vector<std::string>& tensors) {
  if (tensors.size() > kMostWatched)
    return error(Code::kResourceExhausted,
                 "[inspect] at most {} tensors are watched", kMostWatched);
  std::vector<std::pair<std::string, int>> names;
  for (const std::string& text : tensors) {
    const size_t colon = text.rfind(':');
    const std::string node = text.substr(0, colon);
    int port = 0;
    if (colon != std::string::npos) {
      const std::string number = text.substr(colon + 1);
      if (number.empty() || number.size() > 4 ||
          number.find_first_not_of("0123456789") != std::string::npos)
        return invalid_argument("[inspect] \"{}\" is not NODE:PORT", text);
      port = std::stoi(number);
    }
    if (node.empty())
      return invalid_argument("[inspect] \"{}\" is not NODE:PORT", text);
    names.emplace_back(node, port);
  }
  watch_->set(std::move(names));
  return {};
}

std::vector<Inspector::Watched> Inspector::watched() const {
  return watch_->values();
}

}  // namespace tagflow::actors
