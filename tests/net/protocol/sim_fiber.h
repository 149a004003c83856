// Fiber: code that waits, beside other code of its thread.
#pragma once

#include <ucontext.h>

#include <cstddef>
#include <functional>

namespace tagflow::net::simulated {

// The real loop of a training and the real order of a save are functions that
// return when they are done. In virtual time they have to wait meanwhile, so
// each runs on a stack of its own, which it leaves and comes back to. Only one
// of all fibers of a thread runs at a time, and only while resume() does.
//
// Life cycle: made; runs and pauses by turns; over, when `body` has returned or
// was ended. Its thread is that of resume().
class Fiber {
 public:
  explicit Fiber(std::function<void()> body);
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;
  // As end().
  ~Fiber();

  // Runs the body until it pauses, or is over. REQUIRES: called by no fiber.
  void resume();
  // Ends the body where it pauses, by an exception. What its destructors call
  // must not pause any more: pause() throws again.
  void end();
  bool is_over() const { return is_over_; }

  // Leaves the fiber that runs.
  static void pause();
  // Throws if the fiber that runs is to end. No effect outside of fibers.
  static void check();

 private:
  struct Ended {};
  static void enter();
  void run();
  void switch_in();
  void switch_out();

  std::function<void()> body_;
  void* stack_ = nullptr;
  ucontext_t inside_{}, outside_{};
  bool is_ended_ = false;
  bool is_over_ = false;
  // What the sanitizers know of the two stacks.
  void* fake_stack_ = nullptr;
  const void* outer_stack_ = nullptr;
  size_t outer_size_ = 0;
  void* thread_ = nullptr;
  void* outer_thread_ = nullptr;
};

}  // namespace tagflow::net::simulated
