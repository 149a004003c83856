#include "apps/shared/draw/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <set>

#include "apps/shared/draw/svg.h"

namespace tagflow::apps::draw {
namespace {

// In pixels.
constexpr double kLeft = 170;
constexpr double kPlotWidth = 1100;
constexpr double kRight = 30;
constexpr double kTop = 62;
constexpr double kLaneHeight = 24;
constexpr double kTrackGap = 10;
constexpr double kBarHeight = 18;
constexpr double kBarOffset = (kLaneHeight - kBarHeight) / 2;

constexpr std::string_view kScheduleStyle = R"(
svg.schedule { font-family: "Helvetica Neue", Helvetica, Arial,
  "Liberation Sans", "DejaVu Sans", sans-serif; background: #fff; }
.heading { font-size: 14px; font-weight: 600; fill: #1c2430; }
.tick line { stroke: #e3e7ec; stroke-width: 1; }
.tick text { font-size: 11px; fill: #66707e; text-anchor: middle; }
.track rect.lane { fill: #f4f7fb; }
.track.link rect.lane { fill: #fdfaf3; }
.track > text { font-size: 12px; fill: #1c2430; text-anchor: end; }
.bar rect { fill: #cfe0f6; stroke: #4b83c3; stroke-width: 0.8; }
.link .bar rect { fill: #fdeccb; stroke: #c58a1b; }
.bar text { font-size: 11px; fill: #1c2430; }
.mark line { stroke: #7b62bd; stroke-width: 1.4; }
.mark rect { fill-opacity: 0; }
.line path { fill: none; stroke: #8a93a0; stroke-width: 0.8; }
)";

// The next of 1, 2, 5, 10, 20, ... times a power of ten.
double round_up(double value) {
  const double power = std::pow(10, std::floor(std::log10(value)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= value) return factor * power;
  return 10 * power;
}

class SchedulePainter {
 public:
  explicit SchedulePainter(const Schedule& schedule) : schedule_(schedule) {
    double y = kTop;
    for (const ScheduleTrack& track : schedule.tracks) {
      lanes_.push_back(assign_lanes(track.items));
      tops_.push_back(y);
      size_t count = 1;
      for (const size_t lane : lanes_.back()) count = std::max(count, lane + 1);
      counts_.push_back(count);
      y += double(count) * kLaneHeight + kTrackGap;
      for (const ScheduleItem& item : track.items)
        end_ = std::max(end_, item.finish_us);
    }
    bottom_ = y;
    if (end_ <= 0) end_ = 1;
  }

  std::string run() {
    text_ = fmt::format(
        R"(<svg class="schedule" xmlns="http://www.w3.org/2000/svg" )"
        R"(width="{0:.0f}" height="{1:.0f}" viewBox="0 0 {0:.0f} {1:.0f}">)"
        "\n<style>{2}</style>\n"
        R"(<text class="heading" x="12" y="22">{3}</text>)"
        "\n",
        kLeft + kPlotWidth + kRight, bottom_ + 12, kScheduleStyle,
        escape_markup(schedule_.title));
    for (size_t track = 0; track < schedule_.tracks.size(); ++track)
      add_lanes(track);
    add_axis();
    for (size_t track = 0; track < schedule_.tracks.size(); ++track)
      add_items(track);
    for (const auto& [from, to] : schedule_.lines) add_line(from, to);
    return text_ + "</svg>\n";
  }

 private:
  double x_of(double time_us) const {
    return kLeft + time_us / end_ * kPlotWidth;
  }
  double top_of(const ItemIndex& index) const {
    return tops_[index.track] +
           double(lanes_[index.track][index.item]) * kLaneHeight;
  }
  const ScheduleItem& item(const ItemIndex& index) const {
    return schedule_.tracks[index.track].items[index.item];
  }
  std::string_view track_class(size_t track) const {
    return schedule_.tracks[track].is_link ? "track link" : "track";
  }

  void add_axis() {
    constexpr double kTicks = 12;
    const double step = round_up(end_ / kTicks);
    for (int tick = 0; tick <= kTicks && tick * step <= end_; ++tick) {
      const double time = tick * step;
      text_ += fmt::format(
          R"(<g class="tick"><line x1="{0:.1f}" y1="{1:.1f}" x2="{0:.1f}" )"
          R"(y2="{2:.1f}"/><text x="{0:.1f}" y="{3:.1f}">{4:.10g} us</text></g>)"
          "\n",
          x_of(time), kTop - 6, bottom_, kTop - 12, time);
    }
  }

  void add_lanes(size_t track) {
    const ScheduleTrack& drawn = schedule_.tracks[track];
    constexpr size_t kMaxTrackName = 20;
    text_ += fmt::format(
        R"(<g class="{}" id="k{}"><title>{}</title><text x="{:.1f}" )"
        R"(y="{:.1f}">{}</text>)",
        track_class(track), track, escape_markup(drawn.title), kLeft - 10,
        tops_[track] + kLaneHeight / 2 + 4,
        escape_markup(shorten_name(drawn.name, kMaxTrackName)));
    for (size_t lane = 0; lane < counts_[track]; ++lane)
      text_ += fmt::format(
          R"(<rect class="lane" x="{:.1f}" y="{:.1f}" width="{:.1f}" )"
          R"(height="{:.1f}"/>)",
          kLeft, tops_[track] + double(lane) * kLaneHeight + 1, kPlotWidth,
          kLaneHeight - 2);
    text_ += "</g>\n";
  }

  void add_items(size_t track) {
    const auto& items = schedule_.tracks[track].items;
    text_ += fmt::format("<g class=\"{}\">\n", track_class(track));
    // Items without duration at the same time share one mark.
    std::map<double, std::vector<const ScheduleItem*>> marks;
    for (size_t i = 0; i < items.size(); ++i) {
      if (items[i].finish_us > items[i].start_us)
        add_bar(items[i], top_of({track, i}));
      else
        marks[items[i].start_us].push_back(&items[i]);
    }
    for (const auto& [time, marked] : marks)
      add_mark(time, marked, tops_[track]);
    text_ += "</g>\n";
  }

  void add_bar(const ScheduleItem& item, double top) {
    constexpr double kCharacter = 6.6, kPadding = 6, kLeastWidth = 0.8;
    constexpr double kLeastCharacters = 3;
    const double x = x_of(item.start_us);
    const double width = std::max(kLeastWidth, x_of(item.finish_us) - x);
    text_ += fmt::format(
        R"(<g class="bar"><title>{}</title><rect x="{:.2f}" y="{:.1f}" )"
        R"(width="{:.2f}" height="{:.1f}" rx="2"/>)",
        escape_markup(item.name + "\n" + item.title), x, top + kBarOffset,
        width, kBarHeight);
    const double room = (width - kPadding) / kCharacter;
    if (room >= kLeastCharacters)
      text_ +=
          fmt::format(R"(<text x="{:.2f}" y="{:.1f}">{}</text>)",
                      x + kPadding / 2, top + kLaneHeight / 2 + 4,
                      escape_markup(shorten_name(item.name, size_t(room))));
    text_ += "</g>\n";
  }

  void add_mark(double time, const std::vector<const ScheduleItem*>& marked,
                double top) {
    constexpr size_t kMaxNames = 12;
    constexpr double kReach = 3;  // of the pointer
    std::string title = fmt::format("{:.3f} us", time);
    for (size_t i = 0; i < std::min(marked.size(), kMaxNames); ++i)
      title += "\n" + marked[i]->name;
    if (marked.size() > kMaxNames)
      title += fmt::format("\nand {} more", marked.size() - kMaxNames);
    text_ += fmt::format(
        R"(<g class="mark"><title>{0}</title><line x1="{1:.2f}" y1="{2:.1f}" )"
        R"(x2="{1:.2f}" y2="{3:.1f}"/><rect x="{4:.2f}" y="{2:.1f}" )"
        R"(width="{5:.1f}" height="{6:.1f}"/></g>)"
        "\n",
        escape_markup(title), x_of(time), top + 1, top + kLaneHeight - 1,
        x_of(time) - kReach, 2 * kReach, kLaneHeight - 2);
  }

  void add_line(const ItemIndex& from, const ItemIndex& to) {
    const double x0 = x_of(item(from).finish_us);
    const double x1 = x_of(item(to).start_us);
    const double y0 = top_of(from) + kLaneHeight / 2;
    const double y1 = top_of(to) + kLaneHeight / 2;
    text_ += fmt::format(
        R"(<g class="line"><path d="M{:.2f},{:.1f}L{:.2f},{:.1f}"/></g>)"
        "\n",
        x0, y0, x1, y1);
  }

  const Schedule& schedule_;
  std::vector<std::vector<size_t>> lanes_;  // by track and item
  std::vector<double> tops_;                // by track
  std::vector<size_t> counts_;              // lanes, by track
  double bottom_ = 0;
  double end_ = 0;  // us
  std::string text_;
};

}  // namespace

std::vector<size_t> assign_lanes(std::span<const ScheduleItem> items) {
  std::vector<size_t> order(items.size());
  std::iota(order.begin(), order.end(), size_t(0));
  std::ranges::stable_sort(order, {},
                           [&](size_t i) { return items[i].start_us; });
  std::vector<size_t> lanes(items.size());
  // Lanes in use, by their end; and the free ones.
  std::set<std::pair<double, size_t>> busy;
  std::set<size_t> free;
  for (const size_t i : order) {
    if (items[i].finish_us <= items[i].start_us) continue;
    while (!busy.empty() && busy.begin()->first <= items[i].start_us) {
      free.insert(busy.begin()->second);
      busy.erase(busy.begin());
    }
    lanes[i] = free.empty() ? busy.size() : *free.begin();
    free.erase(lanes[i]);
    busy.emplace(items[i].finish_us, lanes[i]);
  }
  return lanes;
}

Result<std::string> to_svg(const Schedule& schedule) {
  size_t items = 0;
  for (const ScheduleTrack& track : schedule.tracks)
    items += track.items.size();
  if (items > kMaxScheduleItems)
    return error(Code::kResourceExhausted,
                 "[draw] {} kernels and transfers are too many to draw: the "
                 "limit is {}. With --fetch, only the needed ones are drawn",
                 items, kMaxScheduleItems);
  return SchedulePainter(schedule).run();
}

}  // namespace tagflow::apps::draw
