// BatchRows: collects the elements that become one batch.
#pragma once

#include <optional>
#include <vector>

#include "devices/kernels/dataset/dataset.h"
#include "devices/kernels/dataset/segment.h"

namespace tagflow::devices {

struct BatchSpec {
  int64_t size = 1;
  bool drops_rest = false;
  // Whether an element that fails has a place in its batch, which is the error
  // then. Otherwise the batch ends with the error, and those after it begin
  // another one.
  bool has_places_for_errors = false;
  std::optional<size_t> components;  // that each element must have
};

// How many batches so many elements are; a negative number says that it is not
// known, or that there is no end.
int64_t batches_of(int64_t cardinality, const BatchSpec& spec);

// A part of a stage, which is inside of its segment.
class BatchRows {
 public:
  // The segment and the dataset outlive it.
  BatchRows(Segment& segment, const Dataset& dataset, StagePtr input,
            BatchSpec spec)
      : segment_(segment),
        dataset_(dataset),
        input_(std::move(input)),
        spec_(spec) {}

  // kElement: all rows of a batch are there, until they are cleared. Otherwise
  // it is the answer of the stage: kWait, an error, with which the rows so far
  // are given up, or the end.
  Progress collect(Pull& pull);
  const std::vector<Element>& rows() const { return rows_; }
  void clear() { rows_.clear(); }

 private:
  Segment& segment_;
  const Dataset& dataset_;
  const StagePtr input_;
  const BatchSpec spec_;
  std::vector<Element> rows_;
  Status failed_;  // of the first row that has
  bool is_over_ = false;
};

}  // namespace tagflow::devices
