// The training that is disturbed, and what must hold of it at the end.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "graph/status.h"

namespace tagflow::chaos {

// Writes the graph: a step takes a row from a queue that shuffles and lets it
// grow in a loop over all three workers, with noise in each trip, until it is
// large; meanwhile task 2 waits in a Dequeue for it, and task 0 in a Recv for
// what is dequeued. Then each worker moves its variable by noise of its own,
// and a changed row goes back to the queue. Fetches: "loss" and "trips".
Status write_training(const std::filesystem::path& file);

// The lines of steps that the command prints, by "step 12: loss".
using StepLines = std::map<std::string, std::string>;

// The number of the step of such a line, "step 12: loss = float[] 0.5"; 0 if it
// is another one.
int64_t step_of(const std::string& line);

// OK if the newest checkpoint of `folder` is of that step, and has the bits of
// that of `undisturbed`: variables, seed, counts of random ops, and queues; and
// if all that the folder's list names can be read. Otherwise DataLoss, naming
// the difference.
Status check_checkpoints(const std::filesystem::path& folder,
                         const std::filesystem::path& undisturbed,
                         int64_t step);

}  // namespace tagflow::chaos
