#include "net/link/hello.h"

#include <algorithm>

#include "graph/utf8.h"
#include "net/link/crypto.h"
#include "net/link/tls.h"

namespace tagflow::net {
namespace {

constexpr size_t kProof = sizeof(Digest);
constexpr size_t kReason = 64;
constexpr size_t kVerdict = kReason + kProof;
// All of a verdict on a proof that is false: it tells a stranger that, and has
// nothing by which it could try secrets.
constexpr char kNoProof = '\0';
constexpr std::string_view kConnector = "tagflow connector";
constexpr std::string_view kAcceptor = "tagflow acceptor";

Status misfit(std::string_view what) {
  return error(Code::kFailedPrecondition, "[net|hello] {}", what);
}

// Another process of the task is there, or another incarnation.
Status gone(std::string_view task) {
  return error(Code::kNotFound, "[net|hello] {} was started anew", task);
}

std::string_view text_of(const Digest& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

Digest digest_of(std::string_view bytes) {
  Digest digest;
  std::copy_n(bytes.begin(), digest.size(), digest.begin());
  return digest;
}

// The field of a verdict for the reason: cut between characters, and filled
// with zeros.
std::string reason_field(std::string_view reason) {
  std::string field(beginning_of(reason, kReason));
  field.resize(kReason, '\0');
  return field;
}

}  // namespace

Hello::Hello(const Identity& identity, bool is_connector, Admit admit)
    : secret_(identity.secret),
      cluster_(identity.cluster_name),
      admit_(std::move(admit)),
      is_connector_(is_connector) {
  mine_.role = identity.role;
  mine_.port = identity.port;
  mine_.task = identity.task;
  mine_.incarnation = identity.incarnation;
  mine_.node = identity.node;
  mine_.cluster = identity.cluster;
  mine_.digest = identity.digest;
}

Result<Hello> Hello::connector(const Identity& identity, Purpose purpose,
                               uint64_t wanted_incarnation) {
  Hello hello(identity, true, {});
  hello.mine_.purpose = purpose;
  hello.mine_.wanted_incarnation = wanted_incarnation;
  TAGFLOW_RETURN_IF_ERROR(hello.greet());
  hello.first_ = hello.greeting_;
  return hello;
}

Result<Hello> Hello::acceptor(const Identity& identity, Admit admit) {
  Hello hello(identity, false, std::move(admit));
  TAGFLOW_RETURN_IF_ERROR(hello.greet());
  return hello;
}

Status Hello::greet() {
  TAGFLOW_RETURN_IF_ERROR(fill_randomly(mine_.nonce));
  TAGFLOW_ASSIGN(greeting_, mine_.write());
  return {};
}

void Hello::bind(TlsPeer peer) {
  tls_ = std::make_shared<const TlsPeer>(std::move(peer));
}

size_t Hello::wanted() const {
  switch (wants_) {
    case Wants::kGreeting:
      return Greeting::kBytes;
    case Wants::kProof:
      return kProof;
    case Wants::kVerdict:
      return kVerdict;
    case Wants::kNothing:
      break;
  }
  return 0;
}

Result<std::string> Hello::take(std::string_view frame) {
  switch (wants_) {
    case Wants::kGreeting:
      return take_greeting(frame);
    case Wants::kProof:
      return take_proof(frame);
    case Wants::kVerdict:
      TAGFLOW_RETURN_IF_ERROR(take_verdict(frame));
      return std::string();
    case Wants::kNothing:
      break;
  }
  return misfit("it is over");
}

Result<std::string> Hello::take_greeting(std::string_view frame) {
  TAGFLOW_ASSIGN(peer_, Greeting::read(frame));
  if (is_connector_) {
    greetings_ = greeting_ + std::string(frame);
    TAGFLOW_RETURN_IF_ERROR(check_peer());
    wants_ = Wants::kVerdict;
    TAGFLOW_ASSIGN(const Digest proof, proof_of(kConnector, {}));
    return std::string(text_of(proof));
  }
  // The connection has the purpose that the connector gives it.
  mine_.purpose = peer_.purpose;
  mine_.wanted_incarnation = peer_.incarnation;
  TAGFLOW_ASSIGN(greeting_, mine_.write());
  greetings_ = std::string(frame) + greeting_;
  wants_ = Wants::kProof;
  return greeting_;
}

Result<std::string> Hello::take_proof(std::string_view frame) {
  TAGFLOW_ASSIGN(const Digest expected, proof_of(kConnector, {}));
  wants_ = Wants::kNothing;
  if (!equal_in_constant_time(expected, digest_of(frame))) {
    refusal_ = error(Code::kUnauthenticated,
                     "[net|hello] {} has another secret than this cluster",
                     peer_.task.to_string());
    return std::string(kVerdict, kNoProof);
  }
  refusal_ = check_peer();
  if (refusal_.ok()) refusal_ = admit_(peer_);
  std::string_view reason = refusal_.message();
  constexpr std::string_view kPrefix = "[net|hello] ";
  if (reason.starts_with(kPrefix)) reason.remove_prefix(kPrefix.size());
  if (!refusal_.ok() && reason.empty()) reason = "refused";
  const std::string field = reason_field(reason);
  TAGFLOW_ASSIGN(const Digest proof, proof_of(kAcceptor, field));
  return field + std::string(text_of(proof));
}

Status Hello::take_verdict(std::string_view frame) {
  if (frame.find_first_not_of(kNoProof) == frame.npos)
    return error(Code::kUnauthenticated,
                 "[net|hello] {} refuses the proof of this process, as it does "
                 "if the secrets differ",
                 peer_.task.to_string());
  const std::string_view field = frame.substr(0, kReason);
  TAGFLOW_ASSIGN(const Digest expected, proof_of(kAcceptor, field));
  if (!equal_in_constant_time(expected, digest_of(frame.substr(kReason))))
    return error(Code::kUnauthenticated,
                 "[net|hello] {} does not know this cluster's secret",
                 peer_.task.to_string());
  wants_ = Wants::kNothing;
  const std::string_view reason = field.substr(0, field.find('\0'));
  if (reason.empty()) return {};
  // What does not fit for ever, this side has found by itself.
  return error(Code::kAborted, "[net|hello] {} refuses: {}",
               peer_.task.to_string(), reason);
}

Status Hello::check_peer() const {
  const std::string task = peer_.task.to_string();
  if (peer_.cluster != mine_.cluster)
    return misfit(fmt::format("{} is of another cluster", task));
  if (peer_.incarnation == mine_.incarnation)
    return misfit("a process speaks with itself");
  if (peer_.role == Role::kMaster && mine_.role == Role::kMaster)
    return misfit("both processes are masters");
  if (mine_.role == Role::kClient && peer_.role != Role::kMaster)
    return misfit(fmt::format("{} is not a master service", task));
  if (peer_.role == Role::kClient && mine_.role != Role::kMaster)
    return misfit("a client needs a master service");
  if (peer_.digest != mine_.digest)
    return misfit(fmt::format("{} is of another build", task));
  TAGFLOW_RETURN_IF_ERROR(check_certificate());
  // Each names the incarnation that it knows, which may be a dead one.
  if (mine_.wanted_incarnation != 0 &&
      mine_.wanted_incarnation != peer_.incarnation)
    return gone(task);
  if (peer_.wanted_incarnation != 0 &&
      peer_.wanted_incarnation != mine_.incarnation)
    return gone(mine_.task.to_string());
  return {};
}

Status Hello::check_certificate() const {
  if (tls_ == nullptr) return {};
  const bool is_worker = peer_.role == Role::kWorker;
  const std::string name = certified_name(
      cluster_, is_worker ? peer_.task.job : "", peer_.task.index);
  if (std::ranges::find(tls_->names, name) != tls_->names.end()) return {};
  return misfit(fmt::format(
      "{} has the certificate of {}, not of {}", peer_.task.to_string(),
      tls_->names.empty() ? "nobody" : tls_->names.front(), name));
}

Result<Digest> Hello::proof_of(std::string_view side,
                               std::string_view more) const {
  return hmac_sha256(secret_, std::string(side) + greetings_ +
                                  (tls_ == nullptr ? "" : tls_->binding) +
                                  std::string(more));
}

}  // namespace tagflow::net
