#include "apps/tagflow/conform/judge.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "apps/shared/io/file.h"
#include "apps/shared/io/npy.h"
#include "graph/builder/builder.h"
#include "graph/file/graphdef.h"
#include "tests/temp_path.h"

namespace tagflow::apps {
namespace {

namespace fs = std::filesystem;
namespace ops = graph::ops;

// A folder with graph.pb (y = x / n, of int32, z = w * w, of double, and a node
// that nobody knows if `with_unknown`) and the files x.npy = [6, 8], y.npy =
// [3, 4], w.npy = [1, 3] and dz.npy = [2, 6].
class Recorded {
 public:
  explicit Recorded(std::string_view case_json, bool with_unknown = false) {
    fs::create_directories(folder_);
    graph::Graph graph;
    const graph::Scope scope(graph);
    const graph::Output x =
        ops::placeholder(scope.named("x"), DataType::kInt32, {2});
    const graph::Output n =
        ops::placeholder(scope.named("n"), DataType::kInt32, PartialShape());
    ops::floor_div(scope.named("y"), x, n);
    const graph::Output w =
        ops::placeholder(scope.named("w"), DataType::kDouble, {2});
    ops::mul(scope.named("z"), w, w);
    REQUIRE(scope.ok());
    std::string bytes = graph::write_graphdef(graph).value();
    // A node, as protocol buffers write it: fields name and op.
    if (with_unknown) bytes += "\n\x0b\n\x01u\x12\x06NoSuch";
    REQUIRE(io::write_file(folder_ / "graph.pb", bytes).ok());
    REQUIRE(io::write_file(folder_ / "case.json", case_json).ok());
    write("x.npy", Tensor::vector<int32_t>({6, 8}));
    write("y.npy", Tensor::vector<int32_t>({3, 4}));
    write("w.npy", Tensor::vector<double>({1, 3}));
    write("dz.npy", Tensor::vector<double>({2, 6}));
    write("two.npy", Tensor::scalar<int32_t>(2));
    write("zero.npy", Tensor::scalar<int32_t>(0));
  }
  ~Recorded() { fs::remove_all(folder_); }

  Verdict judge() const { return judge_case(folder_, {}); }

 private:
  void write(const char* name, const Tensor& tensor) {
    REQUIRE(io::write_npy(folder_ / name, tensor).ok());
  }

  fs::path folder_ = testing::temp_path("judge");
};

constexpr const char* kGood =
    R"({"name": "c", "runs": [{"feeds": {"x:0": "x.npy", "n:0": "two.npy"},
        "fetches": ["y:0"], "expect": ["y.npy"]}]})";

TEST_CASE("a case whose fetches are as recorded has passed") {
  CHECK(Recorded(kGood).judge().outcome == Outcome::kPassed);
}

TEST_CASE("conform: an op that nobody needs does not matter") {
  CHECK(Recorded(kGood, true).judge().outcome == Outcome::kPassed);
}

TEST_CASE("conform: an op that a run needs and nobody has skips the case") {
  const Verdict verdict =
      Recorded(R"({"name": "c", "runs": [{"targets": ["u"]}]})", true).judge();
  CHECK(verdict.outcome == Outcome::kSkipped);
  CHECK(verdict.missing == std::set<std::string>{"NoSuch"});
}

// The gradient of z by w, and what it should be.
std::string gradient_case(const std::string& expect, const std::string& y,
                          int order = 1) {
  return fmt::format(R"({{"name": "c",
      "gradients": {{"ys": ["{}"], "xs": ["w:0"], "order": {}}},
      "runs": [{{"feeds": {{"w:0": "w.npy"}}, "fetches": ["grad_0:0"],
                "expect": ["{}"]}}]}})",
                     y, order, expect);
}

TEST_CASE("conform: a case passes if its gradients are as recorded") {
  const Verdict verdict = Recorded(gradient_case("dz.npy", "z:0")).judge();
  CHECK_MESSAGE(verdict.outcome == Outcome::kPassed, verdict.what);
  CHECK(Recorded(gradient_case("dz.npy", "z:0", 2)).judge().what ==
        "InvalidArgument: run 0: grad_0:0: 1 of 2 elements differ; at [1] "
        "there is 2, expected 6");
}

TEST_CASE("a case whose gradient cannot be made has failed") {
  const Verdict verdict = Recorded(gradient_case("dz.npy", "zz:0")).judge();
  CHECK(verdict.outcome == Outcome::kFailed);
  CHECK(verdict.what.find("[gradients] [graph] no node \"zz\"") !=
        std::string::npos);
}

TEST_CASE("conform: a wrong result fails the case, and the place is named") {
  const Verdict verdict = Recorded(R"({"name": "c", "runs": [
          {"feeds": {"x:0": "x.npy", "n:0": "two.npy"}, "fetches": ["y:0"],
           "expect": ["x.npy"]}]})")
                              .judge();
  CHECK(verdict.outcome == Outcome::kFailed);
  CHECK(verdict.what ==
        "InvalidArgument: run 0: y:0: 2 of 2 elements differ; at [0] there is "
        "3, expected 6");
}

TEST_CASE("a run that should fail must do so, with the same code") {
  const std::string start =
      R"({"name": "c", "runs": [{"feeds": {"x:0": "x.npy", "n:0": )";
  CHECK(Recorded(start + R"("zero.npy"}, "fetches": ["y:0"],
                 "error": {"code": "InvalidArgumentError"}}]})")
            .judge()
            .outcome == Outcome::kPassed);
  CHECK(Recorded(start + R"("zero.npy"}, "fetches": ["y:0"],
                 "error": {"code": "OutOfRangeError"}}]})")
            .judge()
            .what.find("should fail with OutOfRangeError, but did so with "
                       "InvalidArgument") != std::string::npos);
  CHECK(Recorded(start + R"("two.npy"}, "fetches": ["y:0"],
                 "error": {"code": "InvalidArgumentError"}}]})")
            .judge()
            .what.find("it succeeded") != std::string::npos);
}

TEST_CASE("a file that the case names and that is not there fails it") {
  const Verdict verdict = Recorded(R"({"name": "c", "runs": [
          {"feeds": {"x:0": "gone.npy"}, "fetches": [], "expect": []}]})")
                              .judge();
  CHECK(verdict.outcome == Outcome::kFailed);
  CHECK(verdict.what.find("gone.npy") != std::string::npos);
}

}  // namespace
}  // namespace tagflow::apps
