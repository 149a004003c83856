// Certificates: those that "tagflow cluster certs" makes.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "graph/status.h"

namespace tagflow::net {

// Texts in PEM.
struct Certified {
  std::string certificate;
  std::string key;
};

struct CertificateOptions {
  std::string subject;             // who it is, for people
  std::vector<std::string> names;  // URIs, by certified_name()
  std::vector<std::string> hosts;  // names, and addresses of IP
  // From a minute ago, as clocks differ, until then; may have passed.
  std::chrono::seconds lasts{};
};

// A new authority, which signs itself, and a certificate that one has signed,
// each with a new key of P-256. InvalidArgument for a host that cannot be one,
// or an authority that is none; Internal if OpenSSL fails. Thread-safe.
Result<Certified> make_authority(const std::string& subject,
                                 std::chrono::seconds lasts);
Result<Certified> make_certificate(const Certified& authority,
                                   const CertificateOptions& options);

}  // namespace tagflow::net
