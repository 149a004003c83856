#include "net/link/tls.h"

#include <openssl/err.h>
#include <openssl/pem.h>

#include <algorithm>
#include <charconv>

#include "graph/fault.h"
#include "net/link/openssl_owner.h"
#include "net/link/peer_certificate.h"
#include "net/link/system_io.h"

namespace tagflow::net {
namespace {

// What one call encrypts: a chunk of a bulk link, and its head.
constexpr size_t kMostAtOnce = size_t{160} << 10;
constexpr size_t kBinding = 32;
// What names of processes begin with.
constexpr std::string_view kScheme = "tagflow://";

Status failed(std::string_view what) {
  ERR_clear_error();
  return error(Code::kInternal, "[net|tls] OpenSSL cannot make {}", what);
}

// A key with a password would ask the terminal for it.
int no_password(char*, int, int, void*) { return 0; }

OwnedBio bio_of(const std::string& text) {
  return OwnedBio(BIO_new_mem_buf(text.data(), int(text.size())));
}

std::vector<OwnedCertificate> read_certificates(const std::string& text) {
  std::vector<OwnedCertificate> all;
  const OwnedBio bio = bio_of(text);
  while (X509* next =
             PEM_read_bio_X509(bio.get(), nullptr, no_password, nullptr))
    all.emplace_back(next);
  ERR_clear_error();
  return all;
}

// --- What OpenSSL writes is kept by the session -----------------------------

int keep(BIO* bio, const char* bytes, int count) {
  auto* kept = static_cast<std::string*>(BIO_get_data(bio));
  const bool is_kept =
      guarded([&] { kept->append(bytes, size_t(count)); }).ok();
  return is_kept ? count : -1;
}

long control_kept(BIO*, int command, long, void*) {
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

BIO* keeping_bio(std::string& kept) {
  static BIO_METHOD* const method = [] {
    BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK,
                                    "tagflow output");
    BIO_meth_set_write(made, keep);
    BIO_meth_set_ctrl(made, control_kept);
    return made;
  }();
  BIO* bio = BIO_new(method);
  if (bio == nullptr) return nullptr;
  BIO_set_data(bio, &kept);
  BIO_set_init(bio, 1);
  return bio;
}

// The text of which certified_name() made this one.
std::string without_escapes(std::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    uint8_t byte = 0;
    const char* const digits = text.data() + i + 1;
    if (text[i] == '%' && i + 2 < text.size() &&
        std::from_chars(digits, digits + 2, byte, 16).ptr == digits + 2) {
      plain += char(byte);
      i += 2;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

}  // namespace

std::string certified_name(std::string_view cluster, std::string_view job,
                           uint32_t task) {
  std::string name(kScheme);
  constexpr std::string_view kPlain = "-._~";
  for (const char c : cluster) {
    const bool is_plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
                          (c >= 'a' && c <= 'z') ||
                          kPlain.find(c) != kPlain.npos;
    name += is_plain ? std::string(1, c) : fmt::format("%{:02X}", uint8_t(c));
  }
  return name + (job.empty() ? "/master" : fmt::format("/{}/{}", job, task));
}

Status other_kind(bool has_tls, std::string_view who) {
  return error(Code::kFailedPrecondition, "[net|tls] {}: {}", who,
               has_tls ? "the peer speaks without TLS, and this process with it"
                       : "the peer speaks with TLS, and this process without");
}

// --- A session --------------------------------------------------------------

struct TlsSession::State {
  State(OwnedSession session, int descriptor, Side session_side,
        std::string dialled)
      : ssl(std::move(session)),
        socket(descriptor),
        side(session_side),
        host(std::move(dialled)) {}

  // Gives the socket what it takes.
  Status flush(std::string_view who);
  // Why the socket takes nothing any more: the peer may have said it.
  Status cut_off(Status by_socket, std::string_view who);
  bool is_flushed() const { return sent == kept.size(); }
  // What OpenSSL says about a call that returned `result`. REQUIRES: the error
  // is one that ends the session.
  Status describe(int result, std::string_view who);

  std::mutex mutex;  // guards the below
  const OwnedSession ssl;
  const int socket;
  const Side side;
  const std::string host;  // dialled
  std::string kept;        // encrypted
  size_t sent = 0;         // bytes of it
  bool owes = false;       // the last byte given is not told as written
  std::string distrust;    // why the peer is not trusted
  bool may_mend = false;   // by time, or by a new certificate
  bool is_done = false;    // with the handshake
  Status failure;          // why the session has ended
};

namespace {

// Whether OpenSSL goes on, which trusts the certificate if `is_trusted`.
int verify(int is_trusted, X509_STORE_CTX* store) {
  const auto* ssl = static_cast<SSL*>(
      X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx()));
  auto* state = static_cast<TlsSession::State*>(SSL_get_app_data(ssl));
  X509* certificate = X509_STORE_CTX_get_current_cert(store);
  if (certificate == nullptr) return is_trusted;
  const auto checked = guarded([&] {
    if (is_trusted == 1 && X509_STORE_CTX_get_error_depth(store) == 0 &&
        state->side == TlsSession::Side::kConnector &&
        !names_of(certificate).hosts.empty() &&
        !is_for_host(certificate, state->host)) {
      X509_STORE_CTX_set_error(store, X509_V_ERR_HOSTNAME_MISMATCH);
      is_trusted = 0;
    }
    if (is_trusted == 1) return;
    state->distrust =
        distrust(X509_STORE_CTX_get_error(store), certificate, state->host);
    state->may_mend = !invalid_now(certificate).empty();
  });
  return checked.ok() ? is_trusted : 0;
}

// Of an alert that the peer has sent.
Status describe_alert(int alert, bool is_done, std::string_view who) {
  const std::string_view text = SSL_alert_desc_string_long(alert);
  switch (alert) {
    case SSL_AD_CERTIFICATE_EXPIRED:
      return error(Code::kUnavailable,
                   "[net|tls] {}: the peer says that the certificate of this "
                   "process is not valid now",
                   who);
    case SSL_AD_BAD_CERTIFICATE:
    case SSL_AD_UNSUPPORTED_CERTIFICATE:
    case SSL_AD_CERTIFICATE_REVOKED:
    case SSL_AD_CERTIFICATE_UNKNOWN:
    case SSL_AD_UNKNOWN_CA:
    case SSL_AD_ACCESS_DENIED:
    case SSL_AD_DECRYPT_ERROR:
    case TLS13_AD_CERTIFICATE_REQUIRED:
      return error(Code::kUnauthenticated,
                   "[net|tls] {}: the peer does not trust the certificate of "
                   "this process: {}",
                   who, text);
    case SSL_AD_PROTOCOL_VERSION:
      if (is_done) break;
      return other_kind(true, who);
    default:
      break;
  }
  return error(Code::kUnavailable, "[net|tls] {}: the peer ends TLS: {}", who,
               text);
}

}  // namespace

Status TlsSession::State::flush(std::string_view who) {
  while (!is_flushed()) {
    iovec rest = part(std::string_view(kept).substr(sent));
    auto count = net::write_some(socket, {&rest, 1}, who);
    if (!count.ok()) return cut_off(std::move(count).status(), who);
    if (*count == 0) return {};
    sent += *count;
  }
  kept.clear();
  sent = 0;
  return {};
}

Status TlsSession::State::cut_off(Status by_socket, std::string_view who) {
  ERR_clear_error();
  char byte = 0;
  const int result = SSL_peek(ssl.get(), &byte, 1);
  if (result > 0 || SSL_get_error(ssl.get(), result) != SSL_ERROR_SSL)
    return by_socket;
  return describe(result, who);
}

Status TlsSession::State::describe(int result, std::string_view who) {
  const int system_error = errno;
  const int kind = SSL_get_error(ssl.get(), result);
  const unsigned long code = ERR_peek_error();
  ERR_clear_error();
  if (!distrust.empty())
    return error(may_mend ? Code::kUnavailable : Code::kUnauthenticated,
                 "[net|tls] {}: the certificate of the peer {}", who, distrust);
  const bool is_lost = kind == SSL_ERROR_ZERO_RETURN ||
                       (kind == SSL_ERROR_SYSCALL && system_error == 0);
  if (is_lost) return closed_by(who);
  if (kind == SSL_ERROR_SYSCALL) {
    errno = system_error;
    return lost_by_errno(who);
  }
  const int reason = ERR_GET_REASON(code);
  if (reason >= SSL_AD_REASON_OFFSET)
    return describe_alert(reason - SSL_AD_REASON_OFFSET, is_done, who);
  const char* text = ERR_reason_error_string(code);
  const std::string_view why = text == nullptr ? "an error of TLS" : text;
  if (is_done) return error(Code::kDataLoss, "[net|tls] {}: {}", who, why);
  return error(reason == SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE
                   ? Code::kUnauthenticated
                   : Code::kFailedPrecondition,
               "[net|tls] {}: there is no TLS 1.3 with the peer: {}", who, why);
}

TlsSession::TlsSession(std::unique_ptr<State> state)
    : state_(std::move(state)) {}

TlsSession::~TlsSession() = default;

Result<TlsSession::Wants> TlsSession::shake(std::string_view who) {
  State& state = *state_;
  const std::lock_guard lock(state.mutex);
  ERR_clear_error();
  errno = 0;
  const int result = SSL_do_handshake(state.ssl.get());
  const bool waits = result != 1 && SSL_get_error(state.ssl.get(), result) ==
                                        SSL_ERROR_WANT_READ;
  if (result != 1 && !waits) {
    Status why = state.describe(result, who);
    // The peer is told, if it is still there.
    static_cast<void>(state.flush(who));
    return why;
  }
  TAGFLOW_RETURN_IF_ERROR(state.flush(who));
  if (!state.is_flushed()) return Wants::kWrite;
  if (waits) return Wants::kRead;
  state.is_done = true;
  return Wants::kNothing;
}

Result<TlsPeer> TlsSession::peer() const {
  const std::lock_guard lock(state_->mutex);
  constexpr std::string_view kLabel = "EXPORTER-Channel-Binding";
  TlsPeer peer;
  peer.binding.resize(kBinding);
  if (SSL_export_keying_material(
          state_->ssl.get(), reinterpret_cast<uint8_t*>(peer.binding.data()),
          peer.binding.size(), kLabel.data(), kLabel.size(), nullptr, 0,
          1) != 1)
    return failed("a channel binding");
  const X509* certificate = SSL_get0_peer_certificate(state_->ssl.get());
  if (certificate == nullptr)
    return error(Code::kUnauthenticated,
                 "[net|tls] the peer shows no certificate");
  peer.names = names_of(certificate).uris;
  return peer;
}

Result<size_t> TlsSession::write_some(std::span<iovec> from,
                                      std::string_view who) {
  State& state = *state_;
  const std::lock_guard lock(state.mutex);
  if (!state.failure.ok()) return state.failure;
  state.failure = state.flush(who);
  if (!state.failure.ok()) return state.failure;
  if (!state.is_flushed()) return size_t{0};
  // What was encrypted before is not encrypted again.
  size_t known = std::exchange(state.owes, false) ? 1 : 0;
  size_t count = 0;
  for (const iovec& part : from) {
    const size_t skipped = std::min(known, part.iov_len);
    known -= skipped;
    count += skipped;
    const size_t left = std::min(part.iov_len - skipped,
                                 kMostAtOnce - std::min(count, kMostAtOnce));
    if (left == 0) continue;
    ERR_clear_error();
    size_t written = 0;
    const int result = SSL_write_ex(
        state.ssl.get(), static_cast<const char*>(part.iov_base) + skipped,
        left, &written);
    if (result != 1) return state.failure = state.describe(result, who);
    count += written;
    if (skipped + written < part.iov_len) break;
  }
  state.failure = state.flush(who);
  if (!state.failure.ok()) return state.failure;
  state.owes = !state.is_flushed();
  return state.owes ? count - 1 : count;
}

Result<std::optional<size_t>> TlsSession::read_some(std::span<iovec> to,
                                                    std::string_view who) {
  State& state = *state_;
  const std::lock_guard lock(state.mutex);
  if (!state.failure.ok()) return state.failure;
  size_t count = 0;
  for (const iovec& part : to) {
    size_t got = 0;
    while (got < part.iov_len) {
      if (count + got > 0 && SSL_has_pending(state.ssl.get()) == 0)
        return std::optional<size_t>(count + got);
      ERR_clear_error();
      errno = 0;
      size_t some = 0;
      const int result =
          SSL_read_ex(state.ssl.get(), static_cast<char*>(part.iov_base) + got,
                      part.iov_len - got, &some);
      got += some;
      if (result == 1) continue;
      const int kind = SSL_get_error(state.ssl.get(), result);
      if (kind != SSL_ERROR_WANT_READ)
        state.failure = state.describe(result, who);
      if (count + got > 0) return std::optional<size_t>(count + got);
      if (kind == SSL_ERROR_WANT_READ) return std::optional<size_t>();
      return state.failure;
    }
    count += got;
  }
  return std::optional<size_t>(count);
}

bool TlsSession::has_unread() const {
  const std::lock_guard lock(state_->mutex);
  return SSL_has_pending(state_->ssl.get()) == 1 || !state_->failure.ok();
}

Result<size_t> write_some(TlsSession* tls, int socket, std::span<iovec> from,
                          std::string_view who) {
  return tls != nullptr ? tls->write_some(from, who)
                        : write_some(socket, from, who);
}

Result<std::optional<size_t>> read_some(TlsSession* tls, int socket,
                                        std::span<iovec> to,
                                        std::string_view who) {
  return tls != nullptr ? tls->read_some(to, who) : read_some(socket, to, who);
}

// --- The certificates of a process ------------------------------------------

struct Tls::Context {
  OwnedContext made;
};

namespace {

Status no_text(std::string_view what) {
  ERR_clear_error();
  return invalid_argument("[net|tls] {}", what);
}

Result<OwnedContext> context_of(const TlsTexts& texts) {
  OwnedContext made(SSL_CTX_new(TLS_method()));
  if (made == nullptr) return failed("a context");
  SSL_CTX* context = made.get();
  SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
  // The fastest one first.
  SSL_CTX_set_ciphersuites(context,
                           "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:"
                           "TLS_CHACHA20_POLY1305_SHA256");
  // A peer that closes without a word is as lost as one that says so.
  SSL_CTX_set_options(context, SSL_OP_NO_TICKET | SSL_OP_IGNORE_UNEXPECTED_EOF);
  SSL_CTX_set_num_tickets(context, 0);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  // One read takes a record and its head. A buffer of several records would
  // cost more: OpenSSL moves what is left to its beginning after each of them.
  SSL_CTX_set_read_ahead(context, 1);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
                     verify);

  const auto authorities = read_certificates(texts.ca);
  if (authorities.empty())
    return no_text("the file of the authority has no certificate in PEM");
  for (const OwnedCertificate& each : authorities)
    if (X509_STORE_add_cert(SSL_CTX_get_cert_store(context), each.get()) != 1)
      return failed("a list of authorities");
  const auto chain = read_certificates(texts.certificate);
  if (chain.empty())
    return no_text("the file of the certificate has none in PEM");
  if (SSL_CTX_use_certificate(context, chain.front().get()) != 1)
    return no_text("the certificate has a key that OpenSSL does not accept");
  for (size_t i = 1; i < chain.size(); ++i)
    if (SSL_CTX_add1_chain_cert(context, chain[i].get()) != 1)
      return failed("a chain of certificates");
  const OwnedBio key_text = bio_of(texts.key);
  const OwnedKey key(
      PEM_read_bio_PrivateKey(key_text.get(), nullptr, no_password, nullptr));
  if (key == nullptr)
    return no_text("the file of the key has none in PEM without a password");
  if (SSL_CTX_use_PrivateKey(context, key.get()) != 1 ||
      SSL_CTX_check_private_key(context) != 1)
    return no_text("the key is not that of the certificate");
  return made;
}

}  // namespace

Tls::Tls(std::shared_ptr<Context> context, Changes changes)
    : context_(std::move(context)), changes_(std::move(changes)) {}

Tls::~Tls() = default;

Result<std::shared_ptr<Tls>> Tls::make(const TlsTexts& texts, Changes changes) {
  return guarded("net|tls", [&]() -> Result<std::shared_ptr<Tls>> {
    TAGFLOW_ASSIGN(OwnedContext made, context_of(texts));
    return std::shared_ptr<Tls>(
        new Tls(std::make_shared<Context>(Context{std::move(made)}),
                std::move(changes)));
  });
}

Status Tls::check_own(std::string_view name) const {
  const std::lock_guard lock(mutex_);
  const X509* own = SSL_CTX_get0_certificate(context_->made.get());
  const auto names = names_of(own).uris;
  if (std::ranges::find(names, name) == names.end())
    return error(Code::kFailedPrecondition,
                 "[net|tls] the certificate of this process is for {}, not {}",
                 names.empty() ? "nobody" : names.front(), name);
  if (const std::string why = invalid_now(own); !why.empty())
    return error(Code::kFailedPrecondition,
                 "[net|tls] the certificate of this process {}", why);
  return {};
}

std::optional<std::string> Tls::cluster_of(std::string_view job,
                                           uint32_t task) const {
  const std::lock_guard lock(mutex_);
  const auto uris =
      names_of(SSL_CTX_get0_certificate(context_->made.get())).uris;
  for (std::string_view name : uris) {
    if (!name.starts_with(kScheme)) continue;
    name.remove_prefix(kScheme.size());
    std::string cluster = without_escapes(name.substr(0, name.find('/')));
    if (certified_name(cluster, job, task).substr(kScheme.size()) == name)
      return cluster;
  }
  return {};
}

Result<std::shared_ptr<TlsSession>> Tls::start(int socket,
                                               TlsSession::Side side,
                                               const std::string& host) {
  const std::lock_guard lock(mutex_);
  if (changes_)
    if (const auto texts = changes_())
      if (auto made = context_of(*texts); made.ok())
        context_ = std::make_shared<Context>(Context{std::move(*made)});
  OwnedSession session(SSL_new(context_->made.get()));
  BIO* const input = BIO_new_socket(socket, BIO_NOCLOSE);
  if (session == nullptr || input == nullptr) {
    BIO_free(input);
    return failed("a session");
  }
  auto state = std::make_unique<TlsSession::State>(std::move(session), socket,
                                                   side, host);
  BIO* const output = keeping_bio(state->kept);
  if (output == nullptr) {
    BIO_free(input);
    return failed("a session");
  }
  SSL* const ssl = state->ssl.get();
  SSL_set_bio(ssl, input, output);
  SSL_set_app_data(ssl, state.get());
  if (side == TlsSession::Side::kAcceptor) {
    SSL_set_accept_state(ssl);
  } else {
    SSL_set_connect_state(ssl);
  }
  return std::make_shared<TlsSession>(std::move(state));
}

}  // namespace tagflow::net
