#include "actors/session/signature_cache.h"

#include <doctest/doctest.h>

#include <memory>
#include <new>
#include <utility>

#include "tests/failing_new.h"

using namespace tagflow;
using namespace tagflow::actors;

namespace {

class Nothing final : public Executable {
 public:
  size_t num_fetches() const override { return 0; }
  bool updates_state() const override { return false; }
  bool can_be_frozen() const override { return false; }
  bool is_lost() const override { return lost; }
  Status start(const std::shared_ptr<Step>& /*step*/,
               std::span<const Tensor> /*feeds*/, bool /*lend*/,
               bool /*count*/) override {
    return {};
  }

  bool lost = false;
};

std::shared_ptr<const Prepared> some(
    std::shared_ptr<Nothing> executable = std::make_shared<Nothing>()) {
  auto prepared = std::make_shared<Prepared>();
  prepared->executable = std::move(executable);
  return prepared;
}

}  // namespace

TEST_CASE("signatures that differ in anything have keys that differ") {
  const Signature signatures[] = {
      {},
      {{"a"}, {}, {}},
      {{}, {"a"}, {}},
      {{}, {}, {"a"}},
      {{"a"}, {"b"}, {}},
      {{}, {"a"}, {"b"}},
      {{}, {"a", "b"}, {}},
      {{}, {"b", "a"}, {}},
      {{}, {"a"}, {"b", "c"}},
      {{}, {"a", "b"}, {"c"}},
      // As if one name were two.
      {{}, {"aob"}, {}},
      {{}, {"a1:b"}, {}},
      {{}, {"ao1:b"}, {}},
      {{}, {"1:a"}, {}},
      {{"fa"}, {}, {}},
      {{"a", "a"}, {}, {}},
      {{"afa"}, {}, {}},
  };
  for (const Signature& a : signatures)
    for (const Signature& b : signatures)
      CHECK((SignatureCache::key(a) == SignatureCache::key(b)) == (&a == &b));
}

TEST_CASE("a signature whose process is lost is dropped") {
  SignatureCache cache(2);
  const auto executable = std::make_shared<Nothing>();
  cache.add("a", some(executable));
  CHECK(cache.find("a") != nullptr);
  executable->lost = true;
  CHECK(cache.find("a") == nullptr);
  CHECK(cache.size() == 0);
  const auto anew = some();
  cache.add("a", anew);
  CHECK(cache.find("a") == anew);
}

TEST_CASE("the signature that was used longest ago is dropped first") {
  SignatureCache cache(2);
  const auto a = some();
  cache.add("a", a);
  cache.add("b", some());
  CHECK(cache.find("a") == a);
  cache.add("c", some());
  CHECK(cache.size() == 2);
  CHECK(cache.find("a") == a);
  CHECK(cache.find("b") == nullptr);
  CHECK(cache.find("c") != nullptr);
  // What is there stays.
  cache.add("a", some());
  CHECK(cache.find("a") == a);
  CHECK(cache.size() == 2);
  cache.clear();
  CHECK(cache.size() == 0);
  CHECK(cache.find("a") == nullptr);
}

TEST_CASE("a signature for which there is no memory leaves nothing behind") {
  for (int64_t k = 1;; ++k) {
    CAPTURE(k);
    SignatureCache cache(2);
    cache.add("a", some());
    const auto b = some();
    const std::string key(100, 'b');
    bool added = true;
    FailAllocation fail(k);
    try {
      cache.add(key, b);
    } catch (const std::bad_alloc&) {
      added = false;
    }
    fail.stop();
    CHECK(cache.size() == (added ? 2 : 1));
    CHECK((cache.find(key) == b) == added);
    CHECK(cache.find("a") != nullptr);
    CHECK(b.use_count() == (added ? 2 : 1));
    if (!fail.failed()) break;
    CHECK_FALSE(added);
  }
}
