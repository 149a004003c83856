#include "net/transfer/peer_session.h"

#include <utility>
#include <vector>

#include "net/transfer/parts.h"

namespace tagflow::net {

std::optional<uint64_t> inline_bytes(const Tokens::Entry& entry) {
  if (std::holds_alternative<Tokens::Announced>(entry.value)) return {};
  const auto* tensor = std::get_if<Tensor>(&entry.value);
  return tensor == nullptr ? 0 : info_of(*tensor).bytes;
}

void PeerSession::start(Parts& parts,
                        std::function<void(const Status&)> on_lost) {
  channel_.start(
      {.on_frame = [this, &parts](
                       const Frame& frame) { return on_frame(parts, frame); },
       .on_begin = [this, &parts](
                       const Begin& begin) { return on_begin(parts, begin); },
       .on_end = [this, &parts](
                     ObjectId object,
                     const Status& status) { on_end(parts, object, status); },
       .on_sent = [this, &parts](ObjectId object,
                                 const Status&) { on_sent(parts, object); },
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
      return on_pull(parts, pull);
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
        if (const auto bytes = inline_bytes(entry))
          TAGFLOW_RETURN_IF_ERROR(receive_window_.on_token(*bytes));
  }
  return parts.on_tokens(*this, std::move(tokens));
}

void PeerSession::send(ObjectId object, const Tensor& tensor) {
  BulkLink::Object sent = object_of(object, tensor);
  {
    const std::lock_guard lock(mutex_);
    pulls_.on_send(object, sent.begin.bytes);
  }
  channel_.send(std::move(sent));
}

Status PeerSession::on_pull(Parts& parts, const Pull& pull) {
  bool is_due = false;
  {
    const std::lock_guard lock(mutex_);
    TAGFLOW_ASSIGN(is_due, pulls_.add(pull));
  }
  if (!is_due) return {};
  return parts.on_pull(*this, pull, Parts::Thread::kLent);
}

void PeerSession::on_sent(Parts& parts, ObjectId object) {
  std::unique_lock lock(mutex_);
  pulls_.on_sent(object);
  while (const std::optional<Pull> pull = pulls_.next()) {
    lock.unlock();
    if (Status status = parts.on_pull(*this, *pull, Parts::Thread::kBulk);
        !status.ok())
      return channel_.close(status);
    lock.lock();
  }
}

Result<BulkLink::Destination> PeerSession::on_begin(Parts& parts,
                                                    const Begin& begin) {
  const auto answers = [&] { return pulled_.find(uint64_t(begin.object)); };
  {
    const std::lock_guard lock(mutex_);
    if (answers() == pulled_.end())
      return error(Code::kCancelled, "[net] the step of a pull is over");
  }
  if (begin.kind == ObjectKind::kDead) return BulkLink::Destination();
  const auto input = TensorInput::begin(begin);
  if (!input.ok()) {
    // The link tells nobody.
    on_end(parts, begin.object, input.status());
    return input.status();
  }
  const std::lock_guard lock(mutex_);
  if (const auto found = answers(); found != pulled_.end())
    found->second.input = *input;
  return TensorInput::destination(*input);
}

void PeerSession::on_end(Parts& parts, ObjectId object, const Status& status) {
  Pulled pulled;
  {
    const std::lock_guard lock(mutex_);
    auto node = pulled_.extract(uint64_t(object));
    if (node.empty()) return;
    pulled = std::move(node.mapped());
  }
  std::optional<Tensor> value;
  Status failure = status;
  if (status.ok() && pulled.input != nullptr) {
    Result<Tensor> tensor = pulled.input->finish();
    failure = tensor.status();
    if (tensor.ok()) value = std::move(*tensor);
  }
  if (failure.ok()) {
    parts.on_pulled(*this, pulled.step, pulled.key, std::move(value));
  } else {
    parts.on_pulled(*this, pulled.step, pulled.key, std::move(failure));
  }
}

}  // namespace tagflow::net
