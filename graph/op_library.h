// Op libraries: ops, kernels, gradient rules and devices in a shared library
// that a program loads while it runs.
//
// The source of an op library has a function that adds them to the tables of
// the process, and names it once:
//
//   Status add_ops() { return OpRegistry::global().add(...); }
//   TAGFLOW_OP_LIBRARY(add_ops);
//
// The library has no tagflow in it: what it uses is that of the program.
// EMBEDDING.md shows how both are built.
#pragma once

#include <cstddef>
#include <string>

#include "graph/op_registry.h"
#include "graph/status.h"

namespace tagflow::graph {

// Loads the file and calls the function that it names, once: another load of
// the same file returns the same Status, and has no other effect. A path
// without a folder is one of the working directory. The library stays loaded
// until the process ends.
//
// NotFound where there is no such file; InvalidArgument where it cannot be
// loaded, with the reason that the system gives, or is no op library;
// FailedPrecondition where it was built for another version of tagflow or with
// another standard library, or brings a tagflow of its own; else what its
// function returns or throws, as AlreadyExists for an op that there is. What
// the function has added before its error stays, and the message names these
// ops.
//
// Graphs that are there already may have nodes of the new ops from then on.
// Thread-safe. REQUIRES: what is called in the library does not call this.
Status load_op_library(const std::string& path);

// What TAGFLOW_OP_LIBRARY defines, by which the loader knows the library.
struct OpLibrary {
  const char* version;        // MAJOR.MINOR; first in all versions
  size_t op_def_size;         // differs between standard libraries
  OpRegistry& (*registry)();  // the table that `add` fills
  Status (*add)();
};

}  // namespace tagflow::graph

// `add`: a function without parameters that returns a Status. Once in a
// library, outside of namespaces; tagflow_op_library() of CMake has the library
// compiled with the version.
#define TAGFLOW_OP_LIBRARY(add)                                    \
  extern "C" {                                                     \
  extern __attribute__((visibility("default")))                    \
  const ::tagflow::graph::OpLibrary tagflow_op_library;            \
  }                                                                \
  const ::tagflow::graph::OpLibrary tagflow_op_library = {         \
      TAGFLOW_OP_LIBRARY_VERSION, sizeof(::tagflow::graph::OpDef), \
      &::tagflow::graph::OpRegistry::global, add}
