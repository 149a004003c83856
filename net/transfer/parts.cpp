#include "net/transfer/parts.h"

#include <algorithm>
#include <iterator>

#include "actors/runtime/peer_rendezvous.h"
#include "actors/runtime/step.h"
#include "graph/fault.h"
#include "net/transfer/linked_port.h"
#include "net/transfer/peer_session.h"

namespace tagflow::net {
namespace {

// A message or a group without tokens takes memory, too.
size_t count_of(const Tokens& tokens) {
  size_t count = 0;
  for (const Tokens::Group& group : tokens.groups)
    count += std::max<size_t>(group.entries.size(), 1);
  return std::max<size_t>(count, 1);
}

}  // namespace

class Parts::Entered {
 public:
  explicit Entered(Open open) : open_(open) {}
  ~Entered() {
    if (open_.step != nullptr) open_.step->drop_activity();
  }
  Entered(const Entered&) = delete;
  Entered& operator=(const Entered&) = delete;

  explicit operator bool() const { return open_.step != nullptr; }
  const Open& operator*() const { return open_; }

 private:
  const Open open_;
};

Status Parts::on_run(uint64_t step, WorkerSteps::Actions& actions) {
  std::vector<Early> dropped;
  Status status;
  {
    const std::lock_guard lock(mutex_);
    status = steps_.on_run(StepId(step), actions);
    // Steps that are left out will not run here any more.
    while (!early_.empty() && early_.begin()->first < step)
      std::ranges::move(take_early(early_.begin()->first),
                        std::back_inserter(dropped));
  }
  drop(dropped);
  return status;
}

void Parts::on_abort(uint64_t step, const Status& cause,
                     WorkerSteps::Actions& actions) {
  const std::lock_guard lock(mutex_);
  steps_.on_abort(StepId(step), cause, actions);
}

void Parts::on_error(uint64_t step, const Status& status,
                     WorkerSteps::Actions& actions) {
  const std::lock_guard lock(mutex_);
  steps_.on_local_error(StepId(step), status, actions);
}

MessageCounts Parts::on_over(uint64_t step, const Status& status,
                             bool has_committed,
                             WorkerSteps::Actions& actions) {
  std::vector<Early> dropped;
  MessageCounts counts;
  {
    const std::lock_guard lock(mutex_);
    steps_.on_local_over(StepId(step), status, has_committed, actions);
    dropped = take_early(step);
    if (const auto last = last_counts_.extract(step); !last.empty())
      counts = last.mapped();
  }
  drop(dropped);
  return counts;
}

MessageCounts Parts::counts(uint64_t step) const {
  const std::lock_guard lock(mutex_);
  if (const auto open = open_.find(step); open != open_.end())
    return open->second.port->counts();
  const auto last = last_counts_.find(step);
  return last == last_counts_.end() ? MessageCounts() : last->second;
}

void Parts::open(uint64_t number, actors::Step& step, actors::BatchStore& store,
                 LinkedPort& port) {
  const Open open{&step, &store, &port};
  std::vector<Early> came;
  {
    const std::lock_guard lock(mutex_);
    open_.emplace(number, open);
    came = take_early(number);
  }
  for (Early& early : came)
    if (Status status = deliver(open, *early.from, std::move(early.tokens));
        !status.ok())
      step.fail(std::move(status));
}

void Parts::close(uint64_t number, MessageCounts counts) {
  const std::lock_guard lock(mutex_);
  open_.erase(number);
  last_counts_.emplace(number, counts);
}

Parts::Entered Parts::enter(uint64_t number) {
  const std::lock_guard lock(mutex_);
  const auto found = open_.find(number);
  if (found == open_.end() || !found->second.step->try_enter())
    return Entered({});
  return Entered(found->second);
}

Status Parts::on_tokens(PeerSession& from, Tokens tokens) {
  const uint64_t number = tokens.step;
  Open open;
  {
    const std::lock_guard lock(mutex_);
    const auto found = open_.find(number);
    if (found != open_.end()) {
      if (found->second.step->try_enter()) open = found->second;
    } else if (steps_.fate_of(StepId(number)) != WorkerSteps::Fate::kDrop) {
      return keep(from, std::move(tokens));
    }
  }
  const Entered entered(open);
  if (entered) return deliver(*entered, from, std::move(tokens));
  drop(from, tokens);
  return {};
}

Status Parts::keep(PeerSession& from, Tokens tokens) {
  const size_t count = count_of(tokens);
  if (count > kMostEarly - num_early_)
    return error(Code::kResourceExhausted,
                 "[net] more than {} tokens came before their step",
                 kMostEarly);
  early_[tokens.step].push_back({&from, std::move(tokens)});
  num_early_ += count;
  return {};
}

std::vector<Parts::Early> Parts::take_early(uint64_t step) {
  auto node = early_.extract(step);
  if (node.empty()) return {};
  for (const Early& early : node.mapped()) num_early_ -= count_of(early.tokens);
  return std::move(node.mapped());
}

Status Parts::deliver(const Open& open, PeerSession& from, Tokens tokens) {
  actors::TransferAnswers answers;
  const Status status = guarded("net", [&] {
    return open.port->on_tokens(from, std::move(tokens), answers);
  });
  if (Status posted =
          guarded("net", [&] { answers.run(*open.step, *open.store); });
      !posted.ok())
    open.step->fail(std::move(posted));
  return status;
}

Status Parts::on_pull(PeerSession& from, const Pull& pull, Thread thread) {
  const Entered entered = enter(pull.step);
  if (!entered) return {};
  actors::TransferAnswers answers;
  return guarded("net", [&]() -> Status {
    TAGFLOW_RETURN_IF_ERROR((*entered).port->on_pull(from, pull, answers));
    if (thread == Thread::kLent) {
      answers.run(*(*entered).step, *(*entered).store);
    } else {
      answers.post(*(*entered).step, *(*entered).store);
    }
    return {};
  });
}

void Parts::on_pulled(PeerSession& from, uint64_t step, const TransferKey& key,
                      Result<std::optional<Tensor>> value) {
  const Entered entered = enter(step);
  if (!entered) return;
  actors::TransferAnswers answers;
  Status status = guarded("net", [&]() -> Status {
    TAGFLOW_RETURN_IF_ERROR(
        (*entered).port->on_pulled(from, key, std::move(value), answers));
    answers.post(*(*entered).step, *(*entered).store);
    return {};
  });
  if (!status.ok()) (*entered).step->fail(std::move(status));
}

void Parts::forget(const PeerSession& session) {
  const std::lock_guard lock(mutex_);
  for (auto& [step, all] : early_)
    std::erase_if(all, [&](const Early& early) {
      if (early.from != &session) return false;
      num_early_ -= count_of(early.tokens);
      return true;
    });
  std::erase_if(early_, [](const auto& entry) { return entry.second.empty(); });
}

void Parts::drop(const std::vector<Early>& early) {
  for (const Early& each : early) drop(*each.from, each.tokens);
}

void Parts::drop(PeerSession& from, const Tokens& tokens) {
  for (const Tokens::Group& group : tokens.groups)
    for (const Tokens::Entry& entry : group.entries)
      if (const auto bytes = inline_bytes(entry)) from.consume(*bytes);
}

}  // namespace tagflow::net
