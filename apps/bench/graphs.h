// The graphs of the workloads, made with the builder as a user would. `tagflow
// bench compare` gives the same graphs to TensorFlow.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "apps/bench/busy_op.h"
#include "graph/graph.h"
#include "graph/status.h"

namespace tagflow::apps {

// A graph and its signature.
struct BenchGraph {
  graph::Graph graph;
  std::vector<std::string> feeds;
  std::vector<std::string> fetches;
  std::vector<std::string> targets;
  std::vector<std::string> init = {};  // targets that run once, before all else
  std::string written = {};  // the prefix of the files that a run writes
  // Tensors that TensorFlow's program, if any, computes, too.
  std::vector<std::string> compared = {};
};

// Each comment names the feeds; a number of trips `n` is an int32 scalar. Every
// error is a bug, or a size that is out of range.

// while i < n: i += 1, and x += 1 for each of vars - 1 more variables, which
// are floats. `window` iterations may overlap. REQUIRES: both >= 1.
Result<BenchGraph> make_loop(int vars, int window = 10);
// while i < n: (while j < n: j += 1, b += 1), i += 1
Result<BenchGraph> make_nested_loop();
// while i < n: v = cond(i % 2 == 0, v + 1, v * 0.5), i += 1
Result<BenchGraph> make_loop_with_cond();
// map_fn of x * x + 1 over n floats: TensorArrays around a loop.
Result<BenchGraph> make_map_fn();
// while i < n: x = x w, y = y w, i += 1; matrices of `size` x `size`.
Result<BenchGraph> make_loop_of_products(int size);
// while i < n: array[i] = float(i), i += 1; then stacks all elements.
Result<BenchGraph> make_loop_of_writes();
// v = 0; while i < n: v += 1, and then i += 1: a float variable.
Result<BenchGraph> make_loop_of_updates();
// while i < n: enqueues i, dequeues it, and makes the next i from it.
Result<BenchGraph> make_loop_of_queue();

// x, op(x), op(op(x)), ... : `nodes` times Identity, or Add of a constant.
// Feeds nothing, like all below. Returns InvalidArgument for any other op.
Result<BenchGraph> make_chain(const std::string& op, int nodes);
// A chain behind the Switch output that is not taken.
Result<BenchGraph> make_dead_chain(const std::string& op, int nodes);
// `nodes` times op(x) for one x, and a NoOp that waits for all.
Result<BenchGraph> make_fan_out(const std::string& op, int nodes);
// x + 1, a float scalar that is fed.
Result<BenchGraph> make_one_kernel();
// One NoOp.
Result<BenchGraph> make_empty();
// One NoOp on each of the devices.
Result<BenchGraph> make_empty_on(std::span<const char* const> devices);

// a b, of size x size floats.
Result<BenchGraph> make_product(int size);
// tanh(x) * x + 1, of `count` floats.
Result<BenchGraph> make_elementwise(int count);
// The sum of `count` floats.
Result<BenchGraph> make_sum(int count);

// Over two CPU devices.
// On CPU:0, while i < n: i += 1, a += 1; the latter on CPU:1.
Result<BenchGraph> make_loop_over_devices(int window);
// On CPU:0, while i < n: i += 1, a = (a + 1) * 1.0001; the sum on CPU:1.
Result<BenchGraph> make_device_pingpong();
// x + 1 + 1 + ... : `nodes` additions, alternating between the two devices.
Result<BenchGraph> make_device_hops(int nodes);

struct BusyLoop {
  int64_t nanoseconds = 0;  // of each kernel
  Busy how = Busy::kSpins;
  std::string device = {};  // empty: left open
  int window = 10;
  // Whether a kernel reads the result of the previous one; otherwise those of a
  // whole window can run at once.
  bool in_a_row = true;
};

// while i < n: x = busy(x) or busy(i), i += 1. REQUIRES: register_busy_op() was
// called.
Result<BenchGraph> make_busy_loop(const BusyLoop& loop);

// A variable of rows x width floats. A run gathers `count` rows of it, and then
// subtracts from them. The node "read" reads all of it.
Result<BenchGraph> make_embedding(int64_t rows, int64_t width, int count);
// while i < n: v += 1, i += 1: a variable of `bytes` on the stream device.
Result<BenchGraph> make_loop_of_large_updates(int64_t bytes);
// Writes kCheckpointTensors variables of `elements` floats to a checkpoint.
Result<BenchGraph> make_save(const std::string& prefix, int64_t elements);
// Reads them again.
Result<BenchGraph> make_restore(const std::string& prefix);
inline constexpr int kCheckpointTensors = 16;
// "tensor_3"
std::string checkpoint_name(int number);

struct LstmSize {
  int batch = 32, steps = 28;
  int inputs = 0;  // 0: as many as units
  int units = 128;

  // A run takes a few milliseconds at most: several are measured together.
  bool is_short() const { return units < 512; }
};

// An LSTM over inputs of [steps, batch, inputs], with constant weights: its
// outputs and its last state.
Result<BenchGraph> make_lstm(const LstmSize& size);
// A prefetch queue of `capacity` batch numbers x: the operation "fetch"
// enqueues x, and "step" dequeues it. Both also sleep for `nanoseconds`. The
// operation "close" closes the queue. REQUIRES: register_busy_op() was called.
Result<BenchGraph> make_prefetch(int64_t nanoseconds, int capacity);

// About `nodes` nodes, like a graph from a file: the sum of blocks of
// arithmetic, each with a small loop and a conditional.
Result<BenchGraph> make_large(int nodes);

}  // namespace tagflow::apps
