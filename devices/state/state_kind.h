// Kinds of state: the kind that each op makes.
#pragma once

#include <string_view>

namespace tagflow::devices {

// The kind of mutexes, whose class is private to their kernels. Other classes
// define their kinds: Variable::kKind, ...
inline constexpr std::string_view kMutexKind = "mutex";
// The same for writers of event files.
inline constexpr std::string_view kSummaryWriterKind = "summary writer";
// Those of readers of records and of iterators, which are in folders above.
inline constexpr std::string_view kReaderKind = "reader";
inline constexpr std::string_view kIteratorKind = "iterator";
// And that of maps of sparse tensors.
inline constexpr std::string_view kSparseTensorsMapKind =
    "map of sparse tensors";

// The kind of resource that nodes of that op make, named after its class, such
// as "variable". Two nodes that name the same resource of one kind share it,
// even if their ops differ. For an op that is not the engine's, it is the op
// itself: only its kernel knows what it makes. Valid as long as `op`.
// Thread-safe.
std::string_view kind_of(std::string_view op);

// Whether nodes of that op make a variable, used by a handle or by references.
// Thread-safe.
bool makes_variable(std::string_view op);

}  // namespace tagflow::devices
