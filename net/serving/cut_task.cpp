#include "net/serving/cut_task.h"

#include <algorithm>
#include <utility>

#include "graph/fault.h"
#include "net/serving/batch_rows.h"

namespace tagflow::net::serving {

Result<std::vector<Batcher::Task>> CutTask::cut() {
  const Tensors inputs = std::move(whole_.inputs);
  std::vector<Batcher::Task> pieces;
  for (int64_t begin = 0; begin < whole_.rows; begin += rows_) {
    Batcher::Task& piece = pieces.emplace_back();
    piece.rows = std::min(rows_, whole_.rows - begin);
    TAGFLOW_ASSIGN(piece.inputs,
                   cut_rows(inputs, whole_.rows, begin, piece.rows));
    piece.owner = whole_.owner;
    piece.key = whole_.key;
    piece.deadline = whole_.deadline;
    piece.end = std::make_shared<CallEnd>();
    piece.runner = whole_.runner;
    piece.done = [self = shared_from_this(),
                  index = pieces.size() - 1](Result<Tensors> outputs) {
      self->on_piece(index, std::move(outputs));
    };
  }
  {
    const std::lock_guard lock(mutex_);
    left_ = pieces.size();
    outputs_.resize(left_);
    for (const Batcher::Task& piece : pieces) ends_.push_back(piece.end);
  }
  if (whole_.end != nullptr &&
      !whole_.end->on_cancel([weak = weak_from_this()] {
        if (const auto self = weak.lock()) self->cancel_pieces();
      }))
    return error(Code::kCancelled, "[batch] the client has gone");
  return pieces;
}

void CutTask::cancel_pieces() {
  std::vector<std::shared_ptr<CallEnd>> ends;
  {
    const std::lock_guard lock(mutex_);
    ends.swap(ends_);
  }
  for (const auto& end : ends) end->cancel();
}

void CutTask::fail(const Status& status) {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(is_answered_, true)) return;
  }
  if (whole_.end != nullptr) whole_.end->on_cancel({});
  cancel_pieces();
  static_cast<void>(guarded("batch", [&] { whole_.done(status); }));
}

void CutTask::on_piece(size_t index, Result<Tensors> outputs) {
  if (!outputs.ok()) return fail(outputs.status());
  {
    const std::lock_guard lock(mutex_);
    outputs_[index] = *std::move(outputs);
    if (--left_ > 0 || std::exchange(is_answered_, true)) return;
  }
  if (whole_.end != nullptr) whole_.end->on_cancel({});
  Result<Tensors> all = guarded("batch", [&] { return join(); });
  static_cast<void>(guarded("batch", [&] { whole_.done(std::move(all)); }));
}

// REQUIRES: all pieces have their outputs.
Result<Tensors> CutTask::join() const {
  std::vector<const Tensors*> parts;
  for (const Tensors& part : outputs_) {
    if (row_types(part) != row_types(outputs_[0]))
      return invalid_argument(
          "[batch] the request was cut into pieces, whose outputs have rows "
          "of different shapes: {} and {}",
          row_types(outputs_[0]), row_types(part));
    parts.push_back(&part);
  }
  return join_rows(parts, whole_.rows);
}

}  // namespace tagflow::net::serving
