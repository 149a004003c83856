#include "devices/files/event_writer.h"

#include <doctest/doctest.h>

#include <string>
#include <thread>
#include <vector>

#include "devices/files/record_file.h"
#include "tests/devices/files/event_records.h"
#include "tests/devices/files/memory_files.h"

namespace tagflow::checkpoint {
namespace {

using std::string_literals::operator""s;

tensorflow::Event event_of_step(int64_t step) {
  tensorflow::Event event;
  event.set_step(step);
  return event;
}

// Whole records only are written by add() and flush() together: the thread of a
// writer never writes by itself.
EventWriterOptions patient(FileSystem& files) {
  return {&files, 1'000'000, std::chrono::hours(1), ""};
}

std::vector<int64_t> steps_in(const std::string& file) {
  const auto events = events_in(file);
  REQUIRE(events.ok());
  REQUIRE(!events->empty());
  CHECK(events->front().file_version() == "brain.Event:2");
  std::vector<int64_t> steps;
  for (size_t i = 1; i < events->size(); ++i)
    steps.push_back((*events)[i].step());
  return steps;
}

}  // namespace

TEST_CASE("a record has the length, the event, and a checksum of each") {
  tensorflow::Event event;
  event.set_wall_time(1);
  event.set_file_version("brain.Event:2");
  std::string record;
  append_record(record, event.SerializeAsString());
  CHECK(record ==
        "\x18\0\0\0\0\0\0\0\xa3\x7f\x4b\x22"
        "\x09\0\0\0\0\0\0\xf0\x3f\x1a\x0d"
        "brain.Event:2\x86\xbf\x57\x7a"s);
}

TEST_CASE("events of many threads are written, each once") {
  MemoryFiles files;
  files.most_per_write = 7;
  auto writer = EventWriter::open("runs/a", patient(files));
  REQUIRE(writer.ok());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i)
        CHECK((*writer)->add(event_of_step(100 * t + i)).ok());
    });
  for (std::thread& thread : threads) thread.join();
  CHECK((*writer)->flush().ok());
  const std::string path = (*writer)->path();
  CHECK(path.starts_with("runs/a/events.out.tfevents."));
  CHECK(steps_in(files.contents().at(path)).size() == 200);
  CHECK((*writer)->add(event_of_step(7)).ok());
  CHECK((*writer)->close().ok());
  CHECK(steps_in(files.contents().at(path)).back() == 7);
  CHECK((*writer)->add(event_of_step(8)).code() == Code::kFailedPrecondition);
  CHECK((*writer)->close().ok());
}

TEST_CASE("a writer may be closed by several threads at once") {
  for (int i = 0; i < 50; ++i) {
    MemoryFiles files;
    auto writer = EventWriter::open("runs/a", patient(files));
    REQUIRE(writer.ok());
    CHECK((*writer)->add(event_of_step(1)).ok());
    std::thread other([&] { CHECK((*writer)->close().ok()); });
    CHECK((*writer)->close().ok());
    // Whoever closes it first, it is over for both.
    CHECK(steps_in(files.contents().at((*writer)->path())).size() == 1);
    other.join();
  }
}

TEST_CASE("a full disk is an error, and costs no record") {
  MemoryFiles files;
  auto writer = EventWriter::open("runs", patient(files));
  REQUIRE(writer.ok());
  CHECK((*writer)->add(event_of_step(1)).ok());
  CHECK((*writer)->flush().ok());
  const std::string first = (*writer)->path();
  // Some bytes of the next record are written, then no more.
  files.most_per_write = 9;
  files.failing = files.operations + 2;
  CHECK((*writer)->add(event_of_step(2)).ok());
  CHECK((*writer)->flush().code() != Code::kOk);
  CHECK((*writer)->add(event_of_step(3)).ok());
  CHECK((*writer)->flush().ok());
  CHECK((*writer)->close().ok());
  const std::string second = (*writer)->path();
  CHECK(second != first);
  CHECK(steps_in(files.contents().at(first)) == std::vector<int64_t>{1});
  CHECK(steps_in(files.contents().at(second)) == std::vector<int64_t>{2, 3});
}

TEST_CASE("what waits for a file that cannot be written is limited") {
  MemoryFiles files;
  auto writer = EventWriter::open("runs", patient(files));
  REQUIRE(writer.ok());
  files.failing = files.operations;
  files.is_crash = true;
  tensorflow::Event large;
  large.set_graph_def(std::string(EventWriter::kMostBytes / 2, 'x'));
  CHECK((*writer)->add(large).ok());
  CHECK(!(*writer)->flush().ok());
  CHECK(!(*writer)->add(large).ok());
  CHECK(!(*writer)->close().ok());
}

TEST_CASE("a folder that cannot be made is an error of the opening") {
  EventWriterOptions options;
  CHECK(EventWriter::open("/proc/none/events", options).status().code() !=
        Code::kOk);
}

TEST_CASE("damage of an event file is found, a part at its end is not damage") {
  std::string record;
  append_record(record, event_of_step(5).SerializeAsString());
  CHECK(events_in(record + record.substr(0, record.size() - 1))->size() == 1);
  for (size_t i = 0; i < record.size(); ++i) {
    std::string damaged = record;
    damaged[i] = char(damaged[i] ^ 1);
    CHECK(!events_in(damaged).ok());
  }
}

}  // namespace tagflow::checkpoint
