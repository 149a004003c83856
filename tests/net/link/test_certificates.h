// Certificates of clusters that tests make up.
#pragma once

#include <doctest/doctest.h>

#include <chrono>
#include <memory>
#include <string>

#include "net/link/certificates.h"
#include "net/link/tls.h"

namespace tagflow::net {

// One for all tests, since it takes a while.
inline const Certified& test_authority() {
  static const Certified authority =
      make_authority("test", std::chrono::hours(1)).value();
  return authority;
}

inline TlsTexts tls_texts(const CertificateOptions& options,
                          const Certified& authority = test_authority()) {
  auto made = make_certificate(authority, options);
  INFO(made.status().to_string());
  REQUIRE(made.ok());
  return {authority.certificate, made->certificate, made->key};
}

// Of a process of the cluster "test".
inline CertificateOptions certificate_of(const std::string& job,
                                         uint32_t task) {
  CertificateOptions options;
  options.subject = "a process of a test";
  options.names = {certified_name("test", job, task)};
  options.lasts = std::chrono::hours(1);
  return options;
}

inline std::shared_ptr<Tls> tls_of(
    const CertificateOptions& options,
    const Certified& authority = test_authority()) {
  auto tls = Tls::make(tls_texts(options, authority));
  INFO(tls.status().to_string());
  REQUIRE(tls.ok());
  return *tls;
}

inline std::shared_ptr<Tls> worker_tls(uint32_t task) {
  return tls_of(certificate_of("worker", task));
}

inline std::shared_ptr<Tls> master_tls() {
  return tls_of(certificate_of("", 0));
}

}  // namespace tagflow::net
