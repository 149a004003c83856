// Threefry against the known answers that its authors publish with Random123.
#include "devices/threefry.h"

#include <doctest/doctest.h>

namespace tagflow::devices {

TEST_CASE("Threefry gives the published known answers") {
  CHECK(threefry2x32({0, 0}, {0, 0}) == ThreefryWords{0x6b200159, 0x99ba4efe});
  const uint32_t ones = ~uint32_t{0};
  CHECK(threefry2x32({ones, ones}, {ones, ones}) ==
        ThreefryWords{0x1cb996fc, 0xbb002be7});
  CHECK(threefry2x32({0x13198a2e, 0x03707344}, {0x243f6a88, 0x85a308d3}) ==
        ThreefryWords{0xc4923a9c, 0x483df7a0});
}

}  // namespace tagflow::devices
