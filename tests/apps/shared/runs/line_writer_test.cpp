#include "apps/shared/runs/line_writer.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace tagflow::apps {
namespace {

// A pipe, of which somebody reads or not.
struct Pipe {
  Pipe() { REQUIRE(::pipe2(ends, O_CLOEXEC) == 0); }
  ~Pipe() {
    for (const int end : ends)
      if (end >= 0) ::close(end);
  }
  void close_reader() { ::close(std::exchange(ends[0], -1)); }
  void close_writer() { ::close(std::exchange(ends[1], -1)); }
  // All that comes until the writers have closed it.
  std::string read_all() {
    std::string all;
    char buffer[4096];
    for (ssize_t n; (n = ::read(ends[0], buffer, sizeof(buffer))) > 0;)
      all.append(buffer, size_t(n));
    return all;
  }
  int ends[2] = {-1, -1};
};

LineWriter::Options limit(size_t most_bytes) {
  LineWriter::Options options;
  options.most_bytes = most_bytes;
  options.patience = std::chrono::minutes(2);  // a busy machine is slow
  options.on_dropped = [](uint64_t count) {
    return "dropped " + std::to_string(count) + "\n";
  };
  return options;
}

std::unique_ptr<LineWriter> start(const Pipe& pipe,
                                  LineWriter::Options options) {
  auto writer = LineWriter::start(pipe.ends[1], std::move(options));
  REQUIRE(writer.ok());
  return std::move(*writer);
}

TEST_CASE("lines are written in their order") {
  Pipe pipe;
  std::string expected;
  {
    const auto writer = start(pipe, limit(1 << 20));
    for (int i = 0; i < 1000; ++i) {
      const std::string line = std::to_string(i) + "\n";
      writer->add(line);
      expected += line;
    }
    CHECK(writer->flush());
  }
  pipe.close_writer();
  CHECK(pipe.read_all() == expected);
}

TEST_CASE("the end writes what waits") {
  Pipe pipe;
  {
    const auto writer = start(pipe, limit(1 << 20));
    writer->add("one\n");
    writer->add("two\n");
  }
  pipe.close_writer();
  CHECK(pipe.read_all() == "one\ntwo\n");
}

TEST_CASE("a line that is longer than a pipe's pieces comes whole") {
  Pipe pipe;
  const std::string line = std::string(50'000, 'x') + "\n";
  {
    const auto writer = start(pipe, limit(1 << 20));
    writer->add(line);
  }
  pipe.close_writer();
  CHECK(pipe.read_all() == line);
}

TEST_CASE("a reader that does not read makes nobody wait, and lines are lost") {
  Pipe pipe;
  LineWriter::Options options = limit(100'000);
  options.patience = std::chrono::milliseconds(50);
  const std::string line = std::string(999, 'x') + "\n";
  auto writer = start(pipe, std::move(options));
  for (int i = 0; i < 10'000; ++i) writer->add(line);
  CHECK(!writer->flush());
  std::string all;
  std::thread reader([&] { all = pipe.read_all(); });
  while (!writer->flush()) {
  }
  writer.reset();
  pipe.close_writer();
  reader.join();
  size_t dropped = 0;
  for (size_t at = 0; (at = all.find("dropped ", at)) != all.npos; ++at)
    dropped += std::stoul(all.substr(at + 8));
  // Each line was written, or counted.
  size_t written = 0;
  for (size_t end = 0; (end = all.find("x\n", end)) != all.npos; ++end)
    ++written;
  CHECK(written + dropped == 10'000);
  CHECK(dropped > 0);
  CHECK(written >= 100);
}

TEST_CASE("the end does not wait for a reader that does not read") {
  Pipe pipe;
  LineWriter::Options options = limit(1 << 20);
  options.patience = std::chrono::milliseconds(50);
  {
    const auto writer = start(pipe, std::move(options));
    for (int i = 0; i < 1000; ++i) writer->add(std::string(999, 'x') + "\n");
  }
  pipe.close_writer();
  CHECK(pipe.read_all().size() < 1'000'000);
}

TEST_CASE("a reader that has gone ends the writer, and not the process") {
  Pipe pipe;
  const auto writer = start(pipe, limit(1 << 20));
  pipe.close_reader();
  writer->add("one\n");
  CHECK(!writer->flush());
  writer->add("two\n");
  CHECK(!writer->flush());
}

TEST_CASE("lines that could not be made are counted") {
  Pipe pipe;
  {
    const auto writer = start(pipe, limit(1 << 20));
    writer->drop();
    CHECK(writer->flush());
    writer->add("one\n");
  }
  pipe.close_writer();
  CHECK(pipe.read_all() == "dropped 1\none\n");
}

TEST_CASE("several threads write whole lines") {
  Pipe pipe;
  {
    const auto writer = start(pipe, limit(1 << 20));
    std::vector<std::thread> threads;
    for (const char c : {'a', 'b', 'c', 'd'})
      threads.emplace_back([&writer, c] {
        for (int i = 0; i < 100; ++i) writer->add(std::string(9, c) + "\n");
      });
    for (std::thread& thread : threads) thread.join();
  }
  pipe.close_writer();
  const std::string all = pipe.read_all();
  REQUIRE(all.size() == 4000);
  for (size_t at = 0; at < all.size(); at += 10)
    CHECK(all.substr(at, 10) == std::string(9, all[at]) + "\n");
}

}  // namespace
}  // namespace tagflow::apps
