// The values in the checkpoint of a saved model.
#pragma once

#include <string>
#include <vector>

#include "actors/checkpoint/snapshot.h"
#include "devices/files/bundle_reader.h"
#include "graph/file/saved_state.h"
#include "graph/graph.h"
#include "graph/status.h"

namespace tagflow::actors {

// The objects of the program that wrote the checkpoint; none if it has none.
// DataLoss or InvalidArgument if they cannot be read.
Result<graph::ObjectGraph> objects_of(const checkpoint::BundleReader& reader);

// The values of the variables with these names, without those that the
// checkpoint does not have. NotFound if it has none of them; errors of the
// reader.
Result<Snapshot> read_by_names(const checkpoint::BundleReader& reader,
                               const graph::SavedState& state,
                               const std::vector<std::string>& names,
                               const graph::ObjectGraph& objects);

// The values of the variables that functions of the graph capture, without
// those that its own saver restores. None if the model or the checkpoint has no
// objects. NotFound if a value or the saver is missing; InvalidArgument if the
// objects are not those of the graph; errors of the reader.
Result<Snapshot> read_by_objects(const checkpoint::BundleReader& reader,
                                 const graph::Graph& graph,
                                 const graph::SavedState& state,
                                 const graph::ObjectGraph& objects);

}  // namespace tagflow::actors
