// BatchOptions: how requests are joined to batches.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "graph/status.h"

namespace tagflow::net::serving {

// The names and defaults are those of TensorFlow Serving.
struct BatchOptions {
  int64_t max_batch_size = 1000;  // rows
  // How long the first request of a batch waits for others.
  std::chrono::microseconds batch_timeout{0};
  // Of one version of a model, without those that run.
  int64_t max_enqueued_batches = 10;
  // How many batches run at a time; 0: one for each processor.
  int64_t num_batch_threads = 0;
  // Increasing; the last one is rows_of_a_run(). A batch is padded to the next
  // one. Empty: any number of rows.
  std::vector<int64_t> allowed_batch_sizes;
  // Whether a request with more rows than a run is cut into pieces; and if so,
  // rows of a run at most, while max_batch_size is for a request. 0: a run has
  // max_batch_size. In any case a request has no more than max_enqueued_batches
  // of runs.
  bool splits_large = false;
  int64_t max_execution_batch_size = 0;

  int64_t rows_of_a_run() const;      // at most
  int64_t rows_of_a_request() const;  // at most

  // InvalidArgument if the above does not hold.
  Status validate() const;
};

// Reads the text format of TensorFlow Serving's BatchingParameters:
// "max_batch_size { value: 128 } allowed_batch_sizes: 128". InvalidArgument for
// another text, or invalid options; Unimplemented for what would change results
// and does not exist here.
Result<BatchOptions> parse_batch_options(std::string_view text);

}  // namespace tagflow::net::serving
