#include "net/transfer/parts.h"

#include <algorithm>
#include <iterator>

#include "actors/runtime/peer_rendezvous.h"
#include "actors/runtime/step.h"
#include "graph/fault.h"
#include "net/transfer/linked_port.h"
#include "net/transfer/peer_session.h"

namespace tagflow::net {

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
    std::erase_if(early_, [&](auto& entry) {
      if (entry.first >= step) return false;
      std::ranges::move(entry.second, std::back_inserter(dropped));
      return true;
    });
  }
  for (const Early& early : dropped) drop(*early.from, early.tokens);
  return status;
}

void Parts::on_abort(uint64_t step, const Status& cause,
                     WorkerSteps::Actions& actions) {
  const std::lock_guard lock(mutex_);
  steps_.on_abort(StepId(step), cause, actions);
}

void Parts::on_over(uint64_t step, const Status& status,
                    WorkerSteps::Actions& actions) {
  std::vector<Early> dropped;
  {
    const std::lock_guard lock(mutex_);
    steps_.on_local_over(StepId(step), status, false, actions);
    if (auto node = early_.extract(step); !node.empty())
      dropped = std::move(node.mapped());
  }
  for (const Early& early : dropped) drop(*early.from, early.tokens);
}

void Parts::open(uint64_t number, actors::Step& step, actors::BatchStore& store,
                 LinkedPort& port) {
  const Open open{&step, &store, &port};
  std::vector<Early> came;
  {
    const std::lock_guard lock(mutex_);
    open_.emplace(number, open);
    if (auto node = early_.extract(number); !node.empty())
      came = std::move(node.mapped());
  }
  for (Early& early : came)
    if (Status status = deliver(open, *early.from, std::move(early.tokens));
        !status.ok())
      step.fail(std::move(status));
}

void Parts::close(uint64_t number) {
  const std::lock_guard lock(mutex_);
  open_.erase(number);
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
      early_[number].push_back({&from, std::move(tokens)});
      return {};
    }
  }
  const Entered entered(open);
  if (entered) return deliver(*entered, from, std::move(tokens));
  drop(from, tokens);
  return {};
}

Status Parts::deliver(const Open& open, PeerSession& from, Tokens tokens) {
  actors::TransferAnswers answers;
  const Status status = guarded("net", [&] {
    return open.port->on_tokens(from, std::move(tokens), answers);
  });
  if (Status posted =
          guarded("net", [&] { answers.post(*open.step, *open.store); });
      !posted.ok())
    open.step->fail(std::move(posted));
  return status;
}

Status Parts::on_pull(PeerSession& from, const Pull& pull) {
  const Entered entered = enter(pull.step);
  if (!entered) return {};
  actors::TransferAnswers answers;
  return guarded("net", [&]() -> Status {
    TAGFLOW_RETURN_IF_ERROR((*entered).port->on_pull(from, pull, answers));
    answers.post(*(*entered).step, *(*entered).store);
    return {};
  });
}

void Parts::on_pulled(PeerSession& from, uint64_t step, const TransferKey& key,
                      Result<Tensor> tensor) {
  const Entered entered = enter(step);
  if (!entered) return;
  actors::TransferAnswers answers;
  Status status = guarded("net", [&]() -> Status {
    TAGFLOW_RETURN_IF_ERROR(
        (*entered).port->on_pulled(from, key, std::move(tensor), answers));
    answers.post(*(*entered).step, *(*entered).store);
    return {};
  });
  if (!status.ok()) (*entered).step->fail(std::move(status));
}

void Parts::on_lost(PeerSession& session, const Status& status) {
  std::vector<Open> entered;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [number, open] : open_)
      if (open.port->uses(session) && open.step->try_enter())
        entered.push_back(open);
  }
  for (const Open& open : entered) {
    open.step->fail(status);
    open.step->drop_activity();
  }
}

void Parts::drop(PeerSession& from, const Tokens& tokens) {
  for (const Tokens::Group& group : tokens.groups)
    for (const Tokens::Entry& entry : group.entries)
      if (const auto* tensor = std::get_if<Tensor>(&entry.value))
        from.consume(info_of(*tensor).bytes);
}

}  // namespace tagflow::net
