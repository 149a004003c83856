#include "apps/tagflow/manual.h"

#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>
#include <vector>

namespace tagflow::apps {
namespace {

using Apps = std::vector<const CLI::App*>;

Apps subcommands_of(const CLI::App& app) {
  Apps all;
  for (const CLI::App* sub : app.get_subcommands(nullptr))
    if (!sub->get_name().empty()) all.push_back(sub);
  return all;
}

std::vector<std::string> long_options_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames())
      names.push_back("--" + name);
  return names;
}

// The type of what it takes, without what CLI11 appends: a range or a set.
std::string argument_of(const CLI::Option& option) {
  if (option.get_expected_max() == 0) return "";
  const std::string& type = option.get_type_name();
  const bool has_range = type.find(" in [") != type.npos;
  return type.substr(0, has_range ? type.find(':') : type.find(":{"));
}

// What an option may be, if its type reads "text|json": no capitals, which
// stand for what a user makes up.
std::vector<std::string> choices_of(const CLI::Option& option) {
  const std::string type = argument_of(option);
  const bool is_choice =
      type.find('|') != type.npos && std::ranges::all_of(type, [](char c) {
        return c == '|' || c == '-' || std::islower(uint8_t(c)) ||
               std::isdigit(uint8_t(c));
      });
  std::vector<std::string> choices;
  for (size_t begin = 0; is_choice && begin <= type.size();) {
    const size_t end = std::min(type.find('|', begin), type.size());
    choices.push_back(type.substr(begin, end - begin));
    begin = end + 1;
  }
  return choices;
}

// Tables of bash that the function below reads.
class CompletionTables {
 public:
  explicit CompletionTables(const KnownNames& names) : names_(names) {}

  void add(const CLI::App& app, const std::string& path) {
    std::vector<std::string> all;
    for (const CLI::App* sub : subcommands_of(app))
      all.push_back(sub->get_name());
    for (const CLI::Option* option : app.get_options())
      if (option->get_positional())
        for (std::string& choice : choices_of(*option))
          all.push_back(std::move(choice));
    for (std::string& name : long_options_of(app))
      all.push_back(std::move(name));
    words_ += fmt::format("  ['{}']='{}'\n", path, fmt::join(all, " "));
    for (const CLI::Option* option : app.get_options()) {
      const std::string kind = kind_of(*option);
      // Names of a positional argument may follow the command itself.
      if (option->get_positional() && !kind.empty())
        choices_ += fmt::format("  ['{}']='{}'\n", path, kind);
      const std::string values =
          kind.empty() ? fmt::format("{}", fmt::join(choices_of(*option), " "))
                       : kind;
      for (const std::string& name : option->get_lnames())
        if (!values.empty())
          choices_ += fmt::format("  ['{} --{}']='{}'\n", path, name, values);
    }
    for (const CLI::App* sub : subcommands_of(app))
      add(*sub, path + " " + sub->get_name());
  }

  std::string text() const {
    std::string names;
    for (const auto& [kind, all] : names_)
      names += fmt::format("  ['{}']='{}'\n", kind, fmt::join(all, " "));
    return fmt::format(
        "declare -gA _tagflow_words=(\n{})\ndeclare -gA _tagflow_choices=(\n"
        "{})\ndeclare -gA _tagflow_names=(\n{})\n",
        words_, choices_, names);
  }

 private:
  // "@OP" for the names of ops, "@OP," for a list of them; empty: it takes
  // something else.
  std::string kind_of(const CLI::Option& option) const {
    const std::string type = argument_of(option);
    for (const auto& [kind, all] : names_) {
      if (type == kind || type == kind + "...") return "@" + kind;
      if (type == kind + ",...") return "@" + kind + ",";
    }
    return "";
  }

  const KnownNames& names_;
  // The words that may follow each command; what each option with choices may
  // be.
  std::string words_, choices_;
};

// --- Manual pages ------------------------------------------------------------

// Text as troff prints it literally.
std::string literal(std::string_view text) {
  std::string out;
  bool begins = true;
  for (const char c : text) {
    if (begins && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else
      out += c;
    begins = c == '\n';
  }
  return out;
}

std::string paragraphs(std::string_view text) {
  std::string out;
  for (const char c : literal(text)) {
    // An empty line is a paragraph of troff.
    if (c == '\n' && out.ends_with('\n')) {
      if (!out.ends_with(".PP\n")) out += ".PP\n";
      continue;
    }
    out += c;
  }
  if (!out.ends_with('\n')) out += '\n';
  return out;
}

// "-h, --help", or the name of a positional argument.
std::string names_of(const CLI::Option& option) {
  if (option.get_positional()) return option.get_name(true);
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames())
    names.push_back("-" + name);
  for (const std::string& name : option.get_lnames())
    names.push_back("--" + name);
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string option_entry(const CLI::Option& option) {
  std::string text = fmt::format(".TP\n\\fB{}\\fR", literal(names_of(option)));
  const std::string argument = argument_of(option);
  if (!argument.empty()) text += fmt::format(" \\fI{}\\fR", literal(argument));
  text += "\n" + paragraphs(option.get_description());
  if (!option.get_default_str().empty())
    text += fmt::format("Default: {}\n", literal(option.get_default_str()));
  return text;
}

// The options by their groups, in the order of the help. An option without a
// group is hidden.
std::string option_sections(const CLI::App& app) {
  std::vector<std::string> groups;
  for (const CLI::Option* option : app.get_options())
    if (!option->get_group().empty() &&
        std::ranges::find(groups, option->get_group()) == groups.end())
      groups.push_back(option->get_group());
  std::string text;
  for (const std::string& group : groups) {
    std::string title = group;
    std::ranges::transform(title, title.begin(),
                           [](unsigned char c) { return std::toupper(c); });
    text += fmt::format(".SH {:?}\n", title);
    for (const CLI::Option* option : app.get_options())
      if (option->get_group() == group) text += option_entry(*option);
  }
  return text;
}

std::string synopsis(const CLI::App& app, const std::string& whole_name) {
  std::string text =
      fmt::format(".SH SYNOPSIS\n\\fB{}\\fR", literal(whole_name));
  if (!subcommands_of(app).empty()) text += " \\fICOMMAND\\fR";
  text += " [\\fIOPTIONS\\fR]";
  for (const CLI::Option* option : app.get_options())
    if (option->get_positional()) {
      const std::string argument =
          fmt::format("\\fI{}\\fR", literal(argument_of(*option)));
      text += option->get_required() ? " " + argument : " [" + argument + "]";
    }
  return text + "\n";
}

constexpr const char* kExitStatus = R"(.SH EXIT STATUS
.TP
0
success
.TP
1
an error at run time
.TP
2
a wrong command line
.TP
3
a file or data are missing
.TP
4
another process is lost
.TP
5
a step that can make no progress
)";

// Uses the tables that come before it. A command is named whole:
// "tagflow cluster start". Bash makes a word of "=", zsh does not.
constexpr const char* kCompletion = R"(_tagflow() {
  local word=${COMP_WORDS[COMP_CWORD]} last=${COMP_WORDS[COMP_CWORD-1]}
  local command=tagflow before= kind options i
  for ((i = 1; i < COMP_CWORD; ++i)); do
    if [[ -n ${_tagflow_words[$command ${COMP_WORDS[i]}]-} ]]; then
      command+=" ${COMP_WORDS[i]}"
    fi
  done
  if [[ $word == '=' ]]; then
    word=
  elif [[ $last == '=' ]]; then
    last=${COMP_WORDS[COMP_CWORD-2]}
  elif [[ $word == --*=* ]]; then
    last=${word%%=*} before=${word%%=*}= word=${word#*=}
  fi
  options=${_tagflow_words[$command]}
  kind=${_tagflow_choices[$command $last]-}
  if [[ -z $kind && $last != -* && $word != -* ]]; then
    kind=${_tagflow_choices[$command]-}
  fi
  if [[ $kind == @*, ]]; then
    # A list goes on after a comma.
    if [[ $word == *,* ]]; then
      before+=${word%,*}, word=${word##*,}
    fi
    compopt -o nospace 2>/dev/null
  fi
  if [[ $kind == @* ]]; then
    kind=${kind#@}
    kind=${_tagflow_names[${kind%,}]}
  fi
  COMPREPLY=()
  if [[ -n $kind ]]; then
    COMPREPLY=($(compgen -P "$before" -W "$kind" -- "$word"))
  elif [[ -z $before && ($word == -* || $options != -*) ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$word"))
  else
    COMPREPLY=($(compgen -P "$before" -f -- "$word"))
  fi
}
complete -o filenames -o bashdefault -F _tagflow tagflow
)";

}  // namespace

std::string bash_completion(const CLI::App& app, const KnownNames& names) {
  CompletionTables tables(names);
  tables.add(app, app.get_name());
  return "# Completes the arguments of tagflow.\n" + tables.text() +
         kCompletion;
}

std::string zsh_completion(const CLI::App& app, const KnownNames& names) {
  return "#compdef tagflow\nautoload -U +X bashcompinit && bashcompinit\n" +
         bash_completion(app, names);
}

std::string manual_page(const CLI::App& app, const std::string& whole_name,
                        const std::string& version) {
  std::string file = whole_name, title = whole_name;
  std::ranges::replace(file, ' ', '-');
  std::ranges::transform(file, title.begin(),
                         [](unsigned char c) { return std::toupper(c); });
  std::string page = fmt::format(".TH {:?} 1 \"\" {:?}\n.SH NAME\n{} \\- {}",
                                 title, "tagflow " + version, literal(file),
                                 paragraphs(app.get_description()));
  page += synopsis(app, whole_name);
  const Apps subs = subcommands_of(app);
  if (!subs.empty()) page += ".SH COMMANDS\n";
  for (const CLI::App* sub : subs)
    page += fmt::format(".TP\n\\fB{}\\fR\n{}", literal(sub->get_name()),
                        paragraphs(sub->get_description()));
  page += option_sections(app);
  if (!app.get_footer().empty())
    page += ".SH NOTES\n" + paragraphs(app.get_footer());
  page += kExitStatus;
  if (app.get_parent() == nullptr) return page;
  return page +
         fmt::format(".SH SEE ALSO\n\\fB{}\\fR(1)\n",
                     literal(app.get_parent()->get_parent() == nullptr
                                 ? "tagflow"
                                 : "tagflow-" + app.get_parent()->get_name()));
}

}  // namespace tagflow::apps
