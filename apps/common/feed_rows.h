// FeedRows: a value for each of many steps, from one file.
#pragma once

#include <cstdint>
#include <functional>

#include "apps/common/memory.h"
#include "graph/shape.h"
#include "graph/status.h"
#include "graph/tensor.h"

namespace tagflow::apps {

// Steps are counted from 1. Step k takes row k of the tensor, or, of batches of
// B rows, B rows from row (k - 1) B + 1 on; behind the last row comes the first
// one. Thread-safe.
class FeedRows {
 public:
  FeedRows() = default;
  // InvalidArgument where the tensor is a scalar, has no rows, or holds
  // handles; ResourceExhausted where a step's rows are of more bytes than
  // `memory`. A batch of 0: one row, without its dimension.
  static Result<FeedRows> create(Tensor all, int64_t batch,
                                 int64_t memory = available_memory());

  // How many there are.
  int64_t count() const { return rows_; }

  // Of what at() gives.
  const Shape& shape() const { return shape_; }
  // ResourceExhausted where there is no memory; Cancelled where `stop`, which
  // is asked now and then if it is there, says so. REQUIRES: step >= 1.
  Result<Tensor> at(int64_t step,
                    const std::function<bool()>& stop = nullptr) const;

 private:
  Tensor all_;
  int64_t rows_ = 0;   // of the tensor
  int64_t taken_ = 0;  // in a step
  Shape shape_;
};

}  // namespace tagflow::apps
