// The tokens of a batch, and batches that are stored.
#include "actors/runtime/batch.h"

#include <doctest/doctest.h>

using namespace tagflow;
using namespace tagflow::actors;

namespace {

Tensor large() { return Tensor::make(DataType::kFloat, {100}); }

}  // namespace

TEST_CASE("smoke: tokens stay what they are while their list grows") {
  TokenList tokens;
  for (uint32_t i = 0; i < 100; ++i)
    tokens.add(i, i % 3 == 0).value = Tensor::scalar(int32_t(i));
  CHECK(tokens.size() == 100);
  uint32_t i = 0;
  for (const Token& token : tokens) {
    CHECK(token.slot == i);
    CHECK(token.is_dead == (i % 3 == 0));
    CHECK(token.value.scalar_value<int32_t>() == int32_t(i));
    ++i;
  }
}

TEST_CASE("smoke: a token list frees the values that it cuts off") {
  TokenList tokens;
  const Tensor first = large();
  const Tensor second = large();
  tokens.add(0).value = first;
  tokens.add(1).value = second;
  tokens.truncate(1);
  CHECK(tokens.size() == 1);
  CHECK_FALSE(first.unique());
  CHECK(second.unique());
  // In the same place as the one before, and without its value.
  CHECK_FALSE(tokens.add(2).value.valid());
  tokens.truncate(0);
  CHECK(first.unique());
}

TEST_CASE("smoke: a batch comes back from its pool as if new") {
  BatchPool pool;
  const Tensor value = large();
  std::vector<Batch*> taken;
  for (int i = 0; i < 10; ++i) taken.push_back(pool.take(BatchKind::kTokens));
  for (Batch* batch : taken) {
    batch->is_last = true;
    batch->tokens.add(1).value = value;
    pool.give(batch);
  }
  CHECK(value.unique());
  Batch* again = pool.take(BatchKind::kExit);
  CHECK(again == taken[3]);  // the last of the four that it keeps
  CHECK(again->kind == BatchKind::kExit);
  CHECK_FALSE(again->is_last);
  CHECK(again->tokens.size() == 0);
  pool.give(again);
}
