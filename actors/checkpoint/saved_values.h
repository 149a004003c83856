// What the checkpoint of a saved model has for its variables.
#pragma once

#include <string>
#include <vector>

#include "actors/checkpoint/snapshot.h"
#include "devices/checkpoint/bundle_reader.h"
#include "graph/file/saved_state.h"
#include "graph/graph.h"
#include "graph/status.h"

namespace tagflow::actors {

// The objects of the program that wrote the checkpoint; none where it says
// nothing of them. DataLoss or InvalidArgument where they cannot be read.
Result<graph::ObjectGraph> objects_of(const checkpoint::BundleReader& reader);

// The values of the variables of these names, without those that it does not
// have. NotFound where it has none of them; errors of the reader.
Result<Snapshot> read_by_names(const checkpoint::BundleReader& reader,
                               const graph::SavedState& state,
                               const std::vector<std::string>& names,
                               const graph::ObjectGraph& objects);

// The values of the variables that functions of the graph capture, without
// those that its own saver restores. None where model or checkpoint do not say
// which these are. NotFound where a value or the saver is missing;
// InvalidArgument where the objects are not those of the graph; errors of the
// reader.
Result<Snapshot> read_by_objects(const checkpoint::BundleReader& reader,
                                 const graph::Graph& graph,
                                 const graph::SavedState& state,
                                 const graph::ObjectGraph& objects);

}  // namespace tagflow::actors
