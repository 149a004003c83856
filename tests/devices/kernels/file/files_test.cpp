// ReadFile, WriteFile, MatchingFiles.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/devices/kernel_fixture.h"
#include "tests/temp_folder.h"

namespace tagflow::devices {

namespace {

struct Folder : testing::TempFolder {
  Folder() : TempFolder("files") {}
  std::string at(const std::string& name) const {
    return (path() / name).string();
  }
  void add(const std::string& name) const {
    std::filesystem::create_directories(
        std::filesystem::path(at(name)).parent_path());
    std::ofstream(at(name)) << name;
  }
};

Result<Outputs> write_file(const std::string& path, const char* contents) {
  return run_op("WriteFile", {Tensor::scalar(path), Tensor::scalar(contents)});
}

Result<Outputs> read_file(const std::string& path) {
  return run_op("ReadFile", {Tensor::scalar(path)});
}

void expect_matching(const std::vector<Tensor>& patterns,
                     const std::vector<std::string>& paths) {
  const auto found = run_op("MatchingFiles", patterns);
  REQUIRE_MESSAGE(found.ok(), found.status().to_string());
  const auto names = (*found)[0].flat<std::string>();
  CHECK(std::vector<std::string>(names.begin(), names.end()) == paths);
}

}  // namespace

TEST_CASE("a file that was written is read, with the folders it needed") {
  const Folder folder;
  const std::string path = folder.at("new/folder/file");
  CHECK(write_file(path, "some text").ok());
  expect_close(read_file(path), Tensor::scalar("some text"));
  CHECK(write_file(path, "").ok());
  expect_close(read_file(path), Tensor::scalar(""));
}

TEST_CASE("ReadFile and WriteFile refuse a path that is not a file") {
  const Folder folder;
  folder.add("file");
  expect_error(read_file(folder.at("none")), Code::kNotFound, "none");
  expect_error(read_file(folder.at("")), Code::kFailedPrecondition,
               "directory");
  expect_error(write_file(folder.at(""), "x"), Code::kFailedPrecondition,
               "directory");
  expect_error(write_file(folder.at("file/below"), "x"),
               Code::kFailedPrecondition, "ot a directory");
  REQUIRE(mkfifo(folder.at("pipe").c_str(), 0600) == 0);
  expect_error(read_file(folder.at("pipe")), Code::kInvalidArgument,
               "not a regular file");
  // A reader, without which the system refuses to open it.
  const int reader = open(folder.at("pipe").c_str(), O_RDONLY | O_NONBLOCK);
  REQUIRE(reader >= 0);
  expect_error(write_file(folder.at("pipe"), "x"), Code::kInvalidArgument,
               "not a regular file");
  close(reader);
  expect_error(write_file("/dev/null", "x"), Code::kInvalidArgument,
               "not a regular file");
  expect_error(read_file(std::string("a\0b", 3)), Code::kInvalidArgument,
               "a zero byte");
  expect_error(run_op("ReadFile", {Tensor::make(DataType::kString, {1})}),
               Code::kInvalidArgument, "filename must be a scalar");
}

TEST_CASE("files are found by patterns, sorted, hidden ones too") {
  const Folder folder;
  for (const char* name : {"x/a.txt", "x/z.txt", "x/.b.txt", "y/z.md"})
    folder.add(name);
  const auto pattern = [&](const char* text) {
    return Tensor::scalar(folder.at(text));
  };
  expect_matching(
      {pattern("x/*.txt")},
      {folder.at("x/.b.txt"), folder.at("x/a.txt"), folder.at("x/z.txt")});
  expect_matching({pattern("*/z.*")},
                  {folder.at("x/z.txt"), folder.at("y/z.md")});
  expect_matching({pattern("x/?.md")}, {});
  expect_matching({pattern("x/[^a].txt")}, {folder.at("x/z.txt")});
  expect_matching({pattern("x/a.txt")}, {folder.at("x/a.txt")});
  expect_matching({pattern("x/none")}, {});
  expect_matching({Tensor::scalar("")}, {});
  expect_matching({Tensor::scalar(std::string(100000, '/'))}, {});
  const std::string both[] = {folder.at("y/*"), folder.at("x/a*")};
  expect_matching({Tensor::of<std::string>({2}, both)},
                  {folder.at("x/a.txt"), folder.at("y/z.md")});
  expect_error(
      run_op("MatchingFiles", {Tensor::scalar(folder.at("x") + '\0' + "*")}),
      Code::kInvalidArgument, "a pattern contains a zero byte");
  expect_error(
      run_op("MatchingFiles", {Tensor::make(DataType::kString, {1, 1})}),
      Code::kInvalidArgument, "a scalar or a vector");
}

}  // namespace tagflow::devices
