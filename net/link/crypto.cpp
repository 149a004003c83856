#include "net/link/crypto.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <algorithm>
#include <array>
#include <climits>

namespace tagflow::net {
namespace {

Status failed(std::string_view what) {
  return error(Code::kInternal, "[net|hello] OpenSSL cannot make {}", what);
}

const uint8_t* bytes_at(std::string_view bytes) {
  return reinterpret_cast<const uint8_t*>(bytes.data());
}

}  // namespace

Result<Digest> sha256(std::string_view bytes) {
  Digest digest;
  if (EVP_Digest(bytes.data(), bytes.size(), digest.data(), nullptr,
                 EVP_sha256(), nullptr) != 1)
    return failed("a SHA-256");
  return digest;
}

Result<Digest> hmac_sha256(std::string_view secret, std::string_view bytes) {
  if (secret.size() > INT_MAX) return failed("an HMAC by so long a secret");
  Digest digest;
  // Null would mean the secret of an earlier call.
  const char* key = secret.empty() ? "" : secret.data();
  if (HMAC(EVP_sha256(), key, int(secret.size()), bytes_at(bytes), bytes.size(),
           digest.data(), nullptr) == nullptr)
    return failed("an HMAC");
  return digest;
}

Status fill_randomly(std::span<uint8_t> bytes) {
  if (RAND_bytes(bytes.data(), int(bytes.size())) != 1)
    return failed("random numbers");
  return {};
}

Result<std::string> draw_token() {
  std::array<uint8_t, 16> bytes{};
  TAGFLOW_RETURN_IF_ERROR(fill_randomly(bytes));
  return fmt::format("{:02x}", fmt::join(bytes, ""));
}

bool equal_in_constant_time(const Digest& a, const Digest& b) {
  return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

bool equal_in_constant_time(std::string_view a, std::string_view b) {
  return a.size() == b.size() &&
         CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

Result<ClusterId> cluster_id(std::string_view name) {
  TAGFLOW_ASSIGN(const Digest digest, sha256(name));
  ClusterId id;
  std::copy_n(digest.begin(), id.size(), id.begin());
  return id;
}

Result<uint64_t> draw_incarnation() {
  uint64_t incarnation = 0;
  while (incarnation == 0)
    TAGFLOW_RETURN_IF_ERROR(fill_randomly(
        {reinterpret_cast<uint8_t*>(&incarnation), sizeof(incarnation)}));
  return incarnation;
}

}  // namespace tagflow::net
