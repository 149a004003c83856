#include "actors/checkpoint/restore.h"

#include "actors/checkpoint/checkpoint.h"
#include "actors/checkpoint/snapshot.h"
#include "actors/session/session.h"
#include "graph/fault.h"

namespace tagflow::actors {

Result<Restored> restore_checkpoint(const Session& session,
                                    const std::string& path,
                                    const graph::SavedState& model,
                                    OtherTensors others) try {
  TAGFLOW_ASSIGN(auto variables, find_variables(session.graph()));
  TAGFLOW_ASSIGN(const ModelObjects objects,
                 ModelObjects::make(session.graph(), model));
  variables = objects.without_spare(std::move(variables));
  TAGFLOW_ASSIGN(auto loaded,
                 load_checkpoint(path, variables, objects, others));
  TAGFLOW_ASSIGN(const auto snapshots, Snapshots::create(session));
  TAGFLOW_RETURN_IF_ERROR(snapshots->restore(loaded.checkpoint.snapshot));
  return std::move(loaded.restored);
} catch (...) {
  return current_fault("checkpoint");
}

}  // namespace tagflow::actors
