// The progress of a long run, on one line of a terminal.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace tagflow::apps {

// "25 s", "1 min 39 s", "2 h 46 min". REQUIRES: seconds >= 0.
std::string duration_text(double seconds);
// "step 120 of 1000, 35.2 steps/s, 25 s left", if `noun` is "step".
std::string progress_text(std::string_view noun, int64_t number, int64_t all,
                          double per_second);

// Draws to stderr now and then, from the first second on. Thread-compatible.
class Progress {
 public:
  // Of what `noun` names one of, from the number `first` to `last`. Draws
  // nothing if `is_shown` is false.
  Progress(const char* noun, int64_t first, int64_t last, bool is_shown);
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void after(int64_t number);
  // Clears the line, so that other output can be written.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;
  const char* const noun_;
  const int64_t first_, last_;
  const bool is_shown_;
  const Clock::time_point begin_ = Clock::now();
  Clock::time_point next_ = begin_ + std::chrono::seconds(1);
  bool is_drawn_ = false;
};

}  // namespace tagflow::apps
