#include "actors/runtime/frame.h"

#include <algorithm>

namespace tagflow::actors {

void Counters::subtract(const Counters& other) {
  fired -= other.fired;
  dead -= other.dead;
  frames -= other.frames;
  iterations -= other.iterations;
  hops -= other.hops;
  offloaded -= other.offloaded;
  launched -= other.launched;
  stale -= other.stale;
}

void Counters::add_to(RunStats& stats) const {
  stats.fired += fired;
  stats.dead += dead;
  stats.frames += frames;
  stats.iterations += iterations;
  stats.hops += hops;
  stats.offloaded += offloaded;
  stats.launched += launched;
  stats.stale += stale;
  stats.max_in_flight = std::max(stats.max_in_flight, int(max_in_flight));
}

}  // namespace tagflow::actors
