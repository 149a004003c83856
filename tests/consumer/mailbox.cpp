#include "mailbox.h"

#include <utility>

using namespace tagflow;
using devices::Commit;

Mailbox& Mailbox::global() {
  // Not destroyed, since runs may be in flight when the program ends.
  static auto* mailbox = new Mailbox;
  return *mailbox;
}

Mailbox::Wait::Wait(Mailbox& mailbox, devices::KernelContext& context,
                    devices::Completion done)
    : mailbox_(mailbox), context_(context), done_(std::move(done)) {}

bool Mailbox::Wait::complete(double value) {
  // From here on on_cancel() is not called.
  if (!claim()) return false;
  bool is_taken = false;
  {
    // Before the run's answer, or not at all.
    const Commit commit = context_.commit();
    if (commit) {
      context_.set_output(0, Tensor::scalar(value));
      is_taken = true;
    }
  }
  end(is_taken ? Status() : error(Code::kCancelled, "[Take] the run is over"));
  return is_taken;
}

void Mailbox::Wait::on_cancel() {
  std::shared_ptr<Wait> self;  // released without the lock
  {
    const std::lock_guard lock(mailbox_.mutex_);
    is_over_ = true;
    if (is_queued_) {
      self = std::move(*place_);
      mailbox_.waits_.erase(place_);
      is_queued_ = false;
    }
  }
  end(error(Code::kCancelled, "[Take] nothing came before the run was over"));
}

void Mailbox::Wait::end(Status status) {
  // The context and all else of the run may be destroyed after this.
  done_(std::move(status));
}

void Mailbox::take(const std::shared_ptr<Wait>& wait) {
  double value = 0;
  {
    const std::lock_guard lock(mutex_);
    if (wait->is_over_) return;  // on_cancel() has answered, or will
    if (values_.empty()) {
      wait->place_ = waits_.insert(waits_.end(), wait);
      wait->is_queued_ = true;
      return;
    }
    value = values_.front();
    values_.pop_front();
  }
  // Without the lock, since an answer may call any code.
  if (!wait->complete(value)) hand_over(value, End::kFront);
}

void Mailbox::put(double value) { hand_over(value, End::kBack); }

void Mailbox::hand_over(double value, End end) {
  for (;;) {
    std::shared_ptr<Wait> first;
    {
      const std::lock_guard lock(mutex_);
      if (waits_.empty()) {
        values_.insert(end == End::kFront ? values_.begin() : values_.end(),
                       value);
        return;
      }
      first = std::move(waits_.front());
      waits_.pop_front();
      first->is_queued_ = false;
    }
    if (first->complete(value)) return;
  }
}

size_t Mailbox::size() const {
  const std::lock_guard lock(mutex_);
  return values_.size();
}

size_t Mailbox::waiting() const {
  const std::lock_guard lock(mutex_);
  return waits_.size();
}
