// What shells and manuals need to know of a command line, made from the
// definitions that parse it.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace tagflow::apps {

// Names that are known, by what options call them: those of "OP" are for what
// takes "OP", "OP..." or, with commas between them, "OP,...". None has a space
// or a quote.
using KnownNames = std::map<std::string, std::vector<std::string>>;

// A script that completes the commands, options and choices of `app` in bash,
// and in zsh by its emulation of bash. What an option takes is completed as a
// file unless it has choices, or names that are known.
std::string bash_completion(const CLI::App& app, const KnownNames& names);
std::string zsh_completion(const CLI::App& app, const KnownNames& names);

// The page of `app`, and of those of its subcommands that have none themselves,
// in the language of man. `whole_name` is "tagflow cluster start".
std::string manual_page(const CLI::App& app, const std::string& whole_name,
                        const std::string& version);

}  // namespace tagflow::apps
