// Messages of random contents.
#pragma once

#include <random>
#include <string>

#include "net/wire/messages.h"
#include "net/wire/view_messages.h"
#include "tests/net/wire/random_tensor.h"

namespace tagflow::net {

// A number of any length.
inline uint64_t random_number(std::mt19937_64& random) {
  return random() >> (random() % 64);
}

inline ObjectId random_object(std::mt19937_64& random) {
  return ObjectId(random_number(random));
}

inline FrameInstance random_instance(std::mt19937_64& random) {
  return {random(), random()};
}

inline Outcome random_outcome(std::mt19937_64& random) {
  constexpr Code kCodes[] = {Code::kOk, Code::kCancelled, Code::kAborted,
                             Code::kUnauthenticated, Code::kDeadlock};
  const Code code = kCodes[random() % std::size(kCodes)];
  return {code,
          random_text(random),
          random_text(random),
          random_text(random),
          random_text(random),
          random_text(random)};
}

// Of each type: fills in a message that was made by default.
inline void fill(std::mt19937_64& random, Run& run) {
  run.executable = random_number(random);
  run.step = random_number(random);
  run.seed = random();
  run.trace_words = random_number(random);
  run.has_stats = random() % 2 == 0;
  run.may_be_held = random() % 2 == 0;
  if (run.may_be_held && random() % 2 == 0)
    run.stop = {random_text(random), int64_t(random_number(random) >> 1)};
  for (auto count = random() % 5; count > 0; --count) {
    Run::Feed& feed = run.feeds.emplace_back();
    feed.index = uint32_t(random_number(random));
    if (random() % 2 == 0) {
      feed.value = random_tensor(random);
    } else {
      feed.value = random_object(random);
    }
  }
}

inline void fill(std::mt19937_64& random, Done& done) {
  done.step = random_number(random);
  done.outcome = random_outcome(random);
  done.is_cause = random() % 2 == 0;
  done.has_committed = random() % 2 == 0;
  done.sent = random_number(random);
  done.received = random_number(random);
  for (auto count = random() % 5; count > 0; --count)
    done.stats.push_back(random_number(random));
  if (random() % 2 == 0) done.trace = random_object(random);
  for (auto count = random() % 5; count > 0; --count) {
    Done::Fetch& fetch = done.fetches.emplace_back();
    fetch.index = uint32_t(random_number(random));
    if (const auto form = random() % 3; form == 0) {
      fetch.value = random_tensor(random);
    } else if (form == 1) {
      fetch.value = random_object(random);
    }
  }
}

inline void fill(std::mt19937_64& random, Abort& abort) {
  abort = {random_number(random), random_outcome(random)};
}

inline void fill(std::mt19937_64& random, Tokens& tokens) {
  tokens.step = random_number(random);
  for (auto count = random() % 4; count > 0; --count) {
    Tokens::Group& group = tokens.groups.emplace_back();
    group.instance = random_instance(random);
    group.base_iteration = int64_t(random_number(random) >> 1);
    for (auto entries = random() % 6; entries > 0; --entries) {
      Tokens::Entry& entry = group.entries.emplace_back();
      const auto room = uint64_t(INT64_MAX - group.base_iteration);
      const uint64_t distance = random_number(random);
      entry.iteration =
          group.base_iteration +
          int64_t(room == INT64_MAX ? distance >> 1 : distance % (room + 1));
      entry.transfer = uint32_t(random_number(random));
      if (const auto form = random() % 4; form == 0) {
        entry.value = random_tensor(random);
      } else if (form == 1) {
        entry.value = Tokens::Announced{info_of(random_tensor(random))};
      } else if (form == 2) {
        entry.value = Tokens::Announced{.is_dead = true};
      }
    }
  }
}

inline void fill(std::mt19937_64& random, Pull& pull) {
  pull = {random_number(random),
          {random_instance(random), int64_t(random_number(random) >> 1),
           uint32_t(random_number(random))},
          random_object(random)};
}

inline void fill(std::mt19937_64& random, Credit& credit) {
  credit = {random_number(random)};
}
inline void fill(std::mt19937_64& random, Ping& ping) {
  ping = {random(), random()};
}
inline void fill(std::mt19937_64& random, Pong& pong) {
  pong = {random(), random(), random()};
}

inline void fill(std::mt19937_64& random, Report& report) {
  report = {random_number(random), random_number(random), random() % 2 == 0,
            random_number(random), random_number(random), random_text(random)};
}

inline void fill(std::mt19937_64& random, Ask& ask) {
  ask = {random_number(random), random_number(random)};
}
inline void fill(std::mt19937_64& random, PairLost& lost) {
  lost = {{random_text(random), uint32_t(random_number(random))},
          random(),
          random_outcome(random)};
}
inline void fill(std::mt19937_64& random, Bye& bye) {
  bye = {random_text(random)};
}

inline void fill(std::mt19937_64& random, Begin& begin) {
  begin.object = random_object(random);
  if (const auto kind = random() % 3; kind == 0) {
    begin.kind = ObjectKind::kRegister;
    begin.bytes = random_number(random);
  } else if (kind == 1) {
    begin.kind = ObjectKind::kDead;
  } else {
    begin.tensor = info_of(random_tensor(random));
    begin.bytes = begin.tensor.bytes;
  }
}

inline void fill(std::mt19937_64& random, Chunk& chunk) {
  chunk = {random_object(random), random_number(random)};
}
inline void fill(std::mt19937_64& random, Cancel& cancel) {
  cancel = {random_object(random), random_outcome(random)};
}

inline void fill(std::mt19937_64& random, Devices& devices) {
  for (auto count = random() % 3; count > 0; --count)
    devices.devices.push_back({random_text(random), random(), random() % 2 == 0,
                               uint32_t(random_number(random)),
                               random_number(random),
                               double(random_number(random)),
                               double(random_number(random)), 0.5, 0, 1e300});
}
inline void fill(std::mt19937_64& random, Reset& reset) {
  reset.request = random_number(random);
  for (auto count = random() % 3; count > 0; --count)
    reset.containers.push_back(random_text(random));
}
inline void fill(std::mt19937_64&, Drain&) {}
inline void fill(std::mt19937_64& random, Look& look) {
  look = {random_number(random), random_number(random), random_number(random)};
}
inline void fill(std::mt19937_64& random, Steer& steer) {
  steer = {random_number(random), Steer::What(random() % 3),
           random_text(random), int64_t(random_number(random) >> 1)};
}
inline void fill(std::mt19937_64& random, Seen& seen) {
  seen.step = random_number(random);
  seen.request = random_number(random);
  seen.has_view = random() % 4 != 0;
  if (!seen.has_view) return;
  const auto some = [&] { return uint32_t(random_number(random) >> 32); };
  actors::StepView& view = seen.view;
  view.is_stopped = random() % 2 == 0;
  for (auto count = 1 + random() % 2; count > 0; --count)
    view.devices.push_back({random_text(random), random_number(random), 0, 1,
                            random_number(random)});
  for (auto count = random() % 3; count > 0; --count)
    view.loops.push_back({random() % view.devices.size(), random_text(random),
                          random_number(random), random_number(random)});
  for (auto count = random() % 3; count > 0; --count) {
    actors::StepView::Frame& frame = view.frames.emplace_back();
    frame.parent = int(random() % view.frames.size()) - 1;
    frame.device = random() % view.devices.size();
    frame.name = random_text(random);
    frame.tag = random_text(random);
    frame.more_iterations = some();
    for (auto inside = random() % 3; inside > 0; --inside) {
      actors::StepView::Iteration& one = frame.iterations.emplace_back();
      one.number = int64_t(random_number(random) >> 1);
      one.is_stopped = random() % 2 == 0;
      one.fired = some();
      one.more_nodes = some();
      for (auto nodes = random() % 3; nodes > 0; --nodes)
        one.nodes.push_back({random_text(random), random_text(random),
                             random() % 2 == 0, some()});
      for (auto tokens = random() % 3; tokens > 0; --tokens)
        one.tokens.push_back(
            {random_text(random), int(random() % 9) - 1, random_text(random)});
    }
  }
  view.more_frames = some();
  for (auto count = random() % 3; count > 0; --count)
    view.waits.push_back(random_text(random));
}
inline void fill(std::mt19937_64& random, Release& release) {
  release = {random_number(random)};
}
inline void fill(std::mt19937_64& random, Reply& reply) {
  reply = {
      random_number(random), random_outcome(random), random() % 2 == 0, {}};
  for (auto count = random() % 3; count > 0; --count)
    reply.warnings.push_back(random_text(random));
}

inline void fill(std::mt19937_64& random, Register& registration) {
  registration.executable = random_number(random);
  registration.settings = {uint32_t(random() % INT32_MAX),
                           uint32_t(random() % INT32_MAX),
                           uint32_t(random() % 300),
                           random() % 2 == 0,
                           uint8_t(random() % 3),
                           random() % 2 == 0,
                           random()};
  for (auto count = random() % 3; count > 0; --count)
    registration.fetches.push_back(random_text(random));
  for (auto count = 1 + random() % 3; count > 0; --count)
    registration.parts.push_back({random_text(random), random_text(random)});
  for (auto count = random() % 3; count > 0; --count)
    registration.peers.push_back(
        {{random_text(random), uint32_t(random_number(random))},
         random(),
         random_text(random),
         uint16_t(random())});
  if (registration.peers.empty()) return;
  std::string name;
  for (auto count = random() % 4; count > 0; --count) {
    name += char(random());
    registration.transfers.push_back(
        {name, uint32_t(random() % registration.peers.size()),
         random() % 2 == 0});
  }
}

}  // namespace tagflow::net
