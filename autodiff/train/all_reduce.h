// All-reduce: the mean of the gradients of several devices, on each of them.
//
// A large gradient goes around a ring. It is cut into as many parts as there
// are devices; part p begins at device p, each next device adds its own, and
// the last one divides. The mean goes on around the ring as it is:
//
//   device 0      device 1      device 2
//      p0 ---------> + ----------> + / 3 = m0      3 parts at a time, each
//   m0, kept <---------------------'               beginning elsewhere
//      '---------> m0, kept
//
// So each device sends to the next one only, 2 (n - 1) / n of the bytes of a
// gradient (Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for
// clusters of workstations", 2009), and may do so while other gradients are
// still computed. Small gradients are packed into one tensor, which device 0
// sums: a message to it and one from it take less time than 2 (n - 1) hops.
//
// Each sum is computed once, and copied, so all devices have the same bits.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "autodiff/train/optimizer.h"

namespace tagflow::autodiff {

struct AllReduceOptions {
  // A gradient of fewer bytes is packed with others.
  int64_t ring_bytes = int64_t{64} << 10;
};

// The gradients of a device, in the order of its variables.
using GradientLists = std::vector<std::vector<VariableGradient>>;

// lists[k] is computed on devices[k], and so is the k-th list of the result,
// whose gradients are the means. The lists have gradients by variables of the
// same shapes, in the same order; an invalid gradient is so in all of them. A
// sparse gradient stays sparse: each device gets the rows of all, which are
// divided by their number, in the order of the devices. With one device, the
// result is `lists`. The scope fails with InvalidArgument if the lists do not
// match. Thread-compatible, like the graph.
GradientLists all_reduce_mean(const graph::Scope& s,
                              const std::vector<std::string>& devices,
                              GradientLists lists,
                              const AllReduceOptions& options = {});

}  // namespace tagflow::autodiff
