// Calls of functions by stages.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "devices/kernels/dataset/dataset.h"
#include "devices/kernels/dataset/pipeline.h"

namespace tagflow::devices {

// A call that was started. Its segment is woken when it is done.
class OpenCall {
 public:
  bool is_done() const { return is_done_.load(std::memory_order_acquire); }
  // The answer. REQUIRES: is_done(), and called once.
  Result<Element> take() { return *std::move(answer_); }
  // For who computes it: it is done, and `waiting` is woken. Called once, by
  // any thread.
  void finish(Result<Element> answer,
              const std::weak_ptr<Segment>& waiting) noexcept {
    answer_ = std::move(answer);
    is_done_.store(true, std::memory_order_release);
    if (const auto woken = waiting.lock()) woken->wake();
  }

 private:
  std::optional<Result<Element>> answer_;
  std::atomic<bool> is_done_{false};
};

using CallPtr = std::shared_ptr<OpenCall>;
// Starts what is computed of an element.
using StartCall = std::function<CallPtr(Element)>;

// A function that a stage calls. The stage's dataset owns the CapturedFunction.
class StageFunction {
 public:
  // NotFound if its host has no such function;
  // InvalidArgument if it does not take `num_args` arguments and the captured
  // ones.
  static Result<StageFunction> make(Segment& segment,
                                    const CapturedFunction& function,
                                    size_t num_args);
  // Starts a call; the captured values follow `args`.
  CallPtr operator()(Element args) const;
  // InvalidArgument unless the results, from `first` on, are of these types.
  Status check_gives(size_t first, const std::vector<DataType>& types) const;

 private:
  std::shared_ptr<const HostedFunction> hosted_;
  const CapturedFunction* function_ = nullptr;
  std::shared_ptr<CallGroup> group_;
  std::weak_ptr<Segment> segment_;
};

// The next element of `input`, passed through a function: calls are made one
// after the other. The answer of next() is that of the function.
class CallEach {
 public:
  CallEach(StagePtr input, StageFunction function)
      : input_(std::move(input)), function_(std::move(function)) {}

  // As Stage::next(). `was_called`: whether the answer is of the function, not
  // of the input. `argument`, if given, receives the element that it got.
  Progress next(Pull& pull, bool* was_called, Element* argument = nullptr);

 private:
  StagePtr input_;
  StageFunction function_;
  Element argument_;
  CallPtr call_;  // null: none is open
};

// As CallEach, but up to `most` calls are open at once. The answers come in the
// order of the elements.
class ParallelCalls {
 public:
  // The segment outlives it.
  ParallelCalls(Segment& segment, StagePtr input, StartCall call, size_t most)
      : segment_(segment),
        input_(std::move(input)),
        call_(std::move(call)),
        most_(most) {}

  // As CallEach::next(). REQUIRES: `argument` is always given, or never.
  Progress next(Pull& pull, bool* was_called, Element* argument = nullptr);

 private:
  struct Open {
    CallPtr call;  // null: the input failed
    Status error;
    Element argument;
  };

  Segment& segment_;
  StagePtr input_;
  StartCall call_;
  size_t most_;
  std::deque<Open> open_;  // in the order of their elements
  bool is_over_ = false;   // the input
};

// The dataset that a function returned. InvalidArgument if it is none, or one
// of elements of other types.
Result<DatasetRef> dataset_result(const Element& results,
                                  const ElementSpec& spec);
// The bool that a predicate returned. InvalidArgument if it is none.
Result<bool> predicate_of(const Element& result);

}  // namespace tagflow::devices
