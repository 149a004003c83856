// StepView: what somebody sees of a step while it goes on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "graph/tensor.h"

namespace tagflow::actors {

class Step;

// A picture of a step at one moment, of bounded size. Only texts and numbers:
// it keeps nothing of the step.
struct StepView {
  // The most that are listed of each; what is left out is counted.
  static constexpr size_t kMostFrames = 128;
  static constexpr size_t kMostIterations = 12;  // of a frame
  static constexpr size_t kMostNodes = 32;       // of an iteration
  static constexpr size_t kMostTokens = 24;      // of an iteration
  static constexpr size_t kMostLines = 24;
  static constexpr size_t kMostText = 240;  // bytes of a value, or a line
  // Bytes of all nodes and tokens together, some more.
  static constexpr size_t kMostBytes = 192 << 10;

  struct Device {
    std::string name;                                        // the full one
    uint64_t fired = 0, dead = 0, iterations = 0, hops = 0;  // in this step
  };
  // A loop, or a function's body, on one device.
  struct Loop {
    size_t device = 0;
    std::string name;
    uint64_t trips = 0;      // iterations begun by all of its instances
    uint64_t instances = 0;  // of all steps of its executable, as the trips
  };
  struct Token {
    std::string node;   // that it is for
    int input = 0;      // which input of it; -1: it enters the iteration
    std::string value;  // "float[2] [1 2]", or "dead"
  };
  struct Node {
    std::string name, op;
    bool runs = false;     // it has fired, and has not answered
    uint32_t missing = 0;  // inputs
  };
  struct Iteration {
    int64_t number = 0;
    bool is_stopped = false;  // it would begin
    // Nodes. All are 0 for one that is stopped, and for one that begins next:
    // its tokens are on their way.
    uint32_t fired = 0, waiting = 0, running = 0, untouched = 0;
    std::vector<Node> nodes;    // that wait or run
    std::vector<Token> tokens;  // that wait
    size_t more_nodes = 0, more_tokens = 0;
  };
  struct Frame {
    int parent = -1;  // its place in `frames`; -1: a root
    size_t device = 0;
    std::string name;  // "" for the root
    std::string tag;   // "outer/2/inner"
    int window = 1;
    int ring = 1;                       // iteration actors
    std::vector<Iteration> iterations;  // in flight, the oldest first
    size_t more_iterations = 0;
  };

  uint64_t step = 0;
  bool is_stopped = false;  // some iteration is
  std::vector<Device> devices;
  std::vector<Loop> loops;
  std::vector<Frame> frames;  // parents before children
  size_t more_frames = 0;
  std::vector<std::string> waits;    // which node waits for what
  std::vector<std::string> kernels;  // that wait for something outside
};

// The picture. REQUIRES: called within f of Hold::look()
StepView view_of(Step& step);

// A value of at most kMostText bytes. Of one on an accelerator only the type.
std::string value_text(const Tensor& value, bool is_on_host = true);

}  // namespace tagflow::actors
