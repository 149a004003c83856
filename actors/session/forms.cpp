#include "actors/session/forms.h"

#include <algorithm>
#include <utility>

#include "graph/fault.h"

namespace tagflow::actors {

bool Forms::is_for(const Slot& slot, std::span<const Tensor> feeds) const {
  for (size_t i = 0; i < open_feeds_.size(); ++i)
    if (slot.shapes[i] != feeds[open_feeds_[i]].shape()) return false;
  return true;
}

std::shared_ptr<Forms::Slot> Forms::slot_for(std::span<const Tensor> feeds,
                                             std::shared_ptr<Slot>& old) {
  ++num_runs_;
  for (const auto& slot : slots_)
    if (is_for(*slot, feeds)) {
      slot->last_run = num_runs_;
      return slot;
    }
  auto slot = std::make_shared<Slot>();
  for (const size_t i : open_feeds_) slot->shapes.push_back(feeds[i].shape());
  slot->last_run = num_runs_;
  slot->wait = first_wait_;
  if (slots_.size() < kMostForms) return slots_.emplace_back(std::move(slot));
  const auto oldest = std::ranges::min_element(
      slots_, {}, [](const auto& other) { return other->last_run; });
  // Shapes that evict one another are compiled less and less often.
  if ((*oldest)->form.prepared != nullptr)
    first_wait_ = next_wait(first_wait_, (*oldest)->runs);
  slot->wait = first_wait_;
  old = std::exchange(*oldest, slot);
  return slot;
}

int Forms::next_wait(int wait, int64_t runs) {
  return runs > wait ? std::max(wait / 2, kFewestRuns)
                     : std::min(wait * 2, kMostRuns);
}

std::shared_ptr<const Prepared> Forms::use(Slot& slot, Form& old) {
  if (slot.form.prepared == nullptr) return nullptr;
  if (slot.form.variables.are_current()) {
    ++slot.runs;
    return slot.form.prepared;
  }
  slot.wait = next_wait(slot.wait, slot.runs);
  slot.runs = 0;
  old = std::exchange(slot.form, {});
  return nullptr;
}

bool Forms::is_due(Slot& slot) {
  return !slot.is_making && ++slot.runs > slot.wait;
}

std::shared_ptr<const Prepared> Forms::pick(std::span<const Tensor> feeds,
                                            const Make& make) {
  std::shared_ptr<Slot> slot, old_slot;
  Form old, old_general;  // destroyed without the lock, like the slot
  std::shared_ptr<const Prepared> other;  // if the slot has no form
  {
    std::lock_guard lock(mutex_);
    slot = slot_for(feeds, old_slot);
    if (auto found = use(*slot, old)) return found;
    bool is_wanted = is_due(*slot);
    if (general_ != nullptr) {
      other = use(*general_, old_general);
      if (!is_wanted && other == nullptr && is_due(*general_)) {
        is_wanted = true;
        slot = general_;
      }
    }
    if (!is_wanted || make == nullptr) return other;
    slot->is_making = true;
  }
  // Whatever fails or throws, the slot can be tried again.
  Result<Form> form = Form();
  const Status thrown = guarded("session", [&] {
    std::vector<Shape> shapes;
    if (!open_feeds_.empty() && slot != general_)
      for (const Tensor& feed : feeds) shapes.push_back(feed.shape());
    form = make(signature_, std::move(shapes), is_frozen_);
  });
  std::lock_guard lock(mutex_);
  slot->is_making = false;
  slot->runs = 0;
  if (!thrown.ok() || !form.ok() || form->prepared == nullptr) {
    slot->wait = std::min(slot->wait * 2, kMostRuns);
    return other;
  }
  slot->form = std::move(form).value();
  // The next run uses versions that have changed meanwhile: this one has
  // started.
  return slot->form.variables.are_current() ? slot->form.prepared : other;
}

}  // namespace tagflow::actors
