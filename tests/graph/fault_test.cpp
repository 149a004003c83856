#include "graph/fault.h"

#include <doctest/doctest.h>
#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

#include <new>
#include <stdexcept>
#include <thread>

#include "graph/status_exception.h"
#include "tests/failing_new.h"

namespace tagflow {
namespace {

struct Odd {
  int number = 3;
};

class NoWords : public std::exception {
 public:
  const char* what() const noexcept override { return nullptr; }
};

std::string thrown(auto what, std::string_view module = {}) {
  return guarded(module, [&]() -> Status { throw what; }).to_string();
}

}  // namespace

TEST_CASE("guarded() turns an exception into an error with its text") {
  CHECK(thrown(std::bad_alloc()) == "ResourceExhausted: out of memory");
  CHECK(thrown(std::bad_array_new_length()) ==
        "ResourceExhausted: out of memory");
  CHECK(thrown(std::logic_error("odd")) ==
        "Internal: unexpected exception: odd");
  CHECK(thrown(std::length_error("too long")) ==
        "ResourceExhausted: out of memory");
  CHECK(thrown(StatusException(invalid_argument("odd"))) ==
        "InvalidArgument: odd");
  CHECK(thrown(NoWords()) == "Internal: unexpected exception: ");
  CHECK(thrown(3) == "Internal: unexpected exception of type int");
  CHECK(thrown(Odd()) ==
        "Internal: unexpected exception of type "
        "tagflow::(anonymous namespace)::Odd");
  CHECK(thrown("text") == "Internal: unexpected exception of type char const*");
}

TEST_CASE("an error of what is thrown names the module") {
  CHECK(thrown(3, "Op") == "Internal: [Op] unexpected exception of type int");
  CHECK(thrown(std::bad_alloc(), "engine") ==
        "ResourceExhausted: [engine] out of memory");
}

TEST_CASE("guarded() returns the result if nothing is thrown") {
  CHECK(guarded([] {}).ok());
  CHECK(guarded([] { return Status(); }).ok());
  CHECK(guarded([] { return invalid_argument("bad"); }).message() == "bad");
  CHECK(*guarded([]() -> Result<int> { return 7; }) == 7);
  CHECK(guarded([]() -> Result<int> { throw 7; }).status().code() ==
        Code::kInternal);
}

TEST_CASE("guarded() turns an exception into an error without memory, too") {
  const std::runtime_error reason("a reason that is longer than short strings");
  const auto fault = [&] {
    return guarded("module of many letters", [&] { throw reason; });
  };
  const std::string expected = fault().to_string();
  for (int64_t k = 1;; ++k) {
    FailAllocation fail(k);
    const Status status = fault();
    fail.stop();
    INFO(status.to_string());
    CHECK(!status.ok());
    if (!fail.failed()) {
      CHECK(k > 2);
      CHECK(status.to_string() == expected);
      break;
    }
  }
}

TEST_CASE("a thread that is cancelled is not held up by a guard") {
  sem_t inside;
  REQUIRE(sem_init(&inside, 0, 0) == 0);
  pthread_t thread = {};
  const auto body = [](void* semaphore) -> void* {
    const Status status = guarded("module", [&] {
      sem_post(static_cast<sem_t*>(semaphore));
      for (;;) pause();  // cancellation comes here
    });
    return status.ok() ? nullptr : semaphore;
  };
  REQUIRE(pthread_create(&thread, nullptr, body, &inside) == 0);
  while (sem_wait(&inside) != 0) {
  }
  REQUIRE(pthread_cancel(thread) == 0);
  void* result = nullptr;
  REQUIRE(pthread_join(thread, &result) == 0);
  CHECK(result == PTHREAD_CANCELED);
  sem_destroy(&inside);
}

}  // namespace tagflow
