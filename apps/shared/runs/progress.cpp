#include "apps/shared/runs/progress.h"

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

std::string progress_text(std::string_view noun, int64_t number, int64_t all,
                          double per_second) {
  std::string text =
      fmt::format("{0} {1} of {2}, {3:.{4}f} {0}s/s", noun, number, all,
                  per_second, per_second < 10 ? 2 : 0);
  if (per_second <= 0) return text;
  return text + fmt::format(", {} left",
                            duration_text(double(all - number) / per_second));
}

Progress::Progress(const char* noun, int64_t first, int64_t last, bool is_shown)
    : noun_(noun), first_(first), last_(last), is_shown_(is_shown) {}

void Progress::after(int64_t number) {
  if (!is_shown_) return;
  const Clock::time_point now = Clock::now();
  if (now < next_) return;
  constexpr std::chrono::milliseconds kPause{250};
  next_ = now + kPause;
  const double seconds = std::chrono::duration<double>(now - begin_).count();
  // Returns to the start of the line, and clears the rest of it.
  fmt::print(
      stderr, "\r{}\x1b[K",
      progress_text(noun_, number, last_, double(number - first_) / seconds));
  std::fflush(stderr);
  is_drawn_ = true;
}

void Progress::clear() {
  if (!is_drawn_) return;
  fmt::print(stderr, "\r\x1b[K");
  std::fflush(stderr);
  is_drawn_ = false;
}

}  // namespace tagflow::apps
