// The metrics of the steps of a training, in memory and in a file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "graph/status.h"

namespace tagflow::training {

// The file has lines "step,set,loss,accuracy", and these names in its first
// line: `set` is "train" for a step's batch, and "test" for an evaluation after
// that step. It belongs to the checkpoints beside it: rows are written before a
// checkpoint of their step, so that a training resumed from a checkpoint has
// all rows up to it. Thread-compatible.
class History {
 public:
  enum class Set : uint8_t { kTrain, kTest };
  struct Row {
    int64_t step = 0;
    Set set = Set::kTrain;
    std::vector<float> values;  // of the metrics
  };

  // Reads the rows up to `last_step`, and drops later ones, which will be
  // computed again. Without a file, or for last_step 0, the history is empty. A
  // last line without a newline is incomplete, and ignored. Returns DataLoss
  // if the file is not such a history, or has other metrics, and errors of
  // reading and writing it.
  static Result<History> open(std::filesystem::path file,
                              std::vector<std::string> metrics,
                              int64_t last_step);

  void add(int64_t step, Set set, std::vector<float> values);
  // Appends the new rows to the file. Returns ResourceExhausted if
  // there is no room for them, and DataLoss if they cannot be written for
  // another reason: then the file is unchanged, and the next call tries again.
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
