// The words in which TensorFlow's programs expect some errors.
#pragma once

#include <string>

#include "graph/status.h"

namespace tagflow::net {

// Note [Words that programs look for]
// Programs look into the messages of errors: whether a value is uninitialized,
// or a queue was closed. So where a message of this engine says the same by
// other words, the words that they look for are added to it.

// What to add to the message of this error; empty if there is nothing.
// Thread-safe.
std::string client_words(const Status& status);

}  // namespace tagflow::net
