// The toy engine of a Worker.
#include <utility>

#include "tests/net/protocol/sim_undisturbed.h"
#include "tests/net/protocol/sim_worker.h"

namespace tagflow::net::simulated {

using Kind = Op::Kind;

void Worker::start_local(const ReignPtr& reign, StepId step) {
  auto node = reign->runs.extract(step);
  const auto local = std::make_shared<Local>();
  local->run = std::move(node.mapped());
  const Part& part = local->part();
  for (size_t i = 0; i < part.lanes.size(); ++i) {
    Lane lane;
    lane.value = first_value(local->run.index, i);
    local->lanes.push_back(lane);
  }
  reign->locals[step] = local;
  for (size_t i = 0; i < part.lanes.size(); ++i) schedule(reign, local, i);
  if (auto kept = reign->kept.extract(step))
    for (Kept& one : kept.mapped()) {
      if (!local->error.ok()) return;
      accept(reign, local, std::move(one));
      if (world_.is_planted(Planted::kEarlyUncounted)) --local->counts.received;
    }
  settle(reign, local);
}

void Worker::fail_local(const ReignPtr& reign, const LocalPtr& local,
                        const Status& cause) {
  if (!local->error.ok()) return;
  local->error =
      error(Code::kCancelled, "the part is aborted: {}", cause.message());
  if (world_.is_planted(Planted::kDoneBeforeRest)) {
    local->is_over = true;
    WorkerSteps::Actions actions;
    reign->steps.on_local_over(local->run.step, local->error,
                               local->has_committed, actions);
    return perform(reign, actions);
  }
  settle(reign, local);
}

void Worker::drop(Reign& reign, StepId step) {
  const auto credit = [&](const Arrived& arrived) {
    if (!world_.is_planted(Planted::kCreditLostAtAbort))
      give_credit(reign, arrived);
  };
  if (const auto kept = reign.kept.extract(step))
    for (const Kept& one : kept.mapped())
      if (one.arrived) credit(*one.arrived);
  const auto place = reign.locals.find(step);
  if (place == reign.locals.end()) return;
  place->second->inbox.clear(credit);
  place->second->outbox.clear();
}

const Op& Worker::op(const Local& local, size_t lane) const {
  return local.part().lanes[lane][local.lanes[lane].at];
}

void Worker::schedule(const ReignPtr& reign, const LocalPtr& local,
                      size_t index) {
  Lane& lane = local->lanes[index];
  if (lane.at == local->part().lanes[index].size()) {
    lane.state = Lane::State::kOver;
    return;
  }
  const Op& next = op(*local, index);
  lane.state =
      next.kind == Kind::kQueue ? Lane::State::kQueued : Lane::State::kBusy;
  if (next.kind == Kind::kUpdate) ++local->num_commits;
  world_.local(host_, next.time, [this, reign, local, index] {
    if (op(*local, index).kind == Kind::kUpdate)
      commit(reign, local, index);
    else if (local->error.ok())
      perform(reign, local, index);
  });
}

void Worker::commit(const ReignPtr& reign, const LocalPtr& local,
                    size_t index) {
  Lane& lane = local->lanes[index];
  --local->num_commits;
  local->has_committed = true;
  change(*reign, *local, op(*local, index), lane.value);
  ledger_.entries.push_back({local->run.step,
                             reign->incarnation,
                             {local->run.index, index, lane.at, lane.iteration},
                             world_.now()});
  if (local->error.ok())
    advance(reign, local, index);
  else
    settle(reign, local);
}

void Worker::perform(const ReignPtr& reign, const LocalPtr& local,
                     size_t index) {
  Lane& lane = local->lanes[index];
  const Op& now = op(*local, index);
  switch (now.kind) {
    case Kind::kRead:
    case Kind::kFetch:
    case Kind::kLog:
      change(*reign, *local, now, lane.value);
      break;
    case Kind::kSend:
      return send(reign, local, index);
    case Kind::kRecv:
      return receive(reign, local, index);
    case Kind::kCompute:
    case Kind::kQueue:
    case Kind::kUpdate:
      break;
    case Kind::kFail: {
      local->error = error(Code::kInvalidArgument, "the script fails");
      WorkerSteps::Actions actions;
      reign->steps.on_local_error(local->run.step, local->error, actions);
      perform(reign, actions);
      return settle(reign, local);
    }
    case Kind::kTest:
      lane.flag = uint64_t(lane.iteration) < local->run.script->trips;
      break;
    case Kind::kExitUnless:
      if (lane.flag) break;
      lane.iteration = 0;
      lane.at = now.target;
      schedule(reign, local, index);
      return settle(reign, local);
    case Kind::kBack:
      ++lane.iteration;
      lane.at = now.target;
      schedule(reign, local, index);
      return settle(reign, local);
  }
  advance(reign, local, index);
}

void Worker::advance(const ReignPtr& reign, const LocalPtr& local,
                     size_t index) {
  ++local->lanes[index].at;
  schedule(reign, local, index);
  settle(reign, local);
}

void Worker::send(const ReignPtr& reign, const LocalPtr& local, size_t index) {
  Lane& lane = local->lanes[index];
  const Op& now = op(*local, index);
  const Incarnation peer = local->run.parts[now.peer].incarnation;
  const TransferKey key{.iteration = lane.iteration, .transfer = now.transfer};
  const Held held{
      {now.is_flag ? lane.flag
                   : sent_value(lane.value, now.transfer, lane.iteration),
       now.bytes, now.is_dead},
      index};
  ++lane.num_held;
  if (now.peer == local->run.index) {
    ++local->counts.sent;
    --lane.num_held;
    accept(reign, local, {key, Arrived{held.token, reign->incarnation, 0}});
    return advance(reign, local, index);
  }
  const auto session = reign->sessions.find(peer);
  if (session == reign->sessions.end() || !session->second.is_up) {
    ++local->num_unsent;
    reign->unsent[peer].push_back({local->run.step, key, held});
  } else if (transmit(*reign, *local, peer, key, held)) {
    --lane.num_held;
  }
  if (lane.num_held < local->run.script->parallel)
    return advance(reign, local, index);
  lane.state = Lane::State::kHolds;
  settle(reign, local);
}

// What an op makes of the shards of a training.
void Worker::change(Reign& reign, Local& local, const Op& now,
                    uint64_t& value) {
  const size_t variable = now.variable;
  if (variable == SIZE_MAX) return;
  const Script& script = *local.run.script;
  if (script.restores) {
    Shard loaded = script.loaded.at(variable);
    if (world_.is_planted(Planted::kQueuesKept)) loaded.log.clear();
    if (world_.is_planted(Planted::kCountsKept)) loaded.runs = 0;
    reign.shards[variable] = std::move(loaded);
    return;
  }
  const auto place = reign.shards.find(variable);
  if (place == reign.shards.end())
    return world_.violation("a variable is used that has no value");
  Shard& shard = place->second;
  switch (now.kind) {
    case Kind::kRead:
      if (shard.rows.empty() ||
          shard.rows.front() != row_of(variable, script.number))
        world_.violation("a step takes a row of another one");
      value = read_shard(shard, variable, script.seed);
      break;
    case Kind::kUpdate:
      update_shard(shard, variable, value);
      if (shard.steps != script.number)
        world_.violation("a step is applied twice, or left out");
      break;
    case Kind::kFetch:
      local.fetched[variable] = shard;
      break;
    case Kind::kLog:
      shard.log.push_back(script.seed);
      break;
    default:
      break;
  }
}

// Whether the Send is over.
bool Worker::transmit(Reign& reign, Local& local, Incarnation peer,
                      const TransferKey& key, const Held& held) {
  Session& session = reign.sessions.at(peer);
  ++local.counts.sent;
  const bool is_inline =
      session.send.take(held.token.bytes, sizes_.small_token) ||
      (world_.is_planted(Planted::kNoWindow) &&
       held.token.bytes <= sizes_.small_token);
  if (is_inline) {
    world_.send(session.link, host_,
                SmallToken{local.run.step, key, held.token});
    return true;
  }
  local.outbox.announce(key, held);
  world_.send(session.link, host_, Announcement{local.run.step, key});
  return false;
}

// A Send of the lane is over.
void Worker::unhold(const ReignPtr& reign, const LocalPtr& local,
                    size_t index) {
  Lane& lane = local->lanes[index];
  --lane.num_held;
  if (lane.state == Lane::State::kHolds) advance(reign, local, index);
}

void Worker::receive(const ReignPtr& reign, const LocalPtr& local,
                     size_t index) {
  Lane& lane = local->lanes[index];
  const TransferKey key{.iteration = lane.iteration,
                        .transfer = op(*local, index).transfer};
  lane.state = Lane::State::kWaits;
  std::optional<Arrived> arrived;
  switch (local->inbox.on_recv(key, index, arrived)) {
    case Inbox<Arrived, size_t>::Next::kTaken:
      give_credit(*reign, *arrived);
      return take(reign, local, index, arrived->token);
    case Inbox<Arrived, size_t>::Next::kPull:
      pull(*reign, *local, key, index);
      break;
    case Inbox<Arrived, size_t>::Next::kWait:
      break;
  }
  settle(reign, local);
}

void Worker::take(const ReignPtr& reign, const LocalPtr& local, size_t index,
                  const Token& token) {
  Lane& lane = local->lanes[index];
  if (op(*local, index).is_flag)
    lane.flag = token.value != 0;
  else
    lane.value = value_after(lane.value, token);
  advance(reign, local, index);
}

void Worker::pull(Reign& reign, Local& local, const TransferKey& key,
                  size_t index) {
  const size_t part = op(local, index).peer;
  const auto session = reign.sessions.find(local.run.parts[part].incarnation);
  // Without it the step is about to be aborted.
  if (session == reign.sessions.end()) return;
  ++local.counts.sent;
  reign.objects[++reign.last_object] = {local.run.step, key};
  world_.send(session->second.link, host_,
              Pull{local.run.step, key, reign.last_object});
}

// What has come for a local step that runs.
void Worker::accept(const ReignPtr& reign, const LocalPtr& local, Kept kept) {
  ++local->counts.received;
  if (kept.arrived) {
    Result<std::optional<size_t>> waiter =
        local->inbox.on_token(kept.key, *kept.arrived);
    if (!check(waiter.status())) return;
    if (*waiter) {
      give_credit(*reign, *kept.arrived);
      return take(reign, local, **waiter, kept.arrived->token);
    }
    return settle(reign, local);
  }
  const Result<bool> is_wanted = local->inbox.on_announced(kept.key);
  if (!check(is_wanted.status())) return;
  if (*is_wanted) {
    for (size_t i = 0; i < local->lanes.size(); ++i)
      if (local->lanes[i].state == Lane::State::kWaits &&
          op(*local, i).transfer == kept.key.transfer)
        pull(*reign, *local, kept.key, i);
  }
  settle(reign, local);
}

// Looks whether the local step is over, at rest, or quiet.
void Worker::settle(const ReignPtr& reign, const LocalPtr& local) {
  if (local->is_over) return;
  bool is_over = true, is_busy = local->num_unsent > 0;
  for (const Lane& lane : local->lanes) {
    is_over &= lane.state == Lane::State::kOver && lane.num_held == 0;
    is_busy |= lane.state == Lane::State::kBusy;
    is_busy |= lane.state == Lane::State::kQueued &&
               !world_.is_planted(Planted::kQueueIsQuiet);
  }
  if (!local->error.ok()) is_over = local->num_commits == 0;
  if (is_over) {
    local->is_over = true;
    WorkerSteps::Actions actions;
    reign->steps.on_local_over(local->run.step, local->error,
                               local->has_committed, actions);
    return perform(reign, actions);
  }
  if (is_busy || !local->error.ok()) return local->quiet.on_busy();
  local->quiet.on_quiet(local->counts, world_.now());
  const Time next = local->quiet.next();
  if (next == kNever) return;
  world_.local(host_, next - world_.now(), [this, reign, local] {
    if (reign != reign_ || local->is_over) return;
    if (local->quiet.on_time(world_.now())) report(reign, local, 0);
  });
}

}  // namespace tagflow::net::simulated
