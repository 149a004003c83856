// What a gradient needs of the values of loops, and where it has them from.
#pragma once

#include <string>
#include <vector>

#include "graph/dtype.h"
#include "graph/shape.h"

namespace tagflow::autodiff {

// How a value of an iteration gets to its gradient.
enum class Kept {
  kSaved,       // on a stack, in each iteration
  kSavedEvery,  // on a stack, in each k-th iteration: Save::every()
  kReused,      // on a stack that an earlier gradient has made
  kCounted,     // computed from the number of the iteration
  kRecomputed,  // computed again, from values that are there anyway
  kOutside,     // the same in all iterations: taken from outside of the loop
  kConstant,    // a constant of the graph
  kKnownShape,  // a shape that is known when the graph is built
};

// "saved", "every k-th", "reused", "counted", "recomputed", "outside",
// "constant", "known shape".
std::string kept_name(Kept kept);

struct KeptValue {
  std::string frame;   // of the loop; empty of a call outside of loops
  std::string tensor;  // "name:port"
  DataType dtype = DataType::kInvalid;
  PartialShape shape;  // as far as it is known
  Kept kept = Kept::kSaved;
  std::string user;  // the first node whose gradient needs it
  // The recursive function of whose calls it is kept; empty of a graph's own
  // loops.
  std::string function = {};
};

}  // namespace tagflow::autodiff
