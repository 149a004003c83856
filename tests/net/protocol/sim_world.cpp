#include "tests/net/protocol/sim_world.h"

#include <algorithm>

namespace tagflow::net::simulated {

World::World(uint64_t seed, size_t num_hosts, Planted planted)
    : random_(seed),
      planted_(planted),
      slow_links_(random_.percent(50) ? 40 : 5),
      hosts_(num_hosts),
      cuts_(num_hosts, std::vector<bool>(num_hosts)) {}

void World::after(Duration delay, std::function<void()> f) {
  events_.push({now_ + delay, num_events_++, std::move(f)});
}

void World::local(size_t host, Duration delay, std::function<void()> f) {
  after(delay, [this, host, number = hosts_[host].number, f = std::move(f)] {
    Host& at = hosts_[host];
    if (at.process == nullptr || at.number != number) return;
    if (at.is_stopped)
      at.own.push_back(f);
    else
      f();
  });
}

bool World::step() {
  if (events_.empty() || !violation_.empty()) return false;
  Event event = std::move(const_cast<Event&>(events_.top()));
  events_.pop();
  now_ = event.time;
  event.f();
  return violation_.empty();
}

void World::start(size_t host, Process* process) {
  Host& at = hosts_[host];
  const Duration reading = at.reading;
  const uint64_t number = at.number + 1;
  at = {};
  at.process = process;
  at.number = number;
  at.reading = reading;
}

void World::crash(size_t host, bool is_silent) {
  Host& at = hosts_[host];
  at.process = nullptr;
  ++at.number;
  at.is_stopped = false;
  at.is_dark = is_silent;
  at.own.clear();
  at.came.clear();
  for (auto& [id, link] : links_) {
    if (link.hosts[0] != host && link.hosts[1] != host) continue;
    const size_t end = end_of(link, host);
    if (!link.is_open[end]) continue;
    link.is_open[end] = false;
    if (!is_silent) dispatch_close(id, 1 - end, true);
  }
}

void World::stop(size_t host) {
  if (is_up(host)) hosts_[host].is_stopped = true;
}

void World::wake(size_t host) {
  Host& at = hosts_[host];
  if (!at.is_stopped) return;
  at.is_stopped = false;
  const uint64_t number = at.number;
  const auto run = [&](std::vector<std::function<void()>>& waiting) {
    for (const auto& f : std::exchange(waiting, {}))
      if (at.number == number) f();
  };
  run(at.own);
  run(at.came);
}

LinkId World::connect(size_t from, size_t to) {
  const LinkId id = ++last_link_;
  Link& link = links_[id];
  link.hosts = {from, to};
  link.delay = random_.percent(slow_links_)
                   ? random_.duration(milliseconds(5), milliseconds(40))
                   : random_.duration(microseconds(10), microseconds(1500));
  if (!is_up(to)) {
    link.is_open[1] = false;
    if (!hosts_[to].is_dark) dispatch_close(id, 0, false);
  }
  return id;
}

void World::send(LinkId id, size_t from, Message message, Channel channel) {
  const auto place = links_.find(id);
  if (place == links_.end()) return;
  const size_t end = end_of(place->second, from);
  if (!place->second.is_open[end]) return;
  dispatch(
      {id, 1 - end, channel, std::make_shared<Message>(std::move(message))});
}

void World::close(LinkId id, size_t host) {
  const auto place = links_.find(id);
  if (place == links_.end()) return;
  const size_t end = end_of(place->second, host);
  if (!place->second.is_open[end]) return;
  place->second.is_open[end] = false;
  dispatch_close(id, 1 - end, random_.percent(50));
}

void World::set_cut(size_t from, size_t to, bool is_cut) {
  cuts_[from][to] = is_cut;
  if (is_cut) return;
  for (Parcel& parcel : std::exchange(stalled_[{from, to}], {}))
    deliver(std::move(parcel));
}

void World::break_links(size_t one, size_t other) {
  for (auto& [id, link] : links_) {
    if (link.hosts != std::array{one, other} &&
        link.hosts != std::array{other, one})
      continue;
    link.is_broken = true;
    for (size_t end : {0, 1})
      if (link.is_open[end]) dispatch_close(id, end, true);
  }
}

void World::dispatch_close(LinkId link, size_t to, bool is_abrupt) {
  dispatch({link, to, Channel::kSmall, nullptr}, is_abrupt);
}

void World::dispatch(Parcel parcel, bool is_abrupt) {
  Link& link = links_[parcel.link];
  Duration delay = link.delay + random_.duration(Duration(0), link.delay);
  if (random_.percent(1)) delay += milliseconds(random_.below(30));
  if (parcel.channel == Channel::kBulk) {
    delay += random_.duration(Duration(0), milliseconds(3));
    if (random_.percent(5)) delay += milliseconds(random_.below(300));
  }
  Time time = now_ + delay;
  auto& last = link.last[parcel.to];
  if (parcel.message != nullptr) {
    Time& of_channel = last[size_t(parcel.channel)];
    of_channel = time = std::max(time, of_channel + Duration(1));
  } else if (!is_abrupt) {
    time = std::max({time, last[0] + Duration(1), last[1] + Duration(1)});
  }
  after(time - now_, [this, parcel] { arrive(parcel); });
}

void World::arrive(Parcel parcel) {
  const Link& link = links_[parcel.link];
  if (link.is_broken && parcel.message != nullptr) return;
  const std::pair way(link.hosts[1 - parcel.to], link.hosts[parcel.to]);
  if (cuts_[way.first][way.second])
    stalled_[way].push_back(std::move(parcel));
  else
    deliver(std::move(parcel));
}

void World::deliver(Parcel parcel) {
  const size_t host = links_[parcel.link].hosts[parcel.to];
  Host& at = hosts_[host];
  if (at.is_stopped) {
    at.came.push_back([this, parcel] { deliver(parcel); });
  } else if (at.reading > Duration(0) && at.process != nullptr) {
    at.reads_until = std::max(now_, at.reads_until) + at.reading;
    local(host, at.reads_until - now_, [this, parcel] { read(parcel); });
  } else {
    read(std::move(parcel));
  }
}

void World::read(Parcel parcel) {
  Link& link = links_[parcel.link];
  Host& at = hosts_[link.hosts[parcel.to]];
  if (!link.is_open[parcel.to]) {
    // As a system that knows no such connection does.
    if (parcel.message != nullptr && !at.is_dark && link.is_open[1 - parcel.to])
      dispatch_close(parcel.link, 1 - parcel.to, true);
  } else if (parcel.message != nullptr) {
    at.process->on_message(parcel.link, std::move(*parcel.message));
  } else {
    link.is_open[parcel.to] = false;
    at.process->on_closed(parcel.link);
  }
}

}  // namespace tagflow::net::simulated
