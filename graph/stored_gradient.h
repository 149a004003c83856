// Gradient functions that a SavedModel stores for its nodes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "graph/function.h"
#include "graph/status.h"

namespace tagflow::graph {

// Note [Stored gradients]
// tf.custom_gradient makes an IdentityN of a function's results and arguments,
// whose attribute "_gradient_op_type" names a gradient function. A SavedModel
// stores that function in its library. It takes the gradients of all outputs,
// then tensors that it captures where the IdentityN is, and gives the gradients
// of those inputs that have one.
//
// What is needed to call it is on the node itself, so that no copy, renamed or
// inlined, can lose it: the captured tensors are further inputs of the
// IdentityN, whose last outputs nobody reads, and these attributes say the
// rest. So the function's arguments and the node's inputs have the same types.
// A node that is to have a stored gradient, but cannot, says why: then a
// gradient through it is an error, never that of an identity.

// The name of the function: a text, so that a run does not need the function.
inline constexpr std::string_view kStoredGradientAttr = "_stored_gradient";
// How many outputs the IdentityN had, whose gradients the function takes.
inline constexpr std::string_view kStoredOutputsAttr = "_stored_outputs";
// By result of the function, the input of which it is the gradient.
inline constexpr std::string_view kStoredInputsAttr = "_stored_inputs";
// In place of these: why the stored function cannot be used.
inline constexpr std::string_view kNotStoredAttr = "_not_stored";

struct StoredGradient {
  std::string function;
  size_t outputs = 0;
  std::vector<int64_t> inputs;
};

// What the attributes of the node say. REQUIRES: it has kStoredGradientAttr.
// InvalidArgument, naming the node, if they do not fit to the node, or the
// function to them; NotFound if the library does not have the function.
Result<StoredGradient> stored_gradient(const Node& node,
                                       const FunctionLibrary& library);

// Whether the function gives a gradient of that input. REQUIRES: as above.
bool has_stored_gradient(const Node& node, size_t input);

}  // namespace tagflow::graph
