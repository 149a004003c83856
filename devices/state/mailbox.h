// Mailbox: operations on one object, one at a time, without a thread or a lock.
#pragma once

#include <atomic>
#include <cstdint>

namespace tagflow::devices {

// A lock-free stack of messages, linked through themselves (`Message* next`),
// in the same word that records whether a thread is inside the object.
//
// A thread that posts a message while nobody is inside goes in; it handles the
// message, and all that others post meanwhile. A thread that finds somebody
// inside leaves its message there, and goes on with something else. So the
// object is an actor that is run by the thread that finds it idle.
//
// Invariants:
//   1. word_ is idle() while nobody is inside, else null or the newest message.
//      Only the thread that moved it from idle() is inside: one thread at a
//      time.
//   2. A posting thread learns by one compare-exchange whether it is inside. If
//      not, the message is published, and the thread no longer accesses it or
//      the mailbox: the thread inside may have destroyed both.
//   3. The mailbox becomes idle only by a compare-exchange from null: a message
//      that comes before is handled by the thread that wanted to leave. None is
//      left.
//   4. Messages of one thread are handled in the order in which it posted them.
//   5. A handler may post: its thread is inside, so this is not a recursion.
//
// Thread-safe.
template <class Message>
class Mailbox {
 public:
  Mailbox() = default;
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;

  // True if nobody was inside: the caller now is, handles the message, which
  // was not published, and leaves. False: the thread inside will handle it.
  [[nodiscard]] bool post(Message& message) noexcept {
    Message* word = word_.load(std::memory_order_relaxed);
    for (;;) {
      const bool is_idle = word == idle();
      message.next = is_idle ? nullptr : word;
      if (word_.compare_exchange_weak(word, is_idle ? nullptr : &message,
                                      std::memory_order_acq_rel,
                                      std::memory_order_relaxed))
        return is_idle;
    }
  }
  // Goes inside, unless somebody is there.
  [[nodiscard]] bool try_enter() noexcept {
    Message* word = idle();
    return word_.compare_exchange_strong(
        word, nullptr, std::memory_order_acquire, std::memory_order_relaxed);
  }
  // Calls handle(message) for every posted message; it must not throw and may
  // free the message. Then leaves. REQUIRES: the caller is inside.
  template <class F>
  void leave(const F& handle) noexcept {
    Message* word = nullptr;
    while (!word_.compare_exchange_strong(
        word, idle(), std::memory_order_release, std::memory_order_relaxed)) {
      Message* newest = word_.exchange(nullptr, std::memory_order_acquire);
      Message* oldest = nullptr;
      while (newest != nullptr) {
        Message* const before = newest->next;
        newest->next = oldest;
        oldest = newest;
        newest = before;
      }
      while (oldest != nullptr) {
        Message* const next = oldest->next;
        handle(*oldest);
        oldest = next;
      }
      word = nullptr;
    }
  }

 private:
  // No message has such an address.
  static Message* idle() { return reinterpret_cast<Message*>(uintptr_t(1)); }

  alignas(64) std::atomic<Message*> word_{idle()};
};

}  // namespace tagflow::devices
