// A recorded run as a file for Perfetto (ui.perfetto.dev) or chrome://tracing.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "actors/watch/trace.h"
#include "apps/shared/program/owned_session.h"
#include "graph/status.h"

namespace tagflow::apps {

// "/job:worker/task:1 CPU:0": a device of a cluster, by its full name.
std::string cluster_device_name(std::string_view full);

// Chrome trace JSON. It has a process per device, with a track per thread of
// the process that has the device: of a cluster, it is named by its task, too.
// Slices on a track are iterations, for as long as the thread is busy with one,
// and in them the nodes that fire, each with its frame, instance and iteration.
// Arrows are tokens that move from one iteration to another, by Enter, Exit,
// NextIteration or Send and Recv. Marks are skipped nodes. An accelerator also
// has tracks of its streams: kernels, by the names of their nodes, with arrows
// from where these fired, and copies, with their bytes. REQUIRES: no run is
// being recorded.
std::string format_trace(const actors::Trace& trace);

// Writes it, with a warning if the trace had no room for all events. Errors
// are those of io::write_file().
Status write_trace(const actors::Trace& trace,
                   const std::filesystem::path& path);

// Ends the recorded session and writes the trace, which the session kept.
// Returns FailedPrecondition if a kernel that cannot be interrupted is still
// running and may still write to the trace.
Status end_and_write_trace(OwnedSession& session, const actors::Trace& trace,
                           const std::filesystem::path& path);

}  // namespace tagflow::apps
