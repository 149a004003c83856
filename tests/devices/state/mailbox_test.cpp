// The invariants of devices/state/mailbox.h, by their numbers.
#include "devices/state/mailbox.h"

#include <doctest/doctest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

using namespace tagflow::devices;

namespace {

struct Letter {
  Letter* next = nullptr;
  int sender = 0;
  int number = 0;
};

// Posts as an operation would: handles what it finds, if it is the one inside.
template <class F>
void send(Mailbox<Letter>& mailbox, Letter& letter, const F& handle) {
  if (!mailbox.post(letter)) return;
  handle(letter);
  mailbox.leave(handle);
}

}  // namespace

TEST_CASE("1, 2: a mailbox lets one caller in, others leave a letter") {
  Mailbox<Letter> mailbox;
  Letter first, second, third;
  REQUIRE(mailbox.post(first));
  CHECK_FALSE(mailbox.post(second));
  CHECK_FALSE(mailbox.post(third));
  CHECK_FALSE(mailbox.try_enter());
  std::vector<Letter*> handled;
  mailbox.leave([&](Letter& letter) { handled.push_back(&letter); });
  CHECK(handled == std::vector<Letter*>{&second, &third});
  CHECK(mailbox.try_enter());
  mailbox.leave([](Letter&) { FAIL("there is none"); });
}

TEST_CASE("3, 5: a mailbox handles letters that come while it is at work") {
  Mailbox<Letter> mailbox;
  std::vector<Letter> letters(1000);
  int handled = 0, depth = 0;
  const auto handle = [&](Letter& letter) {
    CHECK(++depth == 1);
    const size_t at = size_t(&letter - letters.data());
    ++handled;
    if (at + 1 < letters.size()) CHECK_FALSE(mailbox.post(letters[at + 1]));
    --depth;
  };
  send(mailbox, letters[0], handle);
  CHECK(handled == 1000);
  CHECK(mailbox.try_enter());
}

TEST_CASE("1, 4: a mailbox is used by one thread, and keeps letters in order") {
  constexpr int kSenders = 4, kLetters = 20'000;
  Mailbox<Letter> mailbox;
  std::vector<std::vector<Letter>> letters(kSenders);
  int last[kSenders] = {};  // of the letters of each; guarded by the mailbox
  int64_t handled = 0;
  std::atomic<int> inside{0};
  std::atomic<bool> is_wrong{false};
  const auto handle = [&](Letter& letter) {
    if (inside.fetch_add(1) != 0) is_wrong = true;
    if (letter.number != ++last[letter.sender]) is_wrong = true;
    ++handled;
    inside.fetch_sub(1);
  };
  std::vector<std::thread> threads;
  for (int sender = 0; sender < kSenders; ++sender)
    threads.emplace_back([&, sender] {
      std::vector<Letter>& own = letters[size_t(sender)];
      own.resize(kLetters);
      for (int i = 0; i < kLetters; ++i) {
        own[size_t(i)] = {nullptr, sender, i + 1};
        send(mailbox, own[size_t(i)], handle);
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK_FALSE(is_wrong);
  CHECK(handled == int64_t(kSenders) * kLetters);
}

TEST_CASE("2: a letter that was handled may be gone before post() returns") {
  // Under ASan and TSan: nobody touches it afterwards.
  constexpr int kSenders = 3, kLetters = 10'000;
  Mailbox<Letter> mailbox;
  std::atomic<int> handled{0};
  const auto handle = [&](Letter& letter) {
    const std::unique_ptr<Letter> owned(&letter);
    handled.fetch_add(1, std::memory_order_relaxed);
  };
  std::vector<std::thread> threads;
  for (int sender = 0; sender < kSenders; ++sender)
    threads.emplace_back([&] {
      for (int i = 0; i < kLetters; ++i)
        send(mailbox, *std::make_unique<Letter>().release(), handle);
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(handled == kSenders * kLetters);
}
