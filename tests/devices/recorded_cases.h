// Reads cases that record_ops.py and similar scripts wrote: inputs of an op,
// and TensorFlow's results.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "graph/attr.h"
#include "graph/tensor.h"

namespace tagflow::devices {

struct RecordedCase {
  std::string op;
  AttrMap attrs;
  std::vector<Tensor> inputs;
  std::vector<Tensor> outputs;
  std::string error;  // the name of the error's code, if it refused them
  int line = 0;       // of the file, where the case begins
};

// The cases of tests/devices/data/`file_name`. NotFound if it cannot be
// opened; DataLoss, with the line, if it cannot be read.
Result<std::vector<RecordedCase>> read_recorded_cases(
    const std::string& file_name);

// What a file had cases of.
struct RecordedCounts {
  std::set<std::string> ops;
  int refused = 0;
};

// Runs the kernels of a file's cases by run_op(), and fails the test case
// if one computes something else, by expect_close() with this tolerance, or
// refuses what TensorFlow does not refuse with the same code, or the reverse.
RecordedCounts check_recorded_cases(const std::string& file_name,
                                    double tolerance = 0);

}  // namespace tagflow::devices
