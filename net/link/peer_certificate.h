// What a certificate says: whose it is, from when until when, by whom.
#pragma once

#include <openssl/x509.h>

#include <string>
#include <vector>

namespace tagflow::net {

// Of the subject, with "?" for what cannot be printed, as errors show them.
struct SubjectNames {
  std::vector<std::string> uris;
  std::vector<std::string> hosts;  // names, and addresses of IP
};

// All of it is thread-safe for certificates that nobody changes.
SubjectNames names_of(const X509* certificate);
bool is_for_host(X509* certificate, const std::string& host);

// "expired at ...", as what follows "the certificate"; empty if it is valid by
// its times.
std::string invalid_now(const X509* certificate);

// Why OpenSSL, which says so by that error, does not trust the certificate of
// a peer at that host.
std::string distrust(int error, const X509* certificate,
                     const std::string& host);

}  // namespace tagflow::net
