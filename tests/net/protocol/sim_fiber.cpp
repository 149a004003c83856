#include "tests/net/protocol/sim_fiber.h"

#include <sys/mman.h>

#include <cerrno>
#include <exception>
#include <system_error>
#include <utility>

#ifdef TAGFLOW_SANITIZES_ADDRESS
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef TAGFLOW_SANITIZES_THREAD
#include <sanitizer/tsan_interface.h>
#endif

namespace tagflow::net::simulated {

namespace {

constexpr size_t kGuard = size_t{64} << 10;
constexpr size_t kStack = size_t{1} << 20;

thread_local Fiber* running = nullptr;

}  // namespace

Fiber::Fiber(std::function<void()> body) : body_(std::move(body)) {
  stack_ = ::mmap(nullptr, kGuard + kStack, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (stack_ == MAP_FAILED)
    throw std::system_error(errno, std::generic_category(), "a stack");
  ::mprotect(stack_, kGuard, PROT_NONE);
  ::getcontext(&inside_);
  inside_.uc_stack.ss_sp = static_cast<char*>(stack_) + kGuard;
  inside_.uc_stack.ss_size = kStack;
  inside_.uc_link = nullptr;
  ::makecontext(&inside_, &Fiber::enter, 0);
#ifdef TAGFLOW_SANITIZES_THREAD
  thread_ = __tsan_create_fiber(0);
#endif
}

Fiber::~Fiber() {
  end();
#ifdef TAGFLOW_SANITIZES_THREAD
  __tsan_destroy_fiber(thread_);
#endif
  ::munmap(stack_, kGuard + kStack);
}

void Fiber::resume() {
  if (is_over_) return;
  running = this;
  switch_in();
  running = nullptr;
}

void Fiber::end() {
  is_ended_ = true;
  resume();
}

void Fiber::pause() {
  Fiber* const self = running;
  if (!self->is_ended_) self->switch_out();
  if (self->is_ended_) throw Ended();
}

void Fiber::check() {
  if (running != nullptr && running->is_ended_) throw Ended();
}

void Fiber::enter() { running->run(); }

void Fiber::run() {
#ifdef TAGFLOW_SANITIZES_ADDRESS
  __sanitizer_finish_switch_fiber(nullptr, &outer_stack_, &outer_size_);
#endif
  try {
    if (!is_ended_) body_();
  } catch (const Ended&) {
  } catch (...) {
    std::terminate();
  }
  is_over_ = true;
  switch_out();
}

void Fiber::switch_in() {
#ifdef TAGFLOW_SANITIZES_ADDRESS
  void* fake = nullptr;
  __sanitizer_start_switch_fiber(&fake, inside_.uc_stack.ss_sp, kStack);
#endif
#ifdef TAGFLOW_SANITIZES_THREAD
  outer_thread_ = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(thread_, 0);
#endif
  ::swapcontext(&outside_, &inside_);
#ifdef TAGFLOW_SANITIZES_ADDRESS
  __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
#endif
}

void Fiber::switch_out() {
#ifdef TAGFLOW_SANITIZES_ADDRESS
  // Null: the stack is not needed any more.
  __sanitizer_start_switch_fiber(is_over_ ? nullptr : &fake_stack_,
                                 outer_stack_, outer_size_);
#endif
#ifdef TAGFLOW_SANITIZES_THREAD
  __tsan_switch_to_fiber(outer_thread_, 0);
#endif
  ::swapcontext(&inside_, &outside_);
#ifdef TAGFLOW_SANITIZES_ADDRESS
  __sanitizer_finish_switch_fiber(fake_stack_, &outer_stack_, &outer_size_);
#endif
}

}  // namespace tagflow::net::simulated
