#include "apps/shared/draw/schedule.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>

using namespace tagflow;
using namespace tagflow::apps::draw;

namespace {

size_t count_of(const std::string& text, std::string_view part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != text.npos;
       at = text.find(part, at + part.size()))
    ++count;
  return count;
}

std::string must_draw(const Schedule& schedule) {
  const Result<std::string> svg = to_svg(schedule);
  REQUIRE_MESSAGE(svg.ok(), svg.status().to_string());
  return *svg;
}

// Two devices: "a" on one sends to "b" on the other.
Schedule two_devices() {
  Schedule schedule;
  schedule.title = "Simulated run";
  schedule.tracks = {{"CPU:0", "the first", false, {{0, 40, "a", "Op"}}},
                     {"CPU:1", "the second", false, {{50, 100, "b", "Op"}}},
                     {"CPU:0 → CPU:1", "both", true, {{40, 50, "a:0", "8"}}}};
  schedule.lines = {{{0, 0}, {2, 0}}, {{2, 0}, {1, 0}}};
  return schedule;
}

}  // namespace

TEST_CASE("a schedule puts items of one time into different lanes") {
  const std::vector<ScheduleItem> items = {{0, 10, "", ""},
                                           {5, 15, "", ""},
                                           {10, 20, "", ""},
                                           {12, 13, "", ""},
                                           {15, 16, "", ""}};
  CHECK(assign_lanes(items) == std::vector<size_t>{0, 1, 0, 2, 1});
}

TEST_CASE("a schedule gives no lane to items that take no time") {
  const std::vector<ScheduleItem> items = {
      {0, 10, "", ""}, {5, 5, "", ""}, {5, 15, "", ""}};
  CHECK(assign_lanes(items) == std::vector<size_t>{0, 0, 1});
}

TEST_CASE("a schedule's lanes never overlap, and are as few as can be") {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<ScheduleItem> items(random() % 30);
    for (ScheduleItem& item : items) {
      item.start_us = double(random() % 50);
      item.finish_us = item.start_us + double(random() % 20);
    }
    const std::vector<size_t> lanes = assign_lanes(items);
    REQUIRE(lanes.size() == items.size());
    size_t most = 0;
    for (int time = 0; time < 70; ++time) {
      std::map<size_t, int> used;
      size_t running = 0;
      for (size_t i = 0; i < items.size(); ++i) {
        if (items[i].start_us > time || items[i].finish_us <= time) continue;
        ++running;
        CHECK(++used[lanes[i]] == 1);
      }
      most = std::max(most, running);
    }
    for (const size_t lane : lanes) CHECK(lane < std::max<size_t>(most, 1));
  }
}

TEST_CASE("a schedule has a box for each item and a line for each transfer") {
  const std::string svg = must_draw(two_devices());
  CHECK(count_of(svg, "class=\"bar\"") == 3);
  CHECK(count_of(svg, "class=\"line\"") == 2);
  CHECK(count_of(svg, "class=\"track link\"") == 2);  // its lane, its items
  CHECK(count_of(svg, "class=\"tick\"") == 11);       // 0 to 100 us
  CHECK(svg.find(">100 us</text>") != svg.npos);
  CHECK(svg.find("<title>a\nOp</title>") != svg.npos);
  CHECK(svg.ends_with("</svg>\n"));
}

TEST_CASE("a schedule writes a name if there is room, and shortens it") {
  Schedule schedule;
  schedule.tracks = {{"CPU:0",
                      "",
                      false,
                      {{0, 1, "tiny", ""},
                       {1, 50, "a_name_of_a_node/" + std::string(100, 'x'), ""},
                       {50, 1000, "wide", ""}}}};
  const std::string svg = must_draw(schedule);
  CHECK(svg.find(">tiny</text>") == svg.npos);
  CHECK(svg.find("<title>tiny\n</title>") != svg.npos);
  CHECK(svg.find(">…xxx") != svg.npos);
  CHECK(svg.find(">wide</text>") != svg.npos);
}

TEST_CASE("a schedule draws one mark for all items of one moment") {
  Schedule schedule;
  ScheduleTrack& track = schedule.tracks.emplace_back();
  for (int i = 0; i < 20; ++i)
    track.items.push_back({5, 5, fmt::format("n{}", i), ""});
  track.items.push_back({7, 7, "last", ""});
  const std::string svg = must_draw(schedule);
  CHECK(count_of(svg, "class=\"mark\"") == 2);
  CHECK(svg.find("n11\nand 8 more</title>") != svg.npos);
}

TEST_CASE("an empty schedule, and one that takes no time, can be drawn") {
  CHECK(must_draw({}).starts_with("<svg"));
  Schedule schedule;
  schedule.tracks.push_back({"CPU:0", "", false, {{0, 0, "a", ""}}});
  const std::string svg = must_draw(schedule);
  CHECK(svg.find("nan") == svg.npos);
  CHECK(svg.find("inf") == svg.npos);
}

TEST_CASE("a schedule keeps markup and control characters as text") {
  Schedule schedule = two_devices();
  schedule.title = "<b>";
  schedule.tracks[0].name = "</svg>";
  schedule.tracks[0].title = "\"&\"";
  schedule.tracks[0].items[0].name = "<script>\x1b[31m";
  const std::string svg = must_draw(schedule);
  for (const char* part : {"<script>", "<b>", "\x1b", "\"&\""})
    CHECK(svg.find(part) == svg.npos);
  CHECK(count_of(svg, "</svg>") == 1);
  CHECK(svg.find("&lt;script&gt;") != svg.npos);
}

TEST_CASE("a schedule of too many items is refused") {
  Schedule schedule;
  schedule.tracks.emplace_back().items.resize(kMaxScheduleItems + 1);
  const Status status = to_svg(schedule).status();
  CHECK(status.code() == Code::kResourceExhausted);
  CHECK(status.message() ==
        "[draw] 20001 kernels and transfers are too many to draw: the limit is "
        "20000. With --fetch, only the needed ones are drawn");
}
