#include "net/link/small_link.h"

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <mutex>

#include "graph/fault.h"
#include "net/link/life_signs.h"
#include "net/link/system_io.h"
#include "net/link/tls.h"
#include "net/protocol/life.h"

namespace tagflow::net {

namespace asio = boost::asio;
using ErrorCode = boost::system::error_code;
// After a read that did not fill its buffer, Asio waits for more. Of a
// stream_descriptor it would read once more, in vain, for each message.
using Stream = asio::generic::stream_protocol::socket;

// What is not guarded belongs to the io thread. Handlers that wait in Asio own
// this, so that it outlives the link until they have gone.
struct SmallLink::State : std::enable_shared_from_this<State> {
  State(IoThread& io_thread, Socket socket, Options link_options)
      : thread(io_thread),
        options(std::move(link_options)),
        silence(options.life.most_silent),
        tls(socket.tls()),
        stream(thread.context()),
        timer(thread.context()) {
    failure = prepare_socket(socket);
    ErrorCode error;
    if (failure.ok())
      stream.assign({family_of(socket), 0}, socket.descriptor(), error);
    if (error) failure = lost(options.peer, error.message());
    is_open = failure.ok();
    if (is_open) descriptor = socket.release();
  }

  Sent send(std::string& frame);
  // Calls a step of the link; what goes wrong there loses it.
  template <class F>
  void step(F&& f);
  // Writes what waits, and waits for room if the socket takes no more.
  Status flush();
  void begin(Handlers link_handlers);
  void read();
  Status receive(const ErrorCode& error, size_t count);
  // The same with TLS, when the socket may have bytes.
  Status receive_tls();
  Status take_input(size_t count);
  // As write_some(). REQUIRES: the lock is held
  Result<size_t> write(std::span<iovec> from);
  Status take(const Frame& frame);
  void wait_interval(Time end);
  Status end_interval();
  template <class Message>
  Status send_message(const Message& message);
  // Why it is not open, if that is so.
  Status failed() const;
  // Ends all that is under way, but for the socket; whether that was to do.
  bool end();
  void close();
  void lose(const Status& status);

  // Writes as much of the queue as the socket takes. REQUIRES: the lock is held
  Status write_queue();
  // Ends the link, and tells the io thread. REQUIRES: the lock is held
  Sent fail(Status status);

  IoThread& thread;
  const Options options;
  Handlers handlers;
  FrameInput input{Purpose::kSmall};
  Silence silence;
  uint32_t last_sequence = 0;  // at the end of the last interval
  bool is_over = false;
  bool is_gone = false;  // its owner has stopped it
  TrafficCount traffic;
  const std::shared_ptr<TlsSession> tls;  // null: without
  Stream stream;
  asio::steady_timer timer;

  mutable std::mutex mutex;
  // Guarded by the mutex, as is every use of the descriptor for writing.
  int descriptor = -1;
  bool is_open = false;
  bool is_flushing = false;    // the io thread will come to the queue
  bool is_over_limit = false;  // a sender was told to pause
  uint32_t sequence = 0;
  std::deque<std::string> queue;
  size_t written = 0;  // bytes of the queue's front
  size_t queued = 0;   // bytes of the queue that are not written
  Status failure;      // why it is not open
};

Sent SmallLink::State::send(std::string& frame) {
  const std::lock_guard lock(mutex);
  if (!is_open) return Sent::kLost;
  number_frame(frame, sequence++);
  traffic.send_frames(1);
  size_t count = 0;
  if (queue.empty()) {
    iovec whole = part(std::string_view(frame));
    const auto taken = write({&whole, 1});
    if (!taken.ok()) return fail(taken.status());
    count = *taken;
    traffic.send(count);
    if (count == frame.size()) return Sent::kWritten;
    written = count;
  }
  queued += frame.size() - count;
  if (queued > options.queue_limit * kMostLimits)
    return fail(lost(options.peer, "the peer does not read what it is sent"));
  const Status status = guarded("net|link", [&] {
    queue.push_back(std::move(frame));
    if (is_flushing) return;
    thread.post([self = shared_from_this()] {
      self->step([&] { return self->flush(); });
    });
    is_flushing = true;
  });
  if (!status.ok()) return fail(status);
  if (queued <= options.queue_limit) return Sent::kQueued;
  is_over_limit = true;
  return Sent::kOverLimit;
}

Result<size_t> SmallLink::State::write(std::span<iovec> from) {
  return write_some(tls.get(), descriptor, from, options.peer);
}

Sent SmallLink::State::fail(Status status) {
  is_open = false;
  failure = std::move(status);
  // If there is no memory for this, the end of the interval sees to it.
  static_cast<void>(guarded([&] {
    thread.post([self = shared_from_this()] { self->lose(self->failed()); });
  }));
  return Sent::kLost;
}

Status SmallLink::State::write_queue() {
  constexpr size_t kMostParts = 32;
  while (!queue.empty()) {
    std::array<iovec, kMostParts> parts;
    size_t count = 0;
    for (; count < std::min(kMostParts, queue.size()); ++count)
      parts[count] =
          part(std::string_view(queue[count]).substr(count == 0 ? written : 0));
    TAGFLOW_ASSIGN(size_t taken, write({parts.data(), count}));
    if (taken == 0) return {};
    traffic.send(taken);
    queued -= taken;
    written += taken;
    while (!queue.empty() && written >= queue.front().size()) {
      written -= queue.front().size();
      queue.pop_front();
    }
  }
  return {};
}

template <class F>
void SmallLink::State::step(F&& f) {
  if (is_over) return;
  const Status status = guarded("net|link", std::forward<F>(f));
  if (!status.ok()) lose(status);
}

Status SmallLink::State::flush() {
  {
    const std::lock_guard lock(mutex);
    if (!is_open) return {};
    TAGFLOW_RETURN_IF_ERROR(write_queue());
    if (!queue.empty()) {
      stream.async_wait(Stream::wait_write,
                        [self = shared_from_this()](const ErrorCode& error) {
                          if (!error) self->step([&] { return self->flush(); });
                        });
      return {};
    }
    is_flushing = false;
    if (!std::exchange(is_over_limit, false)) return {};
  }
  if (handlers.on_room) handlers.on_room();
  return {};
}

void SmallLink::State::begin(Handlers link_handlers) {
  handlers = std::move(link_handlers);
  if (is_gone) return;
  if (const Status status = failed(); !status.ok()) {
    is_over = false;  // it may have ended when nobody could be told
    return lose(status);
  }
  step([&] {
    wait_interval(std::chrono::steady_clock::now() + options.life.interval);
    // The hello may have left bytes in the session.
    if (tls) return receive_tls();
    read();
    return Status();
  });
}

void SmallLink::State::read() {
  if (tls) {
    stream.async_wait(Stream::wait_read,
                      [self = shared_from_this()](const ErrorCode& error) {
                        if (!error)
                          self->step([&] { return self->receive_tls(); });
                      });
    return;
  }
  const std::span<char> space = input.space();
  stream.async_read_some(
      asio::buffer(space.data(), space.size()),
      [self = shared_from_this()](const ErrorCode& error, size_t count) {
        self->step([&] { return self->receive(error, count); });
      });
}

Status SmallLink::State::receive(const ErrorCode& error, size_t count) {
  if (error == asio::error::eof)
    return lost(options.peer, "the peer closed the connection");
  if (error) return lost(options.peer, error.message());
  TAGFLOW_RETURN_IF_ERROR(take_input(count));
  if (!is_over) read();
  return {};
}

Status SmallLink::State::receive_tls() {
  do {
    iovec space = part(input.space());
    TAGFLOW_ASSIGN(const auto count, tls->read_some({&space, 1}, options.peer));
    if (!count) break;
    TAGFLOW_RETURN_IF_ERROR(take_input(*count));
    if (is_over) return {};
  } while (tls->has_unread());
  read();
  return {};
}

Status SmallLink::State::take_input(size_t count) {
  silence.hear();
  traffic.receive(count);
  input.add(count);
  while (true) {
    TAGFLOW_ASSIGN(const auto frame, input.next());
    if (!frame) break;
    traffic.receive_frames(1);
    TAGFLOW_RETURN_IF_ERROR(take(*frame));
    if (is_over) return {};
  }
  return {};
}

Status SmallLink::State::take(const Frame& frame) {
  TAGFLOW_ASSIGN(const bool is_taken, take_life_sign(
                                          frame, options.peer, traffic,
                                          [this](const auto& message) {
                                            return send_message(message);
                                          },
                                          [this](const Pong& pong) {
                                            if (handlers.on_pong)
                                              handlers.on_pong(pong);
                                          }));
  return is_taken ? Status() : handlers.on_frame(frame);
}

void SmallLink::State::wait_interval(Time end) {
  timer.expires_at(end);
  timer.async_wait([self = shared_from_this()](const ErrorCode& error) {
    if (!error) self->step([&] { return self->end_interval(); });
  });
}

Status SmallLink::State::end_interval() {
  TAGFLOW_RETURN_IF_ERROR(failed());
  uint32_t sent;
  {
    const std::lock_guard lock(mutex);
    sent = sequence;
  }
  TAGFLOW_RETURN_IF_ERROR(net::end_interval(
      silence, sent, last_sequence, options.peer, traffic,
      [this](const Ping& ping) { return send_message(ping); }));
  wait_interval(next_look(timer.expiry(), std::chrono::steady_clock::now(),
                          options.life.interval));
  return {};
}

template <class Message>
Status SmallLink::State::send_message(const Message& message) {
  TAGFLOW_ASSIGN(std::string frame, frame_of(message));
  return send(frame) == Sent::kLost ? failed() : Status();
}

Status SmallLink::State::failed() const {
  const std::lock_guard lock(mutex);
  return failure;
}

bool SmallLink::State::end() {
  if (std::exchange(is_over, true)) return false;
  ErrorCode ignored;
  timer.cancel(ignored);
  const std::lock_guard lock(mutex);
  is_open = false;
  queue.clear();
  queued = 0;
  return true;
}

void SmallLink::State::close() {
  ErrorCode ignored;
  stream.close(ignored);
}

void SmallLink::State::lose(const Status& status) {
  if (!end()) return;
  const Status cause = name_peer(status, options.peer);
  // First: a peer that sees the end of this link ends others, too, and theirs
  // is not the cause.
  if (handlers.on_lost)
    static_cast<void>(guarded([&] { handlers.on_lost(cause); }));
  reset_at_close(stream.native_handle());
  close();
}

SmallLink::SmallLink(IoThread& thread, Socket socket, Options options)
    : state_(std::make_shared<State>(thread, std::move(socket),
                                     std::move(options))) {}

SmallLink::~SmallLink() { stop(); }

void SmallLink::stop() {
  state_->thread.call([this] {
    state_->is_gone = true;
    if (state_->end()) state_->close();
    // Not now: this may be one of the handlers.
    state_->thread.post([state = state_] { state->handlers = {}; });
  });
}

void SmallLink::start(Handlers handlers) {
  state_->thread.post(
      [state = state_, handlers = std::move(handlers)]() mutable {
        state->begin(std::move(handlers));
      });
}

Sent SmallLink::send(std::string& frame) { return state_->send(frame); }

std::function<void(const Status&)> SmallLink::closer() const {
  return [state = state_](const Status& reason) {
    state->thread.post([state, reason] { state->lose(reason); });
  };
}

size_t SmallLink::queued() const {
  const std::lock_guard lock(state_->mutex);
  return state_->queued;
}

Traffic SmallLink::traffic() const {
  const std::lock_guard lock(state_->mutex);
  if (!state_->is_open) return {};
  Traffic traffic = state_->traffic.get();
  traffic.bytes_waiting = state_->queued;
  return traffic;
}

}  // namespace tagflow::net
