#include "net/link/bulk_link.h"

#include <sys/socket.h>

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <optional>

#include "graph/fault.h"
#include "net/link/life_signs.h"
#include "net/link/system_io.h"
#include "net/link/tls.h"
#include "net/protocol/life.h"

namespace tagflow::net {

namespace asio = boost::asio;
using ErrorCode = boost::system::error_code;
using Descriptor = asio::posix::stream_descriptor;

namespace {

// Reads or writes in a row: then the other direction has its turn.
constexpr int kTurn = 16;
// Messages that wait for a peer which does not read: most of them are Pongs.
constexpr size_t kMostWaiting = 4096;

ChunkSums sums_of(const Socket& socket) {
  return family_of(socket) == AF_UNIX || socket.tls() != nullptr
             ? ChunkSums::kWithoutBytes
             : ChunkSums::kAll;
}

}  // namespace

// What is not guarded belongs to the io thread. Handlers that wait in Asio own
// this, so that it outlives the link until they have gone.
struct BulkLink::State : std::enable_shared_from_this<State> {
  State(IoThread& io_thread, Socket socket, Options link_options);

  // Calls a step of the link; what goes wrong there loses it.
  template <class F>
  void step(F&& f);
  void begin(Handlers link_handlers);
  void wait_interval(Time end);
  Status end_interval();
  // Ends all that is under way, but for the socket; whether that was to do.
  bool end();
  void close();
  void lose(const Status& status);

  void wait_readable();
  Status read();
  Status take(const Frame& frame);

  void send(Object object);
  void cancel(ObjectId object, const Status& cause);
  template <class Message>
  Status send_message(const Message& message);
  void tell_sent(ObjectId object, const Status& status);
  void wake_writer();
  void wait_writable();
  Status write();

  IoThread& thread;
  const Options options;
  Handlers handlers;
  Silence silence;
  bool is_over = false;
  bool is_gone = false;  // its owner has stopped it
  TrafficCount traffic;
  Status failure;  // why it is over
  int descriptor = -1;
  const std::shared_ptr<TlsSession> tls;  // null: without
  Descriptor stream;
  asio::steady_timer timer;
  BulkInput input;
  BulkOutput output;
  uint32_t last_sequence = 0;  // at the end of the last interval
  bool is_writing = false;     // the writer will come, or waits for room
  std::atomic<bool> is_closed{false};  // for traffic(), of any thread
};

BulkLink::State::State(IoThread& io_thread, Socket socket, Options link_options)
    : thread(io_thread),
      options(std::move(link_options)),
      silence(options.life.most_silent),
      tls(socket.tls()),
      stream(thread.context()),
      timer(thread.context()),
      input({[this](const Begin& begin) { return handlers.on_begin(begin); },
             [this](ObjectId object, const Status& status) {
               if (handlers.on_end) handlers.on_end(object, status);
             },
             [this](const Frame& frame) { return take(frame); }},
            sums_of(socket)),
      output(sums_of(socket)) {
  failure = prepare_socket(socket);
  ErrorCode error;
  if (failure.ok()) stream.assign(socket.descriptor(), error);
  if (error) failure = lost(options.peer, error.message());
  if (failure.ok()) descriptor = socket.release();
}

template <class F>
void BulkLink::State::step(F&& f) {
  if (is_over) return;
  const Status status = guarded("net|link", std::forward<F>(f));
  if (!status.ok()) lose(status);
}

void BulkLink::State::begin(Handlers link_handlers) {
  handlers = std::move(link_handlers);
  if (is_gone) return;
  if (!failure.ok()) {
    is_over = false;  // it may have ended when nobody could be told
    return lose(failure);
  }
  wait_interval(std::chrono::steady_clock::now() + options.life.interval);
  // The hello may have left bytes in the session of TLS.
  step([this] { return read(); });
  wake_writer();
}

void BulkLink::State::wait_interval(Time end) {
  timer.expires_at(end);
  timer.async_wait([self = shared_from_this()](const ErrorCode& error) {
    if (!error) self->step([&] { return self->end_interval(); });
  });
}

Status BulkLink::State::end_interval() {
  TAGFLOW_RETURN_IF_ERROR(net::end_interval(
      silence, output.sequence(), last_sequence, options.peer, traffic,
      [this](const Ping& ping) { return send_message(ping); }));
  wait_interval(next_look(timer.expiry(), std::chrono::steady_clock::now(),
                          options.life.interval));
  return {};
}

bool BulkLink::State::end() {
  if (std::exchange(is_over, true)) return false;
  ErrorCode ignored;
  timer.cancel(ignored);
  is_closed = true;
  return true;
}

void BulkLink::State::close() {
  ErrorCode ignored;
  stream.close(ignored);
}

void BulkLink::State::lose(const Status& status) {
  if (!end()) return;
  const Status cause = name_peer(status, options.peer);
  failure = cause;
  const Status told = guarded("net|link", [&] {
    input.end_all(cause);
    for (ObjectId object : output.clear()) tell_sent(object, cause);
  });
  static_cast<void>(told);
  // Before the socket is closed, as in a SmallLink.
  if (!is_gone && handlers.on_lost)
    static_cast<void>(guarded([&] { handlers.on_lost(cause); }));
  reset_at_close(stream.native_handle());
  close();
}

void BulkLink::State::wait_readable() {
  stream.async_wait(Descriptor::wait_read,
                    [self = shared_from_this()](const ErrorCode& error) {
                      if (!error) self->step([&] { return self->read(); });
                    });
}

Status BulkLink::State::read() {
  for (int i = 0; i < kTurn; ++i) {
    TAGFLOW_ASSIGN(const auto count, read_some(tls.get(), descriptor,
                                               input.space(), options.peer));
    if (!count) {
      wait_readable();
      return {};
    }
    silence.hear();
    traffic.receive(*count);
    const uint32_t before = input.sequence();
    TAGFLOW_RETURN_IF_ERROR(input.add(*count));
    traffic.receive_frames(input.sequence() - before);
    if (is_over) return {};
  }
  thread.post([self = shared_from_this()] {
    self->step([&] { return self->read(); });
  });
  return {};
}

Status BulkLink::State::take(const Frame& frame) {
  TAGFLOW_ASSIGN(const bool is_taken, take_life_sign(
                                          frame, options.peer, traffic,
                                          [this](const auto& message) {
                                            return send_message(message);
                                          },
                                          [](const Pong&) {}));
  if (is_taken) return {};
  return error(Code::kDataLoss, "[net] a bulk link carries no {}",
               kind_name(frame.kind));
}

void BulkLink::State::send(Object object) {
  const ObjectId id = object.begin.object;
  const Status status = is_over ? failure : guarded("net|link", [&] {
    return output.push(std::move(object));
  });
  if (!status.ok()) return tell_sent(id, status);
  wake_writer();
}

void BulkLink::State::cancel(ObjectId object, const Status& cause) {
  step([&]() -> Status {
    TAGFLOW_ASSIGN(const bool was_there, output.cancel(object, cause));
    if (!was_there) return {};
    wake_writer();
    tell_sent(object, cause);
    return {};
  });
}

template <class Message>
Status BulkLink::State::send_message(const Message& message) {
  TAGFLOW_ASSIGN(std::string frame, frame_of(message));
  if (output.waiting() >= kMostWaiting)
    return lost(options.peer, "the peer does not read what it is sent");
  output.push(std::move(frame));
  wake_writer();
  return {};
}

void BulkLink::State::tell_sent(ObjectId object, const Status& status) {
  if (!is_gone && handlers.on_sent) handlers.on_sent(object, status);
}

void BulkLink::State::wake_writer() {
  if (std::exchange(is_writing, true)) return;
  thread.post([self = shared_from_this()] {
    self->step([&] { return self->write(); });
  });
}

void BulkLink::State::wait_writable() {
  stream.async_wait(Descriptor::wait_write,
                    [self = shared_from_this()](const ErrorCode& error) {
                      if (!error) self->step([&] { return self->write(); });
                    });
}

Status BulkLink::State::write() {
  for (int i = 0; i < kTurn; ++i) {
    const uint32_t before = output.sequence();
    TAGFLOW_ASSIGN(const std::span<iovec> parts, output.parts());
    traffic.send_frames(output.sequence() - before);
    if (parts.empty()) {
      is_writing = false;
      return {};
    }
    TAGFLOW_ASSIGN(const size_t count,
                   write_some(tls.get(), descriptor, parts, options.peer));
    if (count == 0) {
      wait_writable();
      return {};
    }
    traffic.send(count);
    if (const auto ended = output.add(count)) tell_sent(*ended, {});
    if (is_over) return {};
  }
  is_writing = false;
  wake_writer();
  return {};
}

BulkLink::BulkLink(IoThread& thread, Socket socket, Options options)
    : state_(std::make_shared<State>(thread, std::move(socket),
                                     std::move(options))) {}

BulkLink::~BulkLink() { stop(); }

void BulkLink::stop() {
  state_->thread.call([this] {
    state_->is_gone = true;
    if (state_->end()) state_->close();
    // The buffers of others go at once. Not the handlers: this may be one.
    state_->output.clear();
    state_->input.stop();
    state_->thread.post([state = state_] { state->handlers = {}; });
  });
}

void BulkLink::start(Handlers handlers) {
  state_->thread.post(
      [state = state_, handlers = std::move(handlers)]() mutable {
        state->begin(std::move(handlers));
      });
}

std::function<void(const Status&)> BulkLink::closer() const {
  return [state = state_](const Status& reason) {
    state->thread.post([state, reason] { state->lose(reason); });
  };
}

void BulkLink::send(Object object) {
  state_->thread.post([state = state_, object = std::move(object)]() mutable {
    static_cast<void>(guarded([&] { state->send(std::move(object)); }));
  });
}

void BulkLink::cancel(ObjectId object, Status cause) {
  state_->thread.post([state = state_, object, cause = std::move(cause)] {
    state->cancel(object, cause);
  });
}

void BulkLink::drop(ObjectId object) {
  state_->thread.post([state = state_, object] { state->input.drop(object); });
}

Traffic BulkLink::traffic() const {
  return state_->is_closed ? Traffic() : state_->traffic.get();
}

}  // namespace tagflow::net
