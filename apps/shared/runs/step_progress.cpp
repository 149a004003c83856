#include "apps/shared/runs/step_progress.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdio>

namespace tagflow::apps {

std::string duration_text(double seconds) {
  constexpr int64_t kMinute = 60, kHour = 60 * kMinute;
  const int64_t whole = std::llround(seconds);
  if (whole >= kHour)
    return fmt::format("{} h {} min", whole / kHour, whole % kHour / kMinute);
  if (whole >= kMinute)
    return fmt::format("{} min {} s", whole / kMinute, whole % kMinute);
  return fmt::format("{} s", whole);
}

std::string progress_text(int64_t step, int64_t steps,
                          double steps_per_second) {
  std::string text =
      fmt::format("step {} of {}, {:.{}f} steps/s", step, steps,
                  steps_per_second, steps_per_second < 10 ? 2 : 0);
  if (steps_per_second <= 0) return text;
  return text + fmt::format(", {} left", duration_text(double(steps - step) /
                                                       steps_per_second));
}

StepProgress::StepProgress(int64_t first, int64_t last, bool is_shown)
    : first_(first), last_(last), is_shown_(is_shown) {}

void StepProgress::after_step(int64_t step) {
  if (!is_shown_) return;
  const Clock::time_point now = Clock::now();
  if (now < next_) return;
  constexpr std::chrono::milliseconds kPause{250};
  next_ = now + kPause;
  const double seconds = std::chrono::duration<double>(now - begin_).count();
  // Returns to the start of the line, and clears the rest of it.
  fmt::print(stderr, "\r{}\x1b[K",
             progress_text(step, last_, double(step - first_) / seconds));
  std::fflush(stderr);
  is_drawn_ = true;
}

void StepProgress::clear() {
  if (!is_drawn_) return;
  fmt::print(stderr, "\r\x1b[K");
  std::fflush(stderr);
  is_drawn_ = false;
}

}  // namespace tagflow::apps
