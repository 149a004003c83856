#include "devices/kernels/dataset/batch_rows.h"

#include <utility>

namespace tagflow::devices {

int64_t batches_of(int64_t cardinality, const BatchSpec& spec) {
  if (cardinality < 0) return cardinality;
  const bool has_rest = cardinality % spec.size != 0 && !spec.drops_rest;
  return cardinality / spec.size + (has_rest ? 1 : 0);
}

Progress BatchRows::collect(Pull& pull) {
  while (!is_over_ && int64_t(rows_.size()) < spec_.size) {
    if (!segment_.take_turn()) return Progress::kWait;
    const Progress progress = input_->next(pull);
    if (progress == Progress::kWait) return progress;
    if (progress == Progress::kFailed && !spec_.has_places_for_errors) {
      rows_.clear();
      return progress;
    }
    if (progress == Progress::kFailed && failed_.ok())
      failed_ = std::move(pull.error);
    if (progress == Progress::kEnd) {
      is_over_ = true;
      break;
    }
    rows_.push_back(std::move(pull.element));
    if (spec_.components && rows_.back().size() != *spec_.components) {
      rows_.clear();
      return pull.fail(
          invalid_argument("{}an element does not have {} components",
                           dataset_.prefix(), *spec_.components));
    }
  }
  if (!failed_.ok()) {
    rows_.clear();
    return pull.fail(std::exchange(failed_, {}));
  }
  const bool is_short = int64_t(rows_.size()) < spec_.size;
  if (rows_.empty() || (spec_.drops_rest && is_short)) return Progress::kEnd;
  return Progress::kElement;
}

}  // namespace tagflow::devices
