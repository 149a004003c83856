#include "net/transfer/channel.h"

#include <utility>

namespace tagflow::net {

namespace {

// Four times the waking of a processor.
constexpr std::chrono::microseconds kLook{100};

}  // namespace

Result<IoThreads> IoThreads::start() {
  IoThreads threads;
  TAGFLOW_ASSIGN(threads.small, IoThread::start("tagflow small", kLook));
  TAGFLOW_ASSIGN(threads.bulk, IoThread::start("tagflow bulk"));
  return threads;
}

Channel::Channel(const IoThreads& threads, Socket small, Socket bulk,
                 std::string name)
    : name_(std::move(name)),
      small_(*threads.small, std::move(small), {.peer = name_}),
      bulk_(*threads.bulk, std::move(bulk), {.peer = name_}) {
  closers_ = {small_.closer(), bulk_.closer()};
}

void Channel::start(Handlers handlers) {
  on_lost_ = std::move(handlers.on_lost);
  small_.start({.on_frame = std::move(handlers.on_frame),
                .on_lost = [this](const Status& status) { lose(status); },
                .on_pong = std::move(handlers.on_pong)});
  bulk_.start({.on_begin = std::move(handlers.on_begin),
               .on_end = std::move(handlers.on_end),
               .on_sent = std::move(handlers.on_sent),
               .on_lost = [this](const Status& status) { lose(status); }});
}

// Both before either goes, since a handler of one sends by the other.
void Channel::stop() {
  small_.stop();
  bulk_.stop();
}

Status Channel::lost() const {
  const std::lock_guard lock(mutex_);
  return lost_;
}

Traffic Channel::traffic() const {
  Traffic all = small_.traffic();
  const Traffic bulk = bulk_.traffic();
  all.bytes_in += bulk.bytes_in;
  all.bytes_out += bulk.bytes_out;
  all.frames_in += bulk.frames_in;
  all.frames_out += bulk.frames_out;
  return all;
}

void Channel::lose(const Status& status) {
  {
    const std::lock_guard lock(mutex_);
    if (!lost_.ok()) return;
    lost_ = status;
  }
  for (const auto& close : closers_) close(status);
  if (on_lost_) on_lost_(status);  // it may not have been started
}

}  // namespace tagflow::net
