// What `tagflow run --summaries DIR` writes for TensorBoard.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "actors/watch/summary_writer.h"
#include "apps/shared/runs/step_profile.h"
#include "apps/tagflow/signature.h"

namespace tagflow::apps {

// The graph once; in each step what is fetched, if it is a summary or one
// number; and what the nodes did in one step, the second one if there are two:
// the first one compiles the graph. If the run is traced anyway, it is what the
// nodes did in all steps. Thread-compatible; runs refer to it.
class RunSummaries {
 public:
  // Errors of making the folder and its file. `step` is the last one before the
  // run, of `steps`. Of a cluster's run there is nothing of memory.
  static Result<std::shared_ptr<RunSummaries>> open(const std::string& folder,
                                                    const Prepared& prepared,
                                                    int64_t step, int64_t steps,
                                                    bool is_cluster);

  // The options of that step, which may have to be watched.
  actors::RunOptions options_of(int64_t step, actors::RunOptions options);
  // Writes what a step has fetched. Errors of writing.
  Status after_step(int64_t step, const std::vector<Tensor>& results);
  // Writes what is left. REQUIRES: no run is active.
  Status close();

 private:
  RunSummaries(int64_t watched_step, bool has_memory)
      : profile_(watched_step, has_memory) {}

  enum class Kind : uint8_t { kNothing, kNumber, kSummary };
  struct Fetch {
    Kind kind = Kind::kNothing;
    std::string tag;
  };

  std::unique_ptr<actors::SummaryWriter> writer_;
  std::vector<Fetch> fetches_;
  const actors::Trace* shared_trace_ = nullptr;  // the user's, of all steps
  StepProfile profile_;
};

}  // namespace tagflow::apps
