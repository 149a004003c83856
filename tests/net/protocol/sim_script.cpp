#include "tests/net/protocol/sim_script.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "tests/net/protocol/sim_world.h"

namespace tagflow::net::simulated {

namespace {

using Kind = Op::Kind;

// Makes a script in one order of all transfers, in which each can be done
// before the next: so it is not stuck, however few Sends may be held.
class Author {
 public:
  Author(Random& random, size_t num_parts, bool updates)
      : random_(random), updates_(updates) {
    script_.parts.resize(num_parts);
    for (Part& part : script_.parts) part.lanes.resize(random.between(1, 2));
    script_.parallel = random.between(1, 6);
    largest_ = uint64_t{1} << random.between(4, 12);
  }

  Script write() {
    const size_t num_scenes = random_.percent(40) ? 1 : random_.between(2, 5);
    const size_t stuck_at =
        random_.percent(12) ? random_.below(num_scenes) : 99;
    // Not both: whether a lane reaches its failure would depend on how many of
    // its Sends may be held.
    const size_t fails_at =
        random_.percent(15) && stuck_at == 99 ? random_.below(num_scenes) : 99;
    const size_t loop_at = random_.percent(60) ? random_.below(num_scenes) : 99;
    for (size_t i = 0; i < num_scenes; ++i) {
      if (i == loop_at) write_loop();
      for (uint64_t n = random_.below(6); n > 0; --n) {
        const Lane to = any();
        transfer(any(), to);
      }
      if (i == stuck_at) write_knot();
      if (i == fails_at)
        for (uint64_t n = random_.between(1, 2); n > 0; --n)
          add(any(), {.kind = Kind::kFail});
    }
    return std::move(script_);
  }

 private:
  struct Lane {
    size_t part = 0;
    size_t lane = 0;
  };

  Lane any() {
    const size_t part = random_.below(script_.parts.size());
    return {part, random_.below(script_.parts[part].lanes.size())};
  }

  std::vector<Op>& ops(Lane lane) {
    return script_.parts[lane.part].lanes[lane.lane];
  }

  void add(Lane lane, Op op) {
    op.time = random_.duration(Duration(0), microseconds(300));
    if (op.kind == Kind::kQueue || op.kind == Kind::kCompute)
      op.time = random_.percent(is_long_ ? 0 : 10)
                    ? milliseconds(random_.below(250))
                    : random_.duration({}, milliseconds(5));
    if (op.kind == Kind::kUpdate)
      op.time = random_.duration({}, milliseconds(30));
    ops(lane).push_back(op);
  }

  // Something between transfers.
  void pass_time(Lane lane) {
    if (random_.percent(15)) add(lane, {.kind = Kind::kCompute});
    if (random_.percent(10)) add(lane, {.kind = Kind::kQueue});
    if (updates_ && random_.percent(20)) {
      add(lane, {.kind = Kind::kUpdate});
      script_.parts[lane.part].updates = true;
    }
  }

  void send(Lane from, Lane to, uint32_t number, bool is_flag = false) {
    const bool is_large = random_.percent(is_long_ ? 0 : 15);
    add(from, {.kind = Kind::kSend,
               .transfer = number,
               .peer = to.part,
               .bytes = random_.below(is_large ? 40'000 : largest_),
               .is_dead = !is_flag && random_.percent(10),
               .is_flag = is_flag});
  }

  void receive(Lane from, Lane to, uint32_t number, bool is_flag = false) {
    add(to, {.kind = Kind::kRecv,
             .transfer = number,
             .peer = from.part,
             .is_flag = is_flag});
  }

  void transfer(Lane from, Lane to, bool is_flag = false) {
    if (from.part == to.part) return;
    if (!is_flag) pass_time(from);
    const uint32_t number = num_transfers_++;
    send(from, to, number, is_flag);
    receive(from, to, number, is_flag);
  }

  // Two Recvs, each of which waits for the Send behind the other.
  void write_knot() {
    const Lane one = any(), other = any();
    if (one.part == other.part) return;
    const uint32_t first = num_transfers_++, second = num_transfers_++;
    receive(other, one, first);
    receive(one, other, second);
    send(one, other, second);
    send(other, one, first);
  }

  // A lane of each of some parts goes through a body; the first decides.
  void write_loop() {
    std::vector<Lane> lanes;
    for (size_t part = 0; part < script_.parts.size(); ++part)
      if (lanes.size() < 2 || random_.percent(70))
        lanes.push_back(
            {part, random_.below(script_.parts[part].lanes.size())});
    std::swap(lanes[0], lanes[random_.below(lanes.size())]);
    script_.trips = random_.percent(10) ? random_.below(100) : random_.below(8);
    is_long_ = script_.trips > 8;
    std::vector<size_t> begins;
    for (Lane lane : lanes) begins.push_back(ops(lane).size());
    add(lanes[0], {.kind = Kind::kTest});
    for (size_t i = 1; i < lanes.size(); ++i)
      transfer(lanes[0], lanes[i], true);
    std::vector<size_t> exits;
    for (Lane lane : lanes) {
      exits.push_back(ops(lane).size());
      add(lane, {.kind = Kind::kExitUnless});
    }
    const bool is_one_way = random_.percent(30);
    for (uint64_t n = random_.below(5); n > 0; --n) {
      const Lane from = lanes[is_one_way ? 0 : random_.below(lanes.size())];
      transfer(from, lanes[random_.below(lanes.size())]);
    }
    for (size_t i = 0; i < lanes.size(); ++i) {
      add(lanes[i], {.kind = Kind::kBack, .target = begins[i]});
      ops(lanes[i])[exits[i]].target = ops(lanes[i]).size();
    }
    is_long_ = false;
  }

  Random& random_;
  const bool updates_;
  Script script_;
  uint64_t largest_ = 0;
  bool is_long_ = false;  // in a loop of many trips
  uint32_t num_transfers_ = 0;
};

// Runs a script with links that hold everything: its outcome is unique.
class Rehearsal {
 public:
  explicit Rehearsal(Script& script) : script_(script) {
    for (size_t part = 0; part < script.parts.size(); ++part)
      for (size_t lane = 0; lane < script.parts[part].lanes.size(); ++lane)
        lanes_.push_back({.part = part,
                          .ops = &script.parts[part].lanes[lane],
                          .value = first_value(part, lane)});
  }

  void run() {
    while (std::any_of(lanes_.begin(), lanes_.end(),
                       [this](Lane& lane) { return advance(lane); })) {
    }
    for (const Lane& lane : lanes_) {
      script_.value += lane.value;
      script_.is_stuck |= !lane.has_failed && lane.at < lane.ops->size();
    }
  }

 private:
  struct Lane {
    size_t part = 0;
    const std::vector<Op>* ops = nullptr;
    size_t at = 0;
    int64_t iteration = 0;
    bool flag = false;
    bool has_failed = false;
    uint64_t value = 0;
  };

  // Whether it has done something.
  bool advance(Lane& lane) {
    bool has_moved = false;
    while (lane.at < lane.ops->size() && perform(lane)) has_moved = true;
    return has_moved;
  }

  bool perform(Lane& lane) {
    const Op& op = (*lane.ops)[lane.at];
    switch (op.kind) {
      case Kind::kSend:
        links_[{op.transfer, lane.iteration}] = {
            op.is_flag ? lane.flag
                       : sent_value(lane.value, op.transfer, lane.iteration),
            op.bytes, op.is_dead};
        break;
      case Kind::kRecv: {
        const auto place = links_.find({op.transfer, lane.iteration});
        if (place == links_.end()) return false;
        if (op.is_flag)
          lane.flag = place->second.value != 0;
        else
          lane.value = value_after(lane.value, place->second);
        links_.erase(place);
        break;
      }
      case Kind::kCompute:
      case Kind::kQueue:
      case Kind::kRead:
      case Kind::kFetch:
      case Kind::kLog:
        break;
      case Kind::kUpdate:
        ++script_.parts[lane.part].num_updates;
        break;
      case Kind::kFail:
        script_.can_fail = lane.has_failed = true;
        return false;
      case Kind::kTest:
        lane.flag = uint64_t(lane.iteration) < script_.trips;
        break;
      case Kind::kExitUnless:
        if (lane.flag) break;
        lane.iteration = 0;
        lane.at = op.target;
        return true;
      case Kind::kBack:
        ++lane.iteration;
        lane.at = op.target;
        return true;
    }
    ++lane.at;
    return true;
  }

  Script& script_;
  std::vector<Lane> lanes_;
  std::map<std::pair<uint32_t, int64_t>, Token> links_;
};

}  // namespace

bool Script::updates() const {
  return std::any_of(parts.begin(), parts.end(),
                     [](const Part& part) { return part.updates; });
}

std::vector<std::pair<size_t, size_t>> Script::pairs() const {
  std::set<std::pair<size_t, size_t>> found;
  for (size_t part = 0; part < parts.size(); ++part)
    for (const auto& lane : parts[part].lanes)
      for (const Op& op : lane)
        if ((op.kind == Kind::kSend || op.kind == Kind::kRecv) &&
            op.peer != part)
          found.insert(std::minmax(part, op.peer));
  return {found.begin(), found.end()};
}

uint64_t sent_value(uint64_t have, uint32_t transfer, int64_t iteration) {
  return mixed(have ^ mixed(transfer ^ (uint64_t(iteration) << 32)));
}

uint64_t value_after(uint64_t have, const Token& token) {
  return mixed(have * 3 + (token.is_dead ? 1 : token.value));
}

uint64_t first_value(size_t part, size_t lane) {
  return mixed(part * 100 + lane);
}

Script random_script(Random& random, size_t num_parts, bool updates) {
  Script script = Author(random, num_parts, updates).write();
  Rehearsal(script).run();
  return script;
}

Script restore_script(size_t num_parts) {
  Script script;
  script.restores = true;
  script.parts.resize(num_parts);
  for (Part& part : script.parts) {
    part.lanes = {{Op{.kind = Kind::kUpdate, .time = milliseconds(1)}}};
    part.updates = true;
  }
  Rehearsal(script).run();
  return script;
}

}  // namespace tagflow::net::simulated
