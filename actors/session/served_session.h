// ServedSession: a session of another process, which this one speaks for.
#pragma once

#include "actors/plan/distribute.h"
#include "actors/session/backend.h"
#include "actors/session/signature_cache.h"

namespace tagflow::actors {

// Note [Served sessions]
// A session whose backend is a service keeps its graph here, too: so names,
// feeds, time-outs, cancellation and statistics are checked and counted as
// always. But the service extracts, places, cuts and compiles, since it knows
// where the variables of its other clients are. A run of the session is one
// part, at the service: see RemotePart in joined_executable.h.
//
// It ends the session at the service when it is destroyed. Thread-safe.
class ServedSession {
 public:
  virtual ~ServedSession() = default;

  // Compiles a signature of the graph, which may have grown since the last
  // call. `request` has the nodes of its names. Errors of the service, and
  // Unavailable if it is lost. REQUIRES: one call at a time
  virtual Result<Backend::Made> make(const graph::Graph& graph,
                                     const Signature& signature,
                                     const Request& request,
                                     graph::Budget* budget) = 0;
};

}  // namespace tagflow::actors
