#include "actors/checkpoint/restore.h"

#include "actors/checkpoint/checkpoint.h"
#include "actors/checkpoint/snapshot.h"
#include "actors/session/session.h"
#include "graph/fault.h"
#include "graph/status_text.h"

namespace tagflow::actors {

Result<Restored> restore_checkpoint(const Session& session,
                                    const std::string& path,
                                    const graph::SavedState& model,
                                    OtherTensors others) try {
  TAGFLOW_ASSIGN(auto variables, find_variables(session.graph()));
  TAGFLOW_ASSIGN(const ModelObjects objects,
                 ModelObjects::make(session.graph(), model));
  variables = objects.without_spare(std::move(variables));
  Result<LoadedCheckpoint> read =
      load_checkpoint(path, variables, objects, others);
  if (!read.ok()) return name_file(std::move(read).status(), path);
  LoadedCheckpoint loaded = *std::move(read);
  TAGFLOW_ASSIGN(const auto snapshots, Snapshots::create(session));
  TAGFLOW_RETURN_IF_ERROR(name_file(
      snapshots->restore(loaded.checkpoint.snapshot), loaded.restored.path));
  return std::move(loaded.restored);
} catch (...) {
  return current_fault("checkpoint");
}

}  // namespace tagflow::actors
