// Partitioning: from a placed program to one program per device.
//
// Note [Cut edges]
// Each device gets the nodes that are placed on it. Where a node reads what
// another device computes, the value crosses:
//
//     A: x -> _Send         B: _Recv -> y, z, ...
//
// Send and Recv meet at the rendezvous by a key of both devices, the tensor's
// name and the tag, and what the Recv gives is as dead as what was sent. So a
// conditional needs nothing more: its dead side is sent as such. A control
// edge sends an empty constant that waits for its source, unless some output
// of the source comes anyway, or, of an Identity, what it hands on. Constants
// are copied, not sent.
//
// Note [Cut loops]
// A Recv waits for nothing, and so would run once, outside of all loops. One
// that stands for a node of a loop has to run in each iteration in which that
// node does. It is started there by a loop that computes nothing, the control
// loop, of which a device has one for each frame that it receives something in.
// A runs the loop `while p(i): i = f(i)`, with f on B:
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
// What holds:
//   1. A token crosses once, for all its readers on a device: one Send, one
//      Recv.
//   2. A Recv in a loop is started once in each iteration, by the Merge of the
//      control loop, and what it receives is sent once in each; in a frame that
//      nothing goes around in, by the control loop's Enter alone.
//   3. All control loops of a frame read its one predicate, so every device
//      goes around as often as any other. A device computes it, all others
//      receive it like any value, in each iteration.
//   4. The control loop of an inner frame is entered by that of the outer one,
//      in each of its iterations; that of an outermost frame by a constant. A
//      device that receives nothing in the inner frame has no loop for it.
//   5. A loop's Merge has its Enters and NextIterations on its own device.
//      These are copied to where they are read, and what they read is sent
//      instead: what an Enter reads once, from outside. So a loop constant
//      crosses once, and not in every iteration.
//   6. To start a Recv, its device waits for predicates of earlier iterations
//      and of frames around, and for nothing else. Without these the iteration
//      would not be, cut or not: so whatever ends uncut ends cut.
//
// How it ends, without anyone in charge: let p be false. A sends that, and as
// its Switch kills output 1, it sends B a dead token there. With the predicate
// the Switch of B's control loop kills its output 1 too, and a dead Next starts
// no iteration. What B receives for f is dead, so f is, and B sends that. So
// A's Next is dead as well. On either side nothing is left to do and nobody has
// started another iteration: the frame ends there by the rule that ends any
// frame, whatever the other side is at by then. With no trips at all this
// happens in the first iteration; where the whole loop is on an untaken branch,
// the predicate is dead instead of false, to the same effect. No device asks
// another whether it has ended; each may be ahead by as many iterations as its
// window allows.
//
// All this takes a loop for one that goes on just as its LoopCond says; else
// there would be Recvs for which nobody sends. Which loops do is found out
// before (Note [Loops that can be cut] in graph/placement/whole_loops.h), and
// no other is cut.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "graph/placement/device_info.h"
#include "graph/program.h"

namespace tagflow::graph {

// The share of one device. Nodes of the whole program keep their names and
// ids; those that were added have ids that no other partition has. Each node's
// device() is the full name of this one.
struct Partition {
  uint32_t device = 0;  // an index into the devices
  // Feeds and fetches are those of the whole program, in its order; where
  // another partition has one, its node here is null. Every _Send is a target.
  // The bodies are those that its `_Call`s name, and what these call.
  Program program;
};

struct PartitionOptions {
  // Whether the float32 tensor may lose the low 16 bits on its way to another
  // device; asked once for each of its transfers, with whether this brings it
  // to where it is fetched. Null: none.
  std::function<bool(const Endpoint&, bool is_fetched)> lossy;
};

// Cuts the program along its placement: one partition per device that has a
// node, in the order of the devices. What is fetched from a device without
// host memory is received on the first device with. What neither feed, fetch
// nor target needs is left out. Takes time proportional to the program and to
// the number of devices. The result is the same each time.
// InvalidArgument, naming nodes and devices, for a reference or resource read
// on another device, for a loop on several that cannot be cut, and for a fetch
// where no device has host memory.
// REQUIRES: the program is valid, `placement` is of its graph, and names
// devices that exist.
Result<std::vector<Partition>> partition(Program program,
                                         std::span<const DeviceInfo> devices,
                                         const Placement& placement,
                                         const PartitionOptions& options = {});

}  // namespace tagflow::graph
