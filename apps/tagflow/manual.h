// What shells and manuals need to know of a command line, made from the
// definitions that parse it.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace tagflow::apps {

// A script that completes the commands, options and choices of `app` in bash,
// and in zsh by its emulation of bash. What an option takes is completed as a
// file unless it has choices.
std::string bash_completion(const CLI::App& app);
std::string zsh_completion(const CLI::App& app);

// The page of `app`, and of those of its subcommands that have none themselves,
// in the language of man. `whole_name` is "tagflow cluster start".
std::string manual_page(const CLI::App& app, const std::string& whole_name,
                        const std::string& version);

}  // namespace tagflow::apps
