// Which values of loops a gradient needs, and where it gets them from.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/dtype.h"
#include "graph/shape.h"

namespace tagflow::autodiff {

// How the gradient gets a value of an iteration.
enum class Kept : uint8_t {
  kSaved,       // on a stack, in each iteration
  kSavedEvery,  // on a stack, in each k-th iteration: Save::every()
  kReused,      // on a stack that an earlier gradient has made
  kCounted,     // computed from the number of the iteration
  kRecomputed,  // computed again, from values that are available anyway
  kOutside,     // loop-invariant: taken from outside the loop
  kConstant,    // a constant of the graph
  kKnownShape,  // a shape that is known when the graph is built
};

// "saved", "every k-th", "reused", "counted", "recomputed", "outside",
// "constant", "known shape".
std::string kept_name(Kept kept);

struct KeptValue {
  std::string frame;   // of the loop; empty for a call outside loops
  std::string tensor;  // "name:port"
  DataType dtype = DataType::kInvalid;
  PartialShape shape;  // as far as known
  Kept kept = Kept::kSaved;
  std::string user;  // the first node whose gradient needs it
  // The recursive function whose calls keep it; empty for the graph's own
  // loops.
  std::string function = {};
};

}  // namespace tagflow::autodiff
