// The progress of a long run, on one line of a terminal.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace tagflow::apps {

// "25 s", "1 min 39 s", "2 h 46 min". REQUIRES: seconds >= 0.
std::string duration_text(double seconds);
// "step 120 of 1000, 35.2 steps/s, 25 s left".
std::string progress_text(int64_t step, int64_t steps, double steps_per_second);

// Draws to stderr now and then, from the first second on. Thread-compatible.
class StepProgress {
 public:
  // For steps from `first` to `last`. Draws nothing if `is_shown` is false.
  StepProgress(int64_t first, int64_t last, bool is_shown);
  ~StepProgress() { clear(); }
  StepProgress(const StepProgress&) = delete;
  StepProgress& operator=(const StepProgress&) = delete;

  void after_step(int64_t step);
  // Clears the line, so that other output can be written.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;
  const int64_t first_, last_;
  const bool is_shown_;
  const Clock::time_point begin_ = Clock::now();
  Clock::time_point next_ = begin_ + std::chrono::seconds(1);
  bool is_drawn_ = false;
};

}  // namespace tagflow::apps
