#include "net/transfer/trace_bytes.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "graph/fault.h"
#include "net/wire/bytes.h"
#include "net/wire/fields.h"
#include "net/wire/lists.h"

namespace tagflow::net {
namespace {

using actors::Trace;
using actors::TraceEvent;
using actors::TraceFrame;
using actors::TraceLaunch;
using actors::TraceNode;
using actors::TracePart;
using actors::TracePlan;
using Stream = devices::AcceleratorActivity::Stream;

// The bits of a node.
enum NodeBit : uint8_t { kEnter = 1, kExit = 2, kNextIteration = 4 };
// Of an event and of a launch, in bytes.
constexpr uint64_t kLeastEvent = 6;
constexpr uint64_t kLeastLaunch = 6;
// The memory of a part, in bytes: an event takes 15 times its least bytes.
constexpr uint64_t kMostMemory = uint64_t{1} << 30;

class PartWriter {
 public:
  explicit PartWriter(const TracePart& part) : part_(part) {
    for (const TraceFrame& frame : part.frames) {
      const auto number = uint32_t(frames_.size());
      frames_.try_emplace(key_of(frame.plan->device, frame.instance), number);
      if (!plans_.try_emplace(frame.plan, listed_.size()).second) continue;
      listed_.push_back(frame.plan);
      uint32_t node = 0;
      for (const auto* nodes : {&frame.plan->nodes, &frame.plan->arrivals})
        for (const TraceNode& each : *nodes) nodes_.emplace(&each, node++);
    }
  }

  std::string write(uint64_t most) {
    Writer names;
    write_names(names);
    // What comes besides events: two counts, and of each track the thread and a
    // count.
    constexpr uint64_t kCount = 10, kTrack = 8 + kCount;
    const uint64_t least =
        names.bytes().size() + 2 * kCount + kTrack * part_.tracks.size();
    if (least > most) return write_empty();
    uint64_t room = most - least;
    uint64_t dropped = part_.dropped;
    Writer tracks;
    for (const TracePart::Track& track : part_.tracks)
      write_track(tracks, track, room, dropped);
    names.varint(part_.tracks.size());
    names.raw(tracks.bytes());
    names.varint(dropped);
    return std::move(names.bytes());
  }

 private:
  using FrameKey = std::tuple<std::string_view, uint64_t, uint64_t>;

  static FrameKey key_of(std::string_view device, const devices::Tag& tag) {
    return {device, tag.frame_hi, tag.frame_lo};
  }

  void write_start(Writer& writer) const {
    writer.fixed(uint64_t(
        std::chrono::nanoseconds(part_.start.time_since_epoch()).count()));
  }

  std::string write_empty() const {
    uint64_t dropped = part_.dropped;
    for (const TracePart::Track& track : part_.tracks)
      dropped += track.events.size();
    Writer writer;
    write_start(writer);
    for (int lists = 0; lists < 4; ++lists) writer.varint(0);
    writer.varint(dropped);
    return std::move(writer.bytes());
  }

  void write_names(Writer& writer) const {
    write_start(writer);
    write_list(writer, listed_,
               [&](const TracePlan* plan) { write_plan(writer, *plan); });
    write_list(writer, part_.frames, [&](const TraceFrame& frame) {
      writer.varint(plans_.at(frame.plan));
      writer.fixed(frame.instance.frame_hi);
      writer.fixed(frame.instance.frame_lo);
      writer.fixed(frame.caller.frame_hi);
      writer.fixed(frame.caller.frame_lo);
      writer.varint(uint64_t(frame.caller.iteration));
    });
    write_list(writer, part_.launches, [&](const TraceLaunch& launch) {
      writer.text(launch.device);
      writer.fixed(uint8_t(launch.stream));
      writer.text(launch.node);
      writer.varint(uint64_t(launch.bytes));
      // The accelerator's clock may be a little behind.
      const int64_t begin = std::max<int64_t>(launch.begin, 0);
      writer.varint(uint64_t(begin));
      writer.varint(uint64_t(std::max(launch.end - begin, int64_t{0})));
    });
  }

  static void write_plan(Writer& writer, const TracePlan& plan) {
    writer.text(plan.device);
    writer.text(plan.frame);
    writer.fixed(uint8_t(plan.is_body));
    writer.varint(plan.nodes.size() + plan.arrivals.size());
    for (const auto* nodes : {&plan.nodes, &plan.arrivals})
      for (const TraceNode& node : *nodes) {
        writer.text(node.name);
        writer.text(node.op);
        writer.fixed(uint8_t((node.is_enter ? kEnter : 0) |
                             (node.is_exit ? kExit : 0) |
                             (node.is_next_iteration ? kNextIteration : 0)));
        writer.text(node.sender);
      }
    write_texts(writer, plan.exits);
  }

  // Takes the bytes of its events from the room.
  void write_track(Writer& writer, const TracePart::Track& track,
                   uint64_t& room, uint64_t& dropped) {
    Writer events;
    size_t count = 0;
    int64_t last = 0;
    for (const TraceEvent& event : track.events) {
      const size_t before = events.bytes().size();
      write_event(events, event, last);
      const uint64_t bytes = events.bytes().size() - before;
      if (bytes > room) {
        events.bytes().resize(before);
        room = 0;
        break;
      }
      room -= bytes;
      last = event.begin;
      ++count;
    }
    dropped += track.events.size() - count;
    writer.fixed(track.thread);
    writer.varint(count);
    writer.raw(events.bytes());
  }

  void write_event(Writer& writer, const TraceEvent& event, int64_t last) {
    writer.fixed(uint8_t(event.kind));
    writer.varint(uint64_t(event.begin - last));
    writer.varint(uint64_t(event.end - event.begin));
    const FrameKey key = key_of(event.device, event.tag);
    if (key != last_key_) {
      last_key_ = key;
      last_frame_ = frames_.at(key);
    }
    writer.varint(last_frame_);
    writer.varint(uint64_t(event.tag.iteration));
    writer.varint(event.node == nullptr ? 0 : nodes_.at(event.node));
  }

  const TracePart& part_;
  std::vector<const TracePlan*> listed_;
  std::unordered_map<const TracePlan*, size_t> plans_;  // index in the list
  std::map<FrameKey, uint32_t> frames_;
  std::unordered_map<const TraceNode*, uint32_t> nodes_;  // index in its plan
  FrameKey last_key_;
  uint32_t last_frame_ = 0;
};

// --- Reading ----------------------------------------------------------------

int64_t read_number(Reader& reader, std::string_view name) {
  return int64_t(reader.varint_to(INT64_MAX, name));
}

TraceNode read_node(Reader& reader) {
  TraceNode node;
  node.name = read_text(reader);
  node.op = read_text(reader);
  const auto bits = reader.fixed<uint8_t>();
  if (bits > (kEnter | kExit | kNextIteration))
    reader.fail(fmt::format("{} is not what a node can be", bits));
  node.is_enter = (bits & kEnter) != 0;
  node.is_exit = (bits & kExit) != 0;
  node.is_next_iteration = (bits & kNextIteration) != 0;
  node.sender = read_text(reader);
  return node;
}

TracePlan read_plan(Reader& reader) {
  TracePlan plan;
  plan.device = read_text(reader);
  plan.frame = read_text(reader);
  plan.is_body = reader.flag();
  plan.nodes = read_list<TraceNode>(reader, 4, read_node);
  plan.exits = read_texts(reader);
  return plan;
}

// An index into a list of that length.
size_t read_place(Reader& reader, size_t length, std::string_view name) {
  const uint64_t place = reader.varint();
  if (place < length) return place;
  reader.fail(fmt::format("there is no {} {}", name, place));
  return 0;
}

TraceFrame read_frame(Reader& reader, const std::vector<TracePlan>& plans) {
  TraceFrame frame;
  const size_t plan = read_place(reader, plans.size(), "plan");
  if (reader.ok()) frame.plan = &plans[plan];
  frame.instance.frame_hi = reader.fixed<uint64_t>();
  frame.instance.frame_lo = reader.fixed<uint64_t>();
  frame.caller.frame_hi = reader.fixed<uint64_t>();
  frame.caller.frame_lo = reader.fixed<uint64_t>();
  frame.caller.iteration = read_number(reader, "an iteration");
  return frame;
}

// The begin is after `last`.
void read_times(Reader& reader, int64_t last, int64_t& begin, int64_t& end) {
  begin = last + int64_t(reader.varint_to(uint64_t(Trace::kMaxTime - last),
                                          "a begin"));
  end = begin + int64_t(reader.varint_to(uint64_t(Trace::kMaxTime - begin),
                                         "a duration"));
}

TraceLaunch read_launch(Reader& reader) {
  TraceLaunch launch;
  launch.device = read_text(reader);
  const auto stream = reader.fixed<uint8_t>();
  if (stream > uint8_t(Stream::kToHost))
    reader.fail(fmt::format("there is no stream {}", stream));
  launch.stream = Stream(stream);
  launch.node = read_text(reader);
  launch.bytes = read_number(reader, "a number of bytes");
  read_times(reader, 0, launch.begin, launch.end);
  return launch;
}

TraceEvent read_event(Reader& reader, const std::vector<TraceFrame>& frames,
                      int64_t& last) {
  TraceEvent event;
  const auto kind = reader.fixed<uint8_t>();
  if (kind > TraceEvent::kArrive)
    reader.fail(fmt::format("there is no event {}", kind));
  event.kind = TraceEvent::Kind(kind);
  read_times(reader, last, event.begin, event.end);
  last = event.begin;
  const size_t place = read_place(reader, frames.size(), "frame");
  const int64_t iteration = read_number(reader, "an iteration");
  const uint64_t node = reader.varint();
  if (!reader.ok()) return event;
  const TraceFrame& frame = frames[place];
  event.device = frame.plan->device;
  event.frame = frame.plan->frame;
  event.tag = frame.instance;
  event.tag.iteration = iteration;
  if (event.kind == TraceEvent::kActivity) {
    if (node != 0) reader.fail("an activity has a node");
  } else if (node < frame.plan->nodes.size()) {
    event.node = &frame.plan->nodes[node];
  } else {
    reader.fail(fmt::format("there is no node {}", node));
  }
  return event;
}

TracePart read_part(Reader& reader) {
  constexpr uint64_t kLeastPlan = 5;
  constexpr uint64_t kLeastFrame = 34;
  constexpr uint64_t kLeastTrack = 9;
  TracePart part;
  part.start = std::chrono::steady_clock::time_point(
      std::chrono::nanoseconds(int64_t(reader.fixed<uint64_t>())));
  part.plans = read_list<TracePlan>(reader, kLeastPlan, read_plan);
  part.frames = read_list<TraceFrame>(reader, kLeastFrame, [&](Reader& from) {
    return read_frame(from, part.plans);
  });
  part.launches = read_list<TraceLaunch>(reader, kLeastLaunch, read_launch);
  part.tracks =
      read_list<TracePart::Track>(reader, kLeastTrack, [&](Reader& from) {
        TracePart::Track track;
        track.thread = from.fixed<uint64_t>();
        int64_t last = 0;
        track.events = read_list<TraceEvent>(
            from, kLeastEvent,
            [&](Reader& each) { return read_event(each, part.frames, last); });
        return track;
      });
  part.dropped = reader.varint();
  return part;
}

}  // namespace

std::string write_trace(const TracePart& part, uint64_t most) {
  return PartWriter(part).write(most);
}

Result<TracePart> parse_trace(std::string_view bytes) {
  return guarded("net", [&]() -> Result<TracePart> {
    if (bytes.size() > kMostTraceBytes)
      return error(Code::kResourceExhausted,
                   "[net] a trace of {} bytes is longer than the limit of {}",
                   bytes.size(), kMostTraceBytes);
    Reader reader(bytes, "trace", kMostMemory);
    TracePart part = read_part(reader);
    TAGFLOW_RETURN_IF_ERROR(reader.finish());
    return part;
  });
}

std::optional<Tensor> tensor_of(const TracePart& part) {
  const auto made = guarded("net", [&]() -> Result<Tensor> {
    const std::string bytes = write_trace(part);
    TAGFLOW_ASSIGN(Tensor tensor,
                   Tensor::allocate(DataType::kUInt8, {int64_t(bytes.size())}));
    std::ranges::copy(bytes, static_cast<char*>(tensor.mutable_raw()));
    return tensor;
  });
  return made.ok() ? std::optional(*made) : std::nullopt;
}

Result<TracePart> part_of(const Tensor& tensor) {
  if (tensor.dtype() != DataType::kUInt8)
    return error(Code::kDataLoss, "[net] a trace is {}", tensor.describe());
  const auto bytes = tensor.flat<uint8_t>();
  return parse_trace(
      {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

}  // namespace tagflow::net
