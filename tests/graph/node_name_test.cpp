#include "graph/node_name.h"

#include <doctest/doctest.h>

#include "graph/node.h"

using namespace tagflow;
using namespace tagflow::graph;

TEST_CASE("legal names of nodes are accepted") {
  for (const char* name : {"x", "X9", "0", ".a", "_Send", "while/body/add-1",
                           "a\\b", "f>g", "gradients/x_grad/y.z"}) {
    CAPTURE(name);
    CHECK(check_node_name(name).ok());
  }
}

TEST_CASE("illegal names of nodes are refused and shown") {
  CHECK(check_node_name("").message() == "the name of a node is empty");
  for (const char* name : {"-x", "/x", "x y", "x:0", "^x", "x\n", "\xc3\xa4"}) {
    CAPTURE(name);
    CHECK(check_node_name(name).message() ==
          fmt::format("{:?} is not a legal name of a node", name));
  }
  const Status status = check_node_name(std::string(5000, 'x'));
  CHECK(status.message().ends_with("has 5000 bytes, the limit is 4096"));
  CHECK(status.message().size() < 200);
}

TEST_CASE("an input's text splits into name, port and kind") {
  auto split = [](const char* text) {
    const Result<InputText> input = split_input(text);
    REQUIRE(input.ok());
    return fmt::format("{} {} {}", input->name, input->port, input->is_control);
  };
  CHECK(split("x") == "x 0 false");
  CHECK(split("a/b:12") == "a/b 12 false");
  CHECK(split("^a/b") == "a/b 0 true");
}

TEST_CASE("a malformed input is refused") {
  for (const char* text : {"x:", "x:-1", "x:1a", "x: 1", "x:99999999999"}) {
    CAPTURE(text);
    CHECK(split_input(text).status().message() ==
          fmt::format("{:?} has no valid port number", text));
  }
  for (const char* text : {"", "^", ":0", "^^x", "^x:0", "x:y:0", "x y:0"}) {
    CAPTURE(text);
    CHECK(split_input(text).status().code() == Code::kInvalidArgument);
  }
}

TEST_CASE("an endpoint's text is a name with an optional port") {
  CHECK(*parse_endpoint("x") == std::pair(std::string("x"), 0));
  CHECK(*parse_endpoint("x:3") == std::pair(std::string("x"), 3));
  CHECK(parse_endpoint("^x").status().message() ==
        "[graph] \"^x\" names no output of a node");
  CHECK(parse_endpoint("x:?").status().message() ==
        "[graph] \"x:?\" has no valid port number");
}

TEST_CASE("functions may have names that nodes may not") {
  CHECK(check_function_name("__inference_<lambda>_7").ok());
  CHECK(check_function_name("").message() == "the name of a function is empty");
  CHECK_FALSE(check_function_name(std::string(kMaxNameLength + 1, 'f')).ok());
  CHECK(to_node_name("__inference_<lambda>_7") == "__inference__lambda>_7");
  CHECK(to_node_name("-f") == "_-f");
  CHECK(to_node_name("") == "_");
  CHECK(to_node_name("f/g") == "f/g");
}
