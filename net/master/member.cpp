#include "net/master/member.h"

#include <chrono>

#include "graph/budget.h"
#include "graph/fault.h"
#include "net/link/listener.h"
#include "net/transfer/reports.h"
#include "net/transfer/values.h"

namespace tagflow::net {
Member::Member(const IoThreads& threads, Pairing::Pair pair, Address address,
               Task task)
    : task_(std::move(task)),
      address_(std::move(address)),
      incarnation_(pair.peer.incarnation),
      channel_(threads, std::move(pair.small), std::move(pair.bulk),
               task_.to_string()) {
  channel_.start(
      {.on_frame = [this](const Frame& frame) { return on_frame(frame); },
       .on_begin = [this](const Begin& begin) { return fetches_.begin(begin); },
       .on_end = [this](ObjectId object,
                        const Status& status) { fetches_.end(object, status); },
       .on_lost = [this](const Status& status) { on_lost(status); }});
}

Register::Peer Member::as_peer() const {
  return {task_, incarnation_, address_.host, address_.port};
}

Result<std::vector<graph::DeviceInfo>> Member::devices() {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, kHelloTime,
                    [this] { return has_devices_ || !lost_.ok(); });
  TAGFLOW_RETURN_IF_ERROR(lost_);
  if (!has_devices_)
    return error(Code::kDeadlineExceeded, "[net] {} does not name its devices",
                 name());
  return devices_;
}

Status Member::send(const Register& registration) {
  TAGFLOW_ASSIGN(std::string bytes, bytes_of(registration));
  const auto owner = std::make_shared<const std::string>(std::move(bytes));
  const Begin begin{
      channel_.next_object(), ObjectKind::kRegister, owner->size(), {}};
  channel_.send(BulkLink::Object{begin, *owner, owner});
  return {};
}

Result<Reply> Member::reply(uint64_t request, graph::Budget* budget) {
  constexpr std::chrono::milliseconds kLook{20};
  std::unique_lock lock(mutex_);
  for (;;) {
    if (auto node = replies_.extract(request); !node.empty()) {
      Reply& reply = node.mapped();
      TAGFLOW_RETURN_IF_ERROR(status_of(reply.outcome));
      return std::move(reply);
    }
    TAGFLOW_RETURN_IF_ERROR(lost_);
    if (budget != nullptr) TAGFLOW_RETURN_IF_ERROR(budget->look());
    changed_.wait_for(lock, kLook);
  }
}

void Member::run(Run run, const std::vector<std::pair<uint32_t, Tensor>>& feeds,
                 OnOver on_over) {
  const uint64_t step = run.step;
  {
    std::unique_lock lock(mutex_);
    if (!lost_.ok()) {
      const Status lost = lost_;
      lock.unlock();
      return on_over({.status = lost});
    }
    running_.emplace(step, std::move(on_over));
  }
  const Status sent = guarded("net", [&]() -> Status {
    ValueSender sender(channel_);
    for (const auto& [index, tensor] : feeds) {
      Run::Feed& feed = run.feeds.emplace_back();
      feed.index = index;
      TAGFLOW_RETURN_IF_ERROR(
          sender.put(tensor, fmt::format("feed {}", index), feed.value));
    }
    return channel_.send(run);
  });
  if (!sent.ok()) finish(step, {.status = sent});
}

void Member::abort(uint64_t step, const Status& cause) {
  static_cast<void>(channel_.send(Abort{step, outcome_of(cause)}));
}

void Member::leave() { static_cast<void>(channel_.send(Bye{"it is done"})); }

void Member::finish(uint64_t step, Over over) {
  std::unique_lock lock(mutex_);
  auto node = running_.extract(step);
  lock.unlock();
  if (!node.empty()) node.mapped()(std::move(over));
}

Status Member::on_frame(const Frame& frame) {
  switch (frame.kind) {
    case FrameKind::kDone: {
      TAGFLOW_ASSIGN(Done done, parse_body<Done>(frame.body));
      on_done(std::move(done));
      return {};
    }
    case FrameKind::kReply: {
      TAGFLOW_ASSIGN(Reply reply, parse_body<Reply>(frame.body));
      const std::lock_guard lock(mutex_);
      replies_.insert_or_assign(reply.request, std::move(reply));
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
  auto fetches = std::exchange(done.fetches, {});
  collect_values(
      fetches_, std::move(fetches),
      [this, step = done.step, status = status_of(done.outcome),
       stats = std::move(done.stats)](
          Result<std::vector<std::pair<uint32_t, Tensor>>> values) mutable {
        if (status.ok()) status = values.status();
        Over over{.status = status, .stats = std::move(stats)};
        if (status.ok()) over.fetches = std::move(*values);
        finish(step, std::move(over));
      });
}

void Member::on_lost(const Status& status) {
  // Whatever ended the link, the worker cannot be reached any more.
  const Status lost = error(Code::kUnavailable, "{}", status.message());
  std::map<uint64_t, OnOver> running;
  {
    const std::lock_guard lock(mutex_);
    lost_ = lost;
    running = std::move(running_);
    running_.clear();
    changed_.notify_all();
  }
  fetches_.close(lost);
  for (auto& [step, on_over] : running) on_over({.status = lost});
}

}  // namespace tagflow::net
