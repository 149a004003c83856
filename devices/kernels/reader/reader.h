// Reader: gives out the records of files, whose names it takes from queues.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "devices/kernels/reader/file_thread.h"
#include "devices/kernels/reader/record_source.h"
#include "devices/state/actor_kernel.h"
#include "devices/state/queue.h"
#include "devices/state/saved_contents.h"
#include "devices/state/state_kind.h"

namespace tagflow::devices {

// Note [Reading ahead]
// A reader has no thread while it waits for the name of a file: its request is
// an operation of the queue, which ends early if nobody waits for the reader
// any more. It is not an operation of the step that waits, since a step can
// end while others go on to wait. Files are read by the reader's own thread,
// many records at once, before they are asked for. So most reads find their
// records in memory, and a step never waits for the disk on a worker.
//
//              queue            thread                  operations
//   no file --> name requested --> reading <--> records in memory --> given out
//      ^                                              |
//      +------------ all were given out --------------+
//
// Invariants, beside those of StateActor:
//   1. One thing is in progress in the background at most: a request for a
//      name, or a piece of work of the thread. Its end wakes the reader.
//   2. Only what is in progress uses source_.
//   3. Records are given out in their order, each once. An error is given to
//      one operation, after the records before it.
class Reader final : public StateActor, public SavedContents {
 public:
  static constexpr std::string_view kKind = kReaderKind;

  // `name` is for messages.
  Reader(std::string name, const ReaderSpec& spec);
  ~Reader() override;

  const ReaderSpec& spec() const { return spec_; }
  // 'reader "r"'.
  std::string describe() const override;
  std::string describe_state() const override;

  // --- Called inside.
  // Whether an operation that wants up to so many records can get some.
  bool can_give(int64_t wanted) const;
  bool is_busy() const { return background_ != Background::kNone; }
  // Takes a step towards records: finishes a file, asks the queue for the next
  // one, or has the thread read. Returns the error that is next. REQUIRES:
  // !can_give(wanted), !is_busy().
  Status advance(const KernelContext& context, int64_t wanted,
                 const Tensor& queue);
  // Gives out up to so many records: as scalars, or as vectors. REQUIRES:
  // can_give(wanted), or wanted == 0.
  Status give_one(KernelContext& context);
  Status give(KernelContext& context, int64_t wanted);

  int64_t records_produced() const { return produced_; }
  int64_t units_completed() const { return finished_; }
  // As a string, which restore_state() takes. InvalidArgument if it is not one,
  // or of no reader.
  std::string state() const;
  Status restore_state(const KernelContext& context, const std::string& state);
  // As if it was just made.
  void reset() noexcept;

  Result<std::vector<Tensor>> save() const override;
  Status restore(const KernelContext& context,
                 std::span<const Tensor> saved) override;

 protected:
  void clear() noexcept override { reset(); }
  void on_lines_changed() noexcept override;
  void on_woken() noexcept override;

 private:
  enum class Background : uint8_t { kNone, kName, kRecords };
  class NameRequest;
  struct Piece;

  Status request_name(const Tensor& queue);
  // Has the thread read records of the file, of which so many are wanted.
  Status read_on(int64_t wanted);
  void take_name() noexcept;
  void take_records() noexcept;
  void finish_file() noexcept;
  std::string key_of(const Record& record) const;
  // The next record. REQUIRES: there is one.
  Record take();
  // After records were taken: the file may be over, or reading go on.
  void note_taken() noexcept;

  const std::string name_;
  const ReaderSpec spec_;
  const std::unique_ptr<FileThread> thread_;

  std::string file_;
  bool has_file_ = false;
  bool is_at_end_ = false;                // all its records were read
  bool ends_at_once_ = false;             // no read is needed to know that
  std::shared_ptr<RecordSource> source_;  // null: the file is not open
  std::deque<Record> records_;            // read, and not given out
  size_t bytes_ = 0;                      // of their values
  int64_t given_ = 0;                     // records of the file
  int64_t started_ = 0, finished_ = 0, produced_ = 0;
  Status failure_;  // behind the records

  // What is in progress; a reset drops it, but waits for its end.
  std::atomic<Background> background_{Background::kNone};
  bool is_dropped_ = false;
  std::shared_ptr<NameRequest> request_;
  std::shared_ptr<Piece> piece_;
  mutable std::mutex mutex_;  // guards the below, for describe_state()
  Ref<Queue> queue_;          // from which a name was requested
};

}  // namespace tagflow::devices
