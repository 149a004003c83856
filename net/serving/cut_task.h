// CutTask: a request with more rows than a run. Internal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "net/serving/batcher.h"

namespace tagflow::net::serving {

// Its pieces are tasks of their own. The request is answered once: with the
// rows of all pieces, or with the first error, which ends the other pieces.
// Thread-safe.
class CutTask : public std::enable_shared_from_this<CutTask> {
 public:
  // Pieces have so many rows, and the last one may have fewer. REQUIRES:
  // rows > 0
  CutTask(Batcher::Task whole, int64_t rows)
      : whole_(std::move(whole)), rows_(rows) {}

  // Their keys and the like are those of the whole. Errors of cut_rows().
  // Cancelled if the client has gone. REQUIRES: called once
  Result<std::vector<Batcher::Task>> cut();
  // The answer is this error, unless there is one already.
  void fail(const Status& status);

 private:
  void on_piece(size_t index, Result<Tensors> outputs);
  void cancel_pieces();
  Result<Tensors> join() const;

  Batcher::Task whole_;
  const int64_t rows_;
  std::mutex mutex_;  // guards the below
  std::vector<std::shared_ptr<CallEnd>> ends_;
  std::vector<Tensors> outputs_;
  size_t left_ = 0;
  bool is_answered_ = false;
};

}  // namespace tagflow::net::serving
