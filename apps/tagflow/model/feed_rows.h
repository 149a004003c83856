// FeedRows: a value for each of many steps, from one file.
#pragma once

#include <cstdint>
#include <functional>

#include "apps/tagflow/model/memory.h"
#include "graph/shape.h"
#include "graph/status.h"
#include "graph/tensor.h"

namespace tagflow::apps {

// Steps are counted from 1. Step k takes row k of the tensor, or, with batches
// of B rows, B rows from row (k - 1) B + 1 on; the first row follows the last
// one. Thread-safe.
class FeedRows {
 public:
  FeedRows() = default;
  // Returns InvalidArgument if the tensor is a scalar, has no rows, or holds
  // handles, and ResourceExhausted if the rows of a step take more bytes
  // than `memory`. A batch of 0 means one row, without its dimension.
  static Result<FeedRows> create(Tensor all, int64_t batch,
                                 int64_t memory = available_memory());

  // The number of rows.
  int64_t count() const { return rows_; }

  // The shape of the result of at().
  const Shape& shape() const { return shape_; }
  // Returns ResourceExhausted if memory cannot be allocated, and Cancelled
  // if `stop`, which is called now and then unless null, returns true.
  // REQUIRES: step >= 1.
  Result<Tensor> at(int64_t step,
                    const std::function<bool()>& stop = nullptr) const;

 private:
  Tensor all_;
  int64_t rows_ = 0;   // of the tensor
  int64_t taken_ = 0;  // in a step
  Shape shape_;
};

}  // namespace tagflow::apps
