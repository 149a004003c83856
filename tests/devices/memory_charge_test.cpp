#include "graph/memory_charge.h"

#include <doctest/doctest.h>

#include <optional>

#include "devices/tracking_allocator.h"
#include "graph/status_exception.h"

namespace tagflow::devices {

TEST_CASE("a charge counts its bytes, and those of a tiny buffer") {
  const auto memory = TrackingAllocator::make({"here", 1000});
  const auto in_use = [&] { return memory->ledger().in_use(); };
  MemoryCharge charge;
  CHECK(charge.set(*memory, 0));
  CHECK(in_use() == 0);
  CHECK(charge.set(*memory, 501));
  CHECK(in_use() == 64 + 501);
  CHECK(charge.bytes() == 501);
  CHECK_FALSE(charge.set(*memory, 937));
  CHECK(in_use() == 64 + 501);
  CHECK(charge.set(*memory, 936));
  CHECK(in_use() == 1000);
  charge.reduce(900);
  CHECK(in_use() == 64 + 36);
  MemoryCharge moved = std::move(charge);
  CHECK(charge.bytes() == 0);
  const MemoryCharge copy(moved);
  CHECK(in_use() == 2 * (64 + 36));
  CHECK(moved.set(*memory, 700));
  CHECK_THROWS_AS(MemoryCharge{moved}, StatusException);
  moved.clear();
  CHECK(in_use() == 64 + 36);
}

TEST_CASE("a charge may move to other memory, and outlive its owner") {
  const auto memory = TrackingAllocator::make({"here", 1000});
  MemoryCharge charge;
  {
    const auto gone = TrackingAllocator::make({"there", 1000});
    CHECK(charge.set(*gone, 500));
    CHECK(gone->ledger().in_use() == 564);
    CHECK_FALSE(charge.set(*memory, 2000));
    CHECK(charge.bytes() == 500);
    CHECK(charge.set(*memory, 600));
    CHECK(gone->ledger().in_use() == 0);
    CHECK(charge.set(*gone, 100));
  }
  CHECK(memory->ledger().in_use() == 0);
  CHECK(charge.set(host_allocator(), 1 << 20));
  CHECK(charge.bytes() == 0);
}

TEST_CASE("a charge counts nothing if there is no limit, or on a device") {
  const auto unlimited = TrackingAllocator::make({"here"});
  const auto far = TrackingAllocator::make({"there", 1000, false});
  for (Allocator* memory :
       {&host_allocator(), static_cast<Allocator*>(unlimited.get()),
        static_cast<Allocator*>(far.get())}) {
    MemoryCharge charge;
    CHECK(charge.set(*memory, 1 << 20));
    CHECK(charge.bytes() == 0);
  }
  CHECK(unlimited->ledger().in_use() == 0);
  CHECK(far->ledger().in_use() == 0);
}

}  // namespace tagflow::devices
