// Op libraries: ops, kernels, gradient rules and devices in a shared library
// that a program loads while it runs.
//
// The source of an op library has a function that registers all of them, and
// passes it to the macro once:
//
//   Status add_ops() { return OpRegistry::global().add(...); }
//   TAGFLOW_OP_LIBRARY(add_ops);
//
// The library does not contain tagflow itself; it uses the program's copy.
// docs/own_ops.md shows how both are built.
#pragma once

#include <cstddef>
#include <string>

#include "graph/op_registry.h"
#include "graph/status.h"

namespace tagflow::graph {

// Loads the file and calls its function once: loading the same file again only
// returns the same Status. A path without a folder refers to the working
// directory. The library stays loaded until the process ends.
//
// NotFound if there is no such file; InvalidArgument if it cannot be loaded,
// with the system's reason, or is not an op library; FailedPrecondition if it
// was built for another version of tagflow or with another standard library, or
// contains its own tagflow; otherwise the function's result or exception, for
// example AlreadyExists for a known op, or InvalidArgument for one with a
// malformed text. Ops that were added before an error stay registered, and the
// message names them.
//
// From then on existing graphs may have nodes of the new ops. Thread-safe. A
// library's function that calls this gets FailedPrecondition.
Status load_op_library(const std::string& path);

// Defined by TAGFLOW_OP_LIBRARY; the loader looks it up.
struct OpLibrary {
  const char* version;        // MAJOR.MINOR; first in all versions
  size_t op_def_size;         // differs between standard libraries
  OpRegistry& (*registry)();  // the table that `add` fills
  Status (*add)();
};

}  // namespace tagflow::graph

// `add`: a function without parameters that returns a Status. Use it once in a
// library, outside of namespaces. The CMake function tagflow_op_library()
// compiles the library with the version.
#define TAGFLOW_OP_LIBRARY(add)                                    \
  extern "C" {                                                     \
  extern __attribute__((visibility("default")))                    \
  const ::tagflow::graph::OpLibrary tagflow_op_library;            \
  }                                                                \
  const ::tagflow::graph::OpLibrary tagflow_op_library = {         \
      TAGFLOW_OP_LIBRARY_VERSION, sizeof(::tagflow::graph::OpDef), \
      &::tagflow::graph::OpRegistry::global, add}
