#include "apps/tagflow/model/feed_rows.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "devices/copy.h"

namespace tagflow::apps {
namespace {

// The number of bytes; nothing on overflow.
std::optional<int64_t> size_of(DataType dtype, const Shape& shape) {
  return checked_multiply(shape.num_elements(), int64_t(dtype_size(dtype)));
}

}  // namespace

Result<FeedRows> FeedRows::create(Tensor all, int64_t batch, int64_t memory) {
  if (all.rank() == 0 || all.dim(0) == 0)
    return invalid_argument("{} has no rows", all.describe());
  if (!is_plain(all.dtype()) && all.dtype() != DataType::kString)
    return invalid_argument("{} has no rows that can be copied",
                            all.describe());
  FeedRows rows;
  rows.rows_ = all.dim(0);
  rows.taken_ = std::max<int64_t>(batch, 1);
  std::vector<int64_t> dims;
  if (batch > 0) dims.push_back(batch);
  for (int i = 1; i < all.rank(); ++i) dims.push_back(all.dim(i));
  TAGFLOW_ASSIGN(rows.shape_, Shape::make(dims));
  const auto bytes = size_of(all.dtype(), rows.shape_);
  if (!bytes || *bytes > memory)
    return error(Code::kResourceExhausted,
                 "the rows of a step, {}{}, need more than the {} bytes of "
                 "memory that are free",
                 dtype_name(all.dtype()), rows.shape_.to_string(), memory);
  rows.all_ = std::move(all);
  return rows;
}

Result<Tensor> FeedRows::at(int64_t step,
                            const std::function<bool()>& stop) const {
  TAGFLOW_ASSIGN(Tensor value, Tensor::allocate(all_.dtype(), shape_));
  const int64_t row_size = value.num_elements() / taken_;
  if (row_size == 0) return value;  // of any number of rows
  __extension__ using Wide = __int128;
  const auto before = int64_t(Wide(step - 1) * taken_ % rows_);
  constexpr int64_t kPiece = int64_t{1} << 20;  // elements, copied at a time
  const int64_t most =
      std::max<int64_t>(1, kPiece / std::max<int64_t>(1, row_size));
  int64_t asked = 0;
  for (int64_t done = 0; done < taken_;) {
    if (stop && done - asked >= most) {
      if (stop())
        return error(Code::kCancelled, "copying the rows was cancelled");
      asked = done;
    }
    const int64_t row = (before + done) % rows_;
    const int64_t count = std::min({taken_ - done, rows_ - row, most});
    devices::copy_elements(all_, row * row_size, value, done * row_size,
                           count * row_size);
    done += count;
  }
  return value;
}

}  // namespace tagflow::apps
