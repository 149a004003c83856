// RunContext: the actors of a compiled signature, for one run at a time.
#pragma once

#include <caf/actor.hpp>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "actors/runtime/device_set.h"
#include "actors/runtime/frame.h"
#include "actors/runtime/partition_actor.h"
#include "actors/runtime/peer_wait.h"
#include "actors/runtime/rendezvous.h"
#include "devices/step_resources.h"

namespace tagflow::actors {

// How an executable runs: see SessionOptions.
struct RunSettings {
  int max_call_depth = 0;
  int max_open_calls = 0;
  HandOff hand_off = HandOff::kDirect;
};

// Only its executable, and the step that it runs, access it.
struct RunContext {
  // Makes one partition per plan, and a rendezvous if there are transfers.
  // Both must outlive the context. The caller must call supervise().
  static std::unique_ptr<RunContext> make(
      const DeviceSet& devices, const RunSettings& settings,
      std::span<const std::unique_ptr<Plan>> plans,
      const std::vector<Transfer>& transfers,
      const SpawnRendezvous& spawn_rendezvous);

  // Makes the engine stop the actors when it ends, unless they have ended
  // before. May throw std::bad_alloc; then this holds for some of them.
  void supervise(const Engine& engine) const;
  // Stops the actors. May throw std::bad_alloc; then nothing has changed.
  void end_actors(const Engine& engine) const;

  BatchStore batches;  // destroyed last
  std::vector<std::unique_ptr<PartitionRun>> runs;
  std::vector<caf::actor> handles;  // of partitions, and of the rendezvous
  std::vector<PartitionActor*> partitions;
  Rendezvous* rendezvous = nullptr;  // null: nothing is transferred
  devices::StepResources resources;  // of the step; empty between steps
  Counters before;  // what the actors had counted when the step started
  std::optional<PeerWait> peers;     // of the step, if it has peers
  std::unique_ptr<RunContext> next;  // in a list
};

}  // namespace tagflow::actors
