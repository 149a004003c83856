#include "net/master/member.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "graph/budget.h"
#include "graph/fault.h"
#include "net/link/clock.h"
#include "net/link/life_signs.h"
#include "net/link/listener.h"
#include "net/transfer/reports.h"
#include "net/transfer/trace_bytes.h"
#include "net/transfer/values.h"

namespace tagflow::net {
namespace {

// After a traced part, one after the other: the first one wakes the threads of
// the links, and the others measure links that are awake.
constexpr int kPings = 32;
// Other Pings count frames.
constexpr uint64_t kClockNonce = uint64_t{1} << 32;

}  // namespace

Member::Member(const IoThreads& threads, Pairing::Pair pair, Address address,
               Task task, TaskIndex index, MemberEvents& events)
    : task_(std::move(task)),
      address_(std::move(address)),
      incarnation_(pair.peer.incarnation),
      index_(index),
      events_(events),
      channel_(threads, std::move(pair.small), std::move(pair.bulk),
               task_.to_string()) {
  channel_.start(
      {.on_frame = [this](const Frame& frame) { return on_frame(frame); },
       .on_begin = [this](const Begin& begin) { return fetches_.begin(begin); },
       .on_end = [this](ObjectId object,
                        const Status& status) { fetches_.end(object, status); },
       .on_lost = [this](const Status& status) { on_lost(status); },
       .on_pong = [this](const Pong& pong) { on_pong(pong); }});
}

Register::Peer Member::as_peer() const {
  return {task_, incarnation_, address_.host, address_.port};
}

Status Member::lost() const {
  const std::lock_guard lock(mutex_);
  return lost_;
}

Result<std::vector<graph::DeviceInfo>> Member::devices() {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, kHelloTime,
                    [this] { return has_devices_ || !lost_.ok(); });
  TAGFLOW_RETURN_IF_ERROR(lost_);
  if (!has_devices_)
    return error(Code::kUnavailable, "[net] {} does not name its devices",
                 name());
  return devices_;
}

Status Member::send(const Register& registration) {
  return send(registration.executable, bytes_of(registration));
}

Status Member::send(const ServiceRequest& request) {
  return send(request.number(), bytes_of(request));
}

Status Member::send(uint64_t number, Result<std::string> bytes) {
  TAGFLOW_RETURN_IF_ERROR(bytes.status());
  const auto owner = std::make_shared<const std::string>(std::move(*bytes));
  expect(number);
  const Begin begin{
      channel_.next_object(), ObjectKind::kRegister, owner->size(), {}};
  channel_.send(BulkLink::Object{begin, *owner, owner});
  return {};
}

Status Member::send(const Reset& reset) {
  expect(reset.request);
  return channel_.send(reset);
}

void Member::expect(uint64_t request) {
  const std::lock_guard lock(mutex_);
  replies_.emplace(request, std::nullopt);
}

Result<Reply> Member::reply(uint64_t request, graph::Budget* budget,
                            const std::function<Status()>& check) {
  std::unique_lock lock(mutex_);
  const auto awaited = replies_.find(request);
  Status end;
  while (!awaited->second) {
    end = lost_;
    if (!end.ok()) break;
    changed_.wait_for(lock, kBudgetLook);
    lock.unlock();  // who is asked may have locks that are taken before this
    if (budget != nullptr) end = budget->look();
    if (end.ok() && check) end = check();
    lock.lock();
    if (!end.ok()) break;
  }
  const auto node = replies_.extract(awaited);
  TAGFLOW_RETURN_IF_ERROR(end);
  Reply& reply = *node.mapped();
  TAGFLOW_RETURN_IF_ERROR(status_of(reply.outcome));
  return std::move(reply);
}

Status Member::release(uint64_t executable) {
  {
    const std::lock_guard lock(mutex_);
    replies_.erase(executable);
  }
  return channel_.send(Release{executable});
}

Status Member::run(Run run,
                   const std::vector<std::pair<uint32_t, Tensor>>& feeds) {
  TAGFLOW_RETURN_IF_ERROR(lost());
  return guarded("net", [&]() -> Status {
    ValueSender sender(channel_);
    for (const auto& [index, tensor] : feeds) {
      Run::Feed& feed = run.feeds.emplace_back();
      feed.index = index;
      TAGFLOW_RETURN_IF_ERROR(
          sender.put(tensor, fmt::format("feed {}", index), feed.value));
    }
    return sender.send(run);
  });
}

void Member::abort(uint64_t step, const Status& cause) {
  static_cast<void>(channel_.send(Abort{step, outcome_of(cause)}));
}

void Member::ask(uint64_t step, uint64_t round) {
  static_cast<void>(channel_.send(Ask{step, round}));
}

void Member::look(const Look& look) { static_cast<void>(channel_.send(look)); }

void Member::steer(const Steer& steer) {
  static_cast<void>(channel_.send(steer));
}

void Member::let_go() { static_cast<void>(channel_.send(Drain())); }

void Member::leave() {
  static_cast<void>(channel_.send(Bye{std::string(kIsDone)}));
}

void Member::await_end(std::chrono::steady_clock::time_point end) {
  std::unique_lock lock(mutex_);
  changed_.wait_until(lock, end, [this] { return !lost_.ok(); });
}

Status Member::on_frame(const Frame& frame) {
  switch (frame.kind) {
    case FrameKind::kDone: {
      TAGFLOW_ASSIGN(Done done, parse_body<Done>(frame.body));
      on_done(std::move(done));
      return {};
    }
    case FrameKind::kAbort: {
      TAGFLOW_ASSIGN(const Abort abort, parse_body<Abort>(frame.body));
      if (abort.cause.code == Code::kOk)
        return error(Code::kDataLoss, "[net] a part fails without an error");
      events_.on_failed(*this, abort.step, status_of(abort.cause));
      return {};
    }
    case FrameKind::kReport: {
      TAGFLOW_ASSIGN(const Report report, parse_body<Report>(frame.body));
      events_.on_report(*this, report);
      return {};
    }
    case FrameKind::kSeen: {
      TAGFLOW_ASSIGN(Seen seen, parse_body<Seen>(frame.body));
      events_.on_seen(*this, std::move(seen));
      return {};
    }
    case FrameKind::kPairLost: {
      TAGFLOW_ASSIGN(const PairLost lost, parse_body<PairLost>(frame.body));
      events_.on_pair_lost(*this, lost);
      return {};
    }
    case FrameKind::kDrain:
      TAGFLOW_RETURN_IF_ERROR(parse_body<Drain>(frame.body).status());
      events_.on_drain(*this);
      return {};
    case FrameKind::kReply: {
      TAGFLOW_ASSIGN(Reply reply, parse_body<Reply>(frame.body));
      const std::lock_guard lock(mutex_);
      const auto awaited = replies_.find(reply.request);
      if (awaited == replies_.end()) return {};  // nobody waits any more
      awaited->second = std::move(reply);
      changed_.notify_all();
      return {};
    }
    case FrameKind::kDevices: {
      TAGFLOW_ASSIGN(const Devices devices, parse_body<Devices>(frame.body));
      TAGFLOW_ASSIGN(auto infos, infos_of(devices));
      const std::lock_guard lock(mutex_);
      // They are said once.
      if (has_devices_ || infos.empty())
        return error(Code::kDataLoss, "[net] a worker has other devices now");
      has_devices_ = true;
      devices_ = std::move(infos);
      changed_.notify_all();
      return {};
    }
    default:
      return error(Code::kDataLoss, "[net] a worker sends no {} to its master",
                   kind_name(frame.kind));
  }
}

void Member::on_done(Done done) {
  struct Coming {
    Done done;
    Result<MemberEvents::Fetches> fetches = MemberEvents::Fetches();
    Result<MemberEvents::Fetches> trace = MemberEvents::Fetches();
    std::atomic<int> left = 2;
  };
  const auto coming = std::make_shared<Coming>();
  coming->done = std::move(done);
  const bool has_trace =
      !std::holds_alternative<Done::Dead>(coming->done.trace);
  const auto on_part = [this, coming, has_trace] {
    if (--coming->left > 0) return;
    if (!has_trace)
      return tell(coming->done, std::move(coming->fetches), nullptr);
    on_trace(coming->done, std::move(coming->fetches), coming->trace);
  };
  // Both are named now: what is not named is forgotten after a while.
  std::vector<Done::Fetch> traces;
  if (has_trace) traces = {{0, std::exchange(coming->done.trace, {})}};
  collect_values(fetches_, std::move(traces),
                 [coming, on_part](Result<MemberEvents::Fetches> values) {
                   coming->trace = std::move(values);
                   on_part();
                 });
  collect_values(fetches_, std::exchange(coming->done.fetches, {}),
                 [coming, on_part](Result<MemberEvents::Fetches> values) {
                   coming->fetches = std::move(values);
                   on_part();
                 });
}

void Member::on_trace(const Done& done, Result<MemberEvents::Fetches> fetches,
                      const Result<MemberEvents::Fetches>& trace) {
  Result<actors::TracePart> read =
      trace.ok() ? part_of((*trace)[0].second)
                 : Result<actors::TracePart>(trace.status());
  // The run must not fail by that.
  if (!read.ok()) read = actors::TracePart::missing();
  const auto part = std::make_shared<actors::TracePart>(std::move(*read));
  {
    const std::lock_guard lock(mutex_);
    at_clock_.push_back([this, done, fetches = std::move(fetches), part] {
      move_to_local(*part);
      tell(done, fetches, part.get());
    });
    if (pings_ > 0) return;
    pings_ = kPings;
  }
  ping();
}

void Member::ping() {
  // A link that is lost ends the wait for the Pong, too.
  static_cast<void>(channel_.send(Ping{kClockNonce, clock_ns()}));
}

void Member::on_pong(const Pong& pong) {
  std::vector<std::function<void()>> ready;
  {
    const std::lock_guard lock(mutex_);
    clock_.add(pong.ping_time_ns, pong.time_ns, clock_ns());
    if (pong.nonce != kClockNonce || pings_ == 0) return;
    if (--pings_ == 0) ready = std::exchange(at_clock_, {});
  }
  if (ready.empty()) return ping();
  for (const auto& tell_it : ready) tell_it();
}

void Member::tell(const Done& done, Result<MemberEvents::Fetches> fetches,
                  actors::TracePart* trace) {
  const Status status = events_.on_done(*this, done, std::move(fetches), trace);
  if (!status.ok()) close(status);
}

void Member::move_to_local(actors::TracePart& part) const {
  using std::chrono::nanoseconds;
  const auto there =
      uint64_t(nanoseconds(part.start.time_since_epoch()).count());
  const std::lock_guard lock(mutex_);
  // What a peer made up is not after now.
  const uint64_t now = clock_ns();
  const uint64_t here = std::min(clock_.to_local(there).value_or(now), now);
  part.start =
      std::chrono::steady_clock::time_point(nanoseconds(int64_t(here)));
}

void Member::on_lost(const Status& status) {
  // Whatever ended the link, the worker cannot be reached any more.
  const Status lost = error(Code::kUnavailable, "{}", status.message());
  {
    const std::lock_guard lock(mutex_);
    lost_ = lost;
    at_clock_.clear();
    changed_.notify_all();
  }
  events_.on_lost(*this, lost);
  fetches_.close(lost);
}

}  // namespace tagflow::net
