// A trace's events as Chrome trace JSON.
#include "apps/shared/program/trace.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "actors/plan/tag.h"
#include "apps/shared/io/file.h"
#include "apps/shared/io/json_tensor.h"
#include "apps/shared/program/trace_hops.h"
#include "graph/device_name.h"

namespace tagflow::apps {
namespace {

using actors::TraceEvent;
using actors::TraceFrame;
using actors::TraceLaunch;
using actors::TraceNode;
using Stream = devices::AcceleratorActivity::Stream;

// Numbers and texts of one event after the other.
class TraceWriter {
 public:
  TraceWriter(const std::vector<TraceTrack>& tracks,
              const std::vector<TraceFrame>& frames,
              const std::vector<TraceLaunch>& launches)
      : tracks_(tracks),
        launches_(launches),
        hops_(tracks, frames),
        fired_(tracks, launches) {
    for (const TraceFrame& frame : frames) {
      const std::string& device = frame.plan->device;
      numbers_.try_emplace(instance_of(device, frame.instance),
                           numbers_.size());
      add_process(device);
    }
    for (const TraceTrack& track : tracks)
      track_tasks_.push_back(track.empty() ? std::string_view()
                                           : task_of(track.front().device));
    for (const TraceLaunch& launch : launches) {
      add_process(launch.device);
      accelerators_.insert(launch.device);
    }
    if (processes_.empty()) processes_.emplace("", getpid());
  }

  std::string write(uint64_t dropped) {
    text_ = "{\"displayTimeUnit\": \"ns\",\n\"otherData\": {\"dropped\": " +
            std::to_string(dropped) + "},\n\"traceEvents\": [\n";
    for (const auto& [device, process] : processes_)
      write_process(device, process);
    // What follows begins with a comma.
    for (size_t t = 0; t < tracks_.size(); ++t) write_track(int(t));
    for (const TraceLaunch& launch : launches_) write_launch(launch);
    return std::move(text_) + "\n]}\n";
  }

 private:
  void add_process(std::string_view device) {
    processes_.try_emplace(device, getpid() + int(processes_.size()));
    tasks_.insert(task_of(device));
  }

  std::string name_of_process(std::string_view device) const {
    if (processes_.size() == 1) return "tagflow";
    if (tasks_.size() > 1) return "tagflow " + cluster_device_name(device);
    return fmt::format("tagflow {}", graph::short_device_name(device));
  }

  // A process for each device, with all threads of its task in it, and with the
  // streams of an accelerator.
  void write_process(std::string_view device, int process) {
    const std::string name = name_of_process(device);
    text_ += fmt::format(
        "{}{{\"name\": \"process_name\", \"ph\": \"M\", \"pid\": {}, "
        "\"args\": {{\"name\": {}}}}}",
        text_.ends_with("[\n") ? "" : ",\n", process, io::json_string(name));
    int threads = 0;
    for (size_t t = 0; t < tracks_.size(); ++t)
      if (tasks_.size() <= 1 || track_tasks_[t] == task_of(device))
        write_thread(process, int(t), fmt::format("worker {}", ++threads));
    if (accelerators_.contains(device))
      for (const auto& [stream, stream_name] : kStreams)
        write_thread(process, track_of(stream), stream_name);
  }

  void write_thread(int process, int track, std::string_view name) {
    text_ += fmt::format(
        ",\n{{\"name\": \"thread_name\", \"ph\": \"M\", \"pid\": {0}, "
        "\"tid\": {1}, \"args\": {{\"name\": \"{2}\"}}}},\n"
        "{{\"name\": \"thread_sort_index\", \"ph\": \"M\", \"pid\": {0}, "
        "\"tid\": {1}, \"args\": {{\"sort_index\": {3}}}}}",
        process, thread_of(track, process), name, track + 1);
  }

  // Streams come after the threads.
  int track_of(Stream stream) const {
    return int(tracks_.size()) + int(stream);
  }

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
          event.kind == TraceEvent::kSkip ? 'i' : 'X', event.device, track,
          event.begin);
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
    add_number(int64_t(number_of(event)));
    if (event.node != nullptr) {
      text_ += R"(, "op": )";
      text_ += op_of(*event.node);
    }
    text_ += "}}";
  }

  // With an arrow from where its node fired.
  void write_launch(const TraceLaunch& launch) {
    const bool is_copy =
        launch.stream != Stream::kExecution || launch.node.empty();
    const int track = track_of(launch.stream);
    begin(is_copy ? "\"copy\"" : io::json_string(launch.node), 'X',
          launch.device, track, launch.begin);
    text_ += R"(, "dur": )";
    add_microseconds(launch.end - launch.begin);
    if (is_copy) {
      text_ += R"(, "cat": "copy", "args": {"bytes": )";
      add_number(launch.bytes);
      text_ += launch.stream == Stream::kToHost ? R"(, "to": "host"}})"
                                                : R"(, "to": "device"}})";
      return;
    }
    text_ += R"(, "cat": "launch"})";
    const std::optional<LaunchFinder::Firing> fired = fired_.next(launch);
    if (!fired.has_value()) return;
    ++last_hop_;
    begin("\"launch\"", 's', launch.device, fired->track, fired->time);
    end_arrow();
    begin("\"launch\"", 'f', launch.device, track, launch.begin);
    text_ += R"(, "bp": "e")";
    end_arrow();
  }
  void end_arrow() {
    text_ += R"(, "cat": "launch", "id": )";
    add_number(last_hop_);
    text_ += '}';
  }

  // One arrow for all tokens that came the same way.
  void write_hops(const std::vector<const TraceEvent*>& arrivals,
                  const TraceEvent& to, int track) {
    std::map<const TraceActivity*, std::pair<const TraceEvent*, int>> by_source;
    for (const TraceEvent* arrival : arrivals) {
      const TraceActivity* source = hops_.source_of(*arrival);
      if (source == nullptr) continue;
      auto& [first, count] = by_source[source];
      if (first == nullptr) first = arrival;
      ++count;
    }
    for (const auto& [source, hop] : by_source) {
      const auto& [arrival, count] = hop;
      const int64_t sent =
          std::max(source->begin, std::min(source->end - 1, to.end));
      // At the start, outside kernels' slices, since the iteration receives it.
      const int64_t received = std::max(to.begin, sent);
      ++last_hop_;
      begin(op_of(*arrival->node), 's', source->device, source->track, sent);
      end_hop(*arrival, count);
      begin(op_of(*arrival->node), 'f', to.device, track, received);
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

  void begin(std::string_view quoted_name, char phase, std::string_view device,
             int track, int64_t time) {
    const int process = processes_.at(device);
    text_ += ",\n{\"name\": ";
    text_ += quoted_name;
    text_ += R"(, "ph": ")";
    text_ += phase;
    text_ += R"(", "pid": )";
    add_number(process);
    text_ += R"(, "tid": )";
    add_number(thread_of(track, process));
    text_ += R"(, "ts": )";
    add_microseconds(time);
  }

  // Perfetto does not show thread 0, and treats a thread with the process's
  // number as its main thread.
  static int thread_of(int track, int process) {
    return track + 1 + (track + 1 >= process);
  }

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
    if (name.empty()) name = io::json_string(actors::frame_label(frame));
    return name;
  }
  // "while/3", in quotes.
  std::string frame_name(const TraceEvent& event) {
    std::string name = quoted_frame(event.frame);
    name.pop_back();
    return fmt::format("{}/{}\"", name, event.tag.iteration);
  }
  // Instances in the order of their starts.
  size_t number_of(const TraceEvent& event) {
    return numbers_
        .try_emplace(instance_of(event.device, event.tag), numbers_.size())
        .first->second;
  }

  static constexpr std::pair<Stream, std::string_view> kStreams[] = {
      {Stream::kExecution, "execution"},
      {Stream::kToDevice, "copies to the device"},
      {Stream::kToHost, "copies to the host"}};

  const std::vector<TraceTrack>& tracks_;
  const std::vector<TraceLaunch>& launches_;
  HopFinder hops_;
  LaunchFinder fired_;
  std::set<std::string_view> accelerators_;
  std::map<std::string_view, int> processes_;  // by device
  std::set<std::string_view> tasks_;
  std::vector<std::string_view> track_tasks_;  // of a track without events: ""
  std::string text_;
  int64_t last_hop_ = 0;
  std::unordered_map<const TraceNode*, std::string> names_;
  std::unordered_map<std::string, std::string> ops_, frames_;
  std::map<TraceInstance, size_t> numbers_;
};

}  // namespace

std::string cluster_device_name(std::string_view full) {
  const auto name = graph::DeviceName::parse(full);
  if (!name.ok() || !name->is_full()) return std::string(full);
  return fmt::format("/job:{}/task:{} {}", *name->job, *name->task,
                     name->short_name());
}

std::string format_trace(const actors::Trace& trace) {
  const std::vector<TraceTrack> tracks = trace.tracks();
  return TraceWriter(tracks, trace.frames(), trace.launches())
      .write(trace.dropped());
}

Status write_trace(const actors::Trace& trace,
                   const std::filesystem::path& path) {
  if (trace.dropped() > 0)
    spdlog::warn(
        "the trace is full: it does not show the last part of the run");
  return io::write_file(path, format_trace(trace));
}

Status end_and_write_trace(OwnedSession& session, const actors::Trace& trace,
                           const std::filesystem::path& path) {
  if (!session.end(kLongPatience))
    return error(Code::kFailedPrecondition,
                 "[--trace] \"{}\" is not written: a kernel that cannot be "
                 "interrupted is still running and being recorded",
                 path.string());
  return write_trace(trace, path).with_prefix("[--trace] ");
}

}  // namespace tagflow::apps
