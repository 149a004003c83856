// Files that people take for graphs.
#pragma once

#include <string>
#include <string_view>

namespace tagflow::graph {

// What a file is by its first bytes, and what to do about it, if it is of a
// format that other programs keep models or values in: "a Keras archive; ...".
// Else empty; no GraphDef, SavedModel or MetaGraph begins as these do. `name`
// is that of the file. Thread-safe.
std::string describe_foreign_file(std::string_view name,
                                  std::string_view bytes);

}  // namespace tagflow::graph
