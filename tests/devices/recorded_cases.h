// Reads cases that record_ops.py and its like wrote: inputs of an
// op, and what TensorFlow computed of them.
#pragma once

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
  std::string error;  // the name of the error's code, where it refused them
  int line = 0;       // of the file, where the case begins
};

// The cases of tests/devices/data/`file_name`. NotFound where it cannot be
// opened; DataLoss, with the line, where it cannot be read.
Result<std::vector<RecordedCase>> read_recorded_cases(
    const std::string& file_name);

}  // namespace tagflow::devices
