// Philox against the known answers that its authors publish with Random123.
#include "devices/philox.h"

#include <doctest/doctest.h>

namespace tagflow::devices {

using Block = Philox::Block;

TEST_CASE("Philox gives the published known answers") {
  CHECK(Philox(0, 0, 0).next() ==
        Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  const uint64_t ones = ~uint64_t{0};
  CHECK(Philox(ones, ones, ones).next() ==
        Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(Philox(0x299f31d0a4093822, 0x85a308d3243f6a88, 0x0370734413198a2e)
            .next() == Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("Philox skips blocks as if it had drawn them") {
  const uint64_t near_carry = ~uint64_t{0} - 3;
  Philox drawn(7, near_carry, 41);
  for (int i = 0; i < 10; ++i) {
    const Philox skipped = Philox(7, near_carry, 41).skipped(uint64_t(i));
    CHECK(skipped.counter_low() == drawn.counter_low());
    CHECK(skipped.counter_high() == drawn.counter_high());
    drawn.next();
  }
  CHECK(drawn.counter_high() == 42);
}

}  // namespace tagflow::devices
