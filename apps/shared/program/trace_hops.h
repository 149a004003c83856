// Finds where the tokens of a trace came from.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "actors/watch/trace.h"

namespace tagflow::apps {

using TraceTrack = std::vector<actors::TraceEvent>;
// A frame has an instance on each device where it has nodes.
using TraceInstance = std::tuple<std::string_view, uint64_t, uint64_t>;
using TraceScope = std::pair<TraceInstance, int64_t>;

inline TraceInstance instance_of(std::string_view device,
                                 const devices::Tag& tag) {
  return {device, tag.frame_hi, tag.frame_lo};
}
inline TraceScope scope_of(std::string_view device, const devices::Tag& tag) {
  return {instance_of(device, tag), tag.iteration};
}

// The process of a device, "/job:worker/replica:0/task:1", of its full name.
inline std::string_view task_of(std::string_view device) {
  return device.substr(0, device.find("/device:"));
}

// A time span in which a thread is busy with an iteration, and its track.
struct TraceActivity {
  int64_t begin = 0, end = 0;
  int track = 0;
  std::string_view device;
};

// Arrivals are recorded without their senders. These follow from the tags,
// since an activity sends its tokens when it ends. The arguments must outlive
// it.
class HopFinder {
 public:
  HopFinder(const std::vector<TraceTrack>& tracks,
            const std::vector<actors::TraceFrame>& frames);

  // The activity that sent the token of `arrival`; null if that is unknown,
  // as for a feed. It began before the token arrived. Lives as long as this.
  const TraceActivity* source_of(const actors::TraceEvent& arrival) const;

 private:
  // In the order of their ends.
  using Activities = std::vector<TraceActivity>;

  std::map<TraceScope, Activities> of_iterations_;
  std::map<TraceInstance, Activities> of_instances_;
  // Activities of all bodies that nodes of an iteration call.
  std::map<TraceScope, Activities> of_calls_;
  std::map<TraceInstance, devices::Tag> callers_;
  // The instance that an Exit leaves for an iteration.
  std::map<std::pair<TraceScope, std::string_view>, TraceInstance> exits_;
};

// Finds where nodes fired whose kernels ran on an accelerator. An accelerator
// runs kernels of one name in the order in which they fired. The arguments must
// outlive it.
class LaunchFinder {
 public:
  LaunchFinder(const std::vector<TraceTrack>& tracks,
               const std::vector<actors::TraceLaunch>& launches);

  struct Firing {
    int64_t time = 0;  // within a slice, and not after the kernel's start
    int track = 0;
  };
  // The firing of the next kernel; none if it is unknown.
  std::optional<Firing> next(const actors::TraceLaunch& launch);

 private:
  struct Row {
    struct Entry {
      Firing firing;
      int64_t since = 0;  // when the thread began to be busy
    };
    std::vector<Entry> entries;
    size_t used = 0;
  };
  std::map<std::pair<std::string_view, std::string_view>, Row> rows_;
};

}  // namespace tagflow::apps
