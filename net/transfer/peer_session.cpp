#include "net/transfer/peer_session.h"

#include <utility>
#include <vector>

#include "net/transfer/parts.h"

namespace tagflow::net {

void PeerSession::start(Parts& parts,
                        std::function<void(const Status&)> on_lost) {
  channel_.start(
      {.on_frame = [this, &parts](
                       const Frame& frame) { return on_frame(parts, frame); },
       .on_begin = [this](const Begin& begin) { return on_begin(begin); },
       .on_end = [this, &parts](
                     ObjectId object,
                     const Status& status) { on_end(parts, object, status); },
       .on_lost = std::move(on_lost)});
}

bool PeerSession::take_window(uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  return send_window_.take(bytes);
}

void PeerSession::consume(uint64_t bytes) {
  uint64_t credit;
  {
    const std::lock_guard lock(mutex_);
    credit = receive_window_.on_consumed(bytes);
  }
  if (credit > 0) static_cast<void>(channel_.send(Credit{credit}));
}

Status PeerSession::pull(uint64_t step, const TransferKey& key,
                         uint32_t theirs) {
  const ObjectId object = channel_.next_object();
  {
    const std::lock_guard lock(mutex_);
    pulled_.emplace(uint64_t(object), Pulled{step, key, nullptr});
  }
  TransferKey named = key;
  named.transfer = theirs;
  return channel_.send(Pull{step, named, object});
}

void PeerSession::forget(uint64_t step) {
  std::vector<ObjectId> dropped;
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(pulled_, [&](const auto& entry) {
      if (entry.second.step != step) return false;
      dropped.push_back(ObjectId(entry.first));
      return true;
    });
  }
  for (const ObjectId object : dropped) channel_.drop(object);
}

Status PeerSession::on_frame(Parts& parts, const Frame& frame) {
  switch (frame.kind) {
    case FrameKind::kTokens: {
      TAGFLOW_ASSIGN(Tokens tokens, parse_body<Tokens>(frame.body));
      return on_tokens(parts, std::move(tokens));
    }
    case FrameKind::kPull: {
      TAGFLOW_ASSIGN(const Pull pull, parse_body<Pull>(frame.body));
      return parts.on_pull(*this, pull);
    }
    case FrameKind::kCredit: {
      TAGFLOW_ASSIGN(const Credit credit, parse_body<Credit>(frame.body));
      const std::lock_guard lock(mutex_);
      return send_window_.on_credit(credit.bytes);
    }
    default:
      return error(Code::kDataLoss, "[net] a worker sends no {} to another one",
                   kind_name(frame.kind));
  }
}

Status PeerSession::on_tokens(Parts& parts, Tokens tokens) {
  {
    const std::lock_guard lock(mutex_);
    for (const Tokens::Group& group : tokens.groups)
      for (const Tokens::Entry& entry : group.entries)
        if (const auto* tensor = std::get_if<Tensor>(&entry.value))
          TAGFLOW_RETURN_IF_ERROR(
              receive_window_.on_token(info_of(*tensor).bytes));
  }
  return parts.on_tokens(*this, std::move(tokens));
}

Result<BulkLink::Destination> PeerSession::on_begin(const Begin& begin) {
  const auto answers = [&] { return pulled_.find(uint64_t(begin.object)); };
  {
    const std::lock_guard lock(mutex_);
    if (answers() == pulled_.end())
      return error(Code::kCancelled, "[net] the step of a pull is over");
  }
  TAGFLOW_ASSIGN(auto input, TensorInput::begin(begin));
  const std::lock_guard lock(mutex_);
  if (const auto found = answers(); found != pulled_.end())
    found->second.input = input;
  return TensorInput::destination(input);
}

void PeerSession::on_end(Parts& parts, ObjectId object, const Status& status) {
  Pulled pulled;
  {
    const std::lock_guard lock(mutex_);
    auto node = pulled_.extract(uint64_t(object));
    if (node.empty()) return;
    pulled = std::move(node.mapped());
  }
  Result<Tensor> tensor =
      status.ok() ? pulled.input->finish() : Result<Tensor>(status);
  parts.on_pulled(*this, pulled.step, pulled.key, std::move(tensor));
}

}  // namespace tagflow::net
