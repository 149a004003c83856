// Mailbox: operations on one object, one at a time, without thread or lock.
#pragma once

#include <atomic>
#include <cstdint>

namespace tagflow::devices {

// A lock-free stack of messages, linked through themselves (`Message* next`),
// in the same word that says whether anybody is inside of the object.
//
// Who posts a message while nobody is inside goes in, handles it, and all that
// others post meanwhile; whose message finds somebody inside leaves it there,
// and goes on with something else. So the object is an actor that is run by
// whoever finds it idle.
//
// Invariants:
//   1. word_ is idle(), or null or the newest of the messages while somebody
//      is inside. Only who moved it from idle() is inside: one thread at a
//      time.
//   2. Who posts learns by one compare-exchange whether he is inside. If he is
//      not, the message is published, and he does not touch it or the mailbox
//      any more: who is inside may be gone with both.
//   3. The mailbox becomes idle only by a compare-exchange from null: a message
//      that comes before it is handled by who wanted to leave. None is left.
//   4. Messages of one thread are handled in the order in which it posted them.
//   5. What is handled may post: the thread is inside, so that is no recursion.
//
// Thread-safe.
template <class Message>
class Mailbox {
 public:
  Mailbox() = default;
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;

  // True where nobody was inside: the caller is now, handles the message, which
  // was not published, and leaves. False: it will be handled by who is inside.
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
  // Goes in, unless somebody is inside.
  [[nodiscard]] bool try_enter() noexcept {
    Message* word = idle();
    return word_.compare_exchange_strong(
        word, nullptr, std::memory_order_acquire, std::memory_order_relaxed);
  }
  // Handles what was posted, handle(message), which must not throw and may free
  // the message; then leaves. REQUIRES: the caller is inside.
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
