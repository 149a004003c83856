#include "net/transfer/linked_port.h"

#include <algorithm>

#include "actors/runtime/step.h"
#include "net/wire/tensor.h"

namespace tagflow::net {
namespace {

// Of a frame of tokens; a single token is smaller than the rest of a frame.
constexpr size_t kMostBytes = size_t{256} << 10;
// More than an entry has without the elements of its tensor, in most cases.
constexpr size_t kEntryBytes = 64;

TransferKey key_of(uint32_t transfer, const devices::Tag& tag) {
  return {{tag.frame_hi, tag.frame_lo}, tag.iteration, transfer};
}

// In a list of numbers: the plan does not have this transfer.
constexpr uint32_t kNone = ~0u;

// The number here of a number on the wire.
Result<uint32_t> find(const std::vector<uint32_t>& numbers, uint32_t number,
                      const PeerSession& peer) {
  if (number < numbers.size() && numbers[number] != kNone)
    return numbers[number];
  return error(
      Code::kDataLoss,
      "[net] {} names transfer {}, which is not known in this direction",
      peer.name(), number);
}

}  // namespace

LinkedPort::LinkedPort(Parts& parts, std::shared_ptr<const Routes> routes,
                       const std::vector<actors::Transfer>& transfers)
    : parts_(parts), all_(std::move(routes)), routes_(transfers.size()) {
  using Ends = actors::Transfer::Ends;
  for (uint32_t i = 0; i < transfers.size(); ++i) {
    if (transfers[i].ends == Ends::kBoth) continue;
    const Route& route = all_->at(transfers[i].name);
    routes_[i] = &route;
    auto peer = std::ranges::find(peers_, route.peer, &Peer::session);
    if (peer == peers_.end())
      peer = peers_.insert(peers_.end(), Peer{route.peer});
    auto& numbers =
        transfers[i].ends == Ends::kSend ? peer->sent : peer->received;
    if (numbers.size() <= route.number) numbers.resize(route.number + 1, kNone);
    numbers[route.number] = i;
  }
}

void LinkedPort::begin(actors::Step& step, actors::BatchStore& store) {
  step_ = &step;
  number_ = step.info.step_id;
  sent_ = 0;
  received_ = 0;
  parts_.open(number_, step, store, *this);
  // A session that is lost later fails the step, now that it is open.
  for (const Peer& peer : peers_)
    if (Status lost = peer.session->lost(); !lost.ok())
      step.fail(std::move(lost));
}

void LinkedPort::end() {
  if (step_ == nullptr) return;
  parts_.close(number_, counts());
  step_ = nullptr;
  for (Peer& peer : peers_) {
    peer.session->forget(number_);
    peer.pending.groups.clear();
    peer.bytes = 0;
  }
  const std::lock_guard lock(mutex_);
  inbox_.clear([](const Arrived& arrived) {
    if (!arrived.is_dead) arrived.from->consume(info_of(arrived.value).bytes);
  });
  outbox_.clear();
}

LinkedPort::Peer& LinkedPort::peer_of(const PeerSession& session) {
  return *std::ranges::find(peers_, &session, &Peer::session);
}

bool LinkedPort::uses(const PeerSession& session) const {
  return std::ranges::find(peers_, &session, &Peer::session) != peers_.end();
}

void LinkedPort::send(uint32_t transfer, const devices::Tag& tag, bool is_dead,
                      Tensor value, const actors::TransferEnd& send,
                      actors::TransferAnswers& answers) {
  const Route& route = *routes_[transfer];
  Tokens::Entry entry{tag.iteration, route.number, Tokens::Dead()};
  size_t bytes = kEntryBytes;
  if (!is_dead) {
    if (Status status = check_sendable(value.dtype(), route.tensor);
        !status.ok())
      return step_->fail(std::move(status));
    const TensorInfo info = info_of(value);
    if (!route.peer->take_window(info.bytes)) {
      entry.value = Tokens::Announced{info};
      push(peer_of(*route.peer), tag, std::move(entry), bytes);
      const std::lock_guard lock(mutex_);
      outbox_.announce(key_of(transfer, tag), {std::move(value), send});
      return;
    }
    bytes += info.bytes;
    entry.value = std::move(value);
  }
  push(peer_of(*route.peer), tag, std::move(entry), bytes);
  answers.accept(send);
}

void LinkedPort::push(Peer& peer, const devices::Tag& tag, Tokens::Entry entry,
                      size_t bytes) {
  if (peer.bytes + bytes > kMostBytes) flush(peer);
  const FrameInstance instance{tag.frame_hi, tag.frame_lo};
  auto& groups = peer.pending.groups;
  if (groups.empty() || groups.back().instance != instance ||
      groups.back().base_iteration != tag.iteration)
    groups.push_back({instance, tag.iteration, {}});
  groups.back().entries.push_back(std::move(entry));
  peer.bytes += bytes;
}

void LinkedPort::flush() {
  for (Peer& peer : peers_) flush(peer);
}

void LinkedPort::flush(Peer& peer) {
  if (peer.pending.groups.empty()) return;
  peer.pending.step = number_;
  ++sent_;
  Status status = peer.session->send(peer.pending);
  peer.pending.groups.clear();
  peer.bytes = 0;
  if (!status.ok()) step_->fail(std::move(status));
}

void LinkedPort::receive(uint32_t transfer, const devices::Tag& tag,
                         const actors::TransferEnd& recv,
                         actors::TransferAnswers& answers) {
  using Next = Inbox<Arrived, actors::TransferEnd>::Next;
  const TransferKey key = key_of(transfer, tag);
  std::optional<Arrived> arrived;
  Next next;
  {
    const std::lock_guard lock(mutex_);
    next = inbox_.on_recv(key, recv, arrived);
  }
  if (next == Next::kTaken) {
    give(std::move(*arrived), recv, answers);
  } else if (next == Next::kPull) {
    if (Status status = pull(key); !status.ok()) step_->fail(std::move(status));
  }
}

Status LinkedPort::pull(const TransferKey& key) {
  const Route& route = *routes_[key.transfer];
  ++sent_;
  return route.peer->pull(number_, key, route.number);
}

void LinkedPort::give(Arrived arrived, const actors::TransferEnd& recv,
                      actors::TransferAnswers& answers) {
  if (!arrived.is_dead) arrived.from->consume(info_of(arrived.value).bytes);
  answers.add(recv, arrived.is_dead, std::move(arrived.value));
}

Status LinkedPort::check(const Route& route, DataType dtype,
                         const Shape& shape) {
  if (dtype == route.dtype && route.shape.accepts(shape)) return {};
  return invalid_argument("[net] {} sends {} as {}{}, where {}{} is expected",
                          route.peer->name(), route.tensor, dtype_name(dtype),
                          shape.to_string(), dtype_name(route.dtype),
                          route.shape.to_string());
}

Status LinkedPort::on_tokens(PeerSession& from, Tokens tokens,
                             actors::TransferAnswers& answers) {
  if (!uses(from))
    return error(Code::kDataLoss,
                 "[net] {} sends tokens of a step that it has no part of",
                 from.name());
  ++received_;
  const Peer& peer = peer_of(from);
  for (Tokens::Group& group : tokens.groups)
    for (Tokens::Entry& entry : group.entries) {
      TAGFLOW_ASSIGN(const uint32_t transfer,
                     find(peer.received, entry.transfer, from));
      const Route& route = *routes_[transfer];
      const TransferKey key{group.instance, entry.iteration, transfer};
      Status expected;
      if (const auto* tensor = std::get_if<Tensor>(&entry.value)) {
        expected = check(route, tensor->dtype(), tensor->shape());
      } else if (const auto* coming =
                     std::get_if<Tokens::Announced>(&entry.value)) {
        expected = check(route, coming->info.dtype, coming->info.shape);
      }
      if (!expected.ok()) step_->fail(std::move(expected));
      if (std::holds_alternative<Tokens::Announced>(entry.value)) {
        std::unique_lock lock(mutex_);
        TAGFLOW_ASSIGN(const bool is_wanted, inbox_.on_announced(key));
        lock.unlock();
        if (is_wanted) TAGFLOW_RETURN_IF_ERROR(pull(key));
        continue;
      }
      Arrived arrived{.is_dead = true, .from = &from};
      if (auto* tensor = std::get_if<Tensor>(&entry.value))
        arrived = {false, std::move(*tensor), &from};
      std::unique_lock lock(mutex_);
      TAGFLOW_ASSIGN(const auto recv, inbox_.on_token(key, arrived));
      lock.unlock();
      if (recv) give(std::move(arrived), *recv, answers);
    }
  return {};
}

Status LinkedPort::on_pull(PeerSession& from, const Pull& pull,
                           actors::TransferAnswers& answers) {
  if (!uses(from))
    return error(Code::kDataLoss,
                 "[net] {} pulls from a step that it has no part of",
                 from.name());
  ++received_;
  TransferKey key = pull.key;
  TAGFLOW_ASSIGN(key.transfer,
                 find(peer_of(from).sent, pull.key.transfer, from));
  std::unique_lock lock(mutex_);
  std::optional<Held> held = outbox_.on_pull(key);
  lock.unlock();
  if (!held) return {};
  ++sent_;
  from.send(pull.object, held->value);
  answers.accept(held->send);
  return {};
}

Status LinkedPort::on_pulled(PeerSession& from, const TransferKey& key,
                             Result<Tensor> tensor,
                             actors::TransferAnswers& answers) {
  const Route& route = *routes_[key.transfer];
  ++received_;
  if (!tensor.ok())
    return std::move(tensor).status().with_prefix(
        fmt::format("[net] {} of {}: ", route.tensor, from.name()));
  TAGFLOW_RETURN_IF_ERROR(check(route, tensor->dtype(), tensor->shape()));
  std::unique_lock lock(mutex_);
  TAGFLOW_ASSIGN(const actors::TransferEnd recv, inbox_.on_object(key));
  lock.unlock();
  answers.add(recv, false, std::move(*tensor));
  return {};
}

}  // namespace tagflow::net
