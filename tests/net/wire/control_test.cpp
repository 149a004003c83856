#include "net/wire/control.h"

#include <doctest/doctest.h>

#include "tests/net/wire/hex.h"

namespace tagflow::net {
namespace {

// The message has those bytes, and they have that message; a part of them has
// none.
template <class Message>
void check_golden(const Message& message, std::string_view golden) {
  const std::string bytes = unhex(golden);
  const auto written = control_bytes_of(message);
  REQUIRE(written.ok());
  CHECK(hex(*written) == hex(bytes));
  const auto read = parse_control<Message>(bytes);
  REQUIRE(read.ok());
  const auto again = control_bytes_of(*read);
  REQUIRE(again.ok());
  CHECK(hex(*again) == hex(bytes));
  for (size_t size = 0; size < bytes.size(); ++size)
    CHECK_FALSE(parse_control<Message>(bytes.substr(0, size)).ok());
  CHECK_FALSE(parse_control<Message>(bytes + '\0').ok());
}

constexpr std::string_view kEntryBytes =
    "01 77 02 01 68 90 1f 05 00 00 00 00 00 00 00 01 02 64 30";
const CatalogueEntry kEntry{{"w", 2}, "h", 8080, 5, {"d0"}};

}  // namespace

TEST_CASE("smoke: messages of the control plane have the bytes of the page") {
  check_golden(kEntry, kEntryBytes);
  check_golden(Catalogue{{kEntry, kEntry}},
               "02" + std::string(kEntryBytes) + std::string(kEntryBytes));
  check_golden(Load{.incarnation = 5,
                    .uptime_ns = 300,
                    .has_master = true,
                    .is_leaving = false,
                    .steps_running = 1,
                    .steps_finished = 2,
                    .executables = 3,
                    .tensor_bytes = 4,
                    .memory_bytes = 5,
                    .links = {{"p", 6, 7, 8}}},
               "05 00 00 00 00 00 00 00 ac 02 01 00 01 02 03 04 05 01 01 70 06 "
               "07 08");
}

TEST_CASE("smoke: names of the control plane have a limit") {
  CatalogueEntry entry = kEntry;
  entry.task.job = std::string(65, 'j');
  const auto job = parse_control<CatalogueEntry>(*control_bytes_of(entry));
  CHECK(job.status().message() ==
        "[net|CatalogueEntry] byte 66 of 83: a name has 65 bytes, more than "
        "64");
  entry = kEntry;
  entry.host = std::string(256, 'h');
  CHECK_FALSE(parse_control<CatalogueEntry>(*control_bytes_of(entry)).ok());
  entry = kEntry;
  entry.devices.assign(1, std::string(256, 'd'));
  CHECK_FALSE(parse_control<CatalogueEntry>(*control_bytes_of(entry)).ok());
}

TEST_CASE("smoke: a message of the control plane is not longer than 256 KiB") {
  CatalogueEntry entry = kEntry;
  entry.devices.assign(2000, std::string(200, 'd'));
  const auto bytes = control_bytes_of(entry);
  CHECK(bytes.status().code() == Code::kResourceExhausted);
  CHECK(parse_control<Load>(std::string(kLongestControl + 1, '\0'))
            .status()
            .message() == "[net|Load] it has 262145 bytes, more than 262144");
}

TEST_CASE(
    "smoke: a count of the control plane that nothing follows is taken "
    "for damage") {
  CHECK(parse_control<Catalogue>(unhex("ff ff ff ff 0f")).status().code() ==
        Code::kDataLoss);
}

}  // namespace tagflow::net
