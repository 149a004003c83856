// Gradient functions that a SavedModel stores for tf.custom_gradient.
#pragma once

#include "graph/function.h"
#include "graph/status.h"

namespace tensorflow {
class MetaGraphDef;
}

namespace tagflow::graph {

// Note [Stored gradients]
// tf.custom_gradient makes an IdentityN of a function's results and arguments.
// The library maps its attribute "_gradient_op_type" to a function, which takes
// the gradients of all outputs, then tensors that it captures where the
// IdentityN is: the model's objects name these. It gives the gradients of the
// inputs, but for those that have none, as the results.
//
// Here the IdentityN becomes a call of a function that takes the captured
// tensors as well and returns the others, and that has a gradient function in
// the sense of FunctionLibrary::gradient_of(), which calls the stored one.

// Makes such calls in the functions of the library, which is that of the graph
// in `proto`. An IdentityN stays as it is if its gradient was not stored, or
// captures what the function does not have; a gradient through it is refused
// then. Errors of FunctionLibrary::add().
Status use_stored_gradients(const tensorflow::MetaGraphDef& proto,
                            FunctionLibrary& library);

}  // namespace tagflow::graph
