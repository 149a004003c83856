// What the hello needs of cryptography.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "net/wire/greeting.h"

namespace tagflow::net {

// All are thread-safe; an error of the library is Internal.

Result<Digest> sha256(std::string_view bytes);
Result<Digest> hmac_sha256(std::string_view secret, std::string_view bytes);
// Fills the bytes by the system's source of random numbers.
Status fill_randomly(std::span<uint8_t> bytes);
// 128 random bits, as 32 hexadecimal digits.
Result<std::string> draw_token();
// Compares them in a time that does not depend on where they differ.
bool equal_in_constant_time(const Digest& a, const Digest& b);
bool equal_in_constant_time(std::string_view a, std::string_view b);

// The id of the cluster with this name.
Result<ClusterId> cluster_id(std::string_view name);
// A new incarnation: random, not 0.
Result<uint64_t> draw_incarnation();

}  // namespace tagflow::net
