#include "net/transfer/linked_port.h"

#include <doctest/doctest.h>
#include <sys/socket.h>

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <thread>

#include "actors/runtime/batch.h"
#include "actors/runtime/step.h"
#include "net/wire/tensor.h"

namespace tagflow::net {
namespace {

// Long enough for anything that happens at all.
constexpr std::chrono::seconds kLong{120};

bool has(const Status& status, std::string_view text) {
  return status.message().find(text) != std::string_view::npos;
}

// A worker's side of a session, and a peer that sends what the test wants.
struct Ends {
  Ends() {
    auto started = IoThreads::start();
    REQUIRE(started.ok());
    threads = std::move(*started);
    connect();
    Route route{&*session, 0, "\"x\"", DataType::kFloat, PartialShape({2})};
    auto routes = std::make_shared<Routes>();
    routes->emplace("a;1;b;x", route);
    port.emplace(parts, routes, transfers);
    step->on_quiet = [](actors::Step&) {};
    step->keep_alive();
    step->add_activity();
  }
  ~Ends() {
    step->drop_activity();
    port->end();
    peer.reset();
    session.reset();
  }

  void connect() {
    int sockets[2][2];
    for (auto& pair : sockets)
      REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    session.emplace(threads, Socket(sockets[0][0]), Socket(sockets[1][0]),
                    "/job:worker/task:7");
    peer.emplace(threads, Socket(sockets[0][1]), Socket(sockets[1][1]), "us");
    peer->start(
        {.on_frame =
             [this](const Frame& frame) {
               if (frame.kind == FrameKind::kCredit)
                 tell([&] { credit += parse_body<Credit>(frame.body)->bytes; });
               if (frame.kind == FrameKind::kPull)
                 tell([&] { pulled = parse_body<Pull>(frame.body)->object; });
               return Status();
             },
         .on_begin = [](const Begin&) -> Result<BulkLink::Destination> {
           return error(Code::kUnimplemented, "no object");
         },
         .on_lost = [this](const Status&) { tell([&] { is_lost = true; }); }});
    session->start(parts, [](const Status&) {});
  }
  // As a worker does it when the session is lost.
  void connect_anew() {
    await([&] { return is_lost; });
    session->stop();
    parts.forget(*session);
    peer.reset();
    session.reset();
    is_lost = false;
    connect();
  }

  template <class F>
  void tell(F change) {
    const std::lock_guard lock(mutex);
    change();
    changed.notify_all();
  }
  template <class F>
  void await(F holds) {
    std::unique_lock lock(mutex);
    REQUIRE(changed.wait_for(lock, kLong, holds));
  }
  // The first error of the step.
  Status failure() const {
    const auto end = std::chrono::steady_clock::now() + kLong;
    while (!step->cancelled() && std::chrono::steady_clock::now() < end)
      std::this_thread::yield();
    return step->error();
  }
  void begin() {
    WorkerSteps::Actions actions;
    REQUIRE(parts.on_run(5, actions).ok());
    port->begin(*step, store);
  }
  void send(uint64_t number, Tensor value, uint32_t transfer = 0,
            int64_t iteration = 0) {
    Tokens tokens{.step = number};
    tokens.groups = {{{}, iteration, {{iteration, transfer, value}}}};
    REQUIRE(peer->send(tokens).ok());
  }

  std::mutex mutex;
  std::condition_variable changed;
  uint64_t credit = 0;
  bool is_lost = false;
  std::optional<ObjectId> pulled;  // the last one
  const std::vector<actors::Transfer> transfers{
      {"a;1;b;x", actors::Transfer::Ends::kRecv}};
  actors::BatchStore store;
  const std::shared_ptr<actors::Step> step =
      std::make_shared<actors::Step>(5, 0);
  IoThreads threads;
  Parts parts;
  std::optional<PeerSession> session;
  std::optional<Channel> peer;
  std::optional<LinkedPort> port;
};

const Tensor kWrong = Tensor::vector<int32_t>({1, 2});
const Tensor kLonger = Tensor::vector<float>({1, 2, 3});
const Tensor kRight = Tensor::vector<float>({1, 2});

// So many tokens that no window counts.
constexpr size_t kMany = 1024;
Tokens announced(uint64_t step) {
  Tokens tokens{.step = step};
  tokens.groups.resize(1);
  tokens.groups[0].entries.resize(kMany,
                                  {0, 0, Tokens::Announced{.is_dead = true}});
  return tokens;
}

}  // namespace

TEST_CASE("a token of another type or shape fails the step, by its names") {
  for (const Tensor& value : {kWrong, kLonger}) {
    Ends ends;
    ends.begin();
    ends.send(5, value);
    const Status status = ends.failure();
    CHECK(status.code() == Code::kInvalidArgument);
    CHECK(has(status, "/job:worker/task:7 sends \"x\" as "));
    CHECK(has(status, "where float[2] is expected"));
  }
}

TEST_CASE("an early token waits for the Run of its step") {
  Ends ends;
  ends.send(5, kWrong);
  ends.begin();
  CHECK(has(ends.failure(), "/job:worker/task:7 sends \"x\" as "));
}

TEST_CASE("an answer to a pull that is not a tensor fails the step") {
  Ends ends;
  ends.begin();
  Tokens tokens{.step = 5};
  tokens.groups = {{{}, 0, {{0, 0, Tokens::Announced{info_of(kRight)}}}}};
  REQUIRE(ends.peer->send(tokens).ok());
  actors::TransferAnswers answers;
  ends.port->receive(0, {}, {}, answers);
  ends.await([&] { return ends.pulled.has_value(); });
  ends.peer->send(BulkLink::Object{
      {*ends.pulled, ObjectKind::kRegister, 1, {}}, "x", nullptr});
  CHECK(has(ends.failure(), "\"x\" of /job:worker/task:7: "));
  CHECK(has(ends.failure(), "an object is not a tensor"));
}

TEST_CASE("the credit for tokens of a dead step returns") {
  Ends ends;
  ends.begin();
  const Tensor value = Tensor::make(DataType::kUInt8, {16 << 10});
  constexpr uint64_t kCount = 200;  // more than a window has
  uint64_t sent = 0;
  for (uint64_t i = 0; i < kCount; ++i) {
    ends.await([&] {
      return sent - ends.credit + charge_of(value.bytes()) <= kDefaultWindow;
    });
    ends.send(4, value);
    sent += charge_of(value.bytes());
  }
  CHECK_FALSE(ends.step->cancelled());
}

TEST_CASE("the credit for early tokens returns if their step is left out") {
  Ends ends;
  const Tensor value = Tensor::make(DataType::kUInt8, {16 << 10});
  for (int64_t i = 0; i < 40; ++i) ends.send(4, value, 0, i);
  ends.begin();
  // Or they come when the step is dead already.
  ends.await([&] { return ends.credit >= kDefaultWindow / 2; });
}

TEST_CASE("a peer that announces too many tokens too early is lost") {
  Ends ends;
  for (size_t sent = 0; sent < Parts::kMostEarly; sent += kMany)
    REQUIRE(ends.peer->send(announced(5)).ok());
  CHECK(ends.session->lost().ok());
  REQUIRE(ends.peer->send(announced(5)).ok());
  ends.await([&] { return ends.is_lost; });
  CHECK(has(ends.session->lost(), "tokens came before their step"));
}

TEST_CASE("what came early from a session that is lost goes with it") {
  Ends ends;
  ends.send(5, kWrong);
  for (size_t sent = 0; sent < Parts::kMostEarly; sent += kMany)
    REQUIRE(ends.peer->send(announced(5)).ok());
  ends.connect_anew();
  ends.begin();
  CHECK_FALSE(ends.step->cancelled());
  for (size_t sent = 0; sent < Parts::kMostEarly; sent += kMany)
    REQUIRE(ends.peer->send(announced(6)).ok());
  // It comes after those, and the session still takes it.
  ends.send(5, kWrong);
  CHECK(has(ends.failure(), "/job:worker/task:7 sends \"x\" as "));
  CHECK(ends.session->lost().ok());
}

TEST_CASE("a peer that sends empty messages too early is lost") {
  Tokens tokens{.step = 5};
  SUBCASE("without groups") {}
  SUBCASE("with groups that have no tokens") { tokens.groups.resize(64); }
  Ends ends;
  const size_t each = std::max<size_t>(tokens.groups.size(), 1);
  for (size_t sent = 0; sent <= Parts::kMostEarly; sent += each)
    REQUIRE(ends.peer->send(tokens).ok());
  ends.await([&] { return ends.is_lost; });
  CHECK(has(ends.session->lost(), "tokens came before their step"));
}

TEST_CASE("a peer that sends above its window loses the session") {
  Ends ends;
  const Tensor value = Tensor::make(DataType::kUInt8, {16 << 10});
  for (uint64_t i = 0; i < 80; ++i) ends.send(5, value, 0, int64_t(i));
  ends.await([&] { return ends.is_lost; });
}

TEST_CASE("a peer that sends dead tokens above its window loses the session") {
  Ends ends;
  Tokens tokens{.step = 5};
  tokens.groups.resize(1);
  tokens.groups[0].entries.resize(kDefaultWindow / kTokenCharge + 1,
                                  {0, 0, Tokens::Dead()});
  REQUIRE(ends.peer->send(tokens).ok());
  ends.await([&] { return ends.is_lost; });
  CHECK(has(ends.session->lost(), "of the window"));
}

TEST_CASE("a second token, or one of an unknown transfer, loses the session") {
  for (const uint32_t transfer : {0u, 1u}) {
    Ends ends;
    ends.begin();
    for (int i = 0; i < 2; ++i) ends.send(5, kRight, transfer);
    ends.await([&] { return ends.is_lost; });
    CHECK(has(ends.session->lost(), "/job:worker/task:7"));
  }
}

}  // namespace tagflow::net
