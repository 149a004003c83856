#include "net/link/certificates.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/pem.h>

#include <algorithm>
#include <array>
#include <ctime>

#include "graph/fault.h"
#include "net/link/openssl_owner.h"

namespace tagflow::net {
namespace {

constexpr std::chrono::seconds kClocksDiffer{60};

Status failed(std::string_view what) {
  ERR_clear_error();
  return error(Code::kInternal, "[net|tls] OpenSSL cannot make {}", what);
}

// An extension says it as OpenSSL's configuration does, where a comma begins
// another name.
Status check_plain(const std::string& name, std::string_view what) {
  constexpr std::string_view kOthers = "-._~:/%";
  const bool is_plain = !name.empty() && std::ranges::all_of(name, [&](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
           (c >= 'A' && c <= 'Z') || kOthers.find(c) != kOthers.npos;
  });
  if (is_plain) return {};
  return invalid_argument("[net|tls] {:?} is not {}", name, what);
}

bool is_address(const std::string& host) {
  std::array<uint8_t, sizeof(in6_addr)> bytes{};
  return ::inet_pton(AF_INET, host.c_str(), bytes.data()) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), bytes.data()) == 1;
}

Status extend(X509* certificate, X509* authority, int what,
              const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, authority, certificate, nullptr, nullptr, 0);
  X509V3_set_ctx_nodb(&context);
  const OwnedExtension extension(
      X509V3_EXT_conf_nid(nullptr, &context, what, value.c_str()));
  if (extension == nullptr ||
      X509_add_ext(certificate, extension.get(), -1) != 1)
    return failed(fmt::format("the part {} of a certificate", value));
  return {};
}

// Without extensions and a signature.
Result<OwnedCertificate> begin_certificate(const std::string& subject,
                                           std::chrono::seconds lasts,
                                           EVP_PKEY* key) {
  OwnedCertificate made(X509_new());
  constexpr size_t kLongest = 64;  // bytes, of such a field
  constexpr long kVersion3 = 2;
  constexpr int kSerialBits = 127;
  if (made == nullptr || X509_set_version(made.get(), kVersion3) != 1)
    return failed("a certificate");
  const OwnedNumber serial(BN_new());
  if (serial == nullptr ||
      BN_rand(serial.get(), kSerialBits, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) !=
          1 ||
      BN_to_ASN1_INTEGER(serial.get(), X509_get_serialNumber(made.get())) ==
          nullptr)
    return failed("a serial number");
  const std::time_t now = std::time(nullptr);
  ASN1_TIME_set(X509_getm_notBefore(made.get()),
                now - std::time_t(kClocksDiffer.count()) +
                    std::min<std::time_t>(0, std::time_t(lasts.count())));
  if (ASN1_TIME_set(X509_getm_notAfter(made.get()),
                    now + std::time_t(lasts.count())) == nullptr)
    return invalid_argument("[net|tls] no certificate lasts that long");
  const std::string cut = subject.substr(0, kLongest);
  if (X509_NAME_add_entry_by_txt(X509_get_subject_name(made.get()), "CN",
                                 MBSTRING_UTF8,
                                 reinterpret_cast<const uint8_t*>(cut.data()),
                                 int(cut.size()), -1, 0) != 1)
    return invalid_argument("[net|tls] {:?} is not the name of a subject", cut);
  if (X509_set_pubkey(made.get(), key) != 1) return failed("a certificate");
  return made;
}

Result<Certified> sign(X509* certificate, EVP_PKEY* key, EVP_PKEY* by) {
  if (X509_sign(certificate, by, EVP_sha256()) == 0)
    return failed("a signature");
  const OwnedBio text(BIO_new(BIO_s_mem()));
  const OwnedBio secret(BIO_new(BIO_s_secmem()));
  if (text == nullptr || secret == nullptr ||
      PEM_write_bio_X509(text.get(), certificate) != 1 ||
      PEM_write_bio_PrivateKey(secret.get(), key, nullptr, nullptr, 0, nullptr,
                               nullptr) != 1)
    return failed("a text");
  return Certified{text_of(text.get()), text_of(secret.get())};
}

Result<OwnedKey> new_key() {
  OwnedKey key(EVP_EC_gen("P-256"));
  if (key == nullptr) return failed("a key");
  return key;
}

}  // namespace

Result<Certified> make_authority(const std::string& subject,
                                 std::chrono::seconds lasts) {
  return guarded("net|tls", [&]() -> Result<Certified> {
    TAGFLOW_ASSIGN(const OwnedKey key, new_key());
    TAGFLOW_ASSIGN(const OwnedCertificate made,
                   begin_certificate(subject, lasts, key.get()));
    X509* const own = made.get();
    X509_set_issuer_name(own, X509_get_subject_name(own));
    TAGFLOW_RETURN_IF_ERROR(
        extend(own, own, NID_basic_constraints, "critical,CA:TRUE,pathlen:0"));
    TAGFLOW_RETURN_IF_ERROR(
        extend(own, own, NID_key_usage, "critical,keyCertSign,cRLSign"));
    TAGFLOW_RETURN_IF_ERROR(
        extend(own, own, NID_subject_key_identifier, "hash"));
    return sign(own, key.get(), key.get());
  });
}

Result<Certified> make_certificate(const Certified& authority,
                                   const CertificateOptions& options) {
  return guarded("net|tls", [&]() -> Result<Certified> {
    std::string names;
    for (const std::string& name : options.names) {
      TAGFLOW_RETURN_IF_ERROR(check_plain(name, "a URI of a certificate"));
      names += fmt::format("{}URI:{}", names.empty() ? "" : ",", name);
    }
    for (const std::string& host : options.hosts) {
      TAGFLOW_RETURN_IF_ERROR(check_plain(host, "the name of a host"));
      names += fmt::format("{}{}:{}", names.empty() ? "" : ",",
                           is_address(host) ? "IP" : "DNS", host);
    }
    const OwnedBio text(BIO_new_mem_buf(authority.certificate.data(),
                                        int(authority.certificate.size())));
    const OwnedBio secret(
        BIO_new_mem_buf(authority.key.data(), int(authority.key.size())));
    const auto no_password = [](char*, int, int, void*) { return 0; };
    const OwnedCertificate issuer(
        PEM_read_bio_X509(text.get(), nullptr, no_password, nullptr));
    const OwnedKey by(
        PEM_read_bio_PrivateKey(secret.get(), nullptr, no_password, nullptr));
    if (issuer == nullptr || by == nullptr ||
        X509_check_private_key(issuer.get(), by.get()) != 1) {
      ERR_clear_error();
      return invalid_argument(
          "[net|tls] the authority is not a certificate and its key, in PEM "
          "without a password");
    }
    TAGFLOW_ASSIGN(const OwnedKey key, new_key());
    TAGFLOW_ASSIGN(
        const OwnedCertificate made,
        begin_certificate(options.subject, options.lasts, key.get()));
    X509* const own = made.get();
    X509_set_issuer_name(own, X509_get_subject_name(issuer.get()));
    TAGFLOW_RETURN_IF_ERROR(
        extend(own, issuer.get(), NID_basic_constraints, "critical,CA:FALSE"));
    TAGFLOW_RETURN_IF_ERROR(
        extend(own, issuer.get(), NID_key_usage, "critical,digitalSignature"));
    TAGFLOW_RETURN_IF_ERROR(
        extend(own, issuer.get(), NID_ext_key_usage, "serverAuth,clientAuth"));
    TAGFLOW_RETURN_IF_ERROR(
        extend(own, issuer.get(), NID_subject_key_identifier, "hash"));
    TAGFLOW_RETURN_IF_ERROR(
        extend(own, issuer.get(), NID_authority_key_identifier, "keyid"));
    TAGFLOW_RETURN_IF_ERROR(
        extend(own, issuer.get(), NID_subject_alt_name, names));
    return sign(own, key.get(), by.get());
  });
}

}  // namespace tagflow::net
