#include "devices/quantity.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "tests/devices/kernel_fixture.h"

namespace tagflow::devices {

TEST_CASE("sizes, durations and bandwidths are read with their units") {
  const auto size = [](std::string_view text) {
    return *parse_quantity(Quantity::kBytes, text);
  };
  CHECK(size("4096") == 4096);
  CHECK(size("1B") == 1);
  CHECK(size("64MiB") == 64 * 1024 * 1024);
  CHECK(size("64mib") == 64 * 1024 * 1024);
  CHECK(size("1.5KB") == 1500);
  CHECK(size("2GiB") == int64_t(2) << 30);
  CHECK(size("3TiB") == int64_t(3) << 40);
  const auto duration = [](std::string_view text) {
    return *parse_quantity(Quantity::kDuration, text);
  };
  CHECK(duration("0s") == 0);
  CHECK(duration("7ns") == 7);
  CHECK(duration("1.5us") == 1500);
  CHECK(duration("2ms") == 2000000);
  CHECK(duration("3s") == 3000000000);
  const auto bandwidth = [](std::string_view text) {
    return *parse_quantity(Quantity::kBandwidth, text);
  };
  CHECK(bandwidth("8GB") == 8000000000);
  CHECK(bandwidth("8GB/s") == 8000000000);
  CHECK(bandwidth("0.5MiB/S") == 1 << 19);
}

TEST_CASE("a malformed quantity is refused, with an example") {
  const auto refused = [](Quantity quantity, std::string_view text,
                          std::string_view why) {
    expect_error(parse_quantity(quantity, text), Code::kInvalidArgument, why);
  };
  const std::string_view form = " is not a size, as 64MiB or 1.5GB";
  for (const std::string text :
       {"", "MiB", "-1MB", "+1MB", " 1MB", "1 MB", "inf", "nan", "0x10", "1e3",
        "1QB", "1MBs", "1..5MB", "1GB/s", "1MiBMiB"})
    refused(Quantity::kBytes, text, "\"" + text + "\"" + std::string(form));
  refused(Quantity::kDuration, "5", "\"5\" is not a duration, as 5us or 1.5ms");
  refused(Quantity::kDuration, "5MB", "is not a duration");
  refused(Quantity::kBandwidth, "5us",
          "\"5us\" is not bytes per second, as 8GB/s");
  refused(Quantity::kBytes, "0", "\"0\" is less than a byte");
  refused(Quantity::kBytes, "0.5B", "\"0.5B\" is less than a byte");
  refused(Quantity::kBandwidth, "0GB/s", "\"0GB/s\" is less than a byte");
  refused(Quantity::kBytes, "9000000TiB", "is too large");
  refused(Quantity::kBytes, std::string(400, '9'), "is too large");
  refused(Quantity::kDuration, "1" + std::string(20, '0') + "s",
          "is too large");
  CHECK(parse_quantity(Quantity::kBytes, "8388607TiB").ok());
}

TEST_CASE("a quantity in whole units is exact, and any text is safe") {
  CHECK(rc::check([] {
    const auto mebibytes = *rc::gen::inRange<int64_t>(1, int64_t(1) << 32);
    const auto bytes =
        parse_quantity(Quantity::kBytes, std::to_string(mebibytes) + "MiB");
    RC_ASSERT(bytes.ok());
    RC_ASSERT(*bytes == mebibytes << 20);
  }));
  CHECK(rc::check([](const std::string& text) {
    for (const Quantity quantity :
         {Quantity::kBytes, Quantity::kDuration, Quantity::kBandwidth}) {
      const auto value = parse_quantity(quantity, text);
      if (value.ok()) RC_ASSERT(*value >= 0);
    }
  }));
}

}  // namespace tagflow::devices
