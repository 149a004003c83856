// Finds the gradient functions that a SavedModel stores.
#pragma once

#include "graph/file/graphdef.h"

namespace tensorflow {
class MetaGraphDef;
}

namespace tagflow::graph {

// Gives each IdentityN in the functions of `file`, which was made of `proto`,
// its stored gradient, with the captured tensors as further inputs (Note
// [Stored gradients] in graph/stored_gradient.h). The object graph says what is
// captured: a tensor of the function that has the IdentityN, or a tensor or an
// object that calls pass on to that function. An IdentityN whose captures
// cannot be found gets the reason. Errors of FunctionLibrary::add().
Status use_stored_gradients(const tensorflow::MetaGraphDef& proto,
                            GraphFile& file);

}  // namespace tagflow::graph
