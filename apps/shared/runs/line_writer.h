// LineWriter: lines for a descriptor whose reader may be slow.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "graph/status.h"

namespace tagflow::apps {

// A thread of its own writes the lines in their order. Lines beyond the limit
// are dropped. Thread-safe.
class LineWriter {
 public:
  struct Options {
    size_t most_bytes = size_t{1} << 20;  // that wait
    // How long the end waits for a reader that does not read.
    std::chrono::milliseconds patience{1000};
    // Makes the line that says how many were dropped. Not empty.
    std::function<std::string(uint64_t count)> on_dropped;
  };

  // The descriptor, which stays the caller's, outlives it. ResourceExhausted if
  // the system gives no thread.
  static Result<std::unique_ptr<LineWriter>> start(int descriptor,
                                                   Options options);
  // Writes what waits, for as long as the patience lasts.
  ~LineWriter();
  LineWriter(const LineWriter&) = delete;
  LineWriter& operator=(const LineWriter&) = delete;

  // Takes a line, with its newline, or drops it. Does not wait for the reader,
  // and throws nothing.
  void add(std::string line) noexcept;
  // Counts a line that could not be made.
  void drop() noexcept;
  // Waits until all lines are written, but not longer than the patience. False
  // if some are not, or if nobody reads any more.
  bool flush();

 private:
  LineWriter(int descriptor, Options options)
      : descriptor_(descriptor), options_(std::move(options)) {}
  void run();
  // The next line; empty if there is none, and the writer is closed.
  std::string next();
  // Whether it was written before the end.
  bool write(const std::string& line);
  bool is_over();

  const int descriptor_;
  const Options options_;
  std::mutex mutex_;  // guards the below
  std::condition_variable changed_;
  std::deque<std::string> lines_;
  size_t bytes_ = 0;  // of these
  uint64_t dropped_ = 0;
  bool is_writing_ = false;
  bool has_ended_ = false;  // nobody reads any more
  bool is_closed_ = false;
  std::chrono::steady_clock::time_point end_;  // if it is closed
  std::thread thread_;
};

}  // namespace tagflow::apps
