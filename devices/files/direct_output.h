// DirectOutput: what is written to a file goes to the disk at once, and not
// through the system's cache of files.
#pragma once

#include <array>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string_view>
#include <thread>

namespace tagflow::checkpoint {

// Note [Past the cache]
// Whoever waits for the disk in the end gains nothing from the cache of files:
// the system copies all bytes into it, takes memory from other programs for
// that, and then writes them as slowly as if it had begun late. So a file that
// is to be synced is written by O_DIRECT. The processor has little to do then,
// which steps that run beside a checkpoint can use.
//
// Such writes must begin at a multiple of a block of the disk, in memory and in
// the file: so bytes are gathered in two pieces of memory that are aligned. A
// thread writes the one while the other is filled, and the disk is always busy.
// The last bytes, which fill no block, go through the cache.

// Of a file that is empty, and whose descriptor outlives this.
// Thread-compatible.
class DirectOutput {
 public:
  // Null if the file system cannot do that, or memory or threads are short.
  static std::unique_ptr<DirectOutput> begin(int descriptor);
  // Drops what is left, unless it was finished. Waits for the disk.
  ~DirectOutput();
  DirectOutput(const DirectOutput&) = delete;
  DirectOutput& operator=(const DirectOutput&) = delete;

  // Takes all of the bytes. False, with errno, if earlier ones could not be
  // written.
  bool write(std::string_view bytes);
  // Writes what is left. False, with errno, if not all is written. Nothing may
  // be written from then on.
  bool finish();

 private:
  struct Freed {
    void operator()(std::byte* piece) const;
  };
  using Piece = std::unique_ptr<std::byte, Freed>;

  explicit DirectOutput(int descriptor) : descriptor_(descriptor) {}
  // The thread.
  void write_pieces();
  // Waits until the thread has nothing to do; false, with errno, if it failed.
  bool wait();

  const int descriptor_;
  std::array<Piece, 2> pieces_;
  size_t filling_ = 0;  // the piece
  size_t filled_ = 0;   // bytes of it

  std::mutex mutex_;  // guards the group below
  std::condition_variable changed_;
  const std::byte* given_ = nullptr;  // a whole piece for the thread, or null
  int error_ = 0;                     // errno of the first write that failed
  bool is_over_ = false;

  std::thread thread_;
};

}  // namespace tagflow::checkpoint
