#include "net/link/bulk_link.h"

#include <algorithm>
#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <optional>
#include <unordered_map>
#include <vector>

#include "graph/fault.h"
#include "net/link/clock.h"
#include "net/link/system_io.h"

namespace tagflow::net {

namespace asio = boost::asio;
using ErrorCode = boost::system::error_code;
using Descriptor = asio::posix::stream_descriptor;

namespace {

constexpr size_t kChunkHead = kFrameHeader + Chunk::kFields;
// Room for every frame but chunks.
constexpr size_t kStageBytes = size_t{64} << 10;
// Reads or writes in a row: then the other direction has its turn.
constexpr int kTurn = 16;

Outcome outcome_of(const Status& status) {
  return {status.code(), std::string(status.message()), {}, {}, {}, {}};
}

Status status_of(const Outcome& cause) {
  const Code code = cause.code == Code::kOk ? Code::kCancelled : cause.code;
  return Status(code, cause.message);
}

}  // namespace

// All of it belongs to the io thread. Handlers that wait in Asio own this, so
// that it outlives the link until they have gone.
struct BulkLink::State : std::enable_shared_from_this<State> {
  struct Incoming {
    uint64_t bytes = 0;  // of the whole object
    uint64_t got = 0;
    Destination to;
    bool is_dropped = false;
  };
  struct Outgoing {
    Object object;
    uint64_t sent = 0;
    bool has_begun = false;
  };
  // The frame that is being written.
  struct Output {
    std::string head;
    std::string_view body;  // of a chunk, behind the head
    std::shared_ptr<const void> owner;
    std::optional<ObjectId> ends;  // the object whose last frame it is
    size_t written = 0;
    size_t size() const { return head.size() + body.size(); }
  };

  State(IoThread& io_thread, Socket socket, Options link_options)
      : thread(io_thread),
        options(std::move(link_options)),
        silence(options.life.most_silent),
        stream(thread.context()),
        timer(thread.context()),
        stage(kStageBytes, '\0') {
    failure = prepare_socket(socket);
    ErrorCode error;
    if (failure.ok()) stream.assign(socket.descriptor(), error);
    if (error) failure = lost(options.peer, error.message());
    if (failure.ok()) descriptor = socket.release();
  }

  // Calls a step of the link; what goes wrong there loses it.
  template <class F>
  void step(F&& f);
  void begin(Handlers link_handlers);
  void wait_interval();
  Status end_interval();
  // Closes the socket; whether that was still to do.
  bool end();
  void lose(const Status& status);

  // Receiving.
  void wait_readable();
  Status receive();
  Result<bool> read_once();
  Status take_chunk_bytes(size_t count);
  Status take_staged();
  Status begin_chunk(const FrameHeader& header, std::string_view head);
  Status end_chunk();
  Status take(FrameKind kind, std::string_view body);
  Status take_begin(const Begin& begin);
  void end_incoming(ObjectId object, const Status& status);
  // Where the next bytes of the chunk go.
  std::span<char> chunk_space();

  // Sending.
  void send(Object object);
  void cancel(ObjectId object, const Status& cause);
  template <class Message>
  Status send_message(const Message& message);
  void wake_writer();
  void wait_writable();
  Status write();
  // Makes the next frame the output; whether there is one.
  Result<bool> next_output();
  Status next_chunk();
  void end_outgoing(ObjectId object, const Status& status);

  IoThread& thread;
  const Options options;
  Handlers handlers;
  Silence silence;
  bool is_over = false;
  bool is_gone = false;  // its owner has destroyed the link
  Status failure;        // why it is over
  int descriptor = -1;
  Descriptor stream;
  asio::steady_timer timer;

  std::string stage;       // bytes that were read, but are not of a chunk
  size_t stage_begin = 0;  // of what was not taken out
  size_t stage_end = 0;
  size_t wanted = kChunkHead;  // bytes to have in the stage next
  uint32_t sequence_in = 0;
  std::unordered_map<uint64_t, Incoming> incoming;
  // The chunk whose bytes are being read: chunk_left > 0.
  size_t chunk_left = 0;
  uint64_t chunk_object = 0;
  FrameHeader chunk_header{};
  uint32_t chunk_checksum = 0;
  std::vector<char> waste;  // takes what is dropped

  uint32_t sequence_out = 0;
  uint32_t last_sequence = 0;  // at the end of the last interval
  std::deque<std::string> frames;
  std::deque<Outgoing> outgoing;
  std::optional<Output> output;
  bool is_writing = false;  // the writer will come, or waits for room
};

template <class F>
void BulkLink::State::step(F&& f) {
  if (is_over) return;
  const Status status = guarded("net|link", std::forward<F>(f));
  if (!status.ok()) lose(status);
}

void BulkLink::State::begin(Handlers link_handlers) {
  handlers = std::move(link_handlers);
  if (is_gone) return;
  if (!failure.ok()) return lose(failure);
  wait_interval();
  wait_readable();
  wake_writer();
}

void BulkLink::State::wait_interval() {
  timer.expires_after(options.life.interval);
  timer.async_wait([self = shared_from_this()](const ErrorCode& error) {
    if (!error) self->step([&] { return self->end_interval(); });
  });
}

Status BulkLink::State::end_interval() {
  const bool has_sent =
      sequence_out != std::exchange(last_sequence, sequence_out);
  switch (silence.end_interval(has_sent)) {
    case Silence::Action::kGiveUp:
      return lost(options.peer, "the peer is silent");
    case Silence::Action::kPing:
      TAGFLOW_RETURN_IF_ERROR(send_message(Ping{sequence_out, clock_ns()}));
      break;
    case Silence::Action::kNothing:
      break;
  }
  wait_interval();
  return {};
}

bool BulkLink::State::end() {
  if (std::exchange(is_over, true)) return false;
  ErrorCode ignored;
  timer.cancel(ignored);
  stream.close(ignored);
  return true;
}

void BulkLink::State::lose(const Status& status) {
  const Status cause = name_peer(status, options.peer);
  if (!end()) return;
  failure = cause;
  output.reset();
  frames.clear();
  const Status told = guarded("net|link", [&] {
    while (!incoming.empty() && !is_gone)
      end_incoming(ObjectId(incoming.begin()->first), cause);
    while (!outgoing.empty() && !is_gone)
      end_outgoing(outgoing.front().object.begin.object, cause);
  });
  static_cast<void>(told);
  if (!is_gone && handlers.on_lost)
    static_cast<void>(guarded([&] { handlers.on_lost(cause); }));
}

void BulkLink::State::wait_readable() {
  stream.async_wait(Descriptor::wait_read,
                    [self = shared_from_this()](const ErrorCode& error) {
                      if (!error) self->step([&] { return self->receive(); });
                    });
}

Status BulkLink::State::receive() {
  for (int i = 0; i < kTurn; ++i) {
    TAGFLOW_ASSIGN(const bool has_read, read_once());
    if (is_over) return {};
    if (!has_read) {
      wait_readable();
      return {};
    }
  }
  thread.post([self = shared_from_this()] {
    self->step([&] { return self->receive(); });
  });
  return {};
}

std::span<char> BulkLink::State::chunk_space() {
  Incoming& object = incoming.find(chunk_object)->second;
  if (!object.is_dropped)
    return object.to.bytes.subspan(object.got, chunk_left);
  waste.resize(std::min(chunk_left, kStageBytes));
  return waste;
}

Result<bool> BulkLink::State::read_once() {
  // Behind a chunk comes at most the head of the next one: what else is read
  // here is copied from the stage.
  std::copy(stage.begin() + ptrdiff_t(stage_begin),
            stage.begin() + ptrdiff_t(stage_end), stage.begin());
  stage_end -= std::exchange(stage_begin, 0);
  std::array<iovec, 2> parts;
  size_t count = 0, room = 0;
  if (chunk_left > 0) {
    const std::span<char> space = chunk_space();
    parts[count++] = part(space);
    room = space.size();
  }
  if (chunk_left == room)
    parts[count++] =
        part(std::span(stage).subspan(stage_end, wanted - stage_end));
  TAGFLOW_ASSIGN(const auto got,
                 read_some(descriptor, {parts.data(), count}, options.peer));
  if (!got) return false;
  silence.hear();
  const size_t of_chunk = std::min(*got, room);
  stage_end += *got - of_chunk;
  if (of_chunk > 0) TAGFLOW_RETURN_IF_ERROR(take_chunk_bytes(of_chunk));
  if (chunk_left == 0 && !is_over) TAGFLOW_RETURN_IF_ERROR(take_staged());
  return true;
}

Status BulkLink::State::take_chunk_bytes(size_t count) {
  const std::span<char> space = chunk_space();
  chunk_checksum = extend_checksum(chunk_checksum, {space.data(), count});
  incoming.find(chunk_object)->second.got += count;
  chunk_left -= count;
  return chunk_left > 0 ? Status() : end_chunk();
}

Status BulkLink::State::end_chunk() {
  TAGFLOW_RETURN_IF_ERROR(check_checksum(chunk_header, chunk_checksum));
  const Incoming& object = incoming.find(chunk_object)->second;
  if (object.got == object.bytes) end_incoming(ObjectId(chunk_object), {});
  return {};
}

// Takes whole frames out of the stage, up to one that is not whole, or to the
// bytes of a chunk.
Status BulkLink::State::take_staged() {
  while (chunk_left == 0 && !is_over) {
    const std::string_view bytes(stage.data() + stage_begin,
                                 stage_end - stage_begin);
    wanted = kChunkHead;
    if (bytes.size() < kFrameHeader) break;
    const std::string_view head = bytes.substr(0, kFrameHeader);
    TAGFLOW_ASSIGN(const FrameHeader header,
                   read_frame_header(head, Purpose::kBulk, sequence_in));
    if (header.kind == FrameKind::kChunk) {
      if (bytes.size() < kChunkHead) break;
      ++sequence_in;
      stage_begin += kChunkHead;
      TAGFLOW_RETURN_IF_ERROR(begin_chunk(header, bytes));
      continue;
    }
    wanted = kFrameHeader + header.length;
    if (wanted > kStageBytes)
      return error(Code::kDataLoss,
                   "[net|frame] frame {}: {} of {} bytes is too long",
                   sequence_in, kind_name(header.kind), header.length);
    if (bytes.size() < wanted) break;
    const std::string_view body = bytes.substr(kFrameHeader, header.length);
    TAGFLOW_RETURN_IF_ERROR(
        check_checksum(header, extend_checksum(header_checksum(head), body)));
    ++sequence_in;
    stage_begin += wanted;
    TAGFLOW_RETURN_IF_ERROR(take(header.kind, body));
  }
  return {};
}

// `bytes` begin with the head of a chunk, behind which there may be more.
Status BulkLink::State::begin_chunk(const FrameHeader& header,
                                    std::string_view bytes) {
  Reader reader(bytes.substr(kFrameHeader, Chunk::kFields), "Chunk");
  const Chunk chunk = Chunk::read(reader);
  const auto found = incoming.find(uint64_t(chunk.object));
  const auto wrong = [&](std::string_view what) {
    return error(Code::kDataLoss, "[net|Chunk] object {}: {}",
                 uint64_t(chunk.object), what);
  };
  if (found == incoming.end()) return wrong("it has not begun");
  const Incoming& object = found->second;
  if (chunk.offset != object.got)
    return wrong(fmt::format("byte {} comes instead of byte {}", chunk.offset,
                             object.got));
  if (header.length <= Chunk::kFields) return wrong("a chunk is empty");
  chunk_left = header.length - Chunk::kFields;
  if (chunk_left > object.bytes - object.got) {
    chunk_left = 0;
    return wrong(fmt::format("it has more than {} bytes", object.bytes));
  }
  chunk_object = uint64_t(chunk.object);
  chunk_header = header;
  chunk_checksum =
      extend_checksum(header_checksum(bytes.substr(0, kFrameHeader)),
                      bytes.substr(kFrameHeader, Chunk::kFields));
  // What the stage has of its bytes.
  while (chunk_left > 0 && stage_begin < stage_end) {
    const std::span<char> space = chunk_space();
    const size_t count = std::min(space.size(), stage_end - stage_begin);
    std::copy_n(stage.data() + stage_begin, count, space.data());
    stage_begin += count;
    TAGFLOW_RETURN_IF_ERROR(take_chunk_bytes(count));
  }
  return {};
}

Status BulkLink::State::take(FrameKind kind, std::string_view body) {
  switch (kind) {
    case FrameKind::kPing: {
      TAGFLOW_ASSIGN(const Ping ping, parse_body<Ping>(body));
      return send_message(Pong{ping.nonce, ping.time_ns, clock_ns()});
    }
    case FrameKind::kPong:
      return parse_body<Pong>(body).status();
    case FrameKind::kBegin: {
      TAGFLOW_ASSIGN(const Begin begin, parse_body<Begin>(body));
      return take_begin(begin);
    }
    case FrameKind::kCancel: {
      TAGFLOW_ASSIGN(const Cancel cancel, parse_body<Cancel>(body));
      if (incoming.contains(uint64_t(cancel.object)))
        end_incoming(cancel.object, status_of(cancel.cause));
      return {};
    }
    case FrameKind::kBye: {
      TAGFLOW_ASSIGN(const Bye bye, parse_body<Bye>(body));
      return lost(options.peer, "the peer leaves: " + bye.reason);
    }
    default:
      return error(Code::kInternal, "[net|link] {} came", kind_name(kind));
  }
}

Status BulkLink::State::take_begin(const Begin& begin) {
  const auto id = uint64_t(begin.object);
  if (incoming.size() >= kMostIncoming || incoming.contains(id))
    return error(Code::kDataLoss, "[net|Begin] object {}: {}", id,
                 incoming.contains(id) ? "it has begun already"
                                       : "too many come at a time");
  Result<Destination> to = handlers.on_begin(begin);
  if (is_over) return {};
  Incoming object;
  object.bytes = begin.bytes;
  if (to.ok()) {
    object.to = std::move(*to);
    if (object.to.bytes.size() != begin.bytes)
      return error(Code::kInternal, "[net|link] {} bytes for object {} of {}",
                   object.to.bytes.size(), id, begin.bytes);
  } else {
    object.is_dropped = true;
  }
  incoming.emplace(id, std::move(object));
  if (begin.bytes == 0) end_incoming(begin.object, {});
  return {};
}

void BulkLink::State::end_incoming(ObjectId object, const Status& status) {
  // Its owner goes first: then the receiver is the only one that has the
  // buffer.
  const bool is_dropped =
      incoming.extract(uint64_t(object)).mapped().is_dropped;
  if (!is_dropped && !is_gone && handlers.on_end)
    handlers.on_end(object, status);
}

void BulkLink::State::send(Object object) {
  const ObjectId id = object.begin.object;
  outgoing.push_back({std::move(object)});
  if (is_over) return end_outgoing(id, failure);
  wake_writer();
}

void BulkLink::State::cancel(ObjectId object, const Status& cause) {
  const auto found = std::ranges::find(outgoing, object, [](const Outgoing& o) {
    return o.object.begin.object;
  });
  if (found == outgoing.end() || is_over) return;
  if (output && output->ends == object) return;  // the last frame is under way
  const bool has_begun = found->has_begun;
  end_outgoing(object, cause);
  if (!has_begun || is_over) return;
  step([&] { return send_message(Cancel{object, outcome_of(cause)}); });
}

void BulkLink::State::end_outgoing(ObjectId object, const Status& status) {
  const auto found = std::ranges::find(outgoing, object, [](const Outgoing& o) {
    return o.object.begin.object;
  });
  outgoing.erase(found);
  if (!is_gone && handlers.on_sent) handlers.on_sent(object, status);
}

template <class Message>
Status BulkLink::State::send_message(const Message& message) {
  TAGFLOW_ASSIGN(std::string frame, frame_of(message));
  frames.push_back(std::move(frame));
  wake_writer();
  return {};
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
    if (!output) {
      TAGFLOW_ASSIGN(const bool has_output, next_output());
      if (!has_output) {
        is_writing = false;
        return {};
      }
    }
    const size_t of_head = std::min(output->written, output->head.size());
    const size_t of_body = output->written - of_head;
    std::array<iovec, 2> parts = {
        part(std::string_view(output->head).substr(of_head)),
        part(output->body.substr(of_body))};
    TAGFLOW_ASSIGN(const size_t count,
                   write_some(descriptor, parts, options.peer));
    if (count == 0) {
      wait_writable();
      return {};
    }
    output->written += count;
    if (output->written < output->size()) continue;
    const std::optional<ObjectId> ended = output->ends;
    output.reset();
    if (ended) end_outgoing(*ended, {});
    if (is_over) return {};
  }
  is_writing = false;
  wake_writer();
  return {};
}

Result<bool> BulkLink::State::next_output() {
  if (!frames.empty()) {
    output.emplace();
    output->head = std::move(frames.front());
    frames.pop_front();
  } else if (!outgoing.empty()) {
    output.emplace();
    TAGFLOW_RETURN_IF_ERROR(next_chunk());
  } else {
    return false;
  }
  number_frame(output->head, sequence_out++, output->body);
  return true;
}

// The next frame of the object whose turn it is.
Status BulkLink::State::next_chunk() {
  Outgoing& next = outgoing.front();
  const ObjectId id = next.object.begin.object;
  if (!next.has_begun) {
    next.has_begun = true;
    TAGFLOW_ASSIGN(output->head, frame_of(next.object.begin));
  } else {
    const auto bytes = next.object.bytes.substr(next.sent, kChunkBytes);
    Writer head(kFrameHeader);
    Chunk{id, next.sent}.write(head);
    TAGFLOW_RETURN_IF_ERROR(
        begin_frame(FrameKind::kChunk, head.bytes(), bytes.size()));
    output->head = std::move(head.bytes());
    output->body = bytes;
    output->owner = next.object.owner;
    next.sent += bytes.size();
  }
  if (next.sent == next.object.bytes.size()) {
    output->ends = id;
  } else if (outgoing.size() > 1) {
    outgoing.push_back(std::move(next));
    outgoing.pop_front();
  }
  return {};
}

BulkLink::BulkLink(IoThread& thread, Socket socket, Options options)
    : state_(std::make_shared<State>(thread, std::move(socket),
                                     std::move(options))) {}

BulkLink::~BulkLink() {
  state_->thread.call([this] {
    state_->is_gone = true;
    state_->end();
    // Not now: this may be one of the handlers. The buffers of others go at
    // once.
    state_->output.reset();
    state_->outgoing.clear();
    state_->incoming.clear();
    state_->thread.post([state = state_] { state->handlers = {}; });
  });
}

void BulkLink::start(Handlers handlers) {
  state_->thread.post(
      [state = state_, handlers = std::move(handlers)]() mutable {
        state->begin(std::move(handlers));
      });
}

void BulkLink::send(Object object) {
  state_->thread.post([state = state_, object = std::move(object)]() mutable {
    static_cast<void>(guarded([&] { state->send(std::move(object)); }));
  });
}

void BulkLink::cancel(ObjectId object, Status cause) {
  state_->thread.post([state = state_, object, cause = std::move(cause)] {
    static_cast<void>(guarded([&] { state->cancel(object, cause); }));
  });
}

void BulkLink::drop(ObjectId object) {
  state_->thread.post([state = state_, object] {
    const auto found = state->incoming.find(uint64_t(object));
    if (found == state->incoming.end()) return;
    found->second.is_dropped = true;
    found->second.to = {};
  });
}

}  // namespace tagflow::net
