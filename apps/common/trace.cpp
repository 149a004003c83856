// A trace's events as Chrome trace JSON, with the hops that follow from them.
#include "apps/common/trace.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

#include "apps/io/file.h"
#include "apps/io/json_tensor.h"

namespace tagflow::apps {
namespace {

using actors::TraceEvent;
using actors::TraceFrame;
using actors::TraceNode;
using TraceTrack = std::vector<TraceEvent>;
using TraceInstance = std::pair<uint64_t, uint64_t>;
using TraceScope = std::tuple<uint64_t, uint64_t, int64_t>;

TraceInstance instance_of(const devices::Tag& tag) {
  return {tag.frame_hi, tag.frame_lo};
}
TraceScope scope_of(const devices::Tag& tag) {
  return {tag.frame_hi, tag.frame_lo, tag.iteration};
}

// An activity: when, and on which track.
struct Activity {
  int64_t begin = 0, end = 0;
  int track = 0;
};

// Finds out where tokens came from. An activity sends when it ends, and what
// it sent arrives at the beginning of another one.
class HopFinder {
 public:
  HopFinder(const std::vector<TraceTrack>& tracks,
            const std::vector<TraceFrame>& frames) {
    for (size_t t = 0; t < tracks.size(); ++t) {
      for (const TraceEvent& event : tracks[t]) {
        if (event.kind != TraceEvent::kActivity) continue;
        activities_[scope_of(event.tag)].push_back(
            {event.begin, event.end, int(t)});
        last_scopes_[instance_of(event.tag)].push_back(event.tag);
      }
    }
    for (auto& [scope, list] : activities_) {
      std::ranges::sort(list, {}, &Activity::end);
    }
    for (const TraceFrame& frame : frames) {
      // Each run of the same graph has the same instances.
      if (callers_.try_emplace(instance_of(frame.instance), frame.caller)
              .second)
        callees_[scope_of(frame.caller)].push_back(instance_of(frame.instance));
    }
  }

  // The activity that sent what `arrival` says; null where that is not known.
  const Activity* source_of(const TraceEvent& arrival) const {
    const TraceNode& node = *arrival.node;
    if (node.is_next_iteration) {
      devices::Tag before = arrival.tag;
      --before.iteration;
      return last_before(before, arrival.begin);
    }
    // What leaves a frame arrives in the iteration that started it: by an Exit,
    // or as the result of a call.
    if (node.is_exit || node.op == "_Call") return last_of_callees(arrival);
    // What enters one, by an Enter or as an argument; or what is fed.
    const auto caller = callers_.find(instance_of(arrival.tag));
    if (caller == callers_.end() ||
        instance_of(caller->second) == instance_of(arrival.tag)) {
      return nullptr;
    }
    return last_before(caller->second, arrival.begin);
  }

 private:
  const Activity* last_before(const devices::Tag& tag, int64_t time) const {
    const auto it = activities_.find(scope_of(tag));
    if (it == activities_.end()) return nullptr;
    const auto after =
        std::ranges::upper_bound(it->second, time, {}, &Activity::end);
    return after == it->second.begin() ? nullptr : &*std::prev(after);
  }

  // Of the frames that this iteration started, the activity that ended last.
  const Activity* last_of_callees(const TraceEvent& arrival) const {
    const auto callees = callees_.find(scope_of(arrival.tag));
    if (callees == callees_.end()) return nullptr;
    const Activity* last = nullptr;
    for (const TraceInstance& instance : callees->second) {
      const auto tags = last_scopes_.find(instance);
      if (tags == last_scopes_.end() || instance == instance_of(arrival.tag)) {
        continue;
      }
      // The newest ones: an Exit leaves by the last iteration.
      const auto& list = tags->second;
      for (size_t i = list.size(); i > 0 && i + 8 > list.size(); --i) {
        const Activity* activity = last_before(list[i - 1], arrival.begin);
        if (activity != nullptr &&
            (last == nullptr || activity->end > last->end)) {
          last = activity;
        }
      }
    }
    return last;
  }

  std::map<TraceScope, std::vector<Activity>> activities_;
  std::map<TraceInstance, std::vector<devices::Tag>> last_scopes_;
  std::map<TraceInstance, devices::Tag> callers_;
  std::map<TraceScope, std::vector<TraceInstance>> callees_;
};

// Numbers and texts of one event after the other.
class TraceWriter {
 public:
  TraceWriter(const std::vector<TraceTrack>& tracks,
              const std::vector<TraceFrame>& frames)
      : tracks_(tracks), hops_(tracks, frames) {
    for (const TraceFrame& frame : frames) {
      numbers_.try_emplace(instance_of(frame.instance), numbers_.size());
    }
  }

  std::string write(uint64_t dropped) {
    text_ = "{\"displayTimeUnit\": \"ns\",\n\"otherData\": {\"dropped\": " +
            std::to_string(dropped) + "},\n\"traceEvents\": [\n";
    text_ += fmt::format(
        "{{\"name\": \"process_name\", \"ph\": \"M\", \"pid\": {}, "
        "\"args\": {{\"name\": \"tagflow\"}}}}",
        process_);
    for (size_t t = 0; t < tracks_.size(); ++t) {
      text_ += fmt::format(
          ",\n{{\"name\": \"thread_name\", \"ph\": \"M\", \"pid\": {0}, "
          "\"tid\": {1}, \"args\": {{\"name\": \"worker {1}\"}}}},\n"
          "{{\"name\": \"thread_sort_index\", \"ph\": \"M\", \"pid\": {0}, "
          "\"tid\": {1}, \"args\": {{\"sort_index\": {1}}}}}",
          process_, thread_of(int(t)));
    }
    for (size_t t = 0; t < tracks_.size(); ++t) write_track(int(t));
    return std::move(text_) + "\n]}\n";
  }

 private:
  void write_track(int track) {
    const TraceEvent* open = nullptr;         // activity
    std::vector<const TraceEvent*> arrivals;  // of it
    const auto close = [&] {
      if (open != nullptr) write_hops(arrivals, *open, track);
      arrivals.clear();
    };
    for (const TraceEvent& event : tracks_[size_t(track)]) {
      if (event.kind == TraceEvent::kArrive) {
        arrivals.push_back(&event);
        continue;
      }
      if (event.kind == TraceEvent::kActivity) {
        close();
        open = &event;
      }
      write_event(event, track);
    }
    close();
  }

  void write_event(const TraceEvent& event, int track) {
    begin(event.kind == TraceEvent::kActivity ? frame_name(event)
                                              : name_of(*event.node),
          event.kind == TraceEvent::kSkip ? 'i' : 'X', track, event.begin);
    if (event.kind == TraceEvent::kSkip) {
      text_ += R"(, "s": "t", "cat": "skip")";
    } else {
      text_ += R"(, "dur": )";
      add_microseconds(event.end - event.begin);
      text_ += event.kind == TraceEvent::kActivity ? R"(, "cat": "iteration")"
                                                   : R"(, "cat": "kernel")";
    }
    text_ += R"(, "args": {"frame": )";
    text_ += quoted_frame(event.frame);
    text_ += R"(, "iteration": )";
    add_number(event.tag.iteration);
    text_ += R"(, "instance": )";
    add_number(int64_t(number_of(event.tag)));
    if (event.node != nullptr) {
      text_ += R"(, "op": )";
      text_ += op_of(*event.node);
    }
    text_ += "}}";
  }

  // One arrow for all tokens that came the same way.
  void write_hops(const std::vector<const TraceEvent*>& arrivals,
                  const TraceEvent& to, int track) {
    std::map<const Activity*, std::pair<const TraceEvent*, int>> by_source;
    for (const TraceEvent* arrival : arrivals) {
      const Activity* source = hops_.source_of(*arrival);
      if (source == nullptr) continue;
      auto& [first, count] = by_source[source];
      if (first == nullptr) first = arrival;
      ++count;
    }
    for (const auto& [source, hop] : by_source) {
      const auto& [arrival, count] = hop;
      const int64_t sent = std::max(source->begin, source->end - 1);
      const int64_t received = std::max(arrival->begin, to.begin);
      ++last_hop_;
      begin(op_of(*arrival->node), 's', source->track, sent);
      end_hop(*arrival, count);
      begin(op_of(*arrival->node), 'f', track, std::max(received, sent));
      text_ += R"(, "bp": "e")";
      end_hop(*arrival, count);
    }
  }

  void end_hop(const TraceEvent& arrival, int count) {
    text_ += R"(, "cat": "hop", "id": )";
    add_number(last_hop_);
    text_ += R"(, "args": {"tokens": )";
    add_number(count);
    text_ += R"(, "node": )";
    text_ += name_of(*arrival.node);
    text_ += R"(, "to iteration": )";
    add_number(arrival.tag.iteration);
    text_ += "}}";
  }

  void begin(std::string_view quoted_name, char phase, int track,
             int64_t time) {
    text_ += ",\n{\"name\": ";
    text_ += quoted_name;
    text_ += R"(, "ph": ")";
    text_ += phase;
    text_ += R"(", "pid": )";
    add_number(process_);
    text_ += R"(, "tid": )";
    add_number(thread_of(track));
    text_ += R"(, "ts": )";
    add_microseconds(time);
  }

  // Perfetto shows no thread 0, and takes that of the process's number for its
  // main one.
  int thread_of(int track) const { return track + 1 + (track + 1 >= process_); }

  void add_number(int64_t number) {
    const fmt::format_int digits(number);
    text_.append(digits.data(), digits.size());
  }

  // Nanoseconds as microseconds, exactly.
  void add_microseconds(int64_t time) {
    add_number(time / 1000);
    const int64_t rest = time % 1000;
    text_ += '.';
    for (const int64_t digit : {rest / 100, rest / 10 % 10, rest % 10}) {
      text_ += char('0' + digit);
    }
  }

  // In quotes, each made once.
  const std::string& name_of(const TraceNode& node) {
    std::string& name = names_[&node];
    if (name.empty()) name = io::json_string(node.name);
    return name;
  }
  const std::string& op_of(const TraceNode& node) {
    std::string& op = ops_[node.op];
    if (op.empty()) op = io::json_string(node.op);
    return op;
  }
  const std::string& quoted_frame(std::string_view frame) {
    std::string& name = frames_[std::string(frame)];
    if (name.empty()) {
      name = io::json_string(frame.empty() ? "root" : std::string(frame));
    }
    return name;
  }
  // "while/3", in quotes.
  std::string frame_name(const TraceEvent& event) {
    std::string name = quoted_frame(event.frame);
    name.pop_back();
    return fmt::format("{}/{}\"", name, event.tag.iteration);
  }
  // Instances in the order of their starts.
  size_t number_of(const devices::Tag& tag) {
    return numbers_.try_emplace(instance_of(tag), numbers_.size())
        .first->second;
  }

  const std::vector<TraceTrack>& tracks_;
  HopFinder hops_;
  const int process_ = getpid();
  std::string text_;
  int64_t last_hop_ = 0;
  std::unordered_map<const TraceNode*, std::string> names_;
  std::unordered_map<std::string, std::string> ops_, frames_;
  std::map<TraceInstance, size_t> numbers_;
};

}  // namespace

std::string format_trace(const actors::Trace& trace) {
  const std::vector<TraceTrack> tracks = trace.tracks();
  return TraceWriter(tracks, trace.frames()).write(trace.dropped());
}

Status write_trace(const actors::Trace& trace,
                   const std::filesystem::path& path) {
  if (trace.dropped() > 0)
    spdlog::warn(
        "the trace has no room for all of the run: what came last is missing");
  return io::write_file(path, format_trace(trace));
}

}  // namespace tagflow::apps
