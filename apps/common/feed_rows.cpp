#include "apps/common/feed_rows.h"

#include <algorithm>
#include <string>
#include <utility>

#include "devices/cpu/array_copy.h"

namespace tagflow::apps {

Result<FeedRows> FeedRows::create(Tensor all, int64_t batch) {
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
  rows.all_ = std::move(all);
  return rows;
}

Result<Tensor> FeedRows::at(int64_t step) const {
  TAGFLOW_ASSIGN(Tensor value, Tensor::allocate(all_.dtype(), shape_));
  const int64_t row_size = value.num_elements() / taken_;
  __extension__ using Wide = __int128;
  const auto before = int64_t(Wide(step - 1) * taken_ % rows_);
  for (int64_t done = 0; done < taken_;) {
    const int64_t row = (before + done) % rows_;
    const int64_t count = std::min(taken_ - done, rows_ - row);
    devices::copy_elements(all_, row * row_size, value, done * row_size,
                           count * row_size);
    done += count;
  }
  return value;
}

}  // namespace tagflow::apps
