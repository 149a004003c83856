#include "devices/files/direct_output.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <new>
#include <utility>

namespace tagflow::checkpoint {
namespace {

// Of each piece.
constexpr size_t kPieceBytes = size_t{4} << 20;
// A multiple of the blocks of disks, and a page of memory.
constexpr size_t kAlignment = 4096;

bool is_direct(int descriptor) {
  return (::fcntl(descriptor, F_GETFL) & O_DIRECT) != 0;
}

bool set_direct(int descriptor, bool wanted) {
  const int flags = ::fcntl(descriptor, F_GETFL);
  if (flags < 0) return false;
  return ::fcntl(descriptor, F_SETFL,
                 wanted ? flags | O_DIRECT : flags & ~O_DIRECT) == 0;
}

// False, with errno.
bool put(int descriptor, const std::byte* bytes, size_t count) {
  while (count > 0) {
    const ssize_t written = ::write(descriptor, bytes, count);
    if (written > 0) {
      bytes += written;
      count -= size_t(written);
      // A write that was cut short may have ended within a block of the disk.
      if (size_t(written) % kAlignment != 0 && !set_direct(descriptor, false))
        return false;
      continue;
    }
    if (written < 0 && errno == EINTR) continue;
    // Some file systems say only now that they cannot.
    const bool is_refused =
        written < 0 && (errno == EINVAL || errno == EOPNOTSUPP);
    if (is_refused && is_direct(descriptor) && set_direct(descriptor, false))
      continue;
    if (written == 0) errno = EIO;
    return false;
  }
  return true;
}

}  // namespace

void DirectOutput::Freed::operator()(std::byte* piece) const {
  ::operator delete (piece, std::align_val_t{kAlignment});
}

std::unique_ptr<DirectOutput> DirectOutput::begin(int descriptor) try {
  std::unique_ptr<DirectOutput> made(new DirectOutput(descriptor));
  for (Piece& piece : made->pieces_)
    piece.reset(static_cast<std::byte*>(
        ::operator new (kPieceBytes, std::align_val_t{kAlignment})));
  made->thread_ =
      std::thread([output = made.get()] { output->write_pieces(); });
  return set_direct(descriptor, true) ? std::move(made) : nullptr;
} catch (const std::exception&) {  // memory or threads are short
  return nullptr;
}

DirectOutput::~DirectOutput() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

bool DirectOutput::write(std::string_view bytes) {
  while (!bytes.empty()) {
    std::byte* const piece = pieces_[filling_].get();
    const size_t count = std::min(bytes.size(), kPieceBytes - filled_);
    std::memcpy(piece + filled_, bytes.data(), count);
    filled_ += count;
    bytes.remove_prefix(count);
    if (filled_ < kPieceBytes) break;
    if (!wait()) return false;
    const std::lock_guard lock(mutex_);
    given_ = piece;
    changed_.notify_all();
    filling_ = 1 - filling_;
    filled_ = 0;
  }
  return true;
}

bool DirectOutput::finish() {
  if (!wait()) return false;
  const std::byte* const piece = pieces_[filling_].get();
  const size_t aligned = filled_ / kAlignment * kAlignment;
  return put(descriptor_, piece, aligned) && set_direct(descriptor_, false) &&
         put(descriptor_, piece + aligned, filled_ - aligned);
}

bool DirectOutput::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return given_ == nullptr; });
  errno = error_;
  return error_ == 0;
}

void DirectOutput::write_pieces() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return given_ != nullptr || is_over_; });
    const std::byte* const piece = given_;
    if (piece == nullptr) return;
    lock.unlock();
    const bool is_put = put(descriptor_, piece, kPieceBytes);
    const int number = errno;
    lock.lock();
    if (!is_put) error_ = number;
    given_ = nullptr;
    changed_.notify_all();
  }
}

}  // namespace tagflow::checkpoint
