// Kinds of state: which op makes what.
#pragma once

#include <string_view>

namespace tagflow::devices {

// That of mutexes, whose class only their kernels see. Other classes have their
// kinds with them: Variable::kKind, ...
inline constexpr std::string_view kMutexKind = "mutex";

// The kind of resource that nodes of that op make, in the words of its class,
// as "variable". Two nodes that name the same resource of one kind share it,
// whatever their ops are. For an op that is none of the engine's, it is the op
// itself: only its kernel knows what it makes. Valid as long as `op`.
// Thread-safe.
std::string_view kind_of(std::string_view op);

// Whether nodes of that op make a variable, known by a handle or by references.
// Thread-safe.
bool makes_variable(std::string_view op);

}  // namespace tagflow::devices
