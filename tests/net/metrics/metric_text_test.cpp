#include "net/metrics/metric_text.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <cmath>
#include <limits>
#include <string>

#include "tests/net/metrics/metric_parser.h"

namespace tagflow::net {
namespace {

constexpr auto kCounter = MetricText::Type::kCounter;
constexpr auto kGauge = MetricText::Type::kGauge;

ParsedMetrics parsed(const MetricText& text) {
  auto metrics = MetricParser::parse(text.text());
  INFO(metrics.status().to_string());
  REQUIRE(metrics.ok());
  return std::move(*metrics);
}

TEST_CASE("a family is its help, its type and its figures") {
  MetricText text;
  text.begin("sent_bytes_total", kCounter, "Bytes that were sent.");
  text.add({{"peer", "a"}, {"job", "b"}}, uint64_t{7});
  text.add({{"peer", "c"}, {"job", "b"}}, uint64_t{8});
  text.one("round_trip_seconds", kGauge, "A round trip.", 0.25);
  CHECK(text.text() ==
        "# HELP sent_bytes_total Bytes that were sent.\n"
        "# TYPE sent_bytes_total counter\n"
        "sent_bytes_total{peer=\"a\",job=\"b\"} 7\n"
        "sent_bytes_total{peer=\"c\",job=\"b\"} 8\n"
        "# HELP round_trip_seconds A round trip.\n"
        "# TYPE round_trip_seconds gauge\n"
        "round_trip_seconds 0.25\n");
}

TEST_CASE("values and help are escaped") {
  MetricText text;
  text.begin("up", kGauge, "A \\ and a\nline, \"quoted\".");
  text.add({{"peer", "a\\b\"c\nd"}}, uint64_t{1});
  CHECK(text.text() ==
        "# HELP up A \\\\ and a\\nline, \"quoted\".\n"
        "# TYPE up gauge\n"
        "up{peer=\"a\\\\b\\\"c\\nd\"} 1\n");
}

TEST_CASE("any text is the value of a label") {
  rc::check([](const std::string& value) {
    MetricText text;
    text.begin("up", kGauge, "Help.");
    text.add({{"peer", value}}, uint64_t{1});
    const auto metrics = MetricParser::parse(text.text());
    RC_ASSERT(metrics.ok());
    RC_ASSERT(metrics->figures.size() == 1u);
  });
}

TEST_CASE("text of UTF-8 comes back as it was, and other bytes are replaced") {
  for (const std::string value : {"", "\xc3\xa4", "\xe2\x82\xac", "a,b={}"}) {
    MetricText text;
    text.begin("up", kGauge, "Help.");
    text.add({{"peer", value}}, uint64_t{1});
    CHECK(parsed(text)["up{peer=\"" + value + "\"}"] == 1);
  }
  MetricText text;
  text.begin("up", kGauge, "Help.");
  text.add({{"peer", "a\xff\xc3"}}, uint64_t{1});
  CHECK(parsed(text)["up{peer=\"a\xef\xbf\xbd\xef\xbf\xbd\"}"] == 1);
}

TEST_CASE("numbers are exact") {
  const uint64_t most = std::numeric_limits<uint64_t>::max();
  const double tiny = 1.25e-7, long_one = 0.1 + 0.2;
  MetricText text;
  text.one("most", kGauge, "Help.", most);
  text.one("tiny", kGauge, "Help.", tiny);
  text.one("long_one", kGauge, "Help.", long_one);
  text.one("infinite", kGauge, "Help.", -INFINITY);
  text.one("none", kGauge, "Help.", double(NAN));
  CHECK(text.text().find("most 18446744073709551615\n") != std::string::npos);
  const ParsedMetrics metrics = parsed(text);
  CHECK(metrics["tiny"] == tiny);
  CHECK(metrics["long_one"] == long_one);
  CHECK(metrics["infinite"] == -INFINITY);
  CHECK(text.text().find("\nnone NaN\n") != std::string::npos);
}

TEST_CASE("the parser of these tests finds what is wrong") {
  const std::string head = "# HELP up Help.\n# TYPE up gauge\n";
  REQUIRE(MetricParser::parse(head + "up{a=\"b\"} 1\n").ok());
  for (const char* wrong : {"up 1",
                            "up\n",
                            "up one\n",
                            "up 1 2 3\n",
                            "up  1\n",
                            "down 1\n",
                            "up{} 1\n",
                            "up{a} 1\n",
                            "up{a=b} 1\n",
                            "up{a=\"b} 1\n",
                            "up{a=\"\\x\"} 1\n",
                            "up{a=\"b\",a=\"c\"} 1\n",
                            "up{1=\"b\"} 1\n",
                            "up 1\nup 2\n",
                            "# HELP up Again.\n",
                            "# TYPE up counter\n",
                            "# HELP down Help.\n# TYPE up gauge\n",
                            "# HELP down Help.\n# TYPE down gauge\nup 1\n",
                            "# HELP down Help.\n# TYPE down counter\n",
                            "up{a=\"\xff\"} 1\n",
                            "\n"}) {
    CAPTURE(wrong);
    CHECK(!MetricParser::parse(head + wrong).ok());
  }
}

TEST_CASE("a histogram counts the values up to each bound") {
  MetricText text;
  text.begin("h", MetricText::Type::kHistogram, "Times.");
  const double bounds[] = {0.5, 2};
  const uint64_t counts[] = {1, 0, 3};
  text.add_histogram({{"model", "m"}}, bounds, counts, 9.25);
  text.add_histogram({}, bounds, counts, 1);
  CHECK(text.text() ==
        "# HELP h Times.\n# TYPE h histogram\n"
        "h_bucket{model=\"m\",le=\"0.5\"} 1\n"
        "h_bucket{model=\"m\",le=\"2\"} 1\n"
        "h_bucket{model=\"m\",le=\"+Inf\"} 4\n"
        "h_sum{model=\"m\"} 9.25\n"
        "h_count{model=\"m\"} 4\n"
        "h_bucket{le=\"0.5\"} 1\n"
        "h_bucket{le=\"2\"} 1\n"
        "h_bucket{le=\"+Inf\"} 4\n"
        "h_sum 1\n"
        "h_count 4\n");
}

}  // namespace
}  // namespace tagflow::net
