#include "python/src/pending.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>

#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>

#include "python/src/bindings.h"
#include "python/src/error.h"
#include "python/src/gil.h"
#include "python/src/lend.h"

namespace tagflow::python {
namespace {

using Clock = std::chrono::steady_clock;

// Note [Callbacks of Python]
// Threads of the engine never take the GIL: a program that computes in Python
// would stop all runs. So a run that ends sets its result, and if callbacks of
// Python wait for it, its number goes to the queue of the finished. A thread of
// Python takes the numbers from there and calls what waits
// (tagflow/_futures.py).
class Finished {
 public:
  static Finished& queue() {
    static auto* const made = new Finished;  // outlives the engine's threads
    return *made;
  }
  void push(uint64_t number) {
    const std::lock_guard lock(mutex_);
    numbers_.push_back(number);
    changed_.notify_one();
  }
  // Nothing if the queue is closed.
  std::optional<uint64_t> pop() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return is_closed_ || !numbers_.empty(); });
    if (is_closed_) return {};
    const uint64_t number = numbers_.front();
    numbers_.pop_front();
    return number;
  }
  void close(bool is_closed) {
    const std::lock_guard lock(mutex_);
    is_closed_ = is_closed;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<uint64_t> numbers_;
  bool is_closed_ = false;
};

// Shared by the object of Python and the engine.
struct Run {
  std::mutex mutex;
  std::condition_variable changed;
  std::optional<Result<std::vector<Tensor>>> answer;
  uint64_t watcher = 0;  // a number to push when it is over; 0: none
};

struct Pending {
  nb::object owner;  // the Callable, which has the parts
  const CallableParts* parts = nullptr;
  std::shared_ptr<Run> run;
  actors::CancelToken cancel;
  nb::object result;  // once somebody has asked for it

  bool done() const {
    const std::lock_guard lock(run->mutex);
    return run->answer.has_value();
  }
};

// Whether it is over; waits for that. Ctrl-C raises, and cancels the run, too.
bool wait(Pending& self, std::optional<double> seconds) {
  constexpr std::chrono::milliseconds kAskAgain{50};
  if (seconds && std::isnan(*seconds))
    throw nb::value_error("a time-out must be a number of seconds, not nan");
  const bool handles_signals = is_main_thread();
  const auto end =
      seconds ? Clock::now() +
                    std::chrono::duration_cast<Clock::duration>(
                        std::chrono::duration<double>(std::min(*seconds, 1e9)))
              : Clock::time_point::max();
  for (;;) {
    bool is_over;
    {
      const Released released;
      std::unique_lock lock(self.run->mutex);
      const auto is_done = [&] { return self.run->answer.has_value(); };
      if (!handles_signals && !seconds) {
        self.run->changed.wait(lock, is_done);
        is_over = true;
      } else {
        is_over = self.run->changed.wait_until(
            lock, std::min(end, Clock::now() + kAskAgain), is_done);
      }
    }
    if (handles_signals && PyErr_CheckSignals() != 0) {
      const nb::python_error interrupt;
      {
        const Released released;
        self.cancel.cancel();
      }
      throw interrupt;
    }
    if (is_over || Clock::now() >= end) return is_over;
  }
}

// The result of a run that is over, or its error. The tensors are moved, so
// that arrays can view them.
nb::object result(Pending& self) {
  if (self.result.is_valid()) return self.result;
  if (!self.done()) throw nb::value_error("the run is not over");
  sweep();
  if (!self.run->answer->ok()) raise(self.run->answer->status());
  PyObject* const object =
      results_object(*self.parts, *std::move(*self.run->answer));
  if (object == nullptr) throw nb::python_error();
  self.result = nb::steal<nb::object>(object);
  return self.result;
}

// False if it is over already.
bool watch(Pending& self, uint64_t number) {
  const std::lock_guard lock(self.run->mutex);
  if (self.run->answer) return false;
  self.run->watcher = number;
  return true;
}

}  // namespace

nb::object start_run(nb::object owner, const CallableParts& parts,
                     std::span<const Tensor> feeds) {
  Pending pending;
  pending.owner = std::move(owner);
  pending.parts = &parts;
  pending.run = std::make_shared<Run>();
  actors::RunOptions options = parts.elsewhere;
  options.cancel = pending.cancel;
  {
    const Released released;
    parts.callable.run_async(
        feeds, options,
        [run = pending.run](Result<std::vector<Tensor>> answer,
                            const actors::RunStats&) {
          uint64_t watcher;
          {
            const std::lock_guard lock(run->mutex);
            run->answer = std::move(answer);
            watcher = run->watcher;
            run->changed.notify_all();
          }
          if (watcher != 0) Finished::queue().push(watcher);
        });
  }
  return nb::cast(std::move(pending));
}

void bind_pending(nb::module_& module) {
  nb::class_<Pending>(module, "Pending",
                      "A run that was started; tagflow.Future wraps it.")
      .def("done", &Pending::done)
      .def("wait", &wait, nb::arg("seconds").none() = nb::none(),
           "Waits for the end; False if the time is up before.")
      .def("result", &result, "The result, or its error. It must be over.")
      .def(
          "cancel",
          [](Pending& self) {
            const Released released;
            self.cancel.cancel();
          },
          "Asks the run to stop.")
      .def("watch", &watch, nb::arg("number"),
           "finished() will return the number; False if it is over.");
  module.def(
      "finished",
      [] {
        const Released released;
        return Finished::queue().pop();
      },
      "Waits for the end of a watched run, and returns its number; None once "
      "close_finished() was called.");
  module.def(
      "close_finished",
      [](bool is_closed) { Finished::queue().close(is_closed); },
      nb::arg("is_closed") = true);
}

}  // namespace tagflow::python
