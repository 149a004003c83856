// Owners of what OpenSSL makes.
#pragma once

#include <openssl/asn1.h>
#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <memory>
#include <string>

namespace tagflow::net {

template <class T, void (*kFree)(T*)>
struct OpensslFree {
  void operator()(T* owned) const { kFree(owned); }
};
template <class T, void (*kFree)(T*)>
using OpensslOwner = std::unique_ptr<T, OpensslFree<T, kFree>>;

using OwnedContext = OpensslOwner<SSL_CTX, SSL_CTX_free>;
using OwnedSession = OpensslOwner<SSL, SSL_free>;
using OwnedCertificate = OpensslOwner<X509, X509_free>;
using OwnedExtension = OpensslOwner<X509_EXTENSION, X509_EXTENSION_free>;
using OwnedNames = OpensslOwner<GENERAL_NAMES, GENERAL_NAMES_free>;
using OwnedKey = OpensslOwner<EVP_PKEY, EVP_PKEY_free>;
using OwnedNumber = OpensslOwner<BIGNUM, BN_free>;
using OwnedBio = OpensslOwner<BIO, BIO_vfree>;

// The bytes of a BIO in memory.
inline std::string text_of(BIO* memory) {
  char* bytes = nullptr;
  const long count = BIO_get_mem_data(memory, &bytes);
  return {bytes, size_t(count)};
}

}  // namespace tagflow::net
