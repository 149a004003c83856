// A recorded run as a file for Perfetto (ui.perfetto.dev) or chrome://tracing.
#pragma once

#include <filesystem>

#include "actors/watch/trace.h"
#include "apps/common/owned_session.h"
#include "graph/status.h"

namespace tagflow::apps {

// Chrome trace JSON. A process per device, and in it a track per thread; on it
// slices: iterations, for as long as the thread is busy with one, and in them
// the nodes that fire, each with its frame, instance and iteration. Arrows:
// tokens that hop from an iteration to another one, by Enter, Exit,
// NextIteration or Send and Recv. Marks: nodes that were skipped. Of an
// accelerator, tracks of its streams too: kernels, by the names of their nodes,
// with arrows from where these fired, and copies, with their bytes. REQUIRES:
// no run is being recorded.
std::string format_trace(const actors::Trace& trace);

// Writes it, with a warning where the trace had no room for all. Errors as
// io::write_file.
Status write_trace(const actors::Trace& trace,
                   const std::filesystem::path& path);

// Ends the session that was recorded and writes the trace; the session kept it.
// FailedPrecondition where a kernel that cannot be interrupted goes on, which
// the trace may have to note yet.
Status end_and_write_trace(OwnedSession& session, const actors::Trace& trace,
                           const std::filesystem::path& path);

}  // namespace tagflow::apps
