// Buckets by length: every element is in one batch, with others of its bucket.
#include "graph/builder/bucket.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include "actors/session/queue_runners.h"
#include "tests/actors/program.h"

using namespace tagflow;
using namespace tagflow::actors;
using namespace tagflow::graph;
using graph::testing::message_of;
using graph::testing::must;

namespace {

// Element i has the length lengths[i], and i that often as its values; the last
// of them is followed by the end.
struct Source : Program {
  explicit Source(std::vector<int32_t> lengths) : lengths_(lengths) {
    const ops::Queue q = ops::fifo_queue(
        s.named("source"), {DataType::kInt32, DataType::kInt32},
        {.shapes = {PartialShape::scalar(), PartialShape::scalar()}});
    const auto count = int64_t(lengths.size());
    const Output put = ops::enqueue_many(
        s, q,
        {Tensor::of<int32_t>({count}, std::span<const int32_t>(lengths)),
         ops::range(s, 0, int(count), 1)});
    ops::group(s.named("fill_source"),
               ops::close_queue(s.with_control_dependencies(put), q));
    const Outputs element = ops::dequeue(s, q);
    length = element[0];
    number = element[1];
    values = ops::fill(s, ops::expand_dims(s, length, 0), number);
  }

  // The batches of a run to the end: lengths, numbers, and values if they
  // are there.
  std::vector<std::vector<Tensor>> batches(const LengthBuckets& buckets) {
    must(s.status());
    const auto session = make_session({}, graph);
    must(session->run({}, {}, {"fill_source"}, within_a_minute()));
    Coordinator threads;
    must(start_queue_runners(*session, buckets.runners, threads));
    std::vector<std::string> fetches{buckets.lengths.name()};
    for (const Output& component : buckets.components)
      fetches.push_back(component.name());
    std::vector<std::vector<Tensor>> all;
    for (;;) {
      auto batch = session->run({}, fetches, {}, within_a_minute());
      if (!batch.ok()) {
        CHECK(batch.status().code() == Code::kOutOfRange);
        break;
      }
      all.push_back(*std::move(batch));
    }
    must(threads.join());
    return all;
  }

  Output length, number, values;

 protected:
  std::vector<int32_t> lengths_;
};

int bucket_of(int length, const std::vector<int64_t>& boundaries) {
  return int(std::upper_bound(boundaries.begin(), boundaries.end(), length) -
             boundaries.begin());
}

std::vector<int32_t> many_lengths(int count) {
  std::vector<int32_t> lengths;
  for (int i = 0; i < count; ++i) lengths.push_back(1 + i * i * 7 % 23);
  return lengths;
}

}  // namespace

TEST_CASE("elements of one bucket are together, and padded to the longest") {
  const std::vector<int64_t> boundaries = {5, 10, 15};
  const std::vector<int32_t> lengths = many_lengths(103);
  for (const int64_t threads : {1, 3}) {
    CAPTURE(threads);
    Source source(lengths);
    const LengthBuckets buckets = bucket_by_sequence_length(
        source.s, source.length, {source.number, source.values}, boundaries,
        {.batch_size = 4,
         .capacity = 8,
         .smaller_final_batch = true,
         .pad = true,
         .threads = threads});
    std::vector<int> seen(lengths.size());
    std::map<int, int> small;
    for (const std::vector<Tensor>& batch : source.batches(buckets)) {
      const auto of = elements<int32_t>(batch[0]);
      const auto numbers = elements<int32_t>(batch[1]);
      const Tensor& values = batch[2];
      REQUIRE(of.size() == numbers.size());
      const int longest = *std::ranges::max_element(of);
      REQUIRE(values.shape() == Shape{int64_t(of.size()), longest});
      const int bucket = bucket_of(of[0], boundaries);
      if (of.size() < 4) ++small[bucket];
      for (size_t i = 0; i < of.size(); ++i) {
        const auto number = size_t(numbers[i]);
        CHECK(of[i] == lengths[number]);
        CHECK(bucket_of(of[i], boundaries) == bucket);
        ++seen[number];
        for (int j = 0; j < longest; ++j)
          CHECK(elements<int32_t>(values)[i * size_t(longest) + size_t(j)] ==
                (j < of[i] ? numbers[i] : 0));
      }
    }
    CHECK(std::ranges::count(seen, 1) == int64_t(lengths.size()));
    // Only the last batch of a bucket may be small.
    for (const auto& [bucket, count] : small) CHECK(count == 1);
  }
}

TEST_CASE("bucket batches: a last batch that is not full is left out") {
  // Two of bucket 0, three of bucket 1.
  Source source({1, 9, 2, 8, 7});
  const LengthBuckets buckets =
      bucket_by_sequence_length(source.s, source.length, source.number, {5},
                                {.batch_size = 2, .capacity = 4});
  std::vector<int32_t> numbers;
  for (const std::vector<Tensor>& batch : source.batches(buckets)) {
    CHECK(batch[0].shape() == Shape{2});
    for (const int32_t number : elements<int32_t>(batch[1]))
      numbers.push_back(number);
  }
  std::ranges::sort(numbers);
  CHECK(numbers == std::vector<int32_t>{0, 1, 2, 3});
}

TEST_CASE("bucket batches: an element without a bucket is dropped") {
  Source source({0, 1, 2, 3, 4, 5, 6, 7});
  const Output third =
      ops::sub(source.s, ops::floor_mod(source.s, source.number, 4), 1);
  const Buckets made = bucket(source.s, third, source.number, 2,
                              {.batch_size = 2, .capacity = 2});
  const LengthBuckets as_lengths{made.bucket, made.components, made.runners};
  std::map<int32_t, std::vector<int32_t>> by_bucket;
  for (const std::vector<Tensor>& batch : source.batches(as_lengths))
    by_bucket[must(batch[0].item<int32_t>())] = elements<int32_t>(batch[1]);
  CHECK(by_bucket ==
        std::map<int32_t, std::vector<int32_t>>{{0, {1, 5}}, {1, {2, 6}}});
}

TEST_CASE("bucket batches: after a stop a run does not wait for a batch") {
  Source source(many_lengths(50));
  const LengthBuckets buckets =
      bucket_by_sequence_length(source.s, source.length, source.number, {5, 10},
                                {.batch_size = 2, .capacity = 2});
  must(source.s.status());
  const auto session = make_session({}, source.graph);
  must(session->run({}, {}, {"fill_source"}, within_a_minute()));
  Coordinator threads;
  must(start_queue_runners(*session, buckets.runners, threads));
  must_run(*session, {}, {buckets.lengths.name()});
  threads.request_stop();
  must(threads.join(std::chrono::seconds(60)));
  // What is left comes out, and then the end.
  for (int i = 0; i < 50; ++i) {
    const auto batch =
        session->run({}, {buckets.lengths.name()}, {}, within_a_minute());
    if (batch.ok()) continue;
    CHECK(batch.status().code() == Code::kOutOfRange);
    return;
  }
  FAIL("no end");
}

TEST_CASE("buckets that cannot be are refused") {
  Program p;
  const Output length = p.input("n", DataType::kInt32, PartialShape::scalar());
  const Output any = p.input("any", DataType::kFloat, {-1});
  const auto error = [&](const Outputs& components,
                         std::vector<int64_t> boundaries,
                         BucketOptions options) {
    bucket_by_sequence_length(p.s, length, components, boundaries, options);
    return message_of(p.s.status(), Code::kInvalidArgument);
  };
  const auto has = [](const std::string& message, const char* part) {
    CAPTURE(message);
    CHECK(graph::testing::contains(message, part));
  };
  SUBCASE("boundaries in no order") {
    has(error(length, {5, 5}, {}), "but boundary 1 is 5");
  }
  SUBCASE("boundaries below 1") {
    has(error(length, {0}, {}), "but boundary 0 is 0");
  }
  SUBCASE("shapes that are not known") {
    has(error(any, {5}, {}),
        "\"any:0\" of shape [?] cannot be put into batches: without padding "
        "the shape must be known");
  }
  SUBCASE("batches beyond the capacity") {
    has(error(length, {5}, {.batch_size = 33}),
        "a capacity of 32 never holds a batch of 33");
  }
  SUBCASE("batches of nothing") {
    has(error(length, {5}, {.batch_size = 0}), "batch_size 0, capacity 32");
  }
  SUBCASE("a length that is a vector") {
    bucket_by_sequence_length(p.s, any, any, {5}, {});
    has(message_of(p.s.status(), Code::kInvalidArgument),
        "the length must be an int32 or int64 scalar, not float[?]");
  }
  SUBCASE("no components") {
    bucket(p.s, length, {}, 2, {});
    has(message_of(p.s.status(), Code::kInvalidArgument),
        "there are no components");
  }
}
