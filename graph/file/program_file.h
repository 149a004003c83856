// Program files: what one device runs of a signature, as bytes that another
// process can compile.
//
// A GraphDef lacks much of a finished partition: feeds, fetches and targets,
// the bodies of its calls, order edges, and the shapes that passes have found.
// graph/proto/program.proto describes the format.
#pragma once

#include <string>
#include <string_view>

#include "graph/limits.h"
#include "graph/program.h"
#include "graph/status.h"

namespace tagflow::graph {

// The program with its bodies and its library: see graph/program.h.
// Deterministic. Unimplemented for a constant of handles, with the node;
// ResourceExhausted for more than 2 GiB, with the largest node, or for a node
// with more inputs than can run. Thread-safe.
// REQUIRES: the program is valid, and its functions are lowered.
Result<std::string> write_program(const Program& program);

// What write_program() wrote: nodes have the same names, types, shapes and
// order, and new ids. The bytes may be a stranger's: whatever compile() relies
// on is checked; but not the nodes of functions, which are compiled when they
// are called. Of the limits, those on nodes and bytes are for the program, its
// bodies and its functions together. Errors name the body and the node:
// DataLoss if the bytes are not a program; Unimplemented for another version,
// an unknown op, or a constant of handles; ResourceExhausted beyond a limit;
// InvalidArgument if the parts do not fit each other, or the graph is not
// valid. Thread-safe.
Result<Program> read_program(std::string_view bytes, const Limits& limits = {});

}  // namespace tagflow::graph
