#include "net/worker/executables.h"

#include <doctest/doctest.h>

#include <memory>

namespace tagflow::net {
namespace {

std::shared_ptr<Registered> one() { return std::make_shared<Registered>(); }

}  // namespace

TEST_CASE("a registration is found until its release") {
  Executables executables;
  const auto registered = one();
  CHECK(*executables.begin(1));
  CHECK(executables.find(1) == nullptr);
  CHECK(executables.end(1, registered));
  CHECK(executables.find(1) == registered);
  CHECK(executables.count() == 1);
  CHECK(executables.begin(1).status().code() == Code::kAlreadyExists);
  CHECK(*executables.release(1) == registered);
  CHECK(executables.find(1) == nullptr);
  CHECK(executables.count() == 0);
  CHECK(*executables.begin(1));
}

TEST_CASE("a release that comes first or in between ends a registration") {
  Executables executables;
  CHECK(*executables.release(1) == nullptr);
  CHECK_FALSE(*executables.begin(1));
  CHECK(*executables.begin(2));
  CHECK_FALSE(executables.is_released(2));
  CHECK(*executables.release(2) == nullptr);
  CHECK(executables.is_released(2));
  CHECK_FALSE(executables.end(2, one()));
  CHECK_FALSE(executables.is_released(2));
  CHECK(executables.count() == 0);
}

TEST_CASE("what is being compiled when a worker is closed is for nobody") {
  Executables executables;
  CHECK(*executables.begin(1));
  CHECK_FALSE(executables.is_released(1));
  executables.close();
  CHECK(executables.is_released(1));
  CHECK(executables.end(1, nullptr));
}

TEST_CASE("a registration that failed or was refused takes its release") {
  Executables executables;
  CHECK(*executables.begin(0));
  CHECK(executables.end(0, nullptr));
  CHECK(*executables.release(0) == nullptr);
  for (uint64_t i = 0; i < Executables::kMost; ++i) {
    REQUIRE(*executables.begin(i));
    REQUIRE(executables.end(i, one()));
  }
  const uint64_t refused = Executables::kMost;
  CHECK(executables.begin(refused).status().code() == Code::kResourceExhausted);
  CHECK(*executables.release(refused) == nullptr);
  CHECK(*executables.release(0) != nullptr);
  CHECK(*executables.begin(refused));
}

TEST_CASE("releases of what was never registered have a limit") {
  Executables executables;
  for (uint64_t i = 0; i < 2 * Executables::kMost; ++i)
    REQUIRE(executables.release(i).ok());
  CHECK(executables.release(2 * Executables::kMost).status().code() ==
        Code::kResourceExhausted);
  CHECK_FALSE(*executables.begin(0));
}

}  // namespace tagflow::net
