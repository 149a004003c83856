#include "net/worker/register_inputs.h"

#include <doctest/doctest.h>

#include <cstring>

namespace tagflow::net {
namespace {

Begin registration(uint64_t object, uint64_t bytes) {
  return {ObjectId(object), ObjectKind::kRegister, bytes, {}};
}

}  // namespace

TEST_CASE("registrations together have a limit, until nobody holds them") {
  RegisterInputs inputs;
  constexpr uint64_t kMost = RegisterInputs::kMostBytes;
  CHECK(inputs.begin(registration(1, kMost + 1)).status().code() ==
        Code::kResourceExhausted);
  REQUIRE(inputs.begin(registration(1, kMost - 2)).ok());
  REQUIRE(inputs.begin(registration(2, 2)).ok());
  const auto refused = [&] {
    return inputs.begin(registration(3, 1)).status().code();
  };
  CHECK(refused() == Code::kResourceExhausted);
  auto held = inputs.end(ObjectId(2));
  CHECK(refused() == Code::kResourceExhausted);
  held = nullptr;
  CHECK(refused() == Code::kOk);
}

TEST_CASE("a registration that begins twice is refused, and ends once") {
  RegisterInputs inputs;
  auto into = inputs.begin(registration(1, 3));
  REQUIRE(into.ok());
  CHECK(inputs.begin(registration(1, 3)).status().code() == Code::kDataLoss);
  std::memcpy(into->bytes.data(), "abc", 3);
  const auto bytes = inputs.end(ObjectId(1));
  REQUIRE(bytes != nullptr);
  CHECK(bytes->view() == "abc");
  CHECK(inputs.end(ObjectId(1)) == nullptr);
}

}  // namespace tagflow::net
