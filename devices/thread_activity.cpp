#include "devices/thread_activity.h"

#include <fmt/format.h>

#include <atomic>
#include <boost/intrusive/list.hpp>
#include <chrono>
#include <cstddef>
#include <mutex>
#include <new>
#include <vector>

#include "graph/counted.h"

namespace tagflow::devices {
namespace {

int64_t steady_now() {
  return std::chrono::steady_clock::now().time_since_epoch().count();
}

// Written by its thread only. The node is of the step if the step was the same
// before and after it was read: a thread that turns to another step first
// stores null, and then the node.
struct ActivitySlot : boost::intrusive::list_base_hook<> {
  // Empty if the thread does not work for the step.
  std::string describe(const StepInfo& for_step) const {
    if (step.load(std::memory_order_acquire) != &for_step) return {};
    const graph::Node* const computed = node.load(std::memory_order_acquire);
    const std::string* const on = device.load(std::memory_order_acquire);
    const int64_t begin = since.load(std::memory_order_acquire);
    const char* const kind = freed.load(std::memory_order_acquire);
    const size_t count = freed_count.load(std::memory_order_acquire);
    if (step.load(std::memory_order_acquire) != &for_step) return {};
    if (kind != nullptr)
      return fmt::format("a {} of {} elements is being freed", kind, count);
    if (computed == nullptr) return "its values are being freed";
    return fmt::format("{} \"{}\" has run on {} for {:.3g} s", computed->op(),
                       computed->name(), *on,
                       double(steady_now() - begin) / 1e9);
  }

  std::atomic<const StepInfo*> step{nullptr};
  std::atomic<const graph::Node*> node{nullptr};  // null: no kernel
  std::atomic<const std::string*> device{nullptr};
  std::atomic<int64_t> since{0};
  std::atomic<const char*> freed{nullptr};  // null: nothing
  std::atomic<size_t> freed_count{0};
};

// The slots of all threads.
struct Activities {
  std::mutex mutex;  // guards the below
  boost::intrusive::list<ActivitySlot> slots;
};

// Never destroyed, since a thread may end after everything else.
Activities& activities() {
  alignas(Activities) static std::byte memory[sizeof(Activities)];
  static Activities& all = *new (memory) Activities;
  return all;
}

// A thread frees values even while its own variables are destroyed.
enum class SlotState : uint8_t { kNone, kMade, kGone };
constinit thread_local SlotState slot_state = SlotState::kNone;

struct OwnedSlot {
  OwnedSlot() {
    const std::lock_guard lock(activities().mutex);
    activities().slots.push_back(slot);
    slot_state = SlotState::kMade;
  }
  ~OwnedSlot() {
    const std::lock_guard lock(activities().mutex);
    activities().slots.erase(activities().slots.iterator_to(slot));
    slot_state = SlotState::kGone;
  }
  OwnedSlot(const OwnedSlot&) = delete;
  OwnedSlot& operator=(const OwnedSlot&) = delete;

  ActivitySlot slot;
};

// The slot of this thread; null if it is gone.
ActivitySlot* own_slot() {
  if (slot_state == SlotState::kGone) return nullptr;
  thread_local OwnedSlot mine;
  return &mine.slot;
}

// Calls change(slot) with the slot of this thread, unless it is gone.
template <class Change>
void change_activity(Change change) {
  if (ActivitySlot* const slot = own_slot(); slot != nullptr) change(*slot);
}

void enter_step(const StepInfo& step, const graph::Node* node,
                const std::string* device) {
  change_activity([&](ActivitySlot& slot) {
    slot.node.store(node, std::memory_order_release);
    slot.device.store(device, std::memory_order_release);
    slot.since.store(node == nullptr ? 0 : steady_now(),
                     std::memory_order_release);
    slot.step.store(&step, std::memory_order_release);
  });
}

}  // namespace

StepWork::StepWork(const StepInfo& step) { enter_step(step, nullptr, nullptr); }

StepWork::StepWork(const StepInfo& step, const graph::Node& node,
                   const std::string& device) {
  enter_step(step, &node, &device);
}

StepWork::~StepWork() {
  change_activity([](ActivitySlot& slot) {
    slot.step.store(nullptr, std::memory_order_release);
  });
}

FreedElements::FreedElements(const char* kind, size_t count)
    : are_many_(count >= (size_t(1) << 12)) {
  if (!are_many_) return;
  change_activity([&](ActivitySlot& slot) {
    slot.freed_count.store(count, std::memory_order_release);
    slot.freed.store(kind, std::memory_order_release);
  });
}

FreedElements::~FreedElements() {
  if (!are_many_) return;
  change_activity([](ActivitySlot& slot) {
    slot.freed.store(nullptr, std::memory_order_release);
  });
}

std::string describe_work(const StepInfo& step) {
  constexpr size_t kMostNamed = 5;
  std::vector<std::string> works;
  const std::lock_guard lock(activities().mutex);
  for (const ActivitySlot& slot : activities().slots)
    if (std::string work = slot.describe(step); !work.empty())
      works.push_back(std::move(work));
  return first_of(works, kMostNamed);
}

}  // namespace tagflow::devices
