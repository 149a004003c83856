#include "apps/tagflow/model/op_libraries.h"

#include <CLI/CLI.hpp>
#include <utility>

#include "apps/shared/program/program.h"
#include "graph/op_library.h"

namespace tagflow::apps {

void add_op_library_option(CLI::App& app, std::vector<std::string>& files) {
  app.add_option("--op-library", files,
                 "a shared library with ops, kernels, gradient rules and "
                 "devices to add first; can be given several times")
      ->type_name("FILE")
      ->expected(1)
      ->take_all();
}

Failure load_op_libraries(const std::vector<std::string>& files) {
  for (const std::string& file : files) {
    const EndingSuspect suspect(fmt::format("the op library \"{}\"", file));
    Status loaded = graph::load_op_library(file);
    if (!loaded.ok())
      return file_error(std::move(loaded).with_prefix("[--op-library] "));
  }
  return {};
}

}  // namespace tagflow::apps
