#include "net/link/peer_certificate.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>

#include "net/link/openssl_owner.h"

namespace tagflow::net {
namespace {

// Errors show it, so it has only what can be printed.
std::string printable(const ASN1_STRING* text) {
  std::string all(reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
                  size_t(ASN1_STRING_length(text)));
  std::ranges::replace_if(
      all, [](unsigned char c) { return c <= ' ' || c > '~'; }, '?');
  return all;
}

std::string address_text(const ASN1_STRING* bytes) {
  constexpr int kIpv4Bytes = 4;
  char text[INET6_ADDRSTRLEN] = "an address";
  ::inet_ntop(ASN1_STRING_length(bytes) == kIpv4Bytes ? AF_INET : AF_INET6,
              ASN1_STRING_get0_data(bytes), text, sizeof(text));
  return text;
}

std::string time_text(const ASN1_TIME* time) {
  const OwnedBio text(BIO_new(BIO_s_mem()));
  ASN1_TIME_print(text.get(), time);
  return text_of(text.get());
}

std::string issuer_of(const X509* certificate) {
  const OwnedBio text(BIO_new(BIO_s_mem()));
  X509_NAME_print_ex(text.get(), X509_get_issuer_name(certificate), 0,
                     XN_FLAG_ONELINE);
  return text_of(text.get());
}

}  // namespace

SubjectNames names_of(const X509* certificate) {
  SubjectNames found;
  const OwnedNames all(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  if (all == nullptr) return found;
  for (int i = 0; i < sk_GENERAL_NAME_num(all.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(all.get(), i);
    if (name->type == GEN_URI)
      found.uris.push_back(printable(name->d.uniformResourceIdentifier));
    if (name->type == GEN_DNS)
      found.hosts.push_back(printable(name->d.dNSName));
    if (name->type == GEN_IPADD)
      found.hosts.push_back(address_text(name->d.iPAddress));
  }
  return found;
}

bool is_for_host(X509* certificate, const std::string& host) {
  return X509_check_host(certificate, host.data(), host.size(), 0, nullptr) ==
             1 ||
         X509_check_ip_asc(certificate, host.c_str(), 0) == 1;
}

std::string invalid_now(const X509* certificate) {
  const ASN1_TIME* end = X509_get0_notAfter(certificate);
  const ASN1_TIME* begin = X509_get0_notBefore(certificate);
  if (X509_cmp_current_time(end) < 0)
    return fmt::format("expired at {}", time_text(end));
  if (X509_cmp_current_time(begin) > 0)
    return fmt::format("is valid only from {} on", time_text(begin));
  return {};
}

std::string distrust(int error, const X509* certificate,
                     const std::string& host) {
  if (std::string text = invalid_now(certificate); !text.empty()) return text;
  switch (error) {
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
      return fmt::format("was issued by another authority, \"{}\"",
                         issuer_of(certificate));
    case X509_V_ERR_HOSTNAME_MISMATCH:
      return fmt::format("is for the host {}, not {}",
                         fmt::join(names_of(certificate).hosts, " or "), host);
    default:
      return fmt::format("is not trusted: {}",
                         X509_verify_cert_error_string(error));
  }
}

}  // namespace tagflow::net
