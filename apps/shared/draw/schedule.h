// A drawing of what runs where and when: lanes with boxes along a time axis.
// Plain data, without pointers to the graph.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "graph/status.h"

namespace tagflow::apps::draw {

// Times are microseconds from the start.
struct ScheduleItem {
  double start_us = 0;
  double finish_us = 0;  // >= start_us
  std::string name;
  std::string title;  // more lines, for the tooltip
};

// Tracks are drawn from top to bottom.
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

// The lane of each item in its track, from 0: the first one that is free when
// it starts. So the number of lanes is that of simultaneous items.
std::vector<size_t> assign_lanes(std::span<const ScheduleItem> items);

// A limit: pictures with more items are unreadable.
inline constexpr size_t kMaxScheduleItems = 20'000;

// A complete <svg> element. Returns ResourceExhausted if there are too many
// items. REQUIRES: times are finite and not negative, and indices of lines
// exist.
Result<std::string> to_svg(const Schedule& schedule);

}  // namespace tagflow::apps::draw
