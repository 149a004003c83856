// Errors in the form in which TensorFlow's clients read them.
#pragma once

#include <string>
#include <string_view>

#include "graph/status.h"

namespace tagflow::net {

// Note [Errors for clients]
// A client makes the class of an exception of the code, and its `op` of the
// name in "[[{{node NAME}}]]", which it looks for in the message. So this is
// added where a message names a node.

// The error of a run, with the node that it names in the client's form. A
// deadlock becomes FailedPrecondition: clients do not know its code. If there
// is no memory for that, the error says so instead. Thread-safe, throws
// nothing.
Status for_client(const Status& status);

// The node that failed, as the message of an error of the engine names it;
// empty if it names none. Thread-safe.
std::string_view node_in(std::string_view message);

}  // namespace tagflow::net
