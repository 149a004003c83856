// What runs where and when, as it is drawn: lanes, with boxes along an axis of
// time. Plain data, free of the graph that it was made from.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "graph/status.h"

namespace tagflow::apps::draw {

// Times are microseconds from the start.
struct ScheduleItem {
  double start_us = 0;
  double finish_us = 0;  // not before the start; the same: it takes no time
  std::string name;
  std::string title;  // more lines, for who points at it
};

// One after another, from top to bottom.
struct ScheduleTrack {
  std::string name;
  std::string title;
  bool is_link = false;  // its items are transfers
  std::vector<ScheduleItem> items;
};

struct ItemIndex {
  size_t track = 0;
  size_t item = 0;
};

struct Schedule {
  std::string title;
  std::vector<ScheduleTrack> tracks;
  // From the end of one item to the start of another.
  std::vector<std::pair<ItemIndex, ItemIndex>> lines;
};

// For each item a lane of its track, from 0: the first one that is free when
// it starts. So there are no more lanes than items at once.
std::vector<size_t> assign_lanes(std::span<const ScheduleItem> items);

// No more is worth a picture.
inline constexpr size_t kMaxScheduleItems = 20'000;

// An <svg> element that stands for itself. ResourceExhausted where there are
// too many items. REQUIRES: times are finite and not negative, and indices of
// lines exist.
Result<std::string> to_svg(const Schedule& schedule);

}  // namespace tagflow::apps::draw
