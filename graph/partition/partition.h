// Partitioning: from a placed program to one program per device.
//
// Note [Cut edges]
// Each device gets the nodes that are placed on it. If a node reads an output
// from another device, the value is transferred:
//
//     A: x -> _Send         B: _Recv -> y, z, ...
//
// Send and Recv meet at the rendezvous by a key of both devices, the tensor's
// name and the tag. The output of the Recv is dead exactly if the sent token
// is, so conditionals need no special treatment: their dead sides are sent as
// dead tokens. A control edge sends an empty constant that waits for its
// source, unless some output of the source, or the value that an Identity
// forwards, is sent anyway. Constants are copied, not sent.
//
// Note [Cut loops]
// A Recv has no inputs, so it would run once, outside of all loops. A Recv that
// replaces a node of a loop must run in each iteration in which that node runs.
// It is started by a control loop, which computes nothing; a device has one for
// each frame in which it receives something. Here A runs the loop
// `while p(i): i = f(i)`, with f on B:
//
//            A                      |               B
//                                   |
//  i0 -> Enter                      |   0 -> Enter
//          v                        |          v
//  +---> Merge ---> p               |  +---> Merge . . . . . . . .
//  |       |        v               |  |       |     :           :
//  |       |     LoopCond -> Send ~ ~ ~ ~ ~ ~ ~ ~ > Recv         :
//  |       v        |               |  |       v     |           :
//  |    Switch <----+               |  |    Switch <-+           :
//  |    0|  |1                      |  |       |1                :
//  |  Exit  +--------------> Send ~ ~ ~ ~ ~ ~ ~|~ ~ ~ ~ ~ ~ ~ > Recv
//  |                                |  +---- Next                v
//  Next <-- Recv < ~ ~ ~ ~ ~ ~ ~ ~ ~ ~ ~ ~ ~ ~ ~ ~ ~ ~ Send <--- f
//             :
//             . . . A's own control loop         ~ transfer   : control edge
//
// Invariants:
//   1. A token crosses once, for all its readers on a device: one Send, one
//      Recv.
//   2. A Recv in a loop is started once in each iteration, by the Merge of the
//      control loop, and something is sent to it once in each. In a frame
//      without a cycle, the control loop is only an Enter.
//   3. All control loops of a frame read its single predicate, so all devices
//      run the same number of iterations. One device computes the predicate;
//      the others receive it like any value, in each iteration.
//   4. The control loop of an inner frame is entered by that of the outer one,
//      in each of its iterations; that of an outermost frame by a constant. A
//      device that receives nothing in the inner frame has no loop for it.
//   5. A loop's Merge has its Enters and NextIterations on its own device. They
//      are copied to the devices that read them, and their inputs are sent
//      instead: those of an Enter once, from outside the loop. So a loop
//      constant crosses once, not in every iteration.
//   6. To start a Recv, its device waits only for predicates of earlier
//      iterations and of outer frames. Without these the iteration would not
//      exist even in the uncut program, so every program that ends uncut also
//      ends cut.
//
// How a loop ends, without a coordinator: let p be false. A sends the
// predicate, and since A's Switch makes output 1 dead, it sends a dead token
// for that output. On B the predicate makes output 1 of the control loop's
// Switch dead too, and a dead Next starts no iteration. The input of f is dead,
// so f is dead, and B sends a dead token, which makes A's Next dead as well.
// Now neither side has work left or a next iteration, so the frame ends on each
// by the same rule as any frame, independently of the other. With no trips this
// happens in the first iteration. If the whole loop is on an untaken branch,
// the predicate is dead instead of false, with the same effect. No device asks
// another whether it has ended; each may be ahead by as many iterations as its
// window allows.
//
// All this requires that the loop continues exactly as its LoopCond says;
// otherwise some Recvs would never receive anything. Which loops qualify is
// found out before (Note [Loops that can be cut] in
// graph/analysis/whole_loops.h); no other loop is cut.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "graph/placement/device_info.h"
#include "graph/program.h"

namespace tagflow::graph {

// The part of one device. Nodes of the whole program keep their names and ids;
// ids of added nodes are unique among all partitions. Each node's device() is
// the full name of this device.
struct Partition {
  uint32_t device = 0;  // an index into the devices
  // Feeds and fetches are those of the whole program, in its order; the node is
  // null if it is in another partition. Every _Send is a target. The bodies are
  // those that the partition's `_Call`s call, directly or indirectly.
  Program program;
};

struct PartitionOptions {
  // Whether the float32 tensor may lose the low 16 bits when it is transferred
  // to another device. Called once per transfer; `is_fetched` says whether the
  // transfer brings it to the device of its fetch. Null: no tensor may.
  std::function<bool(const Endpoint&, bool is_fetched)> lossy;
};

// Cuts the program by its placement: one partition per device that has a node,
// in the order of the devices. A fetch from a device without host memory is
// received on the first device that has it. Nodes that no feed, fetch or target
// needs are left out. Takes time proportional to the program and to the number
// of devices. Deterministic. InvalidArgument, naming nodes and devices, if a
// reference or resource is read on another device, if a loop that cannot be cut
// is on several devices, or if there is a fetch and no device has host memory.
// REQUIRES: the program is valid, and `placement` is of its graph and names
// devices that exist.
Result<std::vector<Partition>> partition(Program program,
                                         std::span<const DeviceInfo> devices,
                                         const Placement& placement,
                                         const PartitionOptions& options = {});

}  // namespace tagflow::graph
