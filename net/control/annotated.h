// Annotated: a typed actor that the thread sanitizer can follow.
#pragma once

#include <utility>

#include "actors/runtime/annotated_actor.h"

namespace tagflow::net {

// As actors::AnnotatedActor, which says what is handed over where.
template <class Base>
class Annotated : public Base {
 public:
  using Base::Base;

  void launch(caf::execution_unit* unit, bool lazy, bool hide) override {
    actors::tsan_release(this);
    Base::launch(unit, lazy, hide);
  }
  caf::resumable::resume_result resume(caf::execution_unit* unit,
                                       size_t max_throughput) override {
    actors::tsan_acquire(this);
    const auto result = Base::resume(unit, max_throughput);
    actors::tsan_release(this);
    return result;
  }
  void initialize() override {
    Base::initialize();
    actors::tsan_release(this);
  }
  void intrusive_ptr_release_impl() override {
    actors::tsan_release(this);
    Base::intrusive_ptr_release_impl();
  }
  void on_destroy() override {
    actors::tsan_acquire(this);
    Base::on_destroy();
  }
  void enqueue(caf::mailbox_element_ptr what,
               caf::execution_unit* unit) override {
    actors::tsan_release(what.get());
    Base::enqueue(std::move(what), unit);
  }
  caf::invoke_message_result consume(caf::mailbox_element& what) override {
    actors::tsan_acquire(&what);
    return Base::consume(what);
  }
};

}  // namespace tagflow::net
