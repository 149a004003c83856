#include "devices/tracking_allocator.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <deque>
#include <limits>
#include <thread>
#include <vector>

#include "graph/tensor.h"
#include "tests/devices/kernel_fixture.h"

namespace tagflow::devices {

namespace {

void give_back(Buffer* buffer) { buffer->allocator->deallocate(buffer); }

}  // namespace

TEST_CASE("buffers are aligned, and counted while they live") {
  const auto allocator = TrackingAllocator::make({"here"});
  CHECK(allocator->host_visible());
  Buffer* first = allocator->allocate(DataType::kFloat, 10);
  Buffer* second = allocator->allocate(DataType::kDouble, 100);
  REQUIRE(first != nullptr);
  REQUIRE(second != nullptr);
  CHECK(uintptr_t(first->data) % 64 == 0);
  CHECK(first->allocator == allocator.get());
  CHECK(first->bytes == 40);
  CHECK(allocator->stats().in_use == 64 + 832);
  CHECK(allocator->stats().live == 2);
  give_back(second);
  CHECK(allocator->stats().in_use == 64);
  CHECK(allocator->describe() == "here (64 B in use, peak 896 B, 1 buffer)");
  give_back(first);
  const MemoryStats stats = allocator->stats();
  CHECK(stats.in_use == 0);
  CHECK(stats.peak == 896);
  CHECK(stats.limit == 0);
  CHECK(stats.count == 2);
  CHECK(stats.live == 0);
}

TEST_CASE("an allocator's limit is exact, and freed bytes count as free") {
  const auto allocator = TrackingAllocator::make({"here", 1024});
  Buffer* most = allocator->allocate(DataType::kInt8, 1000);  // 1024 of them
  REQUIRE(most != nullptr);
  CHECK(allocator->allocate(DataType::kInt8, 1) == nullptr);
  Buffer* empty = allocator->allocate(DataType::kInt8, 0);
  CHECK(empty != nullptr);
  give_back(most);
  CHECK(allocator->allocate(DataType::kInt8, 1025) == nullptr);
  Buffer* again = allocator->allocate(DataType::kInt8, 1024);
  CHECK(again != nullptr);
  give_back(again);
  give_back(empty);
  CHECK(allocator->stats().peak == 1024);
  CHECK(allocator->stats().count == 3);
}

TEST_CASE("a recent peak is the largest use since it was last asked for") {
  const auto allocator = TrackingAllocator::make({"here", 1024});
  MemoryLedger& ledger = allocator->ledger();
  Buffer* large = allocator->allocate(DataType::kInt8, 512);
  Buffer* small = allocator->allocate(DataType::kInt8, 64);
  give_back(large);
  CHECK(ledger.in_use() == 64);
  CHECK(ledger.take_peak() == 576);
  CHECK(ledger.take_peak() == 64);
  give_back(allocator->allocate(DataType::kInt8, 128));
  CHECK(ledger.take_peak() == 192);
  CHECK(ledger.stats().peak == 576);
  give_back(small);
}

TEST_CASE("elements that the host must not see are not printed") {
  const auto allocator = TrackingAllocator::make({"there", 0, false});
  const Tensor small = *Tensor::allocate(DataType::kFloat, {}, *allocator);
  CHECK(small.buffer() != nullptr);
  CHECK(small.to_string() == "float[] on a device");
  CHECK(small.describe() == "float[]");
}

TEST_CASE("sizes beyond any memory are refused, and leave no trace") {
  const auto allocator = TrackingAllocator::make({"here"});
  const int64_t most = std::numeric_limits<int64_t>::max();
  CHECK(allocator->allocate(DataType::kInt8, most) == nullptr);
  CHECK(allocator->allocate(DataType::kInt8, most - 64) == nullptr);
  CHECK(allocator->stats().in_use == 0);
  CHECK(allocator->stats().peak == 0);
}

TEST_CASE("a tensor that does not fit says what was in use") {
  const auto allocator = TrackingAllocator::make({"the device", 4096});
  const Tensor held = *Tensor::allocate(DataType::kFloat, {32, 16}, *allocator);
  expect_error(Tensor::allocate(DataType::kFloat, {3, 400}, *allocator),
               Code::kResourceExhausted,
               "[tensor] out of memory: float[3,400] needs 4800 bytes of the "
               "device (2 KiB in use of 4 KiB, peak 2 KiB, 1 buffer)");
  expect_error(Tensor::allocate(DataType::kInt8, {int64_t(1) << 62}),
               Code::kResourceExhausted,
               "needs 4611686018427387904 bytes of the host's memory");
}

TEST_CASE("small tensors are inline only where the host can see them") {
  const auto seen = TrackingAllocator::make({"here"});
  const auto unseen = TrackingAllocator::make({"there", 0, false});
  CHECK(Tensor::allocate(DataType::kFloat, {}, *seen)->buffer() == nullptr);
  CHECK(Tensor::allocate(DataType::kFloat, {}, *unseen)->buffer() != nullptr);
  CHECK(seen->shares_memory(host_allocator()));
  CHECK(host_allocator().shares_memory(*seen));
  CHECK(unseen->shares_memory(*unseen));
  CHECK_FALSE(unseen->shares_memory(host_allocator()));
  CHECK_FALSE(seen->shares_memory(*unseen));
  const auto other = TrackingAllocator::make({"elsewhere", 0, false});
  CHECK_FALSE(unseen->shares_memory(*other));
}

TEST_CASE("an allocator lives until its owner and its last buffer are gone") {
  auto allocator = TrackingAllocator::make({"here"});
  Tensor tensor = *Tensor::allocate(DataType::kString, {100}, *allocator);
  allocator.reset();
  tensor.mutable_data<std::string>()[99] = std::string(100, 'x');
  Tensor copy = tensor;
  tensor.reset();
  CHECK(copy.data<std::string>()[99].size() == 100);
}

TEST_CASE("statistics agree with a model, for any order of allocations") {
  CHECK(rc::check([](const std::vector<uint16_t>& sizes) {
    constexpr int64_t kLimit = 200000;
    const auto allocator = TrackingAllocator::make({"here", kLimit});
    std::deque<Buffer*> live;
    MemoryStats model;
    model.limit = kLimit;
    for (const uint16_t size : sizes) {
      const int64_t bytes = (int64_t(size) + 63) / 64 * 64;
      if (size % 3 == 0 && !live.empty()) {
        model.in_use -= (int64_t(live.front()->bytes) + 63) / 64 * 64;
        --model.live;
        give_back(live.front());
        live.pop_front();
      } else if (Buffer* buffer = allocator->allocate(DataType::kInt8, size)) {
        model.in_use += bytes;
        model.peak = std::max(model.peak, model.in_use);
        ++model.count;
        ++model.live;
        live.push_back(buffer);
      } else {
        RC_ASSERT(model.in_use + bytes > kLimit);
      }
      RC_ASSERT(to_string(allocator->stats()) == to_string(model));
      RC_ASSERT(allocator->stats().count == model.count);
      RC_ASSERT(model.in_use <= kLimit);
    }
    for (Buffer* buffer : live) give_back(buffer);
  }));
}

TEST_CASE("threads share a limit, and nothing is lost count of") {
  constexpr int64_t kLimit = 64 * 100;
  auto allocator = TrackingAllocator::make({"here", kLimit});
  std::vector<std::thread> threads;
  std::atomic<int64_t> given{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      std::vector<Buffer*> held;
      for (int i = 0; i < 5000; ++i) {
        if (Buffer* buffer = allocator->allocate(DataType::kInt8, 64 + t)) {
          held.push_back(buffer);
          ++given;
        }
        if (held.size() > 20) {
          for (Buffer* buffer : held) give_back(buffer);
          held.clear();
        }
      }
      for (Buffer* buffer : held) give_back(buffer);
    });
  for (std::thread& thread : threads) thread.join();
  const MemoryStats stats = allocator->stats();
  CHECK(stats.in_use == 0);
  CHECK(stats.live == 0);
  CHECK(stats.count == given);
  CHECK(stats.peak <= kLimit);
}

}  // namespace tagflow::devices
