// Plan: a compiled partition, shared by all its runs.
//
// A partition is cut into its static frames: the root and one per loop. A
// FramePlan lays the nodes of one frame out flat: nodes, ports and edges are
// indices into arrays, so that running an iteration touches no graph.
//
// Note [Arrivals]
// Tokens never cross an iteration's border along an ordinary edge. They leave
// by an edge kNext, kEnter or kExit, travel in a batch as (arrival, value),
// and are spread at their destination along the out-edges of that *arrival*.
// There is one arrival per NextIteration (in its own frame), per Enter (in the
// child frame), per Exit (in the parent frame) and per feed (in the root
// frame). The arrivals of feeds come first, in the order of the feeds. So
// control-flow nodes need no firing of their own, and a batch is independent of
// what consumes it.
//
// Note [Compiled edges]
// With PlanOptions::compile_edges these nodes vanish into edges: Identity,
// LoopCond and the like, NextIteration, Exit and Enter without control inputs,
// and a loop's Merge of one Enter and one NextIteration whose index nobody
// reads (in iteration 0 only the Enter can arrive, later only the back edge:
// there is nothing to merge). A Const becomes a *constant slot* of its
// consumers, and its control inputs become theirs, unless there are many.
//
// Note [Loop constants]
// An Enter with is_constant is visible in every iteration. Once all loop
// constants of a frame instance have arrived and are alive, an iteration starts
// from `steady`, which does not count the inputs that they feed: their slots
// keep the value from one iteration of the actor to its next.
//
// Note [Calls]
// A recursive function is compiled once, into frames of its own; the frame of
// its body has no static parent. In the plan of a frame, a node that calls the
// function is one more child. The instance of that child gets the node's inputs
// as tokens of Enters, and returns its outputs as tokens of Exits. So actors
// treat a call like a loop, with two differences: the frame that an instance
// returns to is known at run time only, and the frame actors of calls are
// shared by all nodes that call the function (CallFrames in call_frames.h).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "devices/kernel.h"
#include "graph/program.h"
#include "graph/status.h"

namespace tagflow::actors {

enum class NodeKind : uint8_t {
  kKernel,  // a synchronous kernel
  kState,   // one that claims state: devices/state/state_kernel.h
  kAsync,   // an asynchronous kernel
  kLaunch,  // a kernel that an accelerator runs
  kSwitch,
  kSwitchN,
  kMerge,
  kForward,  // passes its input on: Identity, NextIteration, ..., Const
  kTrigger,  // has no data: NoOp; ControlTrigger, which is always live
  kCall,     // runs a function's body in a frame of its own: Note [Calls]
  kSend,
  kRecv,
};

enum class EdgeKind : uint8_t {
  kInput,        // `slot` of node `target`
  kControl,      // a control input of node `target`
  kLiveControl,  // only waits: into a Merge or ControlTrigger; or a
                 // graph::OrderEdge
  kMergeInput,   // input `slot` of Merge `target`
  kNext,         // arrival `target` of the next iteration
  kEnter,        // arrival `target` of child `slot`
  kExit,         // exit `target` of this frame
  kFetch,        // fetch `target` of the step
};

// Whether the edge carries no value.
inline bool is_control(EdgeKind kind) {
  return kind == EdgeKind::kControl || kind == EdgeKind::kLiveControl;
}

struct EdgeItem {
  EdgeKind kind = EdgeKind::kNext;
  uint32_t target = 0;
  uint32_t slot = 0;
};

// A range of edges: where one output's tokens go. Control edges come first,
// then edges to inputs, then all others: so the last edge can take the value
// itself. The edges of all ports of a node with one output have the same order,
// with its control port included.
struct PortItem {
  uint32_t begin = 0;
  uint32_t count = 0;
  // A copy of the first edge, if any: most ports have one edge, and this copy
  // saves one load. The loads bound the speed of a chain of nodes.
  EdgeItem first;
};

// One cache line.
struct alignas(64) NodeItem {
  NodeKind kind = NodeKind::kKernel;
  bool has_constant_inputs : 1 = false;  // some slot is sticky
  bool may_be_expensive : 1 = false;
  bool only_if_large : 1 = false;  // and only if an input is in a buffer
  // When the node is dead, it may hold a live input, which must be released.
  bool may_hold_when_dead : 1 = false;
  uint16_t num_inputs = 0;
  uint16_t num_outputs = 0;
  // The binary logarithm, rounded down, of the bytes of its outputs, as far as
  // their shapes are known. 0: few, or not known.
  uint8_t log_output_bytes = 0;
  uint32_t first_slot = 0;
  uint32_t first_port = 0;  // port i; the control port follows the last one
  // Its index among the Merges, among the Sends and Recvs, or, for a call,
  // among the children.
  uint32_t ordinal = 0;
  PortItem edges;  // of all its ports, which are adjacent
  devices::ScalarFunction scalar = nullptr;
  const devices::Kernel* kernel = nullptr;
  const graph::Node* node = nullptr;
};
static_assert(sizeof(NodeItem) == 64);

struct ArrivalItem {
  PortItem edges;
  bool is_constant = false;           // a loop constant
  const graph::Node* node = nullptr;  // Enter, Exit, NextIteration, fed node
};

struct ExitItem {
  uint32_t parent_arrival = 0;  // of a call: the index of its output
  const graph::Node* node = nullptr;
};

// A value that is known when the plan is made, in the slot of a node's input.
struct ConstantSlot {
  uint32_t slot = 0;
  Tensor value;
};

// An edge of a loop constant whose token must be sent again in each iteration,
// because the edge does not lead to a slot.
struct ConstantEdge {
  uint32_t arrival = 0;
  EdgeItem edge;
};

// The initial state of every iteration. See IterationState for the word's
// layout.
struct StartState {
  // Words are copied in blocks of this many.
  static constexpr size_t kBlock = 8;
  // First the number of inputs that each node waits for; then the nodes that
  // wait for none; then zeros to the end of the last block.
  std::vector<uint32_t> words;
  uint32_t num_ready = 0;
  std::vector<uint32_t> merge_inputs;  // per Merge: data inputs that can arrive
};

// What happens to a slot's value when its node has fired.
inline constexpr uint8_t kConsumed = 0;
inline constexpr uint8_t kPlanConstant = 1;  // stays: a ConstantSlot
inline constexpr uint8_t kLoopConstant = 2;  // stays: Note [Loop constants]

// A child that is a call.
struct CallItem {
  uint32_t node = 0;
  uint64_t name_hash = 0;  // of the node that calls
};

struct FramePlan {
  FramePlan();

  uint64_t id;       // unique in the process
  std::string name;  // "" for the root
  uint64_t name_hash = 0;
  int parent = -1;       // of a loop's frame
  bool is_body = false;  // of a function
  bool is_root() const { return parent < 0 && !is_body; }
  uint32_t ordinal = 0;  // among the parent's children
  std::vector<int> children;
  std::vector<std::optional<CallItem>> calls;  // per child; empty: no calls
  int parallel_iterations = 1;
  uint32_t num_enters = 0;  // arrivals from outside that each instance awaits

  std::vector<NodeItem> nodes;
  std::vector<PortItem> ports;
  std::vector<EdgeItem> edges;
  std::vector<ArrivalItem> arrivals;
  std::vector<ExitItem> exits;
  // Per child, the edges to the nodes that wait for its end; empty: none.
  std::vector<PortItem> child_ends;
  uint32_t num_slots = 0;
  uint32_t num_merges = 0;
  uint32_t max_outputs = 0;     // of one node
  std::vector<uint8_t> sticky;  // per slot: kConsumed, ...
  std::vector<ConstantSlot> constants;
  std::vector<ConstantEdge> constant_edges;

  StartState first;  // iteration 0
  StartState later;  // the others
  // The states if all loop constants have arrived.
  StartState steady_first;
  StartState steady_later;
  bool has_loop_constants = false;
};

// A fetch that is a constant needs no run.
struct ConstantFetch {
  uint32_t fetch = 0;
  Tensor value;
};

// What a Send sends or a Recv receives.
struct TransferItem {
  // "sending device;incarnation;receiving device;tensor".
  std::string name;
  std::string sender;    // the first of these
  std::string tensor;    // the last
  uint32_t number = 0;   // of the name, in all plans of an executable
  bool is_sent = false;  // it is of a Send
  // Of a Send: its Recv is in another process.
  bool leaves = false;
};

struct Plan {
  // The graph and the kernels that the plan points into.
  std::shared_ptr<const void> owned;
  // Parents before children; 0 is the root. Those of functions' bodies follow.
  std::vector<FramePlan> frames;
  // The indices of the signature's feeds that it takes, in the order of their
  // arrivals.
  std::vector<uint32_t> feeds;
  std::vector<ConstantFetch> constant_fetches;
  // The indices of the signature's fetches that it gives, with those.
  std::vector<uint32_t> fetches;
  // The device that it runs on: its index among the session's devices, its full
  // name, and its name in messages.
  uint32_t device = 0;
  std::string device_name;
  std::string device_label;
  // Of each Send and Recv, by ordinal: Note [Transfers] in rendezvous.h.
  std::vector<TransferItem> transfers;
  // Whether some kernel changes state that outlives the step: Note [Borders] in
  // shared_state.h.
  bool updates_state = false;
  // Whether some kernel changes what a queue, a reader and the like has.
  bool moves_elements = false;
  // Whether some node reads the value of a variable.
  bool reads_variables = false;
  // Whether some kernel is asynchronous: it may wait for another run.
  bool may_wait = false;
  // Suspicious parts of the graph that are not errors.
  std::vector<std::string> warnings;
};

struct PlanOptions {
  bool compile_edges = true;  // the pass "edges"
  int window = 0;             // overrides parallel_iterations if > 0
  bool launches = false;      // an accelerator runs the kernels
};

// Finds or makes the kernel of a node.
using KernelLookup =
    std::function<Result<const devices::Kernel*>(const graph::Node&)>;

// Compiles what the fetches and targets of a program need, and the bodies of
// its functions.
// REQUIRES: the graphs are valid; feeds and fetches are outside loops.
Result<std::unique_ptr<Plan>> compile_plan(const graph::Program& program,
                                           const PlanOptions& options,
                                           const KernelLookup& kernels);

}  // namespace tagflow::actors
