// What was measured in the steps of a training, in memory and in a file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "graph/status.h"

namespace tagflow::training {

// A file of lines "step,set,loss,accuracy", of which the first one says these
// names: `set` is "train" of a step's batch, and "test" of an evaluation after
// that step. It belongs to the checkpoints beside it: rows are written before a
// checkpoint of their step is, so that whoever goes on from one has all rows up
// to it. Thread-compatible.
class History {
 public:
  enum class Set : uint8_t { kTrain, kTest };
  struct Row {
    int64_t step = 0;
    Set set = Set::kTrain;
    std::vector<float> values;  // of the metrics
  };

  // Reads the rows up to `last_step`, and forgets later ones, which are going
  // to be computed again. No file, or last_step 0, is an empty history. Where
  // the last line has no end, it was being written, and counts for nothing.
  // DataLoss where the file is no such history, or one of other metrics; errors
  // of reading and writing it.
  static Result<History> open(std::filesystem::path file,
                              std::vector<std::string> metrics,
                              int64_t last_step);

  void add(int64_t step, Set set, std::vector<float> values);
  // Appends what was added since. DataLoss where it cannot be written: then the
  // file stays as it was, and the next call tries again.
  Status write();

  const std::vector<std::string>& metrics() const { return metrics_; }
  const std::vector<Row>& rows() const { return rows_; }

 private:
  History(std::filesystem::path file, std::vector<std::string> metrics);
  std::string header() const;
  Status parse(std::string_view text, int64_t last_step);
  Result<Row> parse_row(std::string_view line) const;

  std::filesystem::path file_;
  std::vector<std::string> metrics_;
  std::vector<Row> rows_;
  size_t written_ = 0;   // of the rows
  uint64_t length_ = 0;  // of the file
};

}  // namespace tagflow::training
