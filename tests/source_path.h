// Where the files of the checkout are.
#pragma once

#include <string>
#include <string_view>

namespace tagflow {

// The whole path of a file of the checkout, such as the data of a test.
std::string source_path(std::string_view path);

}  // namespace tagflow
