#include "net/wire/service_request.h"

#include <doctest/doctest.h>

#include "tests/net/wire/hex.h"

namespace tagflow::net {
namespace {

// The request has those bytes, and they have that request; a part of them has
// none.
void check_golden(const ServiceRequest& request, std::string_view golden) {
  const std::string bytes = unhex(golden);
  const auto written = bytes_of(request);
  REQUIRE(written.ok());
  CHECK(hex(*written) == hex(bytes));
  const auto read = parse_service_request(bytes);
  REQUIRE(read.ok());
  CHECK(hex(*bytes_of(*read)) == hex(bytes));
  for (size_t size = 0; size < bytes.size(); ++size)
    CHECK_FALSE(parse_service_request(bytes.substr(0, size)).ok());
  CHECK_FALSE(parse_service_request(bytes + '\0').ok());
}

}  // namespace

TEST_CASE("smoke: what a client asks for has the bytes of the page") {
  check_golden({5, ServiceRequest::Open{.passes = "all",
                                        .window = 2,
                                        .max_call_depth = 3,
                                        .max_open_calls = 200,
                                        .max_nodes = 1000,
                                        .soft_placement = true,
                                        .schedule_receives = false,
                                        .scatter = 7,
                                        .lossy = {"a"}}},
               "05 01 03 61 6c 6c 02 03 c8 01 e8 07 01 00 01 07 00 00 00 00 00 "
               "00 00 00 01 01 61");
  check_golden({5, ServiceRequest::Extend{"gg"}}, "05 02 02 67 67");
  check_golden({5, ServiceRequest::Prepare{6, {"x"}, {"y"}, {}}},
               "05 03 06 01 01 78 01 01 79 00");
  check_golden({0, ServiceRequest::Watch{6}}, "00 04 06");
  CHECK(ServiceRequest{0, ServiceRequest::Watch{6}}.number() == 6);
  CHECK(ServiceRequest{5, ServiceRequest::Prepare{6, {}, {}, {}}}.number() ==
        6);
  CHECK(ServiceRequest{5, ServiceRequest::Extend{}}.number() == 5);
}

TEST_CASE("smoke: what no client asks for is damage") {
  const auto message = [](std::string_view bytes) {
    return std::string(parse_service_request(unhex(bytes)).status().message());
  };
  CHECK(message("05 05") ==
        "[net|ServiceRequest] byte 2 of 2: 5 is not what a client asks for");
  // The window is a limit, which is an int.
  CHECK(message("05 01 00 ff ff ff ff 0f") ==
        "[net|ServiceRequest] byte 8 of 8: a limit is 4294967295, more than "
        "2147483647");
  CHECK(
      parse_service_request(unhex("05 03 06 ff ff ff ff 0f")).status().code() ==
      Code::kDataLoss);
}

}  // namespace tagflow::net
