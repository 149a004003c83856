#include "devices/swapper.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <future>
#include <optional>
#include <vector>

#include "devices/device.h"
#include "devices/stream/stream.h"
#include "devices/tracking_allocator.h"
#include "tests/devices/kernel_fixture.h"

namespace tagflow::devices {

namespace {

constexpr int64_t kKiB = 1024;

// An accelerator whose copies are made when a test says so.
class HeldCopies final : public Accelerator {
 public:
  explicit HeldCopies(int64_t limit)
      : memory_(TrackingAllocator::make({"there", limit, false})),
        swapper_(std::make_shared<Swapper>(*this, memory_->ledger(), limit)) {
    memory_->swap_by(swapper_);
  }
  ~HeldCopies() override {
    swapper_->close();
    answer_all();
  }

  void launch(const Kernel&, KernelContext&, Completion done) override {
    done({});
  }
  void copy_to_host(Tensor tensor, Copied done, uint64_t) override {
    add({std::move(tensor), std::move(done), &host_allocator()}, to_host_);
  }
  void copy_from_host(Tensor tensor, Copied done, uint64_t) override {
    add({std::move(tensor), std::move(done), memory_.get()}, to_device_);
  }
  Result<Tensor> upload(const Tensor& tensor) override {
    return copy(tensor, *memory_);
  }
  void observe(Observer) override {}

  // From now on copies are made by threads, one for each direction.
  void start_threads() {
    to_host_.emplace();
    to_device_.emplace();
    to_device_->enqueue([](Stream::Fate) {
      Swapper::set_thread_waits(Swapper::Waits::kForLeaving);
    });
  }
  // Those have done all.
  void stop_threads() {
    to_device_.reset();
    to_host_.reset();
  }
  // The oldest copy.
  void answer() {
    Held held = std::move(held_.front());
    held_.pop_front();
    make(held);
  }
  void answer_all() {
    while (!held_.empty()) answer();
  }
  // The first number of the tensors that are being copied.
  std::vector<float> moving() const {
    std::vector<float> first;
    for (const Held& held : held_)
      first.push_back(held.tensor.data<float>()[0]);
    return first;
  }

  // One KiB of that number.
  Tensor number(float value) {
    Tensor tensor = *Tensor::allocate(DataType::kFloat, {256}, *memory_);
    std::ranges::fill(tensor.mutable_flat<float>(), value);
    return tensor;
  }
  SavedOwner push(float value) { return save(number(value), 0); }
  std::vector<SavedOwner> push_all(int count) {
    std::vector<SavedOwner> pushed;
    for (int i = 0; i < count; ++i) pushed.push_back(push(float(i)));
    return pushed;
  }
  MemoryStats stats() const { return memory_->stats(); }
  Swapper& swapper() { return *swapper_; }

  bool at_once = false;         // copies are made when they are asked for
  std::optional<Status> fails;  // what they answer then

 private:
  struct Held {
    Tensor tensor;
    Copied done;
    Allocator* to;
  };

  void add(Held held, std::optional<Stream>& stream) {
    if (stream) {
      stream->enqueue(
          [this, held = std::move(held)](Stream::Fate) mutable { make(held); });
      return;
    }
    held_.push_back(std::move(held));
    if (at_once) answer_all();
  }
  void make(Held& held) {
    Result<Tensor> copied =
        fails ? Result<Tensor>(*fails) : copy(held.tensor, *held.to);
    held.tensor.reset();
    held.done(std::move(copied));
  }
  static Result<Tensor> copy(const Tensor& tensor, Allocator& to) {
    TAGFLOW_ASSIGN(Tensor made,
                   Tensor::allocate(tensor.dtype(), tensor.shape(), to));
    std::memcpy(made.mutable_raw(), tensor.raw(), tensor.bytes());
    return made;
  }

  TrackingAllocator::Owner memory_;
  std::shared_ptr<Swapper> swapper_;
  std::deque<Held> held_;
  std::optional<Stream> to_host_, to_device_;
};

float pop(std::vector<SavedOwner>& stack) {
  SavedOwner saved = std::move(stack.back());
  stack.pop_back();
  return saved->take().data<float>()[0];
}

// The calling thread waits for memory as that which runs kernels does.
struct MayWait {
  MayWait() { Swapper::set_thread_waits(Swapper::Waits::kForAll); }
  ~MayWait() { Swapper::set_thread_waits(Swapper::Waits::kNever); }
};

using Numbers = std::vector<float>;

}  // namespace

TEST_CASE("swapping: only values in an accelerator's memory are kept") {
  HeldCopies device(16 * kKiB);
  CHECK(save(Tensor::scalar(1.0f), 0) == nullptr);
  CHECK(save(Tensor::make(DataType::kFloat, {256}), 0) == nullptr);
  CHECK(device.push(1) != nullptr);
}

TEST_CASE("swapping: no value moves if there is enough memory") {
  HeldCopies device(16 * kKiB);
  std::vector<SavedOwner> stack = device.push_all(12);
  CHECK(device.moving().empty());
  for (int i = 12; i-- > 0;) CHECK(pop(stack) == float(i));
  CHECK(device.moving().empty());
  CHECK(device.stats().in_use == 0);
  CHECK(device.stats().swapped_out == 0);
}

TEST_CASE("swapping: above the mark the oldest values leave, two at a time") {
  HeldCopies device(16 * kKiB);
  const std::vector<SavedOwner> stack = device.push_all(14);
  CHECK(device.moving() == Numbers{0, 1});
  device.answer();
  CHECK(device.moving() == Numbers{1});
  device.answer();
  CHECK(device.moving().empty());
  CHECK(device.stats().in_use == 12 * kKiB);
  CHECK(device.stats().swapped_out == 2 * kKiB);
}

TEST_CASE("swapping: values come back before their pop, the last one first") {
  HeldCopies device(16 * kKiB);
  device.at_once = true;
  std::vector<SavedOwner> stack = device.push_all(30);
  CHECK(device.stats().in_use == 12 * kKiB);
  CHECK(device.stats().swapped_out == 18 * kKiB);
  device.at_once = false;
  // As soon as 11 of 16 KiB are not exceeded; what is popped counts until its
  // reader lets it go.
  CHECK(pop(stack) == 29);
  CHECK(pop(stack) == 28);
  CHECK(device.moving().empty());
  CHECK(pop(stack) == 27);
  CHECK(device.moving() == Numbers{17});
  CHECK(pop(stack) == 26);
  CHECK(device.moving() == Numbers{17, 16});
  device.answer_all();
  CHECK(device.stats().swapped_in >= 2 * kKiB);
  device.at_once = true;
  for (int i = 26; i-- > 0;) {
    CHECK(pop(stack) == float(i));
    // The next one is there.
    if (i > 0) {
      bool is_here = false;
      device.at_once = false;
      stack.back()->fetch([&] { is_here = true; });
      CHECK(is_here);
      device.at_once = true;
    }
  }
  CHECK(device.stats().swapped_in == 18 * kKiB);
  CHECK(device.stats().in_use == 0);
}

TEST_CASE("swapping: a value that somebody else holds stays") {
  HeldCopies device(16 * kKiB);
  const Tensor held = device.number(7);
  const SavedOwner first = save(held, 0);
  const std::vector<SavedOwner> stack = device.push_all(13);
  CHECK(device.moving() == Numbers{0, 1});
}

TEST_CASE("swapping: a value in two stacks moves once") {
  HeldCopies device(16 * kKiB);
  device.at_once = true;
  std::vector<SavedOwner> one, other;
  for (int i = 0; i < 30; ++i) {
    const Tensor value = device.number(float(i));
    one.push_back(save(value, 0));
    other.push_back(save(value, 0));
    CHECK(one.back().get() == other.back().get());
  }
  // The last one was still held when it was pushed.
  CHECK(device.stats().in_use == 12 * kKiB);
  CHECK(device.stats().swapped_out == 18 * kKiB);
  for (int i = 30; i-- > 0;) {
    CHECK(pop(one) == float(i));
    CHECK(pop(other) == float(i));
  }
  CHECK(device.stats().swapped_in == 18 * kKiB);
  CHECK(device.stats().in_use == 0);
}

TEST_CASE("swapping: values pushed after a pop leave first") {
  HeldCopies device(16 * kKiB);
  std::vector<SavedOwner> stack = device.push_all(8);
  CHECK(pop(stack) == 7);
  std::vector<SavedOwner> later;
  for (int i = 0; i < 6; ++i) later.push_back(device.push(float(100 + i)));
  CHECK(device.moving() == Numbers{100});
  device.answer_all();
  CHECK(device.stats().in_use == 12 * kKiB);
}

TEST_CASE("swapping: a value popped while it leaves is unchanged") {
  HeldCopies device(4 * kKiB);
  std::vector<SavedOwner> stack = device.push_all(4);
  CHECK(device.moving() == Numbers{0});
  for (int i = 4; i-- > 0;) CHECK(pop(stack) == float(i));
  device.answer_all();
  CHECK(device.stats().in_use == 0);
}

TEST_CASE("swapping: a value that has left once leaves without a copy") {
  const MayWait here;
  HeldCopies device(16 * kKiB);
  device.at_once = true;
  std::vector<SavedOwner> stack = device.push_all(20);
  for (int i = 0; i < 6; ++i) pop(stack);
  const int64_t copied = device.stats().swapped_out;
  CHECK(device.stats().swapped_in > 0);
  std::vector<Tensor> others;
  for (int i = 0; i < 6; ++i) others.push_back(device.number(0));
  CHECK(device.stats().swapped_out == copied);
  others.clear();
  for (int i = 14; i-- > 0;) CHECK(pop(stack) == float(i));
}

TEST_CASE("swapping: a fetch is answered when the value has come, or cannot") {
  HeldCopies device(16 * kKiB);
  device.at_once = true;
  std::vector<SavedOwner> stack = device.push_all(30);
  device.at_once = false;
  int answers = 0;
  stack[0]->fetch([&] { ++answers; });
  stack[0]->fetch([&] { ++answers; });
  CHECK(answers == 0);
  CHECK(device.moving() == Numbers{0});
  device.answer();
  CHECK(answers == 2);
  stack[1]->fetch([&] { ++answers; });
  device.fails = error(Code::kResourceExhausted, "no memory");
  device.answer_all();
  CHECK(answers == 3);
  // It is read where it is.
  const Tensor value = stack[1]->take();
  CHECK(host_readable(value));
  CHECK(value.data<float>()[0] == 1);
}

TEST_CASE("an allocation that does not fit waits for values to leave") {
  HeldCopies device(16 * kKiB);
  std::vector<SavedOwner> stack = device.push_all(12);
  device.at_once = true;
  const auto larger = [&] {
    return Tensor::allocate(DataType::kFloat, {256 * 8},
                            *stack[0]->read().buffer()->allocator);
  };
  // Only an accelerator's own threads do.
  expect_error(larger(), Code::kResourceExhausted, "in use of 16 KiB");
  const MayWait here;
  Result<Tensor> made = larger();
  REQUIRE(made.ok());
  CHECK(device.stats().in_use <= 16 * kKiB);
  CHECK(device.stats().swapped_out >= 4 * kKiB);
  expect_error(Tensor::allocate(DataType::kFloat, {256 * 17},
                                *made->buffer()->allocator),
               Code::kResourceExhausted, "swapped out");
}

TEST_CASE("swapping: values stay if the host has no memory, and it is said") {
  const MayWait here;
  HeldCopies device(16 * kKiB);
  device.at_once = true;
  device.fails = error(Code::kResourceExhausted, "the host has no memory");
  std::vector<SavedOwner> stack = device.push_all(16);
  CHECK(device.stats().in_use == 16 * kKiB);
  expect_error(Tensor::allocate(DataType::kFloat, {256},
                                *stack[0]->read().buffer()->allocator),
               Code::kResourceExhausted, "and the host has no memory for more");
  // It has some again: what was refused goes when something else could.
  device.fails.reset();
  CHECK(pop(stack) == 15);
  CHECK(pop(stack) == 14);
  stack.push_back(device.push(14));
  stack.push_back(device.push(15));
  CHECK(device.stats().in_use <= 12 * kKiB);
  CHECK(!device.stats().host_is_short);
  for (int i = 16; i-- > 0;) CHECK(pop(stack) == float(i));
}

TEST_CASE("swapping: a closed swapper moves nothing, and gives what it has") {
  std::vector<SavedOwner> stack;
  {
    HeldCopies device(16 * kKiB);
    device.at_once = true;
    stack = device.push_all(30);
    device.at_once = false;
    pop(stack);
    pop(stack);
  }
  bool answered = false;
  stack[0]->fetch([&] { answered = true; });
  CHECK(answered);
  for (int i = 28; i-- > 0;) CHECK(pop(stack) == float(i));
}

TEST_CASE("swapping: a pop gives the pushed value, whatever moves when") {
  rc::check([] {
    HeldCopies device(8 * kKiB);
    std::vector<SavedOwner> stack;
    std::vector<float> model;
    float next = 0;
    for (const int action :
         *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 10))) {
      if (action < 5) {
        if (device.stats().in_use == 8 * kKiB) device.answer_all();
        if (device.stats().in_use == 8 * kKiB) continue;
        stack.push_back(device.push(next));
        model.push_back(next++);
      } else if (action < 8 && !stack.empty()) {
        RC_ASSERT(pop(stack) == model.back());
        model.pop_back();
      } else if (action == 8 && !stack.empty()) {
        stack[size_t(next) % stack.size()]->fetch([] {});
      } else if (!device.moving().empty()) {
        device.answer();
      }
    }
    for (; !stack.empty(); model.pop_back())
      RC_ASSERT(pop(stack) == model.back());
    device.answer_all();
    RC_ASSERT(device.stats().in_use == 0);
  });
}

TEST_CASE("swapping: threads push and pop while others copy") {
  HeldCopies device(32 * kKiB);
  device.start_threads();
  const auto use = [&](int thread) {
    const MayWait here;
    std::vector<SavedOwner> stack;
    int wrong = 0;
    for (int round = 0; round < 20; ++round) {
      for (int i = 0; i < 40; ++i)
        stack.push_back(device.push(float(thread * 1000 + i)));
      for (int i = 40; i-- > 0;) {
        if (i % 3 == 0) {
          std::promise<void> is_here;
          stack.back()->fetch([&] { is_here.set_value(); });
          is_here.get_future().wait();
        }
        wrong += pop(stack) != float(thread * 1000 + i);
      }
    }
    return wrong;
  };
  auto other = std::async(std::launch::async, use, 1);
  CHECK(use(2) == 0);
  CHECK(other.get() == 0);
  device.stop_threads();
  CHECK(device.stats().in_use == 0);
  CHECK(device.stats().swapped_out > 0);
}

}  // namespace tagflow::devices
