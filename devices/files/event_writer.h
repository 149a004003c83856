// EventWriter: writes event files from any number of threads, none of which
// waits for the disk.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "devices/files/event_file.h"
#include "graph/status.h"

namespace tensorflow {
class Event;
}

namespace tagflow::checkpoint {

struct EventWriterOptions {
  // Outlives the writer; null: local_files().
  FileSystem* files = nullptr;
  // So many records are written together, or what is there after this time.
  size_t most_records = 10;
  std::chrono::milliseconds flush_time{10'000};
  std::string suffix;  // of the file's name
};

// Life cycle: *open*, with a file that has its first record and a thread that
// writes; *closed*: everything is written, or the writer knows why not.
//
// Records wait in memory. If they cannot be written, as while the disk is full,
// they stay, and the next attempt begins a new file, since the last one may end
// with a part of a record. No more than kMostBytes wait.
//
// Thread-safe, except for the destructor, which closes it.
class EventWriter {
 public:
  static constexpr size_t kMostBytes = size_t{64} << 20;

  // PermissionDenied, ResourceExhausted and others if there can be no file.
  static Result<std::unique_ptr<EventWriter>> open(
      std::string folder, const EventWriterOptions& options);
  EventWriter(const EventWriter&) = delete;
  EventWriter& operator=(const EventWriter&) = delete;
  ~EventWriter();

  // Adds an event; one without a time gets that of the call. The error of the
  // last attempt to write if too much waits; FailedPrecondition if it is
  // closed; ResourceExhausted if the event has 2 GiB or more.
  Status add(tensorflow::Event event);
  // Waits until all that was added before is written, or could not be.
  Status flush();
  // flush(), and the end. Closing twice is not an error.
  Status close();
  // The file that is written now.
  std::string path() const;

 private:
  EventWriter(std::string folder, EventWriterOptions options);
  // Begins a file. REQUIRES: only the writing thread, or nobody else, uses it.
  Status begin_file();
  void work();
  // Writes all that waits. REQUIRES: the lock is held, which it gives up
  // meanwhile.
  Status write_waiting(std::unique_lock<std::mutex>& lock);
  // Writes records from the first on, and removes from them those that are
  // written as a whole.
  Status write_records(std::deque<std::string>& records);

  const std::string folder_;
  const EventWriterOptions options_;
  FileSystem& files_;
  std::unique_ptr<EventFile> file_;  // of the thread; null after an error

  mutable std::mutex mutex_;  // guards the below
  std::condition_variable wake_, done_;
  std::deque<std::string> waiting_;
  size_t waiting_bytes_ = 0;
  uint64_t added_ = 0;      // records
  uint64_t attempted_ = 0;  // of these, how many a write has been tried of
  uint64_t wanted_ = 0;     // of these, how many a flush waits for
  Status last_;             // of the last attempt
  std::string path_;
  bool closing_ = false;
  bool has_thread_ = false;
  bool is_over_ = false;  // the thread has written what it could
  std::thread thread_;    // last: it uses all others
};

}  // namespace tagflow::checkpoint
