#include "net/link/bulk_link.h"

#include <doctest/doctest.h>

#include <cstring>
#include <map>
#include <random>
#include <thread>
#include <vector>

#include "tests/net/link/loopback.h"
#include "tests/net/wire/numbered.h"

namespace tagflow::net {
namespace {

using Bytes = std::shared_ptr<std::string>;

Bytes random_bytes(size_t size, uint64_t seed) {
  auto bytes = std::make_shared<std::string>(size, '\0');
  std::mt19937_64 random(seed);
  for (size_t i = 0; i + 8 <= size; i += 8) {
    const uint64_t word = random();
    std::memcpy(bytes->data() + i, &word, sizeof(word));
  }
  return bytes;
}

BulkLink::Object object_of(uint64_t id, const Bytes& bytes) {
  return {
      {ObjectId(id), ObjectKind::kRegister, bytes->size(), {}}, *bytes, bytes};
}

struct Ended {
  uint64_t object = 0;
  Status status;
};

// A link, and what became of its objects.
struct End {
  End(IoThread& thread, Socket socket, BulkLink::Options options = {})
      : link(std::make_unique<BulkLink>(thread, std::move(socket),
                                        std::move(options))) {
    BulkLink::Handlers handlers;
    handlers.on_begin =
        [this](const Begin& begin) -> Result<BulkLink::Destination> {
      const bool is_refused = refuses;
      begun.put(begin);
      if (is_refused) return error(Code::kResourceExhausted, "no");
      auto bytes = std::make_shared<std::string>(begin.bytes, '\0');
      {
        const std::lock_guard lock(mutex);
        objects[uint64_t(begin.object)] = bytes;
      }
      return BulkLink::Destination{*bytes, bytes};
    };
    handlers.on_end = [this](ObjectId object, const Status& status) {
      ended.put({uint64_t(object), status});
    };
    handlers.on_sent = [this](ObjectId object, const Status& status) {
      sent.put({uint64_t(object), status});
    };
    handlers.on_lost = [this](const Status& status) { losses.put(status); };
    link->start(std::move(handlers));
  }

  Bytes object(uint64_t id) {
    const std::lock_guard lock(mutex);
    return objects.at(id);
  }

  std::atomic<bool> refuses = false;
  std::mutex mutex;
  std::map<uint64_t, Bytes> objects;
  FrameInbox<Begin> begun;
  FrameInbox<Ended> ended, sent;
  FrameInbox<Status> losses;
  std::unique_ptr<BulkLink> link;
};

BulkLink::Options quiet() {
  BulkLink::Options options;
  options.life.interval = kNever;
  return options;
}

// Two links of one connection, on threads of their own.
struct Pair {
  explicit Pair(BulkLink::Options options = {},
                std::pair<Socket, Socket> (*connect)() = connected_sockets) {
    auto [first, second] = connect();
    a.emplace(*thread, std::move(first), options);
    b.emplace(*other, std::move(second), options);
  }
  std::unique_ptr<IoThread> thread = start_thread(), other = start_thread();
  std::optional<End> a, b;
};

TEST_CASE("an object of 64 MiB arrives in both directions at once") {
  over_each_kind_of_socket([](const auto& connect) {
    Pair pair({}, connect);
    const Bytes there = random_bytes(size_t{64} << 20, 1);
    const Bytes back = random_bytes((size_t{64} << 20) + 13, 2);
    pair.a->link->send(object_of(1, there));
    pair.b->link->send(object_of(1, back));
    CHECK(pair.b->ended.take().status.ok());
    CHECK(pair.a->ended.take().status.ok());
    CHECK((*pair.b->object(1) == *there));
    CHECK((*pair.a->object(1) == *back));
    CHECK(pair.a->sent.take().status.ok());
    CHECK(pair.b->sent.take().status.ok());
  });
}

TEST_CASE("objects of any size arrive, many at a time") {
  over_each_kind_of_socket([](const auto& connect) {
    constexpr size_t kChunk = BulkOutput::kChunkBytes;
    Pair pair({}, connect);
    std::vector<Bytes> all;
    for (size_t size :
         {size_t{0}, size_t{1}, size_t{31}, size_t{32}, size_t{33}, kChunk - 1,
          kChunk, kChunk + 1, 2 * kChunk, 3 * kChunk + 5, size_t{70'000}})
      for (int i = 0; i < 5; ++i)
        all.push_back(random_bytes(size, size + size_t(i)));
    for (uint64_t id = 0; id < all.size(); ++id) {
      pair.a->link->send(object_of(id, all[id]));
      pair.b->link->send(object_of(id, all[all.size() - 1 - id]));
    }
    for (size_t i = 0; i < all.size(); ++i) {
      const Ended at_b = pair.b->ended.take(), at_a = pair.a->ended.take();
      CHECK(at_b.status.ok());
      CHECK(at_a.status.ok());
      CHECK((*pair.b->object(at_b.object) == *all[at_b.object]));
      CHECK(
          (*pair.a->object(at_a.object) == *all[all.size() - 1 - at_a.object]));
      CHECK(pair.a->sent.take().status.ok());
      CHECK(pair.b->sent.take().status.ok());
    }
    CHECK(pair.a->ended.size() + pair.b->ended.size() == 0);
  });
}

TEST_CASE("a short object does not wait for a long one") {
  // Both are given to the link before it has a turn.
  Pair pair;
  pair.thread->call([&] {
    pair.a->link->send(object_of(1, random_bytes(size_t{32} << 20, 1)));
    pair.a->link->send(object_of(2, random_bytes(1000, 2)));
  });
  CHECK(pair.b->ended.take().object == 2);
  CHECK(pair.b->ended.take().object == 1);
}

TEST_CASE("a tensor's header comes before its elements") {
  Pair pair;
  const Tensor tensor = Tensor::of<float>({1, 2}, {1.5f, -2.f});
  const TensorInfo info = info_of(tensor);
  pair.a->link->send({{ObjectId(9), ObjectKind::kTensor, info.bytes, info},
                      {static_cast<const char*>(tensor.raw()), tensor.bytes()},
                      std::make_shared<Tensor>(tensor)});
  const Begin begin = pair.b->begun.take();
  CHECK(begin.kind == ObjectKind::kTensor);
  CHECK(begin.tensor.dtype == DataType::kFloat);
  CHECK(begin.tensor.shape == Shape{1, 2});
  CHECK(pair.b->ended.take().status.ok());
  CHECK(std::memcmp(pair.b->object(9)->data(), tensor.raw(), 8) == 0);
}

TEST_CASE("what a link has sent is released, and what it drops too") {
  Pair pair;
  const Bytes bytes = random_bytes(1 << 20, 1);
  pair.a->link->send(object_of(1, bytes));
  CHECK(pair.a->sent.take().status.ok());
  CHECK(pair.b->ended.take().status.ok());
  pair.thread->call([] {});
  CHECK(bytes.use_count() == 1);
  CHECK(pair.b->object(1).use_count() == 2);  // this one, and the map's
}

TEST_CASE("an object that is refused is skipped, and the next one arrives") {
  Pair pair;
  pair.b->refuses = true;
  pair.a->link->send(object_of(1, random_bytes(1'000'000, 1)));
  pair.b->begun.take();
  CHECK(pair.a->sent.take().status.ok());
  pair.b->refuses = false;
  pair.a->link->send(object_of(2, random_bytes(1000, 2)));
  const Ended ended = pair.b->ended.take();
  CHECK(ended.object == 2);
  CHECK(ended.status.ok());
  CHECK(pair.b->losses.size() == 0);
}

TEST_CASE("an object that is given up ends at its receiver with the cause") {
  auto [ours, theirs] = connected_sockets();
  const auto thread = start_thread(), other = start_thread();
  std::optional<End> sender(std::in_place, *thread, std::move(ours), quiet());
  sender->link->send(object_of(2, random_bytes(10, 2)));
  CHECK(sender->sent.take().object == 2);
  // Nobody reads yet, so that it begins, but not all of it can be sent.
  sender->link->send(object_of(1, random_bytes(size_t{64} << 20, 1)));
  for (int i = 0; i < 2; ++i) thread->call([] {});
  sender->link->cancel(ObjectId(1), error(Code::kAborted, "the step is over"));
  sender->link->cancel(ObjectId(7), error(Code::kAborted, "no such object"));
  const Ended given_up = sender->sent.take();
  CHECK(given_up.object == 1);
  CHECK(given_up.status.message() == "the step is over");
  End receiver(*other, std::move(theirs), quiet());
  CHECK(receiver.ended.take().object == 2);
  const Ended ended = receiver.ended.take();
  CHECK(ended.object == 1);
  CHECK(ended.status.code() == Code::kAborted);
  CHECK(ended.status.message() == "the step is over");
  sender->link->send(object_of(3, random_bytes(10, 3)));
  CHECK(receiver.ended.take().object == 3);
}

TEST_CASE("an object that is dropped is released, and the link goes on") {
  auto [ours, theirs] = connected_sockets();
  const auto thread = start_thread();
  End end(*thread, std::move(theirs), quiet());
  const Begin begin{ObjectId(1), ObjectKind::kRegister, 100, {}};
  CHECK(write_all(ours, numbered(begin, 0) + numbered(Chunk{ObjectId(1), 0}, 1,
                                                      std::string(40, 'x'))));
  end.begun.take();
  end.link->drop(ObjectId(1));
  end.link->drop(ObjectId(2));
  thread->call([] {});
  CHECK(end.object(1).use_count() == 2);
  CHECK(write_all(
      ours, numbered(Chunk{ObjectId(1), 40}, 2, std::string(60, 'x')) +
                numbered(Begin{ObjectId(1), ObjectKind::kRegister, 1, {}}, 3) +
                numbered(Chunk{ObjectId(1), 0}, 4, "y")));
  CHECK(end.ended.take().status.ok());
  CHECK(*end.object(1) == "y");
  CHECK(end.ended.size() == 0);
}

// The error by which a link is lost that receives these bytes, and how an
// object ended that had begun before.
struct Loss {
  Status link;
  std::optional<Status> object;
};
Loss loss_by(std::string_view bytes, bool closes = false) {
  const auto thread = start_thread();
  auto [ours, theirs] = connected_sockets();
  BulkLink::Options options = quiet();
  options.peer = "/job:w/task:1";
  End end(*thread, std::move(theirs), options);
  CHECK(write_all(ours, bytes));
  if (closes) ours = Socket();
  Loss loss{end.losses.take(), {}};
  if (end.ended.size() > 0) loss.object = end.ended.take().status;
  // Who sends later learns why it is in vain.
  end.link->send(object_of(5, random_bytes(10, 1)));
  CHECK(end.sent.take().status.message() == loss.link.message());
  return loss;
}

std::string began(uint64_t bytes) {
  return numbered(Begin{ObjectId(1), ObjectKind::kRegister, bytes, {}}, 0);
}
std::string chunk(uint64_t offset, std::string_view bytes, uint32_t number = 1,
                  uint64_t object = 1) {
  return numbered(Chunk{ObjectId(object), offset}, number, bytes);
}

TEST_CASE("chunks that do not fit their object lose the link, by name") {
  const auto error_of = [](std::string_view bytes) {
    const Loss loss = loss_by(bytes);
    CHECK(loss.link.code() == Code::kDataLoss);
    REQUIRE(loss.object);
    CHECK(loss.object->message() == loss.link.message());
    return std::string(loss.link.message());
  };
  CHECK(error_of(began(10) + chunk(0, "x", 1, 2)) ==
        "/job:w/task:1: [net|Chunk] object 2: it has not begun");
  CHECK(error_of(began(10) + chunk(1, "x")) ==
        "/job:w/task:1: [net|Chunk] object 1: byte 1 comes instead of byte 0");
  CHECK(error_of(began(10) + chunk(0, "")) ==
        "/job:w/task:1: [net|Chunk] object 1: a chunk is empty");
  CHECK(error_of(began(10) + chunk(0, "12345678901")) ==
        "/job:w/task:1: [net|Chunk] object 1: it has more than 10 bytes");
  CHECK(error_of(began(10) + began(10)).ends_with("its number is 0"));
  CHECK(error_of(
            began(10) +
            numbered(Begin{ObjectId(1), ObjectKind::kRegister, 10, {}}, 1)) ==
        "/job:w/task:1: [net|Begin] object 1: it has begun already");
}

TEST_CASE("what breaks the format of a bulk link loses it, by name") {
  const std::string good = chunk(0, "12345");
  for (size_t at = 0; at < good.size(); ++at) {
    std::string bytes = good;
    bytes[at] = char(bytes[at] ^ 0x40);
    CAPTURE(at);
    // A length that grew may want bytes that never come.
    const Loss loss = loss_by(began(10) + bytes, at == 4 || at == 5);
    CHECK_FALSE(loss.link.ok());
    CHECK((loss.object && !loss.object->ok()));
  }
  CHECK(mentions(loss_by("garbage garbage garbage garbage ").link,
                 "its kind is 103, which this link does not carry"));
  CHECK(mentions(loss_by(numbered(Credit{5}, 0)).link, "its kind is 6"));
  CHECK(mentions(loss_by(numbered(Bye{"enough"}, 0)).link,
                 "the peer leaves: enough"));
  const std::string name(100'000, 'x');
  CHECK(mentions(loss_by(numbered(Cancel{}, 0, name)).link,
                 "Cancel of 100007 bytes is too long"));
  CHECK(mentions(loss_by(numbered(Begin{}, 0, "")).link, "[net|Begin]"));
}

TEST_CASE("a peer that closes in the middle of an object is lost") {
  const std::string all = began(20) + chunk(0, "1234567890");
  for (size_t bytes = 0; bytes <= all.size(); bytes += 3) {
    const Loss loss = loss_by(std::string_view(all).substr(0, bytes), true);
    CHECK(loss.link.message() ==
          "[net|link] /job:w/task:1: the peer closed the connection");
    CHECK(bool(loss.object) == (bytes >= began(20).size()));
  }
}

TEST_CASE("a silent peer of a bulk link is lost, also in an object") {
  BulkLink::Options options;
  options.life = {std::chrono::milliseconds(20), 3};
  const auto thread = start_thread();
  auto [ours, theirs] = connected_sockets();
  End end(*thread, std::move(theirs), options);
  CHECK(write_all(ours, began(10)));
  // Far more than the socket takes: the peer does not read.
  end.link->send(object_of(3, random_bytes(size_t{64} << 20, 1)));
  CHECK(mentions(end.losses.take(), "the peer is silent"));
  CHECK(mentions(end.ended.take().status, "the peer is silent"));
  CHECK(mentions(end.sent.take().status, "the peer is silent"));
  // It learns it now, and not when it has read all that.
  CHECK(is_reset(ours));
}

TEST_CASE("a peer that pings and never reads loses the bulk link") {
  BulkLink::Options options;
  options.life = {kNever, 100};
  const auto thread = start_thread();
  auto [ours, theirs] = connected_sockets();
  End end(*thread, std::move(theirs), options);
  bool is_taken = true;
  for (uint32_t number = 0; is_taken;) {
    std::string frames;
    for (int i = 0; i < 1000; ++i, ++number)
      frames += numbered(Ping{number, 0}, number);
    is_taken = write_all(ours, frames);
  }
  CHECK(mentions(end.losses.take(), "the peer does not read what it is sent"));
}

TEST_CASE("an idle bulk link pings and answers pings") {
  BulkLink::Options options;
  options.life = {std::chrono::milliseconds(20 * kSlowness), 100};
  const auto thread = start_thread();
  auto [ours, theirs] = connected_sockets();
  End end(*thread, std::move(theirs), options);
  const std::string ping = read_exactly(ours, numbered(Ping{}, 0).size());
  CHECK(FrameKind(ping[0]) == FrameKind::kPing);
  CHECK(write_all(ours, numbered(Ping{77, 88}, 0)));
  const auto answer = read_pong(ours);
  REQUIRE(answer.ok());
  CHECK(answer->nonce == 77);
}

TEST_CASE("a bulk link that was lost before it is started says so") {
  const auto thread = start_thread();
  End end(*thread, Socket());
  CHECK(mentions(end.losses.take(), "the socket is of no use"));

  auto [ours, theirs] = connected_sockets();
  BulkLink link(*thread, std::move(theirs), quiet());
  ours = Socket();
  link.send(object_of(1, random_bytes(size_t{16} << 20, 1)));
  for (int i = 0; i < 20; ++i) thread->call([] {});
  FrameInbox<Status> losses;
  BulkLink::Handlers handlers;
  handlers.on_lost = [&](const Status& status) { losses.put(status); };
  link.start(handlers);
  CHECK(losses.take().code() == Code::kUnavailable);
}

TEST_CASE("an object that cannot be sent is answered, and the link goes on") {
  Pair pair;
  BulkLink::Object object = object_of(1, random_bytes(8, 1));
  object.begin.kind = ObjectKind::kTensor;
  object.begin.tensor = {DataType::kResource, {1}, 8};
  pair.a->link->send(object);
  CHECK(pair.a->sent.take().status.code() == Code::kUnimplemented);
  pair.a->link->send(object_of(2, random_bytes(8, 1)));
  CHECK(pair.b->ended.take().object == 2);
}

TEST_CASE("too many objects at a time lose the link") {
  std::string bytes;
  for (uint32_t i = 0; i <= BulkInput::kMostObjects; ++i)
    bytes += numbered(Begin{ObjectId(i), ObjectKind::kRegister, 1, {}}, i);
  CHECK(mentions(loss_by(bytes).link, "too many come at a time"));
}

TEST_CASE("a bulk link may be destroyed in the middle of objects") {
  for (int i = 0; i < 20; ++i) {
    Pair pair;
    const Bytes bytes = random_bytes(size_t{16} << 20, 1);
    for (uint64_t id = 0; id < 3; ++id) {
      pair.a->link->send(object_of(id, bytes));
      pair.b->link->send(object_of(id, bytes));
    }
    pair.b->begun.take();
    std::thread other([&] { pair.a->link.reset(); });
    if (i % 2 == 0) {
      pair.b->link.reset();
      const size_t ended = pair.b->ended.size(), lost = pair.b->losses.size();
      other.join();
      CHECK(pair.b->ended.size() == ended);
      CHECK(pair.b->losses.size() == lost);
      CHECK(bytes.use_count() == 1);
    } else {
      other.join();
    }
  }
}

TEST_CASE("a handler may destroy its own bulk link") {
  for (int which = 0; which < 3; ++which) {
    const auto thread = start_thread();
    auto [ours, theirs] = connected_sockets();
    auto link = std::make_unique<BulkLink>(*thread, std::move(theirs), quiet());
    FrameInbox<int> done;
    const auto end = [&](int where) {
      if (which != where) return;
      link.reset();
      done.put(where);
    };
    BulkLink::Handlers handlers;
    handlers.on_begin =
        [&](const Begin& begin) -> Result<BulkLink::Destination> {
      end(0);
      auto bytes = std::make_shared<std::string>(begin.bytes, '\0');
      return BulkLink::Destination{*bytes, bytes};
    };
    handlers.on_end = [&](ObjectId, const Status&) { end(1); };
    handlers.on_sent = [&](ObjectId, const Status&) { end(2); };
    link->start(handlers);
    if (which == 2) {
      link->send(object_of(1, random_bytes(10, 1)));
    } else {
      CHECK(write_all(
          ours,
          began(5) + chunk(0, "12345") +
              numbered(Begin{ObjectId(2), ObjectKind::kRegister, 9, {}}, 2)));
    }
    CHECK(done.take() == which);
    thread->call([] {});
    CHECK(done.size() == 0);
    read_to_end(ours);
  }
}

}  // namespace
}  // namespace tagflow::net
