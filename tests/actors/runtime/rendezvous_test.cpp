// The rendezvous, message by message, under CAF's deterministic scheduler: only
// the test runs actors.
#include "actors/runtime/rendezvous.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <caf/send.hpp>
#include <string>
#include <vector>

#include "actors/runtime/step.h"
#include "tests/actors/delaying_rendezvous.h"
#include "tests/actors/runtime/stepwise.h"

using namespace tagflow;
using namespace tagflow::actors;

namespace {

// Where an iteration would be: writes down what it is sent.
class Listener : public EngineActor {
 public:
  Listener(caf::actor_config& config, HandOff policy)
      : EngineActor(config, policy) {}
  // "node:value" of each token, "node:dead", with a stroke after each batch.
  std::vector<std::string> heard;
  int batches = 0;

 protected:
  void on_batch(Batch* batch, Runner&) override {
    ++batches;
    for (Token& token : batch->tokens)
      heard.push_back(fmt::format(
          "{}:{}", token.slot,
          token.is_dead ? "dead"
                        : std::to_string(token.value.scalar_value<int>())));
    pool().give(batch);
  }
};

constexpr uint32_t kTransfers = 100;

std::vector<Transfer> named_transfers() {
  std::vector<Transfer> transfers;
  for (uint32_t i = 0; i < kTransfers; ++i)
    transfers.push_back({fmt::format("A;1;B;t{}:0", i)});
  return transfers;
}

// A rendezvous, and two that receive.
struct Meeting : StepwiseSystem {
  explicit Meeting(HandOff hand_off = HandOff::kDirect,
                   const SpawnRendezvous& spawn = spawn_local_rendezvous)
      : policy(hand_off),
        actor(spawn(system, policy, transfers, nullptr)),
        rendezvous(actor_pointer<Rendezvous>(actor)) {
    for (int i = 0; i < 2; ++i)
      handles.push_back(system.spawn<Listener, caf::lazy_init>(policy));
    next_step();
  }
  ~Meeting() {
    for (const caf::actor& handle : handles) caf::anon_send(handle, Stop{});
    caf::anon_send(actor, Stop{});
    scheduler.run();
  }

  Listener& listener(int i) {
    return *actor_pointer<Listener>(handles[size_t(i)]);
  }
  Batch* batch(int who, int64_t iteration) {
    auto* made = new Batch;
    made->kind = BatchKind::kTransfers;
    made->step = step.get();
    made->sender = &listener(who);
    made->tag.iteration = iteration;
    return made;
  }
  void post(Batch* batch) {
    Runner runner(nullptr, policy, std::chrono::hours(1));
    runner.post(rendezvous, batch);
    runner.drain();
    scheduler.run();
  }
  static void send(Batch& batch, uint32_t transfer, int value) {
    Token& token = batch.tokens.add(transfer);
    token.waiter = Token::kNobody;
    token.value = Tensor::scalar(value);
  }
  static void send_dead(Batch& batch, uint32_t transfer) {
    batch.tokens.add(transfer, true).waiter = Token::kNobody;
  }
  static void receive(Batch& batch, uint32_t transfer, uint32_t node) {
    batch.tokens.add(transfer).waiter = node;
  }
  void send(uint32_t transfer, int64_t iteration, int value) {
    Batch* made = batch(0, iteration);
    send(*made, transfer, value);
    post(made);
  }
  void receive(uint32_t transfer, int64_t iteration, uint32_t node,
               int who = 1) {
    Batch* made = batch(who, iteration);
    receive(*made, transfer, node);
    post(made);
  }
  void next_step() {
    quiet = false;
    step = std::make_shared<Step>(1, 0);
    step->on_quiet = [this](Step&) { quiet = true; };
    step->add_activity();  // the test's own
  }
  // Ends the step, which must have come to rest.
  bool over() {
    step->drop_activity();
    return quiet;
  }

  const HandOff policy;
  const std::vector<Transfer> transfers = named_transfers();
  std::vector<caf::actor> handles;
  caf::actor actor;
  Rendezvous* rendezvous;
  std::shared_ptr<Step> step;
  bool quiet = false;
};

using Heard = std::vector<std::string>;

}  // namespace

TEST_CASE("smoke: a token reaches its Recv, whichever comes first") {
  for (const HandOff policy : {HandOff::kDirect, HandOff::kMailbox}) {
    CAPTURE(int(policy));
    Meeting meeting(policy);
    meeting.send(0, 5, 42);
    CHECK(meeting.listener(1).heard.empty());
    meeting.receive(0, 5, 7);
    CHECK(meeting.listener(1).heard == Heard{"7:42"});
    meeting.receive(1, 5, 8);
    meeting.send(1, 5, 43);
    CHECK(meeting.listener(1).heard == Heard{"7:42", "8:43"});
    CHECK(meeting.over());
    CHECK(meeting.step->error().ok());
  }
}

TEST_CASE("smoke: tokens of other iterations and other transfers do not meet") {
  Meeting meeting;
  meeting.receive(0, 3, 7);
  meeting.send(0, 2, 42);
  meeting.send(1, 3, 43);
  CHECK(meeting.listener(1).heard.empty());
  meeting.send(0, 3, 44);
  CHECK(meeting.listener(1).heard == Heard{"7:44"});
  CHECK(meeting.over());
}

TEST_CASE("iterations of one transfer wait side by side") {
  constexpr int kIterations = 5;
  Meeting meeting;
  // The one that goes first is another one each time.
  for (int first = 0; first < kIterations; ++first) {
    for (int i = 0; i < kIterations; ++i) meeting.send(0, i, i);
    Heard expected;
    for (int i = 0; i < kIterations; ++i) {
      const int iteration = (first + i) % kIterations;
      meeting.receive(0, iteration, 7);
      expected.push_back(fmt::format("7:{}", iteration));
      // In the place that is free now.
      meeting.send(0, kIterations + i, 10 + i);
      meeting.receive(1, i, 8);
      meeting.send(1, i, 20 + i);
      expected.push_back(fmt::format("8:{}", 20 + i));
    }
    for (int i = kIterations; i-- > 0;) {
      meeting.receive(0, kIterations + i, 9);
      expected.push_back(fmt::format("9:{}", 10 + i));
    }
    Heard& heard = meeting.listener(1).heard;
    CHECK(heard == expected);
    heard.clear();
  }
  CHECK(meeting.over());
  CHECK(meeting.step->error().ok());
}

TEST_CASE("a dead token is sent like a live one") {
  Meeting meeting;
  meeting.receive(0, 0, 7);
  Batch* batch = meeting.batch(0, 0);
  Meeting::send_dead(*batch, 0);
  meeting.post(batch);
  CHECK(meeting.listener(1).heard == Heard{"7:dead"});
  CHECK(meeting.over());
}

TEST_CASE("a live token keeps nothing of a dead one in the same place") {
  Meeting meeting;
  const auto send_dead = [&](int64_t iteration) {
    Batch* batch = meeting.batch(0, iteration);
    Meeting::send_dead(*batch, 0);
    meeting.post(batch);
  };
  // The first is in the slot, the second in the table; then the other way
  // round.
  for (const int64_t dead : {0, 1}) {
    send_dead(dead);
    send_dead(1 - dead);
    for (const int64_t iteration : {0, 1}) meeting.receive(0, iteration, 7);
    for (const int64_t iteration : {0, 1}) meeting.receive(0, iteration, 8);
    for (const int64_t iteration : {0, 1}) meeting.send(0, iteration, 42);
    for (const int64_t iteration : {0, 1}) meeting.send(0, iteration, 43);
    for (const int64_t iteration : {0, 1}) meeting.receive(0, iteration, 9);
    CHECK(meeting.listener(1).heard ==
          Heard{"7:dead", "7:dead", "8:42", "8:42", "9:43", "9:43"});
    meeting.listener(1).heard.clear();
  }
  CHECK(meeting.over());
}

TEST_CASE("tokens for one iteration travel in one batch") {
  Meeting meeting;
  Batch* asks = meeting.batch(1, 0);
  Meeting::receive(*asks, 0, 7);
  Meeting::receive(*asks, 1, 8);
  meeting.post(asks);
  Batch* gives = meeting.batch(0, 0);
  Meeting::send(*gives, 0, 42);
  Meeting::send(*gives, 1, 43);
  meeting.post(gives);
  CHECK(meeting.listener(1).heard == Heard{"7:42", "8:43"});
  CHECK(meeting.listener(1).batches == 1);
  CHECK(meeting.over());
}

TEST_CASE("a tensor is handed over, not copied") {
  Meeting meeting;
  class Keeper : public EngineActor {
   public:
    Keeper(caf::actor_config& config) : EngineActor(config, HandOff::kDirect) {}
    Tensor kept;

   protected:
    void on_batch(Batch* batch, Runner&) override {
      kept = std::move(batch->tokens.begin()->value);
      pool().give(batch);
    }
  };
  caf::actor handle = meeting.system.spawn<Keeper, caf::lazy_init>();
  Tensor value = Tensor::make(DataType::kFloat, {1000});
  const void* const data = value.raw();
  Batch* gives = meeting.batch(0, 0);
  Token& token = gives->tokens.add(0);
  token.waiter = Token::kNobody;
  token.value = std::move(value);
  meeting.post(gives);
  Batch* asks = meeting.batch(1, 0);
  asks->sender = actor_pointer<Keeper>(handle);
  Meeting::receive(*asks, 0, 7);
  meeting.post(asks);
  const Tensor& kept = actor_pointer<Keeper>(handle)->kept;
  CHECK(kept.raw() == data);
  CHECK(kept.unique());
  CHECK(meeting.over());
  caf::anon_send(handle, Stop{});
  meeting.scheduler.run();
}

TEST_CASE("a key that is sent twice is an error") {
  Meeting meeting;
  meeting.send(0, 3, 42);
  meeting.send(0, 3, 42);
  CHECK(meeting.over());
  CHECK(meeting.step->error().code() == Code::kAlreadyExists);
  CHECK(meeting.step->error().message() ==
        "[rendezvous] A;1;B;t0:0 was sent twice");
}

TEST_CASE("a key is found twice behind another iteration, too") {
  for (const bool sent : {true, false}) {
    CAPTURE(sent);
    Meeting meeting;
    for (const int64_t iteration : {2, 3, 3}) {
      if (sent) {
        meeting.send(0, iteration, 42);
      } else {
        meeting.receive(0, iteration, 7);
      }
    }
    CHECK(meeting.over());
    CHECK(meeting.step->error().code() == Code::kAlreadyExists);
  }
}

TEST_CASE("an error in a loop says in which iteration of which frame") {
  Meeting meeting;
  for (int i = 0; i < 2; ++i) {
    Batch* batch = meeting.batch(0, 3);
    batch->tag.frame_hi = 0x12;
    batch->tag.frame_lo = 0x34;
    Meeting::send(*batch, 0, 42);
    meeting.post(batch);
  }
  CHECK(meeting.over());
  CHECK(meeting.step->error().message() ==
        "[rendezvous] A;1;B;t0:0, iteration 3 of frame instance "
        "00000000000000120000000000000034 was sent twice");
}

TEST_CASE("a key that is received twice is an error") {
  Meeting meeting;
  meeting.receive(0, 3, 7);
  meeting.receive(0, 3, 8);
  CHECK(meeting.over());
  CHECK(meeting.step->error().code() == Code::kAlreadyExists);
  CHECK(meeting.step->error().message() ==
        "[rendezvous] A;1;B;t0:0 is received twice");
}

TEST_CASE("a step that has failed leaves nothing behind") {
  Meeting meeting;
  for (int64_t iteration : {3, 4}) {
    meeting.send(0, iteration, 42);
    meeting.receive(1, iteration, 7);
  }
  meeting.step->fail(error(Code::kCancelled, "enough"));
  meeting.send(1, 3, 43);
  CHECK(meeting.listener(1).heard.empty());
  CHECK(meeting.over());
  meeting.rendezvous->reset();
  // The same keys again, in the next step: they are new.
  meeting.next_step();
  for (int64_t iteration : {4, 3}) {
    meeting.send(1, iteration, 44);
    meeting.receive(0, iteration, 8);
    CHECK(meeting.listener(1).heard.empty());
    meeting.receive(1, iteration, 9);
    meeting.send(0, iteration, 45);
    CHECK(meeting.listener(1).heard == Heard{"9:44", "8:45"});
    meeting.listener(1).heard.clear();
  }
  CHECK(meeting.over());
  CHECK(meeting.step->error().ok());
}

TEST_CASE("a delaying rendezvous reorders tokens, and loses or doubles none") {
  Meeting meeting(HandOff::kDirect, spawn_delaying_rendezvous);
  Heard expected;
  Batch* asks = meeting.batch(1, 0);
  Batch* gives = meeting.batch(0, 0);
  for (uint32_t i = 0; i < kTransfers; ++i) {
    expected.push_back(fmt::format("{}:{}", i, i));
    Meeting::receive(*asks, i, i);
    Meeting::send(*gives, i, int(i));
  }
  meeting.post(asks);
  meeting.post(gives);
  Heard heard = meeting.listener(1).heard;
  CHECK(heard != expected);
  std::ranges::sort(heard);
  std::ranges::sort(expected);
  CHECK(heard == expected);
  CHECK(meeting.over());
}
