#include "apps/tagflow/stepper/trace_recording.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "actors/plan/tag.h"
#include "apps/shared/program/trace.h"
#include "apps/shared/program/trace_hops.h"

namespace tagflow::apps::stepper {
namespace {

using actors::TraceEvent;
using actors::TraceFrame;
using actors::TraceNode;

class TraceReader {
 public:
  explicit TraceReader(size_t limit) : limit_(limit) {
    made_.recording.values = {{"?", "?"}};
  }

  // REQUIRES: frames come after those that have started them.
  void add_frame(const TraceFrame& frame) {
    const TraceInstance key = instance_of(frame.plan->device, frame.instance);
    if (instances_.contains(key)) return;  // of another run
    const TraceInstance caller = instance_of(frame.plan->device, frame.caller);
    const bool is_root = key == caller || !instances_.contains(caller);
    add_instance(key, frame.plan->frame,
                 is_root ? -1 : scope_at(caller, frame.caller.iteration));
  }

  void add(const TraceEvent& event) {
    const int scope = scope_of(event);
    auto& steps = made_.recording.steps;
    // Tokens that come together are one step.
    const bool continues = event.kind == TraceEvent::kArrive &&
                           !steps.empty() && steps.back().scope == scope &&
                           steps.back().kind == StepKind::kArrive;
    if (!continues && steps.size() >= limit_) {
      ++made_.omitted;
      return;
    }
    if (!continues) {
      Step& step = steps.emplace_back();
      step.scope = scope;
      step.kind = event.kind == TraceEvent::kArrive ? StepKind::kArrive
                  : event.kind == TraceEvent::kNode ? StepKind::kFire
                                                    : StepKind::kSkip;
      step.starts = !has_started_[size_t(scope)];
      has_started_[size_t(scope)] = true;
    }
    const int node = node_of(event);
    if (event.kind == TraceEvent::kArrive) {
      steps.back().arrivals.push_back({node, /*value=*/0});
    } else {
      steps.back().node = node;
    }
  }

  TraceRecording take() { return std::move(made_); }

 private:
  void add_instance(const TraceInstance& key, std::string_view frame,
                    int caller) {
    Recording& recording = made_.recording;
    Instance instance;
    instance.frame = frame;
    instance.device =
        " on " + cluster_device_name(std::get<std::string_view>(key));
    instance.caller = caller;
    instance.number = ++counts_[{caller, instance.frame + instance.device}];
    auto& drawn = recording.drawing.frames;
    const auto [place, is_new] =
        drawn_.try_emplace(instance.frame + instance.device, int(drawn.size()));
    if (is_new)
      drawn.push_back({actors::frame_label(frame) + instance.device, 0, false});
    instance.drawn = place->second;
    instances_[key] = int(recording.instances.size());
    recording.instances.push_back(std::move(instance));
  }

  int scope_at(const TraceInstance& key, int64_t iteration) {
    auto& scopes = made_.recording.scopes;
    const auto [place, is_new] =
        scopes_.try_emplace(TraceScope{key, iteration}, int(scopes.size()));
    if (is_new) {
      scopes.push_back({instances_.at(key), iteration});
      has_started_.push_back(false);
    }
    return place->second;
  }
  int scope_of(const TraceEvent& event) {
    const TraceInstance key = instance_of(event.device, event.tag);
    if (!instances_.contains(key)) add_instance(key, event.frame, -1);
    return scope_at(key, event.tag.iteration);
  }

  // A node has the same number where it fires and where a token comes to it.
  int node_of(const TraceEvent& event) {
    auto& nodes = made_.recording.drawing.nodes;
    const auto [place, is_new] =
        nodes_.try_emplace({event.device, event.node->name}, int(nodes.size()));
    if (is_new) {
      draw::DrawnNode& node = nodes.emplace_back();
      node.name = event.node->name;
      node.op = event.node->op;
      const int instance = instances_.at(instance_of(event.device, event.tag));
      node.frame = made_.recording.instances[size_t(instance)].drawn;
      made_.recording.notes.emplace_back();
    }
    return place->second;
  }

  const size_t limit_;
  TraceRecording made_;
  std::map<TraceInstance, int> instances_;
  std::map<TraceScope, int> scopes_;
  std::vector<bool> has_started_;                      // by scope
  std::map<std::pair<int, std::string>, int> counts_;  // by caller and frame
  std::map<std::string, int> drawn_;                   // by frame and device
  // By device and name.
  std::map<std::pair<std::string_view, std::string_view>, int> nodes_;
};

}  // namespace

TraceRecording record_trace(const actors::Trace& trace, size_t limit) {
  const std::vector<TraceTrack> tracks = trace.tracks();
  std::vector<const TraceEvent*> events;
  for (const TraceTrack& track : tracks)
    for (const TraceEvent& event : track)
      if (event.kind == TraceEvent::kNode || event.kind == TraceEvent::kSkip ||
          event.kind == TraceEvent::kArrive)
        events.push_back(&event);
  std::ranges::stable_sort(
      events, {}, [](const TraceEvent* event) { return event->begin; });
  TraceReader reader(limit);
  for (const TraceFrame& frame : trace.frames()) reader.add_frame(frame);
  for (const TraceEvent* event : events) reader.add(*event);
  return reader.take();
}

}  // namespace tagflow::apps::stepper
