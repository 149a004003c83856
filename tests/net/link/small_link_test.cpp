#include "net/link/small_link.h"

#include <doctest/doctest.h>

#include <thread>
#include <vector>

#include "net/wire/messages.h"
#include "tests/failing_new.h"
#include "tests/net/link/loopback.h"
#include "tests/net/wire/numbered.h"

namespace tagflow::net {
namespace {

// A link, and what it received.
struct End {
  explicit End(IoThread& thread, Socket socket, SmallLink::Options options = {})
      : link(std::make_unique<SmallLink>(thread, std::move(socket),
                                         std::move(options))) {
    SmallLink::Handlers handlers;
    handlers.on_frame = [this](const Frame& frame) {
      bodies.put(std::string(frame.body));
      return Status();
    };
    handlers.on_lost = [this](const Status& status) { losses.put(status); };
    handlers.on_room = [this] { rooms.put(true); };
    link->start(std::move(handlers));
  }

  Sent send(const Credit& credit) const {
    auto frame = frame_of(credit);
    return link->send(*frame);
  }

  FrameInbox<std::string> bodies;
  FrameInbox<Status> losses;
  FrameInbox<bool> rooms;
  std::unique_ptr<SmallLink> link;
};

uint64_t bytes_of(const std::string& body) {
  return parse_body<Credit>(body)->bytes;
}

// Nothing is pinged while a test looks at other frames.
SmallLink::Options quiet() {
  SmallLink::Options options;
  options.life.interval = kNever;
  return options;
}

// The error by which a link is lost that receives these bytes.
Status loss_by(std::string_view bytes, bool closes = false) {
  const auto thread = start_thread();
  auto [ours, theirs] = connected_sockets();
  SmallLink::Options options = quiet();
  options.peer = "/job:w/task:1";
  End end(*thread, std::move(theirs), options);
  CHECK(write_all(ours, bytes));
  if (closes) ours = Socket();
  Status status = end.losses.take();
  CHECK(end.send({1}) == Sent::kLost);
  return status;
}

TEST_CASE("frames arrive in order, both ways, of many threads at once") {
  over_each_kind_of_socket([](const auto& connect) {
    constexpr int kThreads = 4, kFrames = 2000;
    const auto thread = start_thread(), other = start_thread();
    auto [first, second] = connect();
    End a(*thread, std::move(first)), b(*other, std::move(second));
    std::vector<std::thread> senders;
    for (const End* end : {&a, &b})
      for (uint64_t t = 0; t < kThreads; ++t)
        senders.emplace_back([end, t] {
          for (uint64_t i = 0; i < kFrames; ++i) end->send({t << 32 | i});
        });
    for (std::thread& sender : senders) sender.join();
    for (End* end : {&a, &b}) {
      std::vector<uint64_t> next(kThreads);
      int out_of_order = 0;
      for (int i = 0; i < kThreads * kFrames; ++i) {
        const uint64_t value = bytes_of(end->bodies.take());
        if (next[value >> 32]++ != (value & 0xffffffff)) ++out_of_order;
      }
      CHECK(out_of_order == 0);
    }
  });
}

TEST_CASE("frames of any length arrive, also through a full socket") {
  over_each_kind_of_socket([](const auto& connect) {
    const auto thread = start_thread(), other = start_thread();
    auto [first, second] = connect();
    End a(*thread, std::move(first)), b(*other, std::move(second));
    for (int i = 0; i < 40; ++i) {
      Run run;
      run.step = uint64_t(i);
      run.feeds = {{0, Tensor::make(DataType::kUInt8, {i * 25'000})}};
      auto frame = frame_of(run);
      const std::string body = frame->substr(kFrameHeader);
      CHECK(a.link->send(*frame) != Sent::kLost);
      if (i % 10 == 9) CHECK(body.size() > 200'000);
    }
    for (int i = 0; i < 40; ++i) {
      const auto run = parse_body<Run>(b.bodies.take());
      CHECK(run->step == uint64_t(i));
      CHECK(std::get<Tensor>(run->feeds[0].value).dim(0) == i * 25'000);
    }
  });
}

TEST_CASE("a sender is told when the peer reads too slowly, and when it has") {
  const auto thread = start_thread();
  auto [ours, theirs] = connected_sockets();
  SmallLink::Options options = quiet();
  options.queue_limit = size_t{1} << 20;
  End end(*thread, std::move(theirs), options);
  Run run;
  run.feeds = {{0, Tensor::make(DataType::kUInt8, {1 << 16})}};
  std::vector<Sent> seen;
  size_t sent = 0;
  while (seen.empty() || seen.back() != Sent::kOverLimit) {
    auto frame = frame_of(run);
    sent += frame->size();
    const Sent what = end.link->send(*frame);
    if (seen.empty() || seen.back() != what) seen.push_back(what);
  }
  CHECK(seen == std::vector{Sent::kWritten, Sent::kQueued, Sent::kOverLimit});
  CHECK(end.link->queued() > options.queue_limit);
  CHECK(end.rooms.size() == 0);
  // Nothing is lost or out of order meanwhile.
  const std::string bytes = read_exactly(ours, sent);
  CHECK(bytes.size() == sent);
  FrameInput input(Purpose::kSmall);
  size_t at = 0, frames = 0;
  while (at < bytes.size()) {
    const auto space = input.space();
    const size_t count = std::min(space.size(), bytes.size() - at);
    std::copy_n(bytes.data() + at, count, space.data());
    input.add(count);
    at += count;
    while (true) {
      const auto frame = input.next();
      REQUIRE(frame.ok());
      if (!*frame) break;
      ++frames;
    }
  }
  CHECK(frames * (sent / frames) == sent);
  CHECK(end.rooms.take());
  CHECK(end.link->queued() == 0);
  CHECK(end.send({1}) == Sent::kWritten);
}

TEST_CASE("a peer that never reads loses the link before memory is full") {
  const auto thread = start_thread();
  auto [ours, theirs] = connected_sockets();
  SmallLink::Options options = quiet();
  options.queue_limit = 100'000;
  End end(*thread, std::move(theirs), options);
  Run run;
  run.feeds = {{0, Tensor::make(DataType::kUInt8, {1 << 16})}};
  while (true) {
    auto frame = frame_of(run);
    if (end.link->send(*frame) == Sent::kLost) break;
  }
  CHECK(mentions(end.losses.take(), "the peer does not read what it is sent"));
  CHECK(end.link->queued() == 0);
}

TEST_CASE("what breaks the format loses the link, by name") {
  CHECK(loss_by("garbage garbage ").message() ==
        "/job:w/task:1: [net|frame] frame 0: its kind is 103, which this link "
        "does not carry");
  const std::string frame = numbered(Credit{5}, 0);
  CHECK(mentions(loss_by(frame + numbered(Credit{5}, 2)),
                 "frame 1: its number is 2"));
  std::string giant = frame;
  giant[7] = 0x7f;
  CHECK(mentions(loss_by(giant), "bytes are more than 1048576"));
  std::string changed = frame;
  changed.back() = 7;
  const Status status = loss_by(changed);
  CHECK(mentions(status, "the checksum is wrong"));
  CHECK(status.code() == Code::kDataLoss);
  CHECK(mentions(loss_by(numbered(Ping{1, 2}, 0, "more")),
                 "[net|Ping] byte 16 of 20: 4 bytes are left over"));
  CHECK(mentions(loss_by(numbered(Chunk{}, 0)), "its kind is 33"));
}

TEST_CASE("a peer that closes in the middle of anything is lost") {
  const std::string frame = numbered(Credit{5}, 0);
  for (size_t bytes : {size_t{0}, size_t{1}, size_t{16}, frame.size() - 1,
                       frame.size(), frame.size() + 5}) {
    const Status status = loss_by((frame + frame).substr(0, bytes), true);
    CHECK(status.code() == Code::kUnavailable);
    CHECK(status.message() ==
          "[net|link] /job:w/task:1: the peer closed the connection");
  }
}

TEST_CASE("a peer that says Bye tells why it leaves") {
  CHECK(loss_by(numbered(Bye{"it was asked to"}, 0)).message() ==
        "[net|link] /job:w/task:1: the peer leaves: it was asked to");
}

TEST_CASE("a handler's error loses the link, and no frame follows") {
  const auto thread = start_thread();
  auto [ours, theirs] = connected_sockets();
  SmallLink link(*thread, std::move(theirs), quiet());
  FrameInbox<Status> losses;
  std::atomic<int> frames = 0;
  SmallLink::Handlers handlers;
  handlers.on_frame = [&](const Frame&) {
    ++frames;
    return error(Code::kAborted, "not this one");
  };
  handlers.on_lost = [&](const Status& status) { losses.put(status); };
  link.start(handlers);
  CHECK(write_all(ours, numbered(Credit{1}, 0) + numbered(Credit{2}, 1)));
  CHECK(losses.take().message() == "the peer: not this one");
  CHECK(read_to_end(ours).empty());
  CHECK(frames == 1);
}

TEST_CASE("an idle link pings, answers pings, and lives by the answers") {
  const auto thread = start_thread();
  auto [ours, theirs] = connected_sockets();
  SmallLink::Options options;
  options.life = {std::chrono::milliseconds(20 * kSlowness), 100};
  End end(*thread, std::move(theirs), options);
  const size_t ping_bytes = numbered(Ping{}, 0).size();
  for (uint32_t i = 0; i < 10; ++i) {
    const std::string frame = read_exactly(ours, ping_bytes);
    REQUIRE(frame.size() == ping_bytes);
    const auto ping = parse_body<Ping>(frame.substr(kFrameHeader));
    REQUIRE(ping.ok());
    CHECK(frame == numbered(*ping, i));
    CHECK(write_all(ours, numbered(Pong{ping->nonce, ping->time_ns, 0}, i)));
  }
  CHECK(write_all(ours, numbered(Ping{77, 88}, 10)));
  const auto answer = read_pong(ours);
  REQUIRE(answer.ok());
  CHECK(answer->nonce == 77);
  CHECK(answer->ping_time_ns == 88);
  CHECK(end.losses.size() == 0);
}

TEST_CASE("two idle links keep each other alive") {
  const auto thread = start_thread(), other = start_thread();
  auto [first, second] = connected_sockets();
  SmallLink::Options options;
  options.life = {std::chrono::milliseconds(10 * kSlowness), 100};
  End a(*thread, std::move(first), options), b(*other, std::move(second));
  // Longer than `a` would wait for a silent peer.
  std::this_thread::sleep_for(options.life.interval * 150);
  CHECK(a.losses.size() == 0);
  CHECK(a.send({1}) == Sent::kWritten);
  CHECK(bytes_of(b.bodies.take()) == 1);
}

TEST_CASE("a silent peer is lost, whether it reads or not") {
  const auto thread = start_thread();
  SmallLink::Options options;
  options.life = {std::chrono::milliseconds(20), 3};
  options.queue_limit = size_t{1} << 30;
  SUBCASE("nothing is sent") {
    auto [ours, theirs] = connected_sockets();
    End end(*thread, std::move(theirs), options);
    CHECK(mentions(end.losses.take(), "the peer is silent"));
  }
  SUBCASE("the socket is full") {
    auto [ours, theirs] = connected_sockets();
    End end(*thread, std::move(theirs), options);
    Run run;
    run.feeds = {{0, Tensor::make(DataType::kUInt8, {1 << 20 >> 1})}};
    while (end.link->queued() == 0) {
      auto frame = frame_of(run);
      if (end.link->send(*frame) == Sent::kLost) break;
    }
    CHECK(mentions(end.losses.take(), "the peer is silent"));
    // It learns it now, and not when it has read all that.
    CHECK(is_reset(ours));
  }
}

TEST_CASE("frames may be sent before the link is started") {
  const auto thread = start_thread();
  auto [ours, theirs] = connected_sockets();
  SmallLink link(*thread, std::move(theirs), quiet());
  auto frame = frame_of(Credit{5});
  CHECK(link.send(*frame) == Sent::kWritten);
  CHECK(read_exactly(ours, frame->size()) == numbered(Credit{5}, 0));
}

TEST_CASE("a link that was lost before it is started says so") {
  const auto thread = start_thread();
  End end(*thread, Socket());
  CHECK(mentions(end.losses.take(), "the socket is of no use"));

  auto [ours, theirs] = connected_sockets();
  SmallLink link(*thread, std::move(theirs), quiet());
  ours = Socket();
  auto frame = frame_of(Credit{5});
  while (link.send(*frame) != Sent::kLost) frame = frame_of(Credit{5});
  FrameInbox<Status> losses;
  SmallLink::Handlers handlers;
  handlers.on_lost = [&](const Status& status) { losses.put(status); };
  link.start(handlers);
  CHECK(losses.take().code() == Code::kUnavailable);
}

TEST_CASE("a shortage of memory loses a frame's link, or nothing") {
  Run run;
  run.feeds = {{0, Tensor::make(DataType::kUInt8, {1'000'000})}};
  constexpr int kFrames = 20;
  for (int64_t k = 1;; ++k) {
    const auto thread = start_thread(), other = start_thread();
    std::atomic<int> received = 0;
    std::atomic<bool> is_lost = false;
    auto [first, second] = connected_sockets();
    SmallLink a(*thread, std::move(first), quiet());
    SmallLink b(*other, std::move(second), quiet());
    std::vector<std::string> frames;
    for (int i = 0; i < kFrames; ++i) frames.push_back(*frame_of(run));
    SmallLink::Handlers handlers;
    handlers.on_frame = [&](const Frame&) {
      ++received;
      return Status();
    };
    handlers.on_lost = [&](const Status&) { is_lost = true; };
    a.start(handlers);
    b.start(handlers);
    for (const auto& started : {thread.get(), other.get()})
      started->call([] {});
    FailAllocation fail(k);
    for (std::string& frame : frames) a.send(frame);
    while (received < kFrames && !is_lost) std::this_thread::yield();
    fail.stop();
    CHECK((is_lost || received == kFrames));
    if (!fail.failed()) break;
    CHECK(k < 1000);
  }
}

TEST_CASE("a link may be destroyed while frames come and go") {
  const auto thread = start_thread(), other = start_thread();
  for (int i = 0; i < 50; ++i) {
    auto [first, second] = connected_sockets();
    End a(*thread, std::move(first)), b(*other, std::move(second));
    std::thread sender([&] {
      for (int n = 0; n < 1'000'000 && a.send({1}) != Sent::kLost; ++n) {
      }
    });
    b.bodies.take();
    b.link.reset();
    const size_t frames = b.bodies.size();
    sender.join();
    CHECK(b.bodies.size() == frames);
    CHECK(a.losses.take().code() == Code::kUnavailable);
  }
}

TEST_CASE("a handler may destroy its own link") {
  const auto thread = start_thread();
  for (const bool by_frame : {true, false}) {
    auto [ours, theirs] = connected_sockets();
    auto link =
        std::make_unique<SmallLink>(*thread, std::move(theirs), quiet());
    FrameInbox<bool> done;
    const auto end = [&] {
      link.reset();
      done.put(true);
    };
    SmallLink::Handlers handlers;
    handlers.on_frame = [&](const Frame&) {
      if (by_frame) end();
      return by_frame ? Status() : error(Code::kAborted, "lose it");
    };
    handlers.on_lost = [&](const Status&) { end(); };
    link->start(handlers);
    CHECK(write_all(ours, numbered(Credit{1}, 0) + numbered(Credit{2}, 1)));
    CHECK(done.take());
    CHECK(read_to_end(ours).empty());
    thread->call([] {});
    CHECK(done.size() == 0);
  }
}

}  // namespace
}  // namespace tagflow::net
