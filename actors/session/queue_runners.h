// Queue runners: threads that run the operations that fill a program's queues.
// Its MetaGraph, or a function of the builder such as bucket(), defines them.
//
//   actors::Coordinator threads;
//   Status status = start_queue_runners(*session, file.queue_runners, threads);
//   while (status.ok()) status = train(*session);   // OutOfRange at the end
//   threads.request_stop();
//   status = threads.join();
#pragma once

#include <span>

#include "actors/session/coordinator.h"
#include "actors/session/session.h"
#include "graph/file/queue_runner.h"

namespace tagflow::actors {

// Starts one thread for each enqueue operation, which runs it again and again.
//
// - An error that means the end of a queue ends the thread; the last thread of
//   a runner runs its close operation.
// - A stop of the coordinator cancels what the threads run; the last one runs
//   the cancel operation instead.
// - If the session is closed, all threads end, and the coordinator stops
//   without an error. Any other error is the reason of a stop.
//
// The threads keep the session's state alive, as a Callable does: stop them, or
// close the session. InvalidArgument or NotFound if an operation does not
// exist, or there is no enqueue operation; then no thread was started.
// ResourceExhausted if a thread cannot be created: then the coordinator stops
// the threads that were started. FailedPrecondition if the session is closed,
// or if the coordinator had stopped before the call; of a stop during the call,
// join() has the reason.
// REQUIRES: the coordinator outlives the call and its threads.
Status start_queue_runners(Session& session,
                           std::span<const graph::QueueRunnerDef> runners,
                           Coordinator& coordinator);

}  // namespace tagflow::actors
