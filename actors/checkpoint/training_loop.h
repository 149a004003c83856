// run_training: the loop of a training's steps, which survives the loss of
// workers.
//
//   run_training({.make_session = connect_and_load,
//                 .make_step = prepare,
//                 .init = run_initializers,
//                 .saver = {.folder = "out", .every_steps = 100},
//                 .steps = 10'000,
//                 .restarts = 3});
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "actors/checkpoint/saver.h"
#include "graph/status.h"

namespace tagflow::actors {

class Session;

// Note [Restarts]
// A step that has lost a worker, or that has been ended by such a loss, fails
// as Unavailable. The workers that are left may have committed it or not, so
// the state is torn: no single worker can be mended. Therefore all of them are
// rolled back. The session and its backend end, by which each worker drops all
// state that it had for them; a new session begins with empty workers, restores
// the newest complete checkpoint, and goes on with the step after it.
//
// A restart is thus what happens when the whole program is killed and started
// again, so there is one way back, and not two. It gives the result of a
// training without losses bit for bit if a step is a function of the state and
// of its number: the checkpoint has the variables, the seed and the counts of
// random ops, and whoever feeds rows takes them by the number of the step.

// Calls attempt(0), and then attempt(1) up to attempt(restarts) as long as the
// last one has returned Unavailable. Returns what the last one has returned.
Status run_with_restarts(int restarts,
                         const std::function<Status(int restart)>& attempt);

struct TrainingOptions {
  // Makes a session with the graph: at the start, and again after each loss,
  // when the last session has gone. With net::Cluster as a backend, it connects
  // then, with ClusterOptions::patience for a worker that is to come back.
  std::function<Result<std::unique_ptr<Session>>()> make_session;
  // Makes what runs a step by its number, from 1 on. It ends before the
  // session.
  using Step = std::function<Status(int64_t step)>;
  std::function<Result<Step>(Session& session)> make_step;
  // Gives the variables their first values, if there is no checkpoint. Null:
  // the first step does.
  std::function<Status(Session& session)> init = nullptr;
  // The folder of the checkpoints, and when they are written.
  SaverOptions saver;
  int64_t steps = 0;  // in total, with those of a checkpoint
  int restarts = 0;   // how many losses it survives
  // Are told of a loss, before the restart of that number, and of a checkpoint
  // that could not be written, which does not end the training. May be null.
  std::function<void(int restart, const Status& loss)> on_restart = nullptr;
  std::function<void(const Status& failure)> on_failed_save = nullptr;
};

// Restores the newest checkpoint of the folder, or initializes; runs the
// remaining steps; saves when that is due, beside running steps, and at the
// end. Note [Restarts] has what happens after a loss. Errors of the functions,
// of Saver::create() and restore(), and of the last save; Unavailable after one
// loss more than `restarts`.
Status run_training(const TrainingOptions& options);

}  // namespace tagflow::actors
