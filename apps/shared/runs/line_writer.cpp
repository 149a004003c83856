#include "apps/shared/runs/line_writer.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <string_view>
#include <utility>

#include "graph/fault.h"

namespace tagflow::apps {
namespace {

using Clock = std::chrono::steady_clock;

// A pipe that poll() calls writable takes so many bytes at once.
constexpr size_t kPiece = 4096;
// Between two looks whether the writer is to end.
constexpr int kLookMs = 50;

}  // namespace

Result<std::unique_ptr<LineWriter>> LineWriter::start(int descriptor,
                                                      Options options) {
  return guarded("log", [&]() -> Result<std::unique_ptr<LineWriter>> {
    std::unique_ptr<LineWriter> writer(
        new LineWriter(descriptor, std::move(options)));
    // Signals are for the threads of the program.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    const Status started = guarded("log", [&] {
      writer->thread_ = std::thread([self = writer.get()] { self->run(); });
    });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    TAGFLOW_RETURN_IF_ERROR(started);
    return writer;
  });
}

LineWriter::~LineWriter() {
  {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
    end_ = Clock::now() + options_.patience;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void LineWriter::add(std::string line) noexcept {
  try {
    const std::lock_guard lock(mutex_);
    if (has_ended_ || line.size() > options_.most_bytes - bytes_) {
      ++dropped_;
      return;
    }
    const size_t bytes = line.size();
    lines_.push_back(std::move(line));
    bytes_ += bytes;
    changed_.notify_all();
  } catch (const std::exception&) {
    drop();
  }
}

void LineWriter::drop() noexcept {
  const std::lock_guard lock(mutex_);
  ++dropped_;
  changed_.notify_all();
}

bool LineWriter::flush() {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, options_.patience, [this] {
    return has_ended_ || (lines_.empty() && !is_writing_ && dropped_ == 0);
  }) && !has_ended_;
}

std::string LineWriter::next() {
  std::unique_lock lock(mutex_);
  is_writing_ = false;
  changed_.notify_all();
  changed_.wait(
      lock, [this] { return !lines_.empty() || dropped_ > 0 || is_closed_; });
  std::string line;
  if (dropped_ > 0 && bytes_ <= options_.most_bytes / 2) {
    // There is room again for those that come.
    const uint64_t count = std::exchange(dropped_, 0);
    line = options_.on_dropped(count);
  } else if (!lines_.empty()) {
    line = std::move(lines_.front());
    lines_.pop_front();
    bytes_ -= line.size();
  }
  is_writing_ = true;
  return line;
}

void LineWriter::run() {
  // Without memory for the next line, nobody reads why.
  static_cast<void>(guarded([this] {
    for (std::string line = next(); !line.empty(); line = next())
      if (!write(line)) break;
  }));
  const std::lock_guard lock(mutex_);
  is_writing_ = false;
  has_ended_ = true;
  lines_.clear();
  bytes_ = 0;
  changed_.notify_all();
}

bool LineWriter::is_over() {
  const std::lock_guard lock(mutex_);
  return is_closed_ && Clock::now() >= end_;
}

bool LineWriter::write(const std::string& line) {
  std::string_view rest = line;
  while (!rest.empty()) {
    pollfd ready{descriptor_, POLLOUT, 0};
    const int count = ::poll(&ready, 1, kLookMs);
    if (count < 0 && errno != EINTR) return false;
    if (count <= 0) {
      if (is_over()) return false;
      continue;
    }
    const ssize_t written =
        ::write(descriptor_, rest.data(), std::min(rest.size(), kPiece));
    if (written >= 0) {
      rest.remove_prefix(size_t(written));
    } else if (errno != EINTR && errno != EAGAIN) {
      return false;  // as if nobody reads any more
    }
  }
  return true;
}

}  // namespace tagflow::apps
