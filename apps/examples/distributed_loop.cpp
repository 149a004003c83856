// A while loop over two devices: the predicate on A, the body's op on B.
//
//               A = /cpu:0            |            B = /cpu:1
//                                     |
//   x -> Enter                        |    0 -> Enter
//          v                          |           v
//   +--> Merge --> x < 100            |   +--> Merge . . . . . . . .
//   |      |          v               |   |      |     :           :
//   |      |      LoopCond -> Send ~ ~|~ ~|~ ~ ~ | ~ > Recv        :
//   |      v          |               |   |      v     |           :
//   |    Switch <-----+               |   |    Switch <+           :
//   |    no|  |yes                    |   |      |yes              :
//   |   Exit  +-------------> Send ~ ~|~ ~|~ ~ ~ | ~ ~ ~ ~ ~ ~ ~ > Recv
//   |                                 |   +---- Next               v
//   +--- Next <-- Recv < ~ ~ ~ ~ ~ ~ ~|~ ~ ~ ~ ~ ~ ~ ~ ~ Send <-- x + x
//                   : . . a loop like |
//                         that on B   |
//
// Whoever builds the graph says only where ops run. Transfers (~) come when it
// is cut, and loops that compute nothing but start Recvs (:) once in each
// iteration. They end when the predicate is false, as the loop itself does: on
// each device for itself, with no one in charge.
//
// usage: distributed_loop [FILE]     a trace of the longest run goes to FILE
#include <cstdio>
#include <map>
#include <mutex>
#include <string>

#include "actors/watch/observer.h"
#include "apps/examples/run.h"
#include "apps/shared/program/trace.h"

using namespace tagflow;         // NOLINT: an example
using namespace tagflow::graph;  // NOLINT

namespace {

constexpr int kLimit = 100;

// What each partition did, by device. Several workers may call it.
class Counter : public actors::Observer {
 public:
  struct Counts {
    int iterations = 0;   // of the loop
    int frames_open = 0;  // started, and not ended by themselves
  };

  void on_frame_start(const actors::Location& location,
                      const actors::Location& /*caller*/) override {
    count(location, &Counts::frames_open, 1);
  }
  void on_frame_end(const actors::Location& location) override {
    count(location, &Counts::frames_open, -1);
  }
  void on_iteration_start(const actors::Location& location) override {
    count(location, &Counts::iterations, 1);
  }

  const std::map<std::string, Counts>& counts() const { return counts_; }

 private:
  void count(const actors::Location& location, int Counts::*what, int by) {
    if (location.frame.empty()) return;  // outside of the loop
    const std::lock_guard lock(mutex_);
    counts_[std::string(location.device)].*what += by;
  }

  std::mutex mutex_;
  std::map<std::string, Counts> counts_;
};

// Whether a run from `x` gives what C++ does, and both partitions ended.
bool check(const Scope& s, const Output& last, int x, actors::Trace* trace) {
  int expected = x, trips = 0;
  for (; expected < kLimit; ++trips) expected += expected;

  Counter counter;
  const auto results = examples::run(s, {{"x", Tensor::scalar(x)}}, {last},
                                     examples::on_devices("cpu:2"),
                                     examples::watched_by(&counter, trace));
  const int result = results[0].item<int32_t>().value();
  std::printf("x = %3d becomes %d in %d trips\n", x, result, trips);
  bool good = result == expected && counter.counts().size() == 2;
  for (const auto& [device, counts] : counter.counts()) {
    std::printf("  %s: %d iterations, %d frames left open\n", device.c_str(),
                counts.iterations, counts.frames_open);
    good = good && counts.iterations == trips + 1 && counts.frames_open == 0;
  }
  return good;
}

}  // namespace

int main(int argc, char** argv) {
  Graph graph;
  const Scope s(graph);
  const Output x =
      ops::placeholder(s.named("x"), DataType::kInt32, PartialShape::scalar());
  const Outputs last = while_loop(
      s,
      [](const Scope& in, const Outputs& v) {
        return ops::less(in.with_device("/cpu:0"), v[0], kLimit);
      },
      [](const Scope& in, const Outputs& v) -> Outputs {
        return ops::add(in.with_device("/cpu:1"), v[0], v[0]);
      },
      {x});

  actors::Trace trace;
  const bool good = check(s, last[0], 300, nullptr) &&  // no trips
                    check(s, last[0], 60, nullptr) &&   // one
                    check(s, last[0], 1, argc > 1 ? &trace : nullptr);
  const bool written = argc < 2 || apps::write_trace(trace, argv[1]).ok();
  std::printf("%s\n", good ? "both partitions ended by themselves" : "wrong");
  return good && written ? 0 : 1;
}
